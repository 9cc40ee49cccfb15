// SPDX-License-Identifier: Apache-2.0
// Kernels of programs take the address of an element. OpenCL 1.2 passes buffers only, and parts of a buffer begin at
// multiples of 128 bytes or more. So each pointer gets an offset as a second parameter.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace compute::opencl {

struct OffsetSource {
  std::string text;
  std::vector<bool> has_offset;  // by parameter of the source: an offset in bytes (long) follows it
};

// The prefix of the names of pointers that have an offset.
inline constexpr std::string_view kBasePrefix = "compute_base_";

// The source with an offset for each pointer to global or constant memory of the kernel `name`. Lines keep their
// numbers. Nothing if the kernel's definition is not found, as when a macro makes it.
std::optional<OffsetSource> with_offsets(std::string_view source, std::string_view name);

}  // namespace compute::opencl
