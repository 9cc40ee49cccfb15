// SPDX-License-Identifier: Apache-2.0
// What an ELF file exports, and which libraries it needs and which of them are not there: all of them, where dlopen's
// message names the first. Nothing is loaded or run; the files are read with every offset checked, for they may be
// truncated or alien.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace compute {

// What one file says of itself.
struct ElfImage {
  std::string problem;    // why it is no shared library of this machine; empty where it is one
  bool is_short = false;  // the problem is a shortage, which passes
  std::string soname;
  std::string build_id;             // the linker's, as hexadecimal digits; empty without one
  std::vector<std::string> needed;  // in the file's order
  std::vector<std::string> rpath;   // entries as written, `$ORIGIN` included
  std::vector<std::string> runpath;
};

// Reads an image. Never throws but for want of memory, whatever the bytes are.
ElfImage read_elf(std::span<const std::byte> file);

// The same for a file, mapped; the problem is the system's word where it cannot be opened.
ElfImage read_elf_file(const std::filesystem::path& file);

// Functions and data that a library shows to others, in the file's order; empty for a file that is none or that has no
// section headers.
std::vector<std::string> exported_names(std::span<const std::byte> file);
std::vector<std::string> exported_names(const std::filesystem::path& file);

struct MissingLibrary {
  std::string name;
  std::string needed_by;           // the file that names it
  std::vector<std::string> tried;  // places that were looked at, in order
  std::vector<std::string> unfit;  // files of that name that do not serve: `/x/libfoo.so: for aarch64`
};

struct ElfDependencies {
  std::string problem;             // of the file itself; nothing else is filled in then
  std::vector<std::string> found;  // files, in the order of loading, without the file itself
  std::vector<MissingLibrary> missing;
  bool is_short = false;  // a shortage, which passes, kept a file from being read: what is missing may be there
};

// Where the dynamic loader looks.
struct ElfSearch {
  std::vector<std::string> library_path;  // LD_LIBRARY_PATH; empty where the process is privileged
  std::filesystem::path cache = "/etc/ld.so.cache";
  std::vector<std::string> standard_folders;
  std::vector<std::string> loaded;  // sonames that the process has already; they are found

  static ElfSearch of_process();
};

// The files that dlopen(name) may take, in its order: LD_LIBRARY_PATH, the cache, the standard folders. Those of a
// folder that do not exist are named too.
std::vector<std::string> find_library(const std::string& name, const ElfSearch& search);

// Follows the needed libraries as ld.so does: RPATH of the file and those that led to it (where it has no RUNPATH),
// LD_LIBRARY_PATH, its RUNPATH, the cache, the standard folders.
ElfDependencies find_dependencies(const std::filesystem::path& file, const ElfSearch& search);

// The paths that ld.so's cache holds for `name`, in its order; empty for a cache that cannot be read.
std::vector<std::string> find_in_cache(std::span<const std::byte> cache, std::string_view name);

}  // namespace compute
