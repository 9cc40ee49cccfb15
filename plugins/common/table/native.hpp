// SPDX-License-Identifier: Apache-2.0
// Native handles: the structs that plugins fill for programs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "plugins/common/op/core.hpp"

namespace compute::common {

// Writes the fields of `value` after the first three, as far as the program's struct has room for them.
template <class T>
void give_handle(void* out_handle, const T& value) {
  compute_struct_header header;
  std::memcpy(&header, out_handle, sizeof header);
  const size_t size = std::clamp<size_t>(header.struct_size, sizeof header, sizeof value);
  std::memcpy(static_cast<char*>(out_handle) + sizeof header, reinterpret_cast<const char*>(&value) + sizeof header,
              size - sizeof header);
}

[[noreturn]] inline void refuse_handle(const char* plugin, uint32_t kind) {
  throw Error(COMPUTE_ERROR_UNSUPPORTED,
              std::string("the ") + plugin + " plugin has no native handles of kind " + std::to_string(kind));
}

}  // namespace compute::common
