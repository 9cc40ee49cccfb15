// SPDX-License-Identifier: Apache-2.0
// Which sanitizer a test runs with, where it repeats less or leaves something out.
#pragma once

// The address sanitizer defines it. Code of tests is compiled once for programs with and without that sanitizer.
extern "C" void __asan_init(void) __attribute__((weak));

namespace compute {

inline constexpr bool kThreadSanitizer =
#if defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

inline const bool kSanitizer = kThreadSanitizer || &__asan_init != nullptr;

}  // namespace compute
