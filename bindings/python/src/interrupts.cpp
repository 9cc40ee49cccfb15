// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C while the main thread computes on cpu: Python would see the signal only when the call returns.
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include "module.hpp"

namespace compute_python {

namespace {

compute_stream* main_stream = nullptr;  // the main thread's default stream of cpu, for good
struct sigaction of_python {};

// Cancels the call of the main thread that is computing, and lets Python note the signal.
void cancel(int number, siginfo_t* info, void* context) {
  compute_error_free(compute_stream_cancel(main_stream));
  if ((of_python.sa_flags & SA_SIGINFO) != 0) {
    of_python.sa_sigaction(number, info, context);
  } else {
    of_python.sa_handler(number);
  }
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == cancel;
}

// Whether an interrupt raises KeyboardInterrupt. A program with a handler of its own may want the call to end normally.
bool python_raises() {
  const Ref signals(PyImport_ImportModule("signal"));
  const Ref current(signals ? PyObject_CallMethod(signals.get(), "getsignal", "i", SIGINT) : nullptr);
  const Ref raising(signals ? PyObject_GetAttrString(signals.get(), "default_int_handler") : nullptr);
  const bool raises = current && raising && current.get() == raising.get();
  PyErr_Clear();
  return raises;
}

// Milliseconds, cheaply.
int64_t rough_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

// IPython and others set Python's handler again, so it is looked at from time to time.
void watch_for_interrupts() {
  constexpr int64_t kLookEvery = 50;
  static int64_t looked_at = -kLookEvery;
  static thread_local const bool is_main_thread = syscall(SYS_gettid) == getpid();
  if (state.cpu == nullptr || !is_main_thread) return;
  const int64_t now = rough_now();
  if (now - looked_at < kLookEvery) return;
  looked_at = now;
  struct sigaction current {};
  if (sigaction(SIGINT, nullptr, &current) != 0 || is_ours(current)) return;
  const bool is_handler =
      (current.sa_flags & SA_SIGINFO) != 0 || (current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN);
  if (!is_handler || !python_raises()) return;
  if (main_stream == nullptr) {
    compute_error* const error = compute_device_default_stream(state.cpu, &main_stream);
    compute_error_free(error);
    if (main_stream == nullptr) return;
  }
  of_python = current;
  struct sigaction own = current;
  own.sa_sigaction = cancel;
  own.sa_flags |= SA_SIGINFO;
  sigaction(SIGINT, &own, nullptr);
}

}  // namespace compute_python
