// SPDX-License-Identifier: Apache-2.0
// The one place where work enters oneTBB: an arena of the plugin's own, isolated, so that a thread that waits in it
// never starts foreign work. Nothing in this plugin makes another team of threads.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

namespace compute::cpu {

// Processors in this thread's affinity mask.
int32_t affinity_count();

// Processors' worth of time that the process's control group and its parents grant (version 1 or 2), rounded up;
// nothing without a limit. `root` is put before every path that is read.
std::optional<int32_t> cgroup_cpu_limit(const std::string& root = "");

// The lesser of COMPUTE_CPU_THREADS, the affinity mask and the control group's quota, at least 1; read at each call.
int32_t usable_threads();

// Fixes the number of threads to usable_threads(). Starts none: that is left to the first piece of work that is large
// enough.
void threads_open();

int32_t thread_count();

// In the child after fork(): oneTBB's threads are gone and its locks in an unknown state, so work is spread by plain
// threads from now on.
void threads_forked();

// The process ends, and with it libraries that work may be in: whoever would begin a piece of work from now on sleeps
// instead.
void threads_ending();
// Never returns once threads_ending() was called.
void stop_if_ending();

// Threads that are made while it lives take none of the program's signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
      sigdelset(&all, fault);  // blocked, they end the process
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// Calls body(user, begin, end) for pieces that together are [0, count), on up to thread_count() threads, and returns
// when all have ended. Pieces begin at multiples of `grain` and are at least that long; which they are depends on
// count, grain and thread_count() alone. `body` does not throw.
void parallel_for(int64_t count, int64_t grain, void (*body)(void* user, int64_t begin, int64_t end), void* user);

template <class F>
void parallel_for(int64_t count, int64_t grain, const F& f) {
  parallel_for(
      count, grain, [](void* user, int64_t begin, int64_t end) { (*static_cast<const F*>(user))(begin, end); },
      const_cast<F*>(&f));
}

}  // namespace compute::cpu
