// SPDX-License-Identifier: Apache-2.0
// Waiting without sleeping.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace compute::cpu {

// The clock of marks, in nanoseconds. It is the host's.
inline int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Looks for `done` for at most spin_ns.
template <class F>
bool spin(int64_t spin_ns, const F& done) {
  if (done()) return true;
  if (spin_ns <= 0) return false;
  const int64_t end = now_ns() + spin_ns;
  do {
    for (int i = 0; i < 32; ++i) {
      pause();
      if (done()) return true;
    }
  } while (now_ns() < end);
  return false;
}

}  // namespace compute::cpu
