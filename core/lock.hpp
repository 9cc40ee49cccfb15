// SPDX-License-Identifier: Apache-2.0
// Locks of a few bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace compute {

// A mutex: one compare-and-swap when nobody contends, a futex wait when somebody does.
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

// For what takes a few loads and stores: given back by a plain store, so that it costs half of a Lock. Nothing that blocks may
// be done under it.
class SpinLock {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  void wait() const noexcept {
    for (int spin = 0; held_.load(std::memory_order_relaxed); ++spin) {
      if (spin >= 64) std::this_thread::yield();
    }
  }

  std::atomic<bool> held_{false};
};

}  // namespace compute
