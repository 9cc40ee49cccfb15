// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace compute {

// Copies a table or struct of an older or newer version into one of the current size; missing trailing fields are zero.
template <class T>
T copy_sized(const T* source, int64_t source_size) {
  T copy{};
  if (source != nullptr && source_size > 0) {
    std::memcpy(static_cast<void*>(&copy), source, static_cast<size_t>(std::min<int64_t>(source_size, sizeof(T))));
  }
  return copy;
}

}  // namespace compute
