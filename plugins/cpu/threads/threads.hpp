// SPDX-License-Identifier: Apache-2.0
// The only place that passes work to other threads: to the plugin's own team, which runs plain loops, or to oneTBB, for
// pieces that take very different times. oneTBB runs them in an isolated arena of the plugin, so that a thread that
// waits in it never runs other work. As many threads run at a time as one of the two has.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace compute::cpu {

// The number of processors in this thread's affinity mask.
int32_t affinity_count();

// The number of processors whose time the process's control group and its parents grant (version 1 or 2), rounded up;
// nothing without a limit. `root` is put before every path that is read.
std::optional<int32_t> cgroup_cpu_limit(const std::string& root = "");

// The least of COMPUTE_CPU_THREADS, the affinity mask and the control group's quota, but at least 1; read at each call.
int32_t usable_threads();

// How long a thread looks for work before it sleeps: COMPUTE_SPIN_US; with one processor 0.
int64_t spin_time_ns();

// Fixes the number of threads to usable_threads(). Starts none: they are started by the first piece of work that is
// large enough.
void threads_open();

int32_t thread_count();

// In the child after fork(): the threads do not exist any more, and oneTBB's locks are in an unknown state. From now on
// a new team does all the work.
void threads_forked();

// The process is exiting, and libraries that work may be using are being destroyed. From now on a thread that begins a
// piece of work sleeps instead.
void threads_ending();
// Never returns once threads_ending() was called.
void stop_if_ending();

// The request of a stream to end its work early; NULL: this thread works for none.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local const std::atomic<bool>* cancel_request;

// The error CANCELLED.
[[noreturn]] void throw_cancelled();
inline void throw_if(const std::atomic<bool>* cancel_request) {
  if (cancel_request != nullptr && cancel_request->load(std::memory_order_relaxed)) [[unlikely]]
    throw_cancelled();
}

// While it exists, the loops of this thread end between two pieces once `request` is set, by throw_cancelled().
class Cancellable {
 public:
  explicit Cancellable(const std::atomic<bool>& request) { cancel_request = &request; }
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;
  ~Cancellable() { cancel_request = nullptr; }
};

// How many units of a loop are worth handing to a thread that looks for work, which is about 2 us.
struct Grain {
  int64_t units = 1;
  int64_t weight = 1;  // how often one unit is worth it, where units are 1

  // Of units that take `unit` each, where `grain` is worth it: in the same measure, both above 0.
  static Grain of(int64_t unit, int64_t grain) {
    return {std::max<int64_t>(grain / unit, 1), std::max<int64_t>(unit / grain, 1)};
  }
};

// Calls body(user, begin, end) for pieces that together are [0, count), on up to thread_count() threads, and returns
// when all have ended. Pieces begin at multiples of `grain` and are at least that long. The pieces depend only on
// count, grain and thread_count(), and each goes to the same thread each time. Sleeping threads are woken for a few
// grains each. A call from within a piece runs on the calling thread. If `body` throws, pieces that have not begun are
// skipped, and the caller gets the first exception once the others have ended.
void parallel_for(int64_t count, Grain grain, void (*body)(void* user, int64_t begin, int64_t end), void* user);
void parallel_for(int64_t count, int64_t grain, void (*body)(void* user, int64_t begin, int64_t end), void* user);

// The same for pieces that are worth waking a thread for, as bodies that take work until none is left.
void parallel_tasks(int64_t count, int64_t grain, void (*body)(void* user, int64_t begin, int64_t end), void* user);

// The same for pieces whose times differ much.
void parallel_for_uneven(int64_t count, int64_t grain, void (*body)(void* user, int64_t begin, int64_t end),
                         void* user);

template <class F>
void parallel_for(int64_t count, Grain grain, const F& f) {
  parallel_for(
      count, grain, [](void* user, int64_t begin, int64_t end) { (*static_cast<const F*>(user))(begin, end); },
      const_cast<F*>(&f));
}

template <class F>
void parallel_for(int64_t count, int64_t grain, const F& f) {
  parallel_for(
      count, grain, [](void* user, int64_t begin, int64_t end) { (*static_cast<const F*>(user))(begin, end); },
      const_cast<F*>(&f));
}

template <class F>
void parallel_tasks(int64_t count, int64_t grain, const F& f) {
  parallel_tasks(
      count, grain, [](void* user, int64_t begin, int64_t end) { (*static_cast<const F*>(user))(begin, end); },
      const_cast<F*>(&f));
}

template <class F>
void parallel_for_uneven(int64_t count, int64_t grain, const F& f) {
  parallel_for_uneven(
      count, grain, [](void* user, int64_t begin, int64_t end) { (*static_cast<const F*>(user))(begin, end); },
      const_cast<F*>(&f));
}

}  // namespace compute::cpu
