// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/program_store.hpp"

#include <cstdint>

#include "plugins/common/op/core.hpp"

namespace compute::common {
namespace {

// Each part after its size, so that no two lists of parts give the same bytes.
std::string bytes_of(const ProgramKey& key) {
  std::string bytes(key.plugin);
  for (const std::string_view part : {key.device, key.compiler, key.options, key.source}) {
    bytes += ' ' + std::to_string(part.size()) + ' ';
    bytes += part;
  }
  return bytes;
}

}  // namespace

bool may_include(const ProgramKey& key) {
  constexpr std::string_view kWord = "include";  // the directive, and the options of all compilers
  return key.source.find(kWord) != std::string_view::npos || key.options.find(kWord) != std::string_view::npos;
}

std::optional<std::string> load_program(const ProgramKey& key) {
  const std::string bytes = bytes_of(key);
  std::optional<std::string> program;
  const auto take = [](void* context, const void* data, int64_t size_bytes) {
    *static_cast<std::optional<std::string>*>(context) =
        std::string(static_cast<const char*>(data), static_cast<size_t>(size_bytes));
  };
  core().blob_load(bytes.data(), static_cast<int64_t>(bytes.size()), take, &program);
  return program;
}

void store_program(const ProgramKey& key, std::string_view program) {
  const std::string bytes = bytes_of(key);
  core().blob_store(bytes.data(), static_cast<int64_t>(bytes.size()), program.data(),
                    static_cast<int64_t>(program.size()));
}

}  // namespace compute::common
