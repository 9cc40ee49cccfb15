// SPDX-License-Identifier: Apache-2.0
// What an ELF file exports, which libraries it needs, and all of these that are missing; dlopen's message names only
// the first. Nothing is loaded or run. The files are read with every offset checked, because they may be truncated or
// invalid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace compute {

// The contents of one file.
struct ElfImage {
  std::string problem;    // why it is not a shared library of this machine; empty if it is one
  bool is_short = false;  // the problem is a temporary shortage
  std::string soname;
  std::string build_id;             // the linker's, as hexadecimal digits; empty without one
  std::vector<std::string> needed;  // in the file's order
  std::vector<std::string> rpath;   // entries as written, `$ORIGIN` included
  std::vector<std::string> runpath;
};

// Reads an image. Throws only if memory runs out, whatever the bytes are.
ElfImage read_elf(std::span<const std::byte> file);

// The same for a file, which is mapped; if it cannot be opened, the problem is the system's message.
ElfImage read_elf_file(const std::filesystem::path& file);

// Functions and data that a library exports, in the file's order; empty for a file that is not a library or has no
// section headers.
std::vector<std::string> exported_names(std::span<const std::byte> file);
std::vector<std::string> exported_names(const std::filesystem::path& file);

struct MissingLibrary {
  std::string name;
  std::string needed_by;           // the file that names it
  std::vector<std::string> tried;  // places that were searched, in order
  std::vector<std::string> unfit;  // files of that name that cannot be used: `/x/libfoo.so: for aarch64`
};

struct ElfDependencies {
  std::string problem;             // of the file itself; nothing else is filled in then
  std::vector<std::string> found;  // files, in the order of loading, without the file itself
  std::vector<MissingLibrary> missing;
  bool is_short = false;  // a temporary shortage prevented reading a file: missing libraries may exist
};

// Where the dynamic loader searches.
struct ElfSearch {
  std::vector<std::string> library_path;  // LD_LIBRARY_PATH; empty if the process is privileged
  std::filesystem::path cache = "/etc/ld.so.cache";
  std::vector<std::string> standard_folders;
  std::vector<std::string> loaded;  // sonames that the process has loaded; these count as found

  static ElfSearch of_process();
};

// The files that dlopen(name) may open, in its order: LD_LIBRARY_PATH, the cache, the standard folders. Files that do
// not exist are included.
std::vector<std::string> find_library(const std::string& name, const ElfSearch& search);

// Finds the needed libraries as ld.so does: RPATH of the file and of those that led to it (if it has no RUNPATH),
// LD_LIBRARY_PATH, its RUNPATH, the cache, the standard folders.
ElfDependencies find_dependencies(const std::filesystem::path& file, const ElfSearch& search);

// The paths in ld.so's cache for `name`, in its order; empty for a cache that cannot be read.
std::vector<std::string> find_in_cache(std::span<const std::byte> cache, std::string_view name);

}  // namespace compute
