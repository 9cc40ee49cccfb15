// SPDX-License-Identifier: Apache-2.0
// The only device: its description, and the streams that are made on it.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plugins/cpu/stream.hpp"

namespace compute::cpu {

// The system's data about the processor, read at each call.
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
  // Waits for queued work.
  ~Device();

  Stream* create_stream(uint32_t flags);
  // The stream ends after its queued work.
  void destroy_stream(Stream* stream);

  // Called in the child after fork(), for every open device.
  static void forked();

 private:
  void reap();

  const int64_t spin_ns_;
  std::mutex mutex_;
  std::vector<Stream*> queued_;   // alive, each with its worker
  std::vector<Stream*> retired_;  // destroyed, worker not yet joined
};

}  // namespace compute::cpu
