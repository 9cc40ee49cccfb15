// SPDX-License-Identifier: Apache-2.0
// Compiled programs (CUDA cubins, OpenCL binaries) in core's store of blobs, so that a second process compiles nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace compute::common {

/// The inputs of a compiled program. Any difference makes another entry.
struct ProgramKey {
  std::string_view plugin;
  std::string_view source;
  std::string_view device;    // architecture, or an OpenCL device with its driver's version
  std::string_view compiler;  // name and version
  std::string_view options;
};

/// Whether the compiler may read other files for this program. Their contents are not in the key, so such a program is
/// not stored.
bool may_include(const ProgramKey& key);

std::optional<std::string> load_program(const ProgramKey& key);
void store_program(const ProgramKey& key, std::string_view program);

}  // namespace compute::common
