// SPDX-License-Identifier: Apache-2.0
// Threads that wait for a device when the process ends. A driver destroys itself during exit() while they live on, and
// calls into it crash then.
#pragma once

#include <chrono>

namespace compute::common {

// While it lives the calling thread asks a driver whether work has ended. Once the plugin's on_exit has called
// end_polling a thread that would ask stays here until the process is gone, except the one that called it.
class Polling {
 public:
  Polling();
  Polling(const Polling&) = delete;
  Polling& operator=(const Polling&) = delete;
  ~Polling();

  // Asks nothing meanwhile.
  void sleep(std::chrono::nanoseconds duration);
};

// Returns when no other thread asks any more, or after 100 ms beside a driver that does not answer.
void end_polling();

}  // namespace compute::common
