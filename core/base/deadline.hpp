// SPDX-License-Identifier: Apache-2.0
// Deadlines of waits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace compute {

// Deadline::max() is never.
using Deadline = std::chrono::steady_clock::time_point;

inline Deadline deadline_after(int64_t timeout_ns) noexcept {
  const Deadline now = std::chrono::steady_clock::now();
  const bool is_never = timeout_ns >= std::chrono::nanoseconds(Deadline::max() - now).count();
  return is_never ? Deadline::max() : now + std::chrono::nanoseconds(timeout_ns);
}

inline bool is_past(Deadline deadline) noexcept {
  return deadline != Deadline::max() && std::chrono::steady_clock::now() >= deadline;
}

// COMPUTE_TIMEOUT_NONE (INT64_MAX) if it is never.
inline int64_t left_until(Deadline deadline) noexcept {
  if (deadline == Deadline::max()) return INT64_MAX;
  return std::max<int64_t>(0, std::chrono::nanoseconds(deadline - std::chrono::steady_clock::now()).count());
}

}  // namespace compute
