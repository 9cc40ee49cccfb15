// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/exit_handlers.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <set>
#include <span>
#include <string_view>
#include <vector>

namespace compute::common {
namespace {

using Register = int (*)(void (*)(void*), void*, void*);

#if defined(__x86_64__)
constexpr uint32_t kSlotTypes[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#elif defined(__aarch64__)
constexpr uint32_t kSlotTypes[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#else
constexpr std::span<const uint32_t> kSlotTypes;
#endif

std::atomic<void (*)()> run_before{nullptr};
// The C library's __cxa_atexit, of the type that the Itanium C++ ABI gives it (3.3.6.3). Looked up, since a plugin of
// ours registers no destructor.
std::atomic<Register> register_it{nullptr};

struct Handler {
  void (*function)(void*);
  void* argument;
  Handler* before;
};
// All of them, which are never freed: they are needed until the process ends.
std::atomic<Handler*> handlers{nullptr};

// Stands for __cxa_atexit in the libraries.
int register_behind(void (*function)(void*), void* argument, void* library) {
  Handler* handler = new (std::nothrow) Handler{function, argument, handlers.load()};
  if (handler == nullptr) return register_it.load()(function, argument, library);
  while (!handlers.compare_exchange_weak(handler->before, handler)) continue;
  const auto run = [](void* given) {
    const Handler& own = *static_cast<const Handler*>(given);
    run_before.load()();
    own.function(own.argument);
  };
  return register_it.load()(run, handler, library);
}

// A loaded library, as its dynamic section describes it.
struct Library {
  ElfW(Addr) base = 0;
  const char* strings = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  std::span<const ElfW(Rela)> bindings, relocations;
  std::string_view name;  // its DT_SONAME
  std::vector<std::string_view> needs;
  ElfW(Addr) read_only_begin = 0, read_only_end = 0;  // what the loader made so once it had relocated
  bool holds_address = false;
};

ElfW(Addr) page_of(ElfW(Addr) address) {
  static const auto size = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  return address - address % size;
}

// The loader has turned the addresses of a dynamic section into absolute ones, but for the kernel's own object.
template <class T>
const T* at(const Library& library, ElfW(Addr) address) {
  return reinterpret_cast<const T*>(address < library.base ? library.base + address : address);
}

Library read(const dl_phdr_info& object, const void* address) {
  Library library;
  library.base = object.dlpi_addr;
  const ElfW(Dyn)* dynamic = nullptr;
  for (const ElfW(Phdr) & header : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    const ElfW(Addr) begin = object.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (header.p_type == PT_GNU_RELRO) {
      library.read_only_begin = page_of(begin);
      library.read_only_end = page_of(begin + header.p_memsz);
    }
    if (header.p_type == PT_LOAD && reinterpret_cast<ElfW(Addr)>(address) - begin < header.p_memsz)
      library.holds_address = true;
  }
  if (dynamic == nullptr) return library;
  ElfW(Addr) bindings = 0, relocations = 0;
  size_t bindings_bytes = 0, relocations_bytes = 0, relative_count = 0, kind_of_bindings = DT_RELA;
  std::vector<size_t> needs;
  size_t name = 0;
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_STRTAB:
        library.strings = at<char>(library, entry->d_un.d_ptr);
        break;
      case DT_SYMTAB:
        library.symbols = at<ElfW(Sym)>(library, entry->d_un.d_ptr);
        break;
      case DT_JMPREL:
        bindings = entry->d_un.d_ptr;
        break;
      case DT_PLTRELSZ:
        bindings_bytes = entry->d_un.d_val;
        break;
      case DT_PLTREL:
        kind_of_bindings = entry->d_un.d_val;
        break;
      case DT_RELA:
        relocations = entry->d_un.d_ptr;
        break;
      case DT_RELASZ:
        relocations_bytes = entry->d_un.d_val;
        break;
      case DT_RELACOUNT:
        relative_count = entry->d_un.d_val;
        break;
      case DT_NEEDED:
        needs.push_back(entry->d_un.d_val);
        break;
      case DT_SONAME:
        name = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (library.strings == nullptr || library.symbols == nullptr) return Library();
  if (bindings != 0 && kind_of_bindings == DT_RELA) {
    library.bindings = {at<ElfW(Rela)>(library, bindings), bindings_bytes / sizeof(ElfW(Rela))};
  }
  if (const size_t count = relocations_bytes / sizeof(ElfW(Rela)); relocations != 0 && count > relative_count) {
    library.relocations = {at<ElfW(Rela)>(library, relocations) + relative_count,
                           count - relative_count};  // those name no symbol
  }
  if (name != 0) library.name = library.strings + name;
  for (const size_t need : needs) library.needs.emplace_back(library.strings + need);
  return library;
}

std::vector<Library> loaded_libraries(const void* address) {
  struct Search {
    const void* address;
    std::vector<Library> found;
    std::exception_ptr failure;
  } search{address, {}, nullptr};
  const auto add = [](dl_phdr_info* object, size_t, void* given) {
    Search& own = *static_cast<Search*>(given);
    try {
      own.found.push_back(read(*object, own.address));
      return 0;
    } catch (...) {  // the loader's locks are held here
      own.failure = std::current_exception();
      return 1;
    }
  };
  dl_iterate_phdr(add, &search);
  if (search.failure) std::rethrow_exception(search.failure);
  return search.found;
}

void set_slot(const Library& library, ElfW(Addr) slot) {
  const ElfW(Addr) page = page_of(slot);
  const bool is_read_only = library.read_only_begin <= page && page < library.read_only_end;
  const auto protect = [&](int access) { return mprotect(reinterpret_cast<void*>(page), 1, access) == 0; };
  if (is_read_only && !protect(PROT_READ | PROT_WRITE)) return;
  __atomic_store_n(reinterpret_cast<Register*>(slot), &register_behind, __ATOMIC_RELEASE);
  if (is_read_only) protect(PROT_READ);
}

void change(const Library& library, std::span<const ElfW(Rela)> relocations) {
  for (const ElfW(Rela) & relocation : relocations) {
    const auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
    if (std::find(std::begin(kSlotTypes), std::end(kSlotTypes), type) == std::end(kSlotTypes)) continue;
    if (std::strcmp(library.strings + library.symbols[ELF64_R_SYM(relocation.r_info)].st_name, "__cxa_atexit") != 0)
      continue;
    set_slot(library, library.base + relocation.r_offset);
  }
}

}  // namespace

void run_before_exit_handlers_of(const void* address, void (*before)()) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<ElfW(Addr)>& done = *new std::set<ElfW(Addr)>;
  static std::set<const void*>& known = *new std::set<const void*>;
  const std::lock_guard guard(mutex);
  if (known.contains(address)) return;
  const auto found_register = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, "__cxa_atexit"));
  if (found_register == nullptr) return;
  register_it.store(found_register);
  run_before.store(before);
  const std::vector<Library> loaded = loaded_libraries(address);
  std::vector<const Library*> wanted;
  for (const Library& library : loaded) {
    if (library.holds_address) wanted.push_back(&library);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (const std::string_view need : wanted[i]->needs) {
      const auto found =
          std::find_if(loaded.begin(), loaded.end(), [&](const Library& one) { return one.name == need; });
      if (found != loaded.end() && std::find(wanted.begin(), wanted.end(), &*found) == wanted.end())
        wanted.push_back(&*found);
    }
  }
  for (const Library* library : wanted) {
    if (!done.insert(library->base).second) continue;
    change(*library, library->bindings);
    change(*library, library->relocations);
  }
  known.insert(address);
}

}  // namespace compute::common
