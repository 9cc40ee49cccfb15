// SPDX-License-Identifier: Apache-2.0
// Tells the address sanitizer which host memory of a pool nobody holds. Without it this does nothing.
#pragma once

#include <cstddef>
#include <cstdint>

// GCC says so by a macro, Clang by a feature.
#if defined(__SANITIZE_ADDRESS__)
#define COMPUTE_POISONS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COMPUTE_POISONS
#endif
#endif
#if defined(COMPUTE_POISONS)
#include <sanitizer/asan_interface.h>
#endif

namespace compute {

#if defined(COMPUTE_POISONS)
#undef COMPUTE_POISONS
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
