// SPDX-License-Identifier: Apache-2.0
#include "core/base/library_file.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>

#include "core/trusted_files/trusted_files.hpp"

namespace compute {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxMapBytes = 1 << 24;

// The file that this code is mapped from, as the kernel knows it.
fs::path mapped_file(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  const std::string maps = files::File("/proc/self/maps").read(kMaxMapBytes).value_or("");
  for (size_t start = 0; start < maps.size();) {
    const size_t line_end = std::min(maps.find('\n', start), maps.size());
    const std::string line = maps.substr(start, line_end - start);
    start = line_end + 1;
    uintptr_t begin = 0, end = 0;
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &path_at) != 2)
      continue;
    if (begin <= wanted && wanted < end) return line.substr(static_cast<size_t>(path_at));
  }
  return {};
}

}  // namespace

fs::path library_file() {
  static const char kHere = 0;
  Dl_info info{};
  // For a program, and for a library loaded by a relative path, dladdr returns the load-time relative path, now invalid
  const bool named = ::dladdr(&kHere, &info) != 0 && info.dli_fname != nullptr && *info.dli_fname == '/';
  const fs::path file = named ? fs::path(info.dli_fname) : mapped_file(&kHere);
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  return error ? file : real;
}

fs::path library_folder() { return library_file().parent_path(); }

}  // namespace compute
