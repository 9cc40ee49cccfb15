// SPDX-License-Identifier: Apache-2.0
#include "core/process/in_use.hpp"

#include <compute/compute.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/base/deadline.hpp"
#include "core/base/error.hpp"
#include "core/base/per_thread.hpp"

namespace compute {

std::atomic<bool> entering_needs_fence{true};
std::atomic<bool> refuses_calls{false};
constinit thread_local ThreadUse* own_use = nullptr;

namespace {

std::atomic<ThreadUse*> thread_uses{nullptr};

void make_others_seen() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!entering_needs_fence.load()) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
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

void throw_shut_down() { throw Error(COMPUTE_ERROR_SHUT_DOWN, "the library was shut down"); }

bool refuse_calls_and_wait(int64_t timeout_ns) noexcept {
  const Deadline deadline = deadline_after(timeout_ns);
  refuses_calls.store(true);
  make_others_seen();
  for (const ThreadUse* use = thread_uses.load(std::memory_order_acquire); use != nullptr; use = use->next) {
    while (use != own_use && use->depth.load(std::memory_order_acquire) != 0) {
      if (is_past(deadline)) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return true;
}

int32_t own_depth() noexcept { return own_use != nullptr ? own_use->depth.load(std::memory_order_relaxed) : 0; }

void forget_other_threads() noexcept {
  for (ThreadUse* use = thread_uses.load(); use != nullptr; use = use->next) {
    if (use == own_use) continue;
    use->depth.store(0);
    use->taken.store(false);
  }
}

}  // namespace compute
