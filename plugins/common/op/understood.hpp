// SPDX-License-Identifier: Apache-2.0
// Requests of a newer core that this plugin does not know: skipped if the interface allows it, else refused.
#pragma once

#include <compute/plugin.h>

#include <cstdint>

#include "plugins/common/op/core.hpp"

namespace compute::common {

// Throws UNSUPPORTED for an entry of a `next` chain that must be understood: plugins of this project know no entries.
void require_known_entries(const void* next, const char* what);

// Throws UNSUPPORTED for flags that must be understood, 16 to 31, other than `known`.
inline void require_known_flags(uint32_t flags, const char* what, uint32_t known = 0) {
  const uint32_t unknown = flags & 0xffff0000u & ~known;
  if (unknown != 0) [[unlikely]] {
    throw Error(COMPUTE_ERROR_UNSUPPORTED, std::string(what) + " has flags " + std::to_string(flags) + "; " +
                                               std::to_string(unknown) + " is not supported and must not be ignored");
  }
}

// Both, for a struct from core. NULL is a struct with neither.
template <class T>
void require_understood(const T* given, const char* what) {
  if (given == nullptr) return;
  if (given->next != nullptr) [[unlikely]]
    require_known_entries(given->next, what);
  if constexpr (requires { given->flags; }) {
    if (COMPUTE_PLUGIN_HAS(given, flags)) require_known_flags(given->flags, what);
  }
}

// The same for every element of an array.
template <class T>
void require_understood(const T* array, int64_t count, const char* what) {
  for (int64_t i = 0; i < count; ++i) require_understood(at_step(array, i), what);
}

}  // namespace compute::common
