// SPDX-License-Identifier: Apache-2.0
// Threads without the program's signals.
#pragma once

#include <csignal>

namespace compute::common {

// During its lifetime, the calling thread and threads that it creates receive none of the program's signals. Faults are
// not blocked: blocked ones terminate the process.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept { block(&before_); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // The same for good, on a thread of the plugin.
  static void block(sigset_t* out_before = nullptr) noexcept {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, out_before);
  }

 private:
  sigset_t before_;
};

}  // namespace compute::common
