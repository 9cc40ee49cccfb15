// SPDX-License-Identifier: Apache-2.0
// Threads that wait for a device when the process exits. A driver destroys itself during exit() while these threads
// still run, and calls into it then crash.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

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

// While one exists, the thread's sleeps end on time: by default Linux adds up to 50 us.
class PunctualSleep {
 public:
  PunctualSleep();
  PunctualSleep(const PunctualSleep&) = delete;
  PunctualSleep& operator=(const PunctualSleep&) = delete;
  ~PunctualSleep();

 private:
  const int slack_ns_;
};

// How long a wait queries without a pause: COMPUTE_SPIN_US, by default 50 us, or 0 with one processor.
int64_t spin_time_ns();

// The pauses of a wait between two queries: none at first, then sleeps of a 64th of the time waited so far, which add
// at most that much to the wait, and use little processor time.
class Pauses {
 public:
  Pauses(Polling& polling, int64_t spin_ns, int64_t timeout_ns);
  bool next();  // false: the time is over

 private:
  Polling& polling_;
  const int64_t spin_ns_, timeout_ns_;
  const std::chrono::steady_clock::time_point start_;
  std::optional<PunctualSleep> punctual_;
};

// What end_polling waits at most: a driver may not respond, and a thread may get no processor on a busy machine.
constexpr std::chrono::seconds kPollingPatience(2);

// Returns when no other thread queries the driver any more, or after kPollingPatience.
void end_polling();

}  // namespace compute::common
