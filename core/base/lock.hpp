// SPDX-License-Identifier: Apache-2.0
// Locks of a few bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "core/base/deadline.hpp"

namespace compute {

// Sleeps until another thread signals a change of `word`, at most until `deadline`. Does not sleep if `word` is no
// longer `seen`. May return early.
void wait_on_word(const std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) noexcept;
void wake_one_on_word(const std::atomic<uint32_t>& word) noexcept;

// A mutex: one compare-and-swap without contention, a futex wait with contention.
class Lock {
 public:
  void lock() noexcept {
    uint32_t expected = kFree;
    if (!state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed))
      wait(Deadline::max());
  }

  bool try_lock() noexcept {
    uint32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // False if another thread still holds it at the deadline.
  bool try_lock_until(Deadline deadline) noexcept { return try_lock() || wait(deadline); }

  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) wake_one_on_word(state_);
  }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kContended = 2;

  bool wait(Deadline deadline) noexcept {
    for (int spin = 0; spin < 64; ++spin) {
      if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return true;
    }
    while (state_.exchange(kContended, std::memory_order_acquire) != kFree) {
      if (is_past(deadline)) return false;
      wait_on_word(state_, kContended, deadline);
    }
    return true;
  }

  std::atomic<uint32_t> state_{kFree};
};

// For critical sections of a few loads and stores. Unlocking is a plain store, so it costs half of a Lock. Code under
// it must not block.
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
