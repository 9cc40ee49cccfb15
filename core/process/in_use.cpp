// SPDX-License-Identifier: Apache-2.0
#include "core/process/in_use.hpp"

#include <compute/compute.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/base/deadline.hpp"
#include "core/base/error.hpp"
#include "core/base/lock.hpp"
#include "core/base/per_thread.hpp"

namespace compute {

std::atomic<bool> entering_needs_fence{true};
std::atomic<uint32_t> attention{0};
constinit thread_local ThreadUse* own_use = nullptr;

namespace {

std::atomic<ThreadUse*> thread_uses{nullptr};

// A thread that is held up by a fork for longer goes on: whoever forks may be waiting for what it holds.
constexpr int64_t kLongestHold = int64_t{5'000'000'000};

// Held by whoever forks, from before the fork until after it.
Lock forking;

void make_others_seen() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!entering_needs_fence.load()) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

// Until `is_outside(use)` for every other thread.
template <class F>
bool wait_for_others(int64_t timeout_ns, const F& is_outside) noexcept {
  const Deadline deadline = deadline_after(timeout_ns);
  const ThreadUse* own = own_use;
  make_others_seen();
  for (const ThreadUse* use = thread_uses.load(std::memory_order_acquire); use != nullptr; use = use->next) {
    while (use != own && !is_outside(*use)) {
      if (is_past(deadline)) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return true;
}

void wait_while_forking() noexcept {
  const Deadline deadline = deadline_after(kLongestHold);
  while ((attention.load(std::memory_order_acquire) & kForking) != 0 && !is_past(deadline)) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// Thread sanitizers know fences and no system calls.
#if defined(__SANITIZE_THREAD__)
bool offer_barrier() noexcept { return false; }
#else
bool offer_barrier() noexcept { return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0; }
#endif

ThreadUse& take_record() {
  static const bool has_barrier = [] {
    const bool offered = offer_barrier();
    if (offered) entering_needs_fence.store(false);
    return offered;
  }();
  static_cast<void>(has_barrier);
  for (ThreadUse* use = thread_uses.load(std::memory_order_acquire); use != nullptr; use = use->next) {
    if (!use->taken.load(std::memory_order_relaxed) && !use->taken.exchange(true, std::memory_order_acq_rel))
      return *use;
  }
  auto* use = new ThreadUse;
  use->next = thread_uses.load(std::memory_order_relaxed);
  while (!thread_uses.compare_exchange_weak(use->next, use, std::memory_order_acq_rel)) {
  }
  return *use;
}

struct Holder {
  ThreadUse& use = take_record();
  ~Holder() {
    own_use = nullptr;
    use.taken.store(false, std::memory_order_release);
  }
};

}  // namespace

ThreadUse& enter_first_time() {
  own_use = &PerThread<Holder>::get().use;
  return *own_use;
}

void throw_refused() {
  if ((attention.load() & kForkedInCall) != 0) {
    throw Error(COMPUTE_ERROR_FORKED,
                "the process was forked while another thread was in a call to the library; fork before the library is "
                "used, or while no call is running");
  }
  throw Error(COMPUTE_ERROR_SHUT_DOWN, "the library was shut down");
}

namespace {

int32_t calls_above_parked(int32_t depth) noexcept { return depth % ThreadUse::kBelowParked; }

int32_t depth_when_parked(int32_t depth) noexcept {
  return (depth / ThreadUse::kBelowParked + calls_above_parked(depth)) * ThreadUse::kBelowParked;
}

}  // namespace

bool InUse::heed() const noexcept {
  // A thread that is in a call already goes on with it: the fork waits for it.
  const int32_t depth = use_.depth.load(std::memory_order_relaxed);
  for (bool is_late = false; !is_late && calls_above_parked(depth) == 1 && (attention.load() & kForking) != 0;) {
    use_.depth.store(depth - 1, std::memory_order_release);
    wait_while_forking();
    is_late = (attention.load() & kForking) != 0;
    use_.depth.store(depth, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  return (attention.load(std::memory_order_acquire) & ~uint32_t{kForking}) == 0;
}

Parked::Parked() noexcept : use_(this_thread_use()), before_(use_.depth.load(std::memory_order_relaxed)) {
  if (use_.pinned == 0) use_.depth.store(depth_when_parked(before_), std::memory_order_release);
}

Parked::~Parked() {
  if (use_.depth.load(std::memory_order_relaxed) == before_) return;
  for (bool is_late = false;;) {
    use_.depth.store(before_, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (is_late || (attention.load() & kForking) == 0) return;
    use_.depth.store(depth_when_parked(before_), std::memory_order_release);
    wait_while_forking();
    is_late = (attention.load() & kForking) != 0;
  }
}

NotParked::NotParked() noexcept : use_(this_thread_use()) { ++use_.pinned; }
NotParked::~NotParked() { --use_.pinned; }

void refuse_calls() noexcept { attention.fetch_or(kShutDown); }

bool refuse_calls_and_wait(int64_t timeout_ns) noexcept {
  refuse_calls();
  return wait_for_others(timeout_ns,
                         [](const ThreadUse& use) { return use.depth.load(std::memory_order_acquire) == 0; });
}

int32_t own_depth() noexcept {
  const int32_t depth = own_use != nullptr ? own_use->depth.load(std::memory_order_relaxed) : 0;
  return depth / ThreadUse::kBelowParked + calls_above_parked(depth);
}

bool hold_calls_for_fork(int64_t timeout_ns) noexcept {
  {
    const Parked parked;  // two threads that fork inside callbacks do not wait for each other
    forking.lock();
  }
  attention.fetch_or(kForking);
  bool is_whole = true;
  const bool have_ended = wait_for_others(timeout_ns, [&](const ThreadUse& use) {
    if (calls_above_parked(use.depth.load(std::memory_order_acquire)) == 0) return true;
    if (!use.lets_fork_pass.load(std::memory_order_acquire)) return false;
    is_whole = false;
    return true;
  });
  return have_ended && is_whole;
}

void let_fork_pass() noexcept {
  if ((attention.load(std::memory_order_acquire) & kForking) == 0) return;
  ThreadUse& use = this_thread_use();
  use.lets_fork_pass.store(true, std::memory_order_release);
  wait_while_forking();
  use.lets_fork_pass.store(false, std::memory_order_release);
}

void go_on_after_fork() noexcept {
  attention.fetch_and(~uint32_t{kForking});
  forking.unlock();
}

void go_on_in_forked_child(bool all_were_outside) noexcept {
  for (ThreadUse* use = thread_uses.load(); use != nullptr; use = use->next) {
    if (use == own_use) continue;
    use->depth.store(0);
    use->pinned = 0;
    use->lets_fork_pass.store(false);
    use->taken.store(false);
  }
  if (!all_were_outside) attention.fetch_or(kForkedInCall);
  go_on_after_fork();
}

}  // namespace compute
