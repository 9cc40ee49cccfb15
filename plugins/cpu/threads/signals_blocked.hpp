// SPDX-License-Identifier: Apache-2.0
// Threads without the program's signals.
#pragma once

#include <csignal>
#include <initializer_list>

namespace compute::cpu {

// Threads created during its lifetime receive none of the program's signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
      sigdelset(&all, fault);  // if blocked, they terminate the process
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace compute::cpu
