// SPDX-License-Identifier: Apache-2.0
// Core's own threads.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace compute {

// Runs `f` on a new thread, which lives as long as the process and receives none of the program's signals. Throws
// std::system_error if no thread can be created.
template <class F>
void start_thread(F&& f) {
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
    sigdelset(&all, fault);                     // if blocked, they terminate the process
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a new thread inherits it
  struct Restore {
    const sigset_t& mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const restore{before};
  std::thread(std::forward<F>(f)).detach();
}

}  // namespace compute
