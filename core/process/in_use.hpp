// SPDX-License-Identifier: Apache-2.0
// Calls in flight, so that shutdown closes nothing that another thread uses, and fork() copies no inconsistent state.
#pragma once

#include <atomic>
#include <cstdint>

namespace compute {

// The record of one thread. Recycled, never freed.
struct ThreadUse {
  // Calls that this thread is in: those above the last Parked, and kBelowParked times those below it.
  std::atomic<int32_t> depth{0};
  static constexpr int32_t kBelowParked = 1 << 16;

  std::atomic<bool> taken{true};
  std::atomic<bool> lets_fork_pass{false};
  int32_t pinned = 0;  // NotParked objects
  ThreadUse* next = nullptr;
};

// NULL until the thread's first call. In static TLS, where one load reads it.
[[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]] extern constinit thread_local ThreadUse* own_use;
ThreadUse& enter_first_time();

inline ThreadUse& this_thread_use() { return own_use != nullptr ? *own_use : enter_first_time(); }

// False if membarrier(2) makes the other side of the fence below expensive and this side free.
[[gnu::visibility("hidden")]] extern std::atomic<bool> entering_needs_fence;

// Why calls must not continue as usual; normally none of these bits is set.
enum Attention : uint32_t {
  kShutDown = 1,      // for good
  kForking = 2,       // until fork() has returned
  kForkedInCall = 4,  // for good: this is the child of a process in which a call did not end in time
};
[[gnu::visibility("hidden")]] extern std::atomic<uint32_t> attention;
inline bool is_shut_down() noexcept { return (attention.load(std::memory_order_relaxed) & kShutDown) != 0; }
// Throws SHUT_DOWN or FORKED.
[[noreturn]] void throw_refused();

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

  // Whether devices and plugins may be used while this object lives. Before this, nothing is accessed that must be
  // consistent for a fork.
  bool may_go_on() const noexcept { return attention.load(std::memory_order_relaxed) == 0 || heed(); }

 private:
  bool heed() const noexcept;

  ThreadUse& use_;
};

// The same, but throws SHUT_DOWN after compute_shutdown. It is the first statement of every call that needs devices.
class Running : InUse {
 public:
  Running() {
    if (!may_go_on()) throw_refused();
  }
};

// Delays fork() while it lives, and also works after shutdown.
class Undivided : InUse {
 public:
  Undivided() { static_cast<void>(may_go_on()); }
};

// While it lives the calling thread waits for a device or runs the program's code, and holds no lock. fork() does not
// wait for it.
class Parked {
 public:
  Parked() noexcept;
  Parked(const Parked&) = delete;
  Parked& operator=(const Parked&) = delete;
  ~Parked();

 private:
  ThreadUse& use_;
  const int32_t before_;
};

// Disables every Parked inside, for a caller that waits with a lock held.
class NotParked {
 public:
  NotParked() noexcept;
  NotParked(const NotParked&) = delete;
  NotParked& operator=(const NotParked&) = delete;
  ~NotParked();

 private:
  ThreadUse& use_;
};

// From now on new calls are refused.
void refuse_calls() noexcept;

// The same, then waits at most `timeout_ns` (COMPUTE_TIMEOUT_NONE: without limit) until no other thread is inside;
// false if one still is.
bool refuse_calls_and_wait(int64_t timeout_ns) noexcept;

// For a call in which plugins may register fork handlers: a fork on another thread that has already begun does not run
// them. The fork continues at once, as with a call that does not end in time, and this returns when it is over.
void let_fork_pass() noexcept;

// How many calls the calling thread is in.
int32_t own_depth() noexcept;

// Before fork(): blocks new calls of other threads until the fork is done, and waits at most `timeout_ns` until running
// calls have ended or are parked; false if one is not.
bool hold_calls_for_fork(int64_t timeout_ns) noexcept;
void go_on_after_fork() noexcept;
// In the child: the other threads no longer exist. Unless all of them were outside of calls, calls are refused.
void go_on_in_forked_child(bool all_were_outside) noexcept;

}  // namespace compute
