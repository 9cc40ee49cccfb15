// SPDX-License-Identifier: Apache-2.0
// Tells the address sanitizer which host memory of a pool is free. Does nothing in other builds.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace compute {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kPoisons = true;
inline void poison(uint64_t address, int64_t size_bytes) noexcept {
  __asan_poison_memory_region(reinterpret_cast<const void*>(address), static_cast<size_t>(size_bytes));
}
inline void unpoison(uint64_t address, int64_t size_bytes) noexcept {
  __asan_unpoison_memory_region(reinterpret_cast<const void*>(address), static_cast<size_t>(size_bytes));
}
#else
inline constexpr bool kPoisons = false;
inline void poison(uint64_t, int64_t) noexcept {}
inline void unpoison(uint64_t, int64_t) noexcept {}
#endif

}  // namespace compute
