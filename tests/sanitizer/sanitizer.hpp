// SPDX-License-Identifier: Apache-2.0
// Which sanitizer a test is compiled for, where it repeats less or leaves something out.
#pragma once

namespace compute {

inline constexpr bool kThreadSanitizer =
#if defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

inline constexpr bool kSanitizer = kThreadSanitizer ||
#if defined(__SANITIZE_ADDRESS__)
                                   true;
#else
                                   false;
#endif

}  // namespace compute
