// SPDX-License-Identifier: Apache-2.0
#include "core/loading/library_check.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>

#include "core/loading/child_process.hpp"
#include "core/text/ascii.hpp"
#include "core/trusted_files/trusted_files.hpp"

// The linker defines it: the header of this library.
extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr) __ehdr_start;  // NOLINT(bugprone-reserved-identifier)

namespace compute {
namespace {

constexpr size_t kMostSegments = 1 << 10;
constexpr std::chrono::seconds kPatience(10);

bool read_at(const files::File& file, uint64_t offset, void* data, size_t size) {
  return ::pread(file.descriptor(), data, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

// The path of the dynamic linker that runs in this process; empty in a static program.
std::string dynamic_linker() {
  Dl_info info{};
  const auto* const address = reinterpret_cast<const void*>(::getauxval(AT_BASE));
  return address != nullptr && ::dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

}  // namespace

std::string why_no_library(const std::filesystem::path& path, bool* out_is_short) {
  const files::File file(path);
  *out_is_short = file.is_short();
  if (!file) return file.problem();
  if (file.status().st_size == 0) return "an empty file";
  ElfW(Ehdr) header{};
  if (!read_at(file, 0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return "not a shared library";
  if (header.e_ident[EI_CLASS] != __ehdr_start.e_ident[EI_CLASS] ||
      header.e_ident[EI_DATA] != __ehdr_start.e_ident[EI_DATA] || header.e_machine != __ehdr_start.e_machine)
    return "a library for another kind of machine";
  if (header.e_type != ET_DYN) return "not a shared library";
  if (header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum > kMostSegments) return "damaged";
  for (size_t i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment{};
    const auto end = static_cast<uint64_t>(file.status().st_size);
    if (!read_at(file, header.e_phoff + i * sizeof segment, &segment, sizeof segment) || segment.p_offset > end ||
        segment.p_filesz > end - segment.p_offset)
      return "truncated: " + std::to_string(end) + " bytes";
  }
  return "";
}

std::vector<std::string> missing_libraries(const std::filesystem::path& file) {
  constexpr std::string_view kMark = " => not found";
  std::vector<std::string> missing;
  const std::string linker = dynamic_linker();
  if (linker.empty()) return missing;
  std::string problem;
  ChildProcess child({linker, file.string()}, {"LD_TRACE_LOADED_OBJECTS=1"}, STDOUT_FILENO, &problem);
  if (!child || !child.wait(ChildProcess::Clock::now() + kPatience)) return missing;
  const std::string& text = child.output();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.ends_with(kMark)) missing.emplace_back(trimmed(line.substr(0, line.size() - kMark.size())));
    begin = end + 1;
  }
  return missing;
}

}  // namespace compute
