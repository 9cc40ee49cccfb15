// SPDX-License-Identifier: Apache-2.0
// Calls in flight, so that shutdown closes nothing that another thread is using.
#pragma once

#include <atomic>
#include <cstdint>

namespace compute {

// A thread's part of it. Recycled, never freed.
struct ThreadUse {
  std::atomic<int32_t> depth{0};  // of calls that this thread is in
  std::atomic<bool> taken{true};
  ThreadUse* next = nullptr;
};

// NULL until the thread's first call. In the static block, where a load finds it.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadUse* own_use;
ThreadUse& enter_first_time();

inline ThreadUse& this_thread_use() { return own_use != nullptr ? *own_use : enter_first_time(); }

// False where membarrier(2) makes the other side of the fence below dear and this side free.
extern std::atomic<bool> entering_needs_fence;

extern std::atomic<bool> shut_down;
inline bool is_shut_down() noexcept { return shut_down.load(std::memory_order_relaxed); }
[[noreturn]] void throw_shut_down();

// Counts the calling thread as inside for as long as it lives. Whoever sees is_shut_down() false after making one may use devices
// and plugins until it goes. Costs no atomic read-modify-write.
class InUse {
 public:
  InUse() : use_(this_thread_use()) {
    use_.depth.store(use_.depth.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (entering_needs_fence.load(std::memory_order_relaxed)) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() { use_.depth.store(use_.depth.load(std::memory_order_relaxed) - 1, std::memory_order_release); }

 private:
  ThreadUse& use_;
};

// The same, throwing SHUT_DOWN after compute_shutdown: stands first in every call that needs devices.
class Running : InUse {
 public:
  Running() {
    if (is_shut_down()) throw_shut_down();
  }
};

// From now on new calls are refused. Waits at most `timeout_ns` (COMPUTE_TIMEOUT_NONE: without limit) until no other thread is inside;
// false if one still is.
bool refuse_calls_and_wait(int64_t timeout_ns) noexcept;

// The same without waiting; true the first time.
void refuse_calls() noexcept;

// In the child after fork(): the other threads are gone.
void forget_other_threads() noexcept;

}  // namespace compute
