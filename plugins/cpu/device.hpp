// SPDX-License-Identifier: Apache-2.0
// The one device: what it says of itself, and the streams made on it.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plugins/cpu/stream.hpp"

namespace compute::cpu {

// What the system says of the processor; read anew at each call.
struct ProcessorInfo {
  std::string model;   // as /proc/cpuinfo names it
  std::string vendor;  // GenuineIntel
  std::string kernel;  // release of the operating system, which is the driver
  int64_t memory_bytes = -1;
  std::vector<std::pair<std::string, std::string>> properties;
};

ProcessorInfo read_processor_info();

class Device {
 public:
  Device();
  // Waits for work that is still queued.
  ~Device();

  Stream* create_stream(uint32_t flags);
  // The stream ends after what is queued on it.
  void destroy_stream(Stream* stream);

  // In the child after fork(), for every device that is open.
  static void forked();

 private:
  void reap();

  const int64_t spin_ns_;
  std::mutex mutex_;
  std::vector<Stream*> queued_;   // alive, each with its worker
  std::vector<Stream*> retired_;  // destroyed, worker not yet joined
};

}  // namespace compute::cpu
