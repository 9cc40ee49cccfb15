// SPDX-License-Identifier: Apache-2.0
// A four-byte mutex: one compare-and-swap when nobody contends, a futex wait when somebody does.
#pragma once

#include <atomic>
#include <cstdint>

namespace compute {

class Lock {
 public:
  void lock() noexcept {
    uint32_t expected = kFree;
    if (!state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) wait();
  }

  bool try_lock() noexcept {
    uint32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) state_.notify_one();
  }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kContended = 2;

  void wait() noexcept {
    for (int spin = 0; spin < 64; ++spin) {
      if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
    }
    while (state_.exchange(kContended, std::memory_order_acquire) != kFree) {
      state_.wait(kContended, std::memory_order_relaxed);
    }
  }

  std::atomic<uint32_t> state_{kFree};
};

}  // namespace compute
