// SPDX-License-Identifier: Apache-2.0
// Calls in flight, so that shutdown closes nothing that another thread uses.
#pragma once

#include <atomic>
#include <cstdint>

namespace compute {

// The record of one thread. Recycled, never freed.
struct ThreadUse {
  std::atomic<int32_t> depth{0};  // calls that this thread is in
  std::atomic<bool> taken{true};
  ThreadUse* next = nullptr;
};

// NULL until the thread's first call. In static TLS, where one load reads it.
[[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]] extern constinit thread_local ThreadUse* own_use;
ThreadUse& enter_first_time();

inline ThreadUse& this_thread_use() { return own_use != nullptr ? *own_use : enter_first_time(); }

// False if membarrier(2) makes the other side of the fence below expensive and this side free.
[[gnu::visibility("hidden")]] extern std::atomic<bool> entering_needs_fence;

// Set once, by compute_shutdown and by exit().
[[gnu::visibility("hidden")]] extern std::atomic<bool> refuses_calls;
inline bool is_shut_down() noexcept { return refuses_calls.load(std::memory_order_relaxed); }
[[noreturn]] void throw_shut_down();

// Counts the calling thread as inside a call during the object's life. Needs no atomic read-modify-write.
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

// The same, but throws SHUT_DOWN after compute_shutdown. It is the first statement of every call that needs devices.
class Running : InUse {
 public:
  Running() {
    if (is_shut_down()) throw_shut_down();
  }
};

// From now on new calls are refused. Waits at most `timeout_ns` (COMPUTE_TIMEOUT_NONE: without limit) until no other
// thread is inside; false if one still is.
bool refuse_calls_and_wait(int64_t timeout_ns) noexcept;

// How many calls the calling thread is in.
int32_t own_depth() noexcept;

// In the child after fork(): the other threads no longer exist.
void forget_other_threads() noexcept;

}  // namespace compute
