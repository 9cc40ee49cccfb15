// SPDX-License-Identifier: Apache-2.0
// Threads that wait for a device when the process exits. A driver destroys itself during exit() while these threads
// still run, and calls into it then crash.
#pragma once

#include <chrono>

namespace compute::common {

// While it lives the calling thread queries a driver whether work has ended. Once the plugin's on_exit has called
// end_polling, a thread that starts a query sleeps here until the process has exited, except the thread that called
// end_polling.
class Polling {
 public:
  Polling();
  Polling(const Polling&) = delete;
  Polling& operator=(const Polling&) = delete;
  ~Polling();

  // The thread does not query the driver during its lifetime.
  void sleep(std::chrono::nanoseconds duration);
};

// What end_polling waits at most: a driver may not respond, and a thread may get no processor on a busy machine.
constexpr std::chrono::seconds kPollingPatience(2);

// Returns when no other thread queries the driver any more, or after kPollingPatience.
void end_polling();

}  // namespace compute::common
