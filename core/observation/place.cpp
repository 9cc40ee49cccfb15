// SPDX-License-Identifier: Apache-2.0
#include "core/observation/place.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/base/scope.hpp"

namespace compute {
namespace {

// ---- Walking up -----------------------------------------------------------------------------------------------------

// The addresses of the file that this code is in.
struct OwnRange {
  uintptr_t begin = 0, end = 0;
};

int find_own(dl_phdr_info* info, size_t, void* data) {
  auto& own = *static_cast<OwnRange*>(data);
  const auto here = reinterpret_cast<uintptr_t>(&find_own);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (here < begin || here >= begin + segment.p_memsz) continue;
    own = {begin, begin + segment.p_memsz};
    return 1;
  }
  return 0;
}

const OwnRange& own_range() noexcept {
  static const OwnRange own = [] {
    OwnRange found;
    dl_iterate_phdr(find_own, &found);
    return found;
  }();
  return own;
}

_Unwind_Reason_Code look_at_frame(_Unwind_Context* context, void* data) {
  const auto address = static_cast<uintptr_t>(_Unwind_GetIP(context));
  const OwnRange& own = own_range();
  if (address >= own.begin && address < own.end) return _URC_NO_REASON;
  *static_cast<const void**>(data) = reinterpret_cast<const void*>(address);
  return _URC_END_OF_STACK;
}

// ---- Names ----------------------------------------------------------------------------------------------------------

// A line of a file. Code of this library's C++ headers is inlined into the program: its lines are not the program's.
struct Line {
  std::string file;
  int64_t line = 0;

  bool is_of_headers() const { return file.find("/compute/") != std::string::npos && file.ends_with(".hpp"); }
  std::string text() const {
    return file.empty() ? "" : fmt::format("{}:{}", std::filesystem::path(file).filename().string(), line);
  }
};

// libdw of elfutils, as far as it is used.
struct DwflCallbacks {
  int (*find_elf)(...);
  int (*find_debuginfo)(...);
  int (*section_address)(...);
  char** debuginfo_path;
};
struct DwarfDie {
  void* address;
  void* unit;
  void* abbreviation;
  long padding;
};
struct DwarfAttribute {
  unsigned int code, form;
  unsigned char* value;
  void* unit;
};

class Libdw {
 public:
  Libdw() {
    library_ = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    const bool has_all =
        find(begin_, "dwfl_begin") && find(report_, "dwfl_linux_proc_report") && find(report_end_, "dwfl_report_end") &&
        find(module_, "dwfl_addrmodule") && find(source_, "dwfl_module_getsrc") && find(line_, "dwfl_lineinfo") &&
        find(report_begin_, "dwfl_report_begin") && find(unit_, "dwfl_module_addrdie") &&
        find(scopes_, "dwarf_getscopes") && find(scopes_of_, "dwarf_getscopes_die") && find(tag_, "dwarf_tag") &&
        find(attribute_, "dwarf_attr") && find(number_, "dwarf_formudata") && find(files_, "dwarf_getsrcfiles") &&
        find(file_, "dwarf_filesrc") && find(callbacks_.find_elf, "dwfl_linux_proc_find_elf");
    callbacks_.find_debuginfo = find_nothing;
    if (has_all) session_ = begin_(&callbacks_);
  }

  // "affine_loop.c:41"; "" if nothing is known.
  std::string line_of(uintptr_t address) {
    if (session_ == nullptr) return "";
    void* module = module_(session_, address);
    if (module == nullptr) {  // libraries may have been loaded since
      report_begin_(session_);
      report_(session_, getpid());
      report_end_(session_, nullptr, nullptr);
      module = module_(session_, address);
    }
    void* const source = module != nullptr ? source_(module, address) : nullptr;
    if (source == nullptr) return "";
    int number = 0;
    const char* const file = line_(source, nullptr, &number, nullptr, nullptr, nullptr);
    if (file == nullptr) return "";
    Line line{file, number};
    if (line.is_of_headers()) leave_headers(module, address, line);
    return line.text();
  }

 private:
  // The library's own search may ask servers.
  static int find_nothing(...) { return -1; }

  template <class Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr;
  }

  // Goes from inlined functions to their callers.
  void leave_headers(void* module, uintptr_t address, Line& line) {
    constexpr int kInlined = 0x1d;                  // DW_TAG_inlined_subroutine
    constexpr unsigned kFile = 0x58, kLine = 0x59;  // DW_AT_call_file, DW_AT_call_line
    uint64_t bias = 0;
    DwarfDie* const unit = unit_(module, address, &bias);
    void* files = nullptr;
    size_t file_count = 0;
    if (unit == nullptr || files_(unit, &files, &file_count) != 0) return;
    DwarfDie* innermost = nullptr;
    DwarfDie* scopes = nullptr;
    const int found = scopes_(unit, address - bias, &innermost);
    const int count = found > 0 ? scopes_of_(innermost, &scopes) : 0;
    for (int i = 0; i < count && line.is_of_headers(); ++i) {
      if (tag_(scopes + i) != kInlined) continue;
      uint64_t file = 0, number = 0;
      if (!read(scopes + i, kFile, file) || !read(scopes + i, kLine, number) || file >= file_count) break;
      const char* const name = file_(files, static_cast<size_t>(file), nullptr, nullptr);
      if (name == nullptr) break;
      line = {name, static_cast<int64_t>(number)};
    }
    std::free(scopes);
    std::free(innermost);
  }

  bool read(DwarfDie* die, unsigned name, uint64_t& out) {
    DwarfAttribute attribute{};
    return attribute_(die, name, &attribute) != nullptr && number_(&attribute, &out) == 0;
  }

  void* library_ = nullptr;
  DwflCallbacks callbacks_{};
  void* session_ = nullptr;
  void* (*begin_)(const DwflCallbacks*) = nullptr;
  void (*report_begin_)(void*) = nullptr;
  int (*report_)(void*, pid_t) = nullptr;
  int (*report_end_)(void*, int (*)(void*), void*) = nullptr;
  void* (*module_)(void*, uint64_t) = nullptr;
  void* (*source_)(void*, uint64_t) = nullptr;
  const char* (*line_)(void*, uint64_t*, int*, int*, uint64_t*, uint64_t*) = nullptr;
  DwarfDie* (*unit_)(void*, uint64_t, uint64_t*) = nullptr;
  int (*scopes_)(DwarfDie*, uint64_t, DwarfDie**) = nullptr;
  int (*scopes_of_)(DwarfDie*, DwarfDie**) = nullptr;
  int (*tag_)(DwarfDie*) = nullptr;
  DwarfAttribute* (*attribute_)(DwarfDie*, unsigned, DwarfAttribute*) = nullptr;
  int (*number_)(DwarfAttribute*, uint64_t*) = nullptr;
  int (*files_)(DwarfDie*, void**, size_t*) = nullptr;
  const char* (*file_)(void*, size_t, uint64_t*, uint64_t*) = nullptr;
};

// libbacktrace, as far as it is used.
class Libbacktrace {
 public:
  Libbacktrace() {
    void* const library = dlopen("libbacktrace.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    using Create = void* (*)(const char*, int, void (*)(void*, const char*, int), void*);
    const auto create = reinterpret_cast<Create>(dlsym(library, "backtrace_create_state"));
    look_up_ = reinterpret_cast<LookUp>(dlsym(library, "backtrace_pcinfo"));
    if (create != nullptr && look_up_ != nullptr) state_ = create(nullptr, 1, ignore_error, nullptr);
  }

  std::string line_of(uintptr_t address) {
    std::string text;
    if (state_ != nullptr) look_up_(state_, address, take_line, ignore_error, &text);
    return text;
  }

 private:
  using LookUp = int (*)(void*, uintptr_t, int (*)(void*, uintptr_t, const char*, int, const char*),
                         void (*)(void*, const char*, int), void*);

  static void ignore_error(void*, const char*, int) {}
  // Called for an inlined function, then for its caller.
  static int take_line(void* data, uintptr_t, const char* file, int number, const char*) {
    if (file == nullptr) return 0;
    const Line line{file, number};
    *static_cast<std::string*>(data) = line.text();
    return line.is_of_headers() ? 0 : 1;
  }

  void* state_ = nullptr;
  LookUp look_up_ = nullptr;
};

std::string demangled(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  if (status != 0 || text == nullptr) return name;
  std::string result = text;
  std::free(text);
  return result;
}

// "main+0x1f (affine_loop)", from the symbols that the file exports.
std::string symbol_of(uintptr_t address) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || info.dli_fname == nullptr)
    return fmt::format("{:#x}", address);
  const std::string file = std::filesystem::path(info.dli_fname).filename().string();
  if (info.dli_sname == nullptr)
    return fmt::format("{}+{:#x}", file, address - reinterpret_cast<uintptr_t>(info.dli_fbase));
  return fmt::format("{}+{:#x} ({})", demangled(info.dli_sname), address - reinterpret_cast<uintptr_t>(info.dli_saddr),
                     file);
}

struct Names {
  std::mutex mutex;
  Libdw libdw;
  Libbacktrace libbacktrace;
  std::map<uintptr_t, std::string> known;
};

}  // namespace

ProgramPlace current_place() noexcept {
  ProgramPlace place;
  try {
    place.scope = shared_scope();
  } catch (...) {
    return place;
  }
  if (place.scope == nullptr) _Unwind_Backtrace(look_at_frame, &place.address);
  return place;
}

std::string place_text(const ProgramPlace& place) {
  if (place.scope != nullptr) return *place.scope;
  if (place.address == nullptr) return "";
  static auto* const names = new Names;
  const std::lock_guard guard(names->mutex);
  const uintptr_t call = reinterpret_cast<uintptr_t>(place.address) - 1;  // in the call, not after it
  const auto [entry, is_new] = names->known.try_emplace(call);
  if (is_new) {
    entry->second = names->libdw.line_of(call);
    if (entry->second.empty()) entry->second = names->libbacktrace.line_of(call);
    if (entry->second.empty()) entry->second = symbol_of(call);
  }
  return entry->second;
}

}  // namespace compute
