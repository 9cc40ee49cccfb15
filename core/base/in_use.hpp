// SPDX-License-Identifier: Apache-2.0
// Calls in flight, so that shutdown closes nothing that another thread is using, and fork() copies nothing half done.
#pragma once

#include <atomic>
#include <cstdint>

namespace compute {

// A thread's part of it. Recycled, never freed.
struct ThreadUse {
  // Calls that this thread is in: those above the last Parked, and kBelowParked times those below it.
  std::atomic<int32_t> depth{0};
  static constexpr int32_t kBelowParked = 1 << 16;

  std::atomic<bool> taken{true};
  std::atomic<bool> lets_fork_pass{false};
  int32_t pinned = 0;  // NotParked objects
  ThreadUse* next = nullptr;
};

// NULL until the thread's first call. In the static block, where a load finds it.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadUse* own_use;
ThreadUse& enter_first_time();

inline ThreadUse& this_thread_use() { return own_use != nullptr ? *own_use : enter_first_time(); }

// False where membarrier(2) makes the other side of the fence below dear and this side free.
extern std::atomic<bool> entering_needs_fence;

// Why calls may not go on as usual: none of these bits in ordinary times.
enum Attention : uint32_t {
  kShutDown = 1,      // for good
  kForking = 2,       // until fork() has returned
  kForkedInCall = 4,  // for good: this is the child of a process in which a call did not end in time
};
extern std::atomic<uint32_t> attention;
inline bool is_shut_down() noexcept { return (attention.load(std::memory_order_relaxed) & kShutDown) != 0; }
// Throws SHUT_DOWN or FORKED.
[[noreturn]] void throw_refused();

// Counts the calling thread as inside for as long as it lives. Costs no atomic read-modify-write.
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

  // Whether devices and plugins may be used until this object goes. Nothing that a fork must find whole is touched
  // before.
  bool may_go_on() const noexcept { return attention.load(std::memory_order_relaxed) == 0 || heed(); }

 private:
  bool heed() const noexcept;

  ThreadUse& use_;
};

// The same, throwing SHUT_DOWN after compute_shutdown: stands first in every call that needs devices.
class Running : InUse {
 public:
  Running() {
    if (!may_go_on()) throw_refused();
  }
};

// Keeps fork() away from what is done under it, and goes on also after shutdown.
class Undivided : InUse {
 public:
  Undivided() { static_cast<void>(may_go_on()); }
};

// While it lives the calling thread waits for a device or runs the program's code, and holds no lock: fork() does not
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

// Takes the meaning from every Parked inside, for whoever waits with a lock held.
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

// For a call in which plugins may register handlers of forks: those are not run by a fork that has begun already, on
// another thread. It goes on at once, as beside a call that does not end in time, and this returns when it is over.
void let_fork_pass() noexcept;

// How many calls the calling thread is in.
int32_t own_depth() noexcept;

// Around fork(): holds up new calls of other threads until the fork is done, and waits at most `timeout_ns` until those
// under way have ended or are parked; false if one is not.
bool hold_calls_for_fork(int64_t timeout_ns) noexcept;
void go_on_after_fork() noexcept;
// The same in the child: the other threads are gone. Unless all of them were outside, calls are refused.
void go_on_in_forked_child(bool all_were_outside) noexcept;

}  // namespace compute
