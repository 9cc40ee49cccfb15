// SPDX-License-Identifier: Apache-2.0
#include "core/loading/elf_needed.hpp"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "core/settings/config.hpp"
#include "core/trusted_files/trusted_files.hpp"

namespace compute {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kMaxDynamicEntries = 1 << 16;
constexpr size_t kMaxStringBytes = 4096;  // PATH_MAX; a longer name names no file
constexpr size_t kMaxSymbols = 1 << 20;
constexpr size_t kMaxLibraries = 4096;  // of one file's dependencies, all levels

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t kMachine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr uint16_t kMachine = EM_PPC64;
#elif defined(__s390x__)
constexpr uint16_t kMachine = EM_S390;
#elif defined(__i386__)
constexpr uint16_t kMachine = EM_386;
#elif defined(__arm__)
constexpr uint16_t kMachine = EM_ARM;
#else
#error "the ELF machine of this architecture is not known to elf_needed.cpp"
#endif

constexpr unsigned char kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
constexpr unsigned char kData = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "riscv";
    case EM_PPC64:
      return "ppc64";
    case EM_S390:
      return "s390";
    case EM_386:
      return "i386";
    case EM_ARM:
      return "arm";
    default:
      return "machine " + std::to_string(machine);
  }
}

template <typename T>
std::optional<T> read_at(Bytes file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

// A NUL-terminated string within the file, or nothing.
std::optional<std::string> string_at(Bytes file, uint64_t offset) {
  if (offset >= file.size()) return std::nullopt;
  const size_t limit = std::min<size_t>(file.size() - offset, kMaxStringBytes);
  const char* begin = reinterpret_cast<const char*>(file.data()) + offset;
  const void* end = std::memchr(begin, 0, limit);
  if (end == nullptr) return std::nullopt;
  return std::string(begin, static_cast<const char*>(end));
}

std::vector<std::string> split_path(std::string_view text) {
  std::vector<std::string> result;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) result.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

// What a file without ELF's magic is.
std::string describe_alien(Bytes file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 512));
  if (text.empty()) return "an empty file";
  if (text.starts_with("!<arch>\n")) return "a static library, not a shared one";
  if (text.starts_with("MZ")) return "a Windows library, not an ELF file";
  static constexpr std::string_view kMachO[] = {"\xCF\xFA\xED\xFE", "\xCE\xFA\xED\xFE", "\xCA\xFE\xBA\xBE"};
  for (const std::string_view magic : kMachO) {
    if (text.starts_with(magic)) return "a macOS library, not an ELF file";
  }
  const bool is_text = std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7F : std::isspace(byte) != 0;
  });
  if (!is_text) return "not an ELF file";
  for (const char* word : {"GNU ld script", "INPUT", "GROUP", "OUTPUT_FORMAT"}) {
    if (text.find(word) != std::string_view::npos) return "a linker script (text), not a library";
  }
  return "a text file, not a library";
}

struct Dynamic {
  std::vector<uint64_t> needed;
  std::optional<uint64_t> soname, rpath, runpath;
  std::optional<uint64_t> strings;  // address
  uint64_t strings_size = UINT64_MAX;
};

class ElfReader {
 public:
  explicit ElfReader(Bytes file) : file_(file) {}

  ElfImage read() {
    ElfImage image;
    image.problem = check_header();
    if (!image.problem.empty()) return image;
    const std::optional<Dynamic> dynamic = read_dynamic();
    if (!dynamic) {
      image.problem = problem_;
      return image;
    }
    const std::optional<uint64_t> strings = dynamic->strings ? offset_of(*dynamic->strings) : std::nullopt;
    if (!strings) {
      image.problem = "damaged: its string table lies outside of the file";
      return image;
    }
    const auto text = [&](uint64_t place) -> std::string {
      std::optional<std::string> found;
      if (place < dynamic->strings_size) found = string_at(file_, *strings + place);
      if (!found) image.problem = "damaged: a name lies outside of the string table";
      return found.value_or("");
    };
    for (const uint64_t place : dynamic->needed) {
      image.needed.push_back(text(place));
      if (!image.problem.empty()) return image;
    }
    if (dynamic->soname) image.soname = text(*dynamic->soname);
    if (dynamic->rpath) image.rpath = split_path(text(*dynamic->rpath));
    if (dynamic->runpath) image.runpath = split_path(text(*dynamic->runpath));
    image.build_id = read_build_id();
    return image;
  }

  std::vector<std::string> exports() {
    std::vector<std::string> names;
    if (!check_header().empty() || header_.e_shentsize != sizeof(ElfW(Shdr))) return names;
    for (size_t i = 0; i < header_.e_shnum; ++i) {
      const std::optional<ElfW(Shdr)> symbols = section(i);
      if (!symbols || symbols->sh_type != SHT_DYNSYM) continue;
      const std::optional<ElfW(Shdr)> strings = section(symbols->sh_link);
      if (!strings) break;
      const size_t count = std::min<uint64_t>(symbols->sh_size / sizeof(ElfW(Sym)), kMaxSymbols);
      for (size_t s = 0; s < count; ++s) {
        if (symbols->sh_offset > file_.size()) break;
        const std::optional<ElfW(Sym)> symbol = read_at<ElfW(Sym)>(file_, symbols->sh_offset + s * sizeof(ElfW(Sym)));
        if (!symbol) break;
        if (!is_exported(*symbol) || strings->sh_offset > file_.size()) continue;
        std::optional<std::string> name = string_at(file_, strings->sh_offset + symbol->st_name);
        // those two are the linker's
        if (name && *name != "_init" && *name != "_fini") names.push_back(std::move(*name));
      }
      break;
    }
    return names;
  }

 private:
  static bool is_exported(const ElfW(Sym) & symbol) {
    // the fields are read alike in both classes
    const int type = ELF64_ST_TYPE(symbol.st_info), binding = ELF64_ST_BIND(symbol.st_info),
              seen = ELF64_ST_VISIBILITY(symbol.st_other);
    const bool is_thing = type == STT_FUNC || type == STT_OBJECT || type == STT_TLS || type == STT_GNU_IFUNC;
    const bool is_global = binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE;
    return symbol.st_shndx != SHN_UNDEF && is_thing && is_global && (seen == STV_DEFAULT || seen == STV_PROTECTED);
  }

  std::optional<ElfW(Shdr)> section(size_t i) const {
    if (header_.e_shoff == 0 || header_.e_shoff > file_.size()) return std::nullopt;
    return read_at<ElfW(Shdr)>(file_, header_.e_shoff + i * sizeof(ElfW(Shdr)));
  }

  std::string check_header() {
    if (file_.size() < SELFMAG || std::memcmp(file_.data(), ELFMAG, SELFMAG) != 0) return describe_alien(file_);
    const std::optional<ElfW(Ehdr)> header = read_at<ElfW(Ehdr)>(file_, 0);
    if (!header) return "truncated: " + std::to_string(file_.size()) + " bytes";
    header_ = *header;
    // of another class the fields up to e_machine lie where they lie in ours; of another byte order they are swapped
    const uint16_t machine = header_.e_ident[EI_DATA] == kData
                                 ? header_.e_machine
                                 : static_cast<uint16_t>(header_.e_machine << 8 | header_.e_machine >> 8);
    if (machine != kMachine) return "built for " + machine_name(machine) + ", not " + machine_name(kMachine);
    if (header_.e_ident[EI_CLASS] != kClass)
      return kClass == ELFCLASS64 ? "built for 32-bit programs" : "built for 64-bit programs";
    if (header_.e_ident[EI_DATA] != kData) return "built for the other byte order";
    switch (header_.e_type) {
      case ET_DYN:
        break;
      case ET_EXEC:
        return "a program, not a library";
      case ET_REL:
        return "an object file, not a library";
      case ET_CORE:
        return "a core dump, not a library";
      default:
        return "an ELF file of unknown type";
    }
    if (header_.e_phentsize != sizeof(ElfW(Phdr)) || header_.e_phnum == 0) return "damaged: no program headers";
    return "";
  }

  std::optional<ElfW(Phdr)> segment(size_t i) const {
    if (header_.e_phoff > file_.size()) return std::nullopt;
    return read_at<ElfW(Phdr)>(file_, header_.e_phoff + i * sizeof(ElfW(Phdr)));
  }

  // The place in the file of what is loaded at `address`.
  std::optional<uint64_t> offset_of(uint64_t address) const {
    for (size_t i = 0; i < header_.e_phnum; ++i) {
      const std::optional<ElfW(Phdr)> part = segment(i);
      if (!part) return std::nullopt;
      if (part->p_type != PT_LOAD || address < part->p_vaddr || address - part->p_vaddr >= part->p_filesz) continue;
      const uint64_t within = address - part->p_vaddr;
      if (part->p_offset > file_.size() || within >= file_.size() - part->p_offset) return std::nullopt;
      return part->p_offset + within;
    }
    return std::nullopt;
  }

  std::string read_build_id() const {
    for (size_t i = 0; i < header_.e_phnum; ++i) {
      const std::optional<ElfW(Phdr)> part = segment(i);
      if (!part || part->p_type != PT_NOTE || part->p_offset > file_.size()) continue;
      const uint64_t end = part->p_offset + std::min<uint64_t>(part->p_filesz, file_.size() - part->p_offset);
      for (uint64_t at = part->p_offset; at < end;) {
        const std::optional<ElfW(Nhdr)> note = read_at<ElfW(Nhdr)>(file_, at);
        if (!note) break;
        const auto aligned = [](uint64_t size) { return (size + 3) / 4 * 4; };
        const uint64_t name = at + sizeof(*note), id = name + aligned(note->n_namesz);
        at = id + aligned(note->n_descsz);
        if (at > end) break;
        if (note->n_type == NT_GNU_BUILD_ID && string_at(file_, name) == "GNU") return hexadecimal(id, note->n_descsz);
      }
    }
    return "";
  }

  std::string hexadecimal(uint64_t at, uint64_t size) const {
    std::string text;
    for (uint64_t i = at; i < at + size; ++i) {
      const auto byte = static_cast<unsigned char>(file_[i]);
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
    return text;
  }

  std::optional<Dynamic> read_dynamic() {
    for (size_t i = 0; i < header_.e_phnum; ++i) {
      const std::optional<ElfW(Phdr)> part = segment(i);
      if (!part || (part->p_type == PT_LOAD &&
                    (part->p_offset > file_.size() || part->p_filesz > file_.size() - part->p_offset))) {
        problem_ = "truncated: " + std::to_string(file_.size()) + " bytes";
        return std::nullopt;
      }
      if (part->p_type == PT_DYNAMIC) return read_entries(*part);
    }
    problem_ = "damaged: no dynamic section";
    return std::nullopt;
  }

  std::optional<Dynamic> read_entries(const ElfW(Phdr) & part) {
    Dynamic dynamic;
    const size_t count = std::min<uint64_t>(part.p_filesz / sizeof(ElfW(Dyn)), kMaxDynamicEntries);
    if (part.p_offset > file_.size()) {
      problem_ = "truncated: its dynamic section lies outside of the file";
      return std::nullopt;
    }
    for (size_t i = 0; i < count; ++i) {
      const std::optional<ElfW(Dyn)> entry = read_at<ElfW(Dyn)>(file_, part.p_offset + i * sizeof(ElfW(Dyn)));
      if (!entry) {
        problem_ = "truncated: its dynamic section lies outside of the file";
        return std::nullopt;
      }
      const uint64_t value = entry->d_un.d_val;
      switch (entry->d_tag) {
        case DT_NULL:
          return dynamic;
        case DT_NEEDED:
          dynamic.needed.push_back(value);
          break;
        case DT_SONAME:
          dynamic.soname = value;
          break;
        case DT_RPATH:
          dynamic.rpath = value;
          break;
        case DT_RUNPATH:
          dynamic.runpath = value;
          break;
        case DT_STRTAB:
          dynamic.strings = value;
          break;
        case DT_STRSZ:
          dynamic.strings_size = value;
          break;
        default:
          break;
      }
    }
    return dynamic;
  }

  Bytes file_;
  ElfW(Ehdr) header_{};
  std::string problem_;
};

// A file's bytes, mapped for reading. Whoever cuts it short meanwhile stops this process, as he would dlopen.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path) {
    const files::File file(path);
    problem_ = file.problem();
    is_short_ = file.is_short();
    if (!file || file.status().st_size <= 0) return;
    size_ = static_cast<size_t>(file.status().st_size);
    void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
    if (data == MAP_FAILED) {
      is_short_ = files::is_shortage(errno);
      problem_ = std::generic_category().message(errno);
    } else {
      data_ = data;
    }
  }
  ~MappedFile() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& problem() const { return problem_; }
  bool is_short() const { return is_short_; }
  Bytes bytes() const { return data_ == nullptr ? Bytes() : Bytes(static_cast<const std::byte*>(data_), size_); }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
  std::string problem_;
  bool is_short_ = false;
};

// ld.so's `$ORIGIN`, `$LIB` and `$PLATFORM`; an entry with any other is skipped, as there.
std::optional<std::string> expanded(std::string entry, const std::filesystem::path& origin) {
  const std::pair<std::string, std::string> names[] = {
    {"ORIGIN", origin.string()},
#if defined(__x86_64__)
    {"LIB", "lib/x86_64-linux-gnu"},
    {"PLATFORM", "x86_64"},
#elif defined(__aarch64__)
    {"LIB", "lib/aarch64-linux-gnu"},
    {"PLATFORM", "aarch64"},
#endif
  };
  for (const auto& [name, value] : names) {
    for (const std::string& spelling : {"${" + name + "}", "$" + name}) {
      for (size_t at = entry.find(spelling); at != std::string::npos; at = entry.find(spelling, at + value.size())) {
        entry.replace(at, spelling.size(), value);
      }
    }
  }
  // what is left of `$` is another name, unless the folder itself has one
  if (entry.find('$') != std::string::npos && origin.string().find('$') == std::string::npos) return std::nullopt;
  return entry;
}

struct Loaded {
  std::filesystem::path file;
  ElfImage image;
  size_t parent;  // the first that needed it; itself for the root
};

class Resolver {
 public:
  explicit Resolver(const ElfSearch& search) : search_(search), cache_(search.cache) {}

  ElfDependencies resolve(const std::filesystem::path& file) {
    ElfDependencies result;
    Loaded root{file, read_elf_file(file), 0};
    if (!root.image.problem.empty()) {
      result.problem = root.image.problem;
      result.is_short = root.image.is_short;
      return result;
    }
    note(root);
    objects_.push_back(std::move(root));
    // breadth first, as ld.so
    for (size_t i = 0; i < objects_.size(); ++i) {
      const std::vector<std::string> needed = objects_[i].image.needed;
      for (const std::string& name : needed) {
        if (objects_.size() > kMaxLibraries) return finish(std::move(result));
        take(name, i, result);
      }
    }
    return finish(std::move(result));
  }

 private:
  ElfDependencies finish(ElfDependencies result) const {
    for (size_t i = 1; i < objects_.size(); ++i) result.found.push_back(objects_[i].file.string());
    return result;
  }

  void note(const Loaded& object) {
    names_.insert(object.file.filename().string());
    if (!object.image.soname.empty()) names_.insert(object.image.soname);
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(object.file, error);
    if (!error) real_paths_.insert(real.string());
  }

  void take(const std::string& name, size_t by, ElfDependencies& result) {
    if (name.empty() || !names_.insert(name).second) return;
    if (std::find(search_.loaded.begin(), search_.loaded.end(), name) != search_.loaded.end()) return;
    MissingLibrary missing{name, objects_[by].file.string(), {}, {}};
    for (const std::string& folder_or_file : places(name, by, missing.tried)) {
      ElfImage image = read_elf_file(folder_or_file);
      result.is_short = result.is_short || image.is_short;
      if (!image.problem.empty()) {
        if (::access(folder_or_file.c_str(), F_OK) == 0) missing.unfit.push_back(folder_or_file + ": " + image.problem);
        continue;
      }
      std::error_code error;
      const std::filesystem::path real = std::filesystem::canonical(folder_or_file, error);
      if (!error && real_paths_.count(real.string()) != 0) return;
      Loaded object{folder_or_file, std::move(image), by};
      note(object);
      objects_.push_back(std::move(object));
      return;
    }
    result.missing.push_back(std::move(missing));
  }

  // The files that `name` may be, in ld.so's order; `tried` gets the places in words.
  std::vector<std::string> places(const std::string& name, size_t by, std::vector<std::string>& tried) const {
    std::vector<std::string> files;
    const auto try_file = [&](const std::string& file) {
      files.push_back(file);
      tried.push_back(file);
    };
    if (name.find('/') != std::string::npos) {
      const std::optional<std::string> path = expanded(name, origin_of(by));
      if (path) try_file(*path);
      return files;
    }
    const auto try_folders = [&](const std::vector<std::string>& folders, size_t of) {
      for (const std::string& folder : folders) {
        const std::optional<std::string> path = expanded(folder, origin_of(of));
        if (path) try_file(*path + "/" + name);
      }
    };
    if (objects_[by].image.runpath.empty()) {
      for (size_t of = by;; of = objects_[of].parent) {
        if (objects_[of].image.runpath.empty()) try_folders(objects_[of].image.rpath, of);
        if (objects_[of].parent == of) break;
      }
    }
    try_folders(search_.library_path, by);
    try_folders(objects_[by].image.runpath, by);
    const std::vector<std::string> cached = find_in_cache(cache_.bytes(), name);
    files.insert(files.end(), cached.begin(), cached.end());
    tried.push_back(search_.cache.string());
    try_folders(search_.standard_folders, by);
    return files;
  }

  std::filesystem::path origin_of(size_t object) const {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(objects_[object].file, error);
    return (error ? objects_[object].file : real).parent_path();
  }

  const ElfSearch& search_;
  MappedFile cache_;
  std::vector<Loaded> objects_;
  std::set<std::string> names_;  // asked for or loaded, by name and soname
  std::set<std::string> real_paths_;
};

// glibc's cache, the format since 2.2 (after the older one, in files of before 2.32).
constexpr std::string_view kCacheMagic = "glibc-ld.so.cache1.1";
struct CacheHeader {
  char magic[20];
  uint32_t count;
  uint32_t strings_size;
  uint32_t unused[5];
};
struct CacheEntry {
  int32_t flags;
  uint32_t name;  // both from the start of this header
  uint32_t path;
  uint32_t os_version;
  uint64_t hardware;
};
static_assert(sizeof(CacheHeader) == 48 && sizeof(CacheEntry) == 24);

}  // namespace

ElfImage read_elf(Bytes file) { return ElfReader(file).read(); }

ElfImage read_elf_file(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  if (mapped.problem().empty()) return read_elf(mapped.bytes());
  ElfImage image;
  image.problem = mapped.problem();
  image.is_short = mapped.is_short();
  return image;
}

std::vector<std::string> exported_names(Bytes file) { return ElfReader(file).exports(); }

std::vector<std::string> exported_names(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  return exported_names(mapped.bytes());
}

std::vector<std::string> find_in_cache(Bytes cache, std::string_view name) {
  std::vector<std::string> result;
  const std::string_view text(reinterpret_cast<const char*>(cache.data()), cache.size());
  const size_t start = text.find(kCacheMagic);
  if (start == std::string_view::npos) return result;
  const Bytes file = cache.subspan(start);
  const std::optional<CacheHeader> header = read_at<CacheHeader>(file, 0);
  if (!header) return result;
  for (uint64_t i = 0; i < header->count; ++i) {
    const std::optional<CacheEntry> entry = read_at<CacheEntry>(file, sizeof(CacheHeader) + i * sizeof(CacheEntry));
    if (!entry) break;
    if (entry->name >= file.size() || !text.substr(start + entry->name).starts_with(name)) continue;
    if (string_at(file, entry->name) != name) continue;
    if (std::optional<std::string> path = string_at(file, entry->path)) result.push_back(std::move(*path));
  }
  return result;
}

std::vector<std::string> find_library(const std::string& name, const ElfSearch& search) {
  std::vector<std::string> result;
  for (const std::string& folder : search.library_path) result.push_back(folder + "/" + name);
  const MappedFile cache(search.cache);
  for (std::string& file : find_in_cache(cache.bytes(), name)) result.push_back(std::move(file));
  for (const std::string& folder : search.standard_folders) result.push_back(folder + "/" + name);
  return result;
}

ElfSearch ElfSearch::of_process() {
  ElfSearch search;
  const char* path = process_is_privileged() ? nullptr : std::getenv("LD_LIBRARY_PATH");
  if (path != nullptr) {
    std::string folders = path;
    std::replace(folders.begin(), folders.end(), ';', ':');
    search.library_path = split_path(folders);
  }
#if defined(__x86_64__)
  search.standard_folders = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"};
#elif defined(__aarch64__)
  search.standard_folders = {"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"};
#endif
  for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}) search.standard_folders.emplace_back(folder);
  const auto note = [](dl_phdr_info* info, size_t, void* loaded) {
    if (info->dlpi_name != nullptr && *info->dlpi_name != '\0') {
      auto& names = *static_cast<std::vector<std::string>*>(loaded);
      names.push_back(std::filesystem::path(info->dlpi_name).filename().string());
    }
    return 0;
  };
  ::dl_iterate_phdr(note, &search.loaded);
  return search;
}

ElfDependencies find_dependencies(const std::filesystem::path& file, const ElfSearch& search) {
  return Resolver(search).resolve(file);
}

}  // namespace compute
