// SPDX-License-Identifier: Apache-2.0
// How much memory the machine, the control groups and the resource limits allow the process.
#pragma once

#include <cstdint>
#include <string>

namespace compute {

struct HostMemoryState {
  int64_t total = -1;      // the least of the machine's memory and all limits; -1: unknown
  int64_t available = -1;  // bytes that can be allocated now
  std::string limited_by;  // "the machine", "control group /a/b", "RLIMIT_AS": the limit of `available`
};

// Reads the state each time, in about 100 us. `root` is where /proc and /sys are.
HostMemoryState host_memory_state(const std::string& root = "");

// HostMemoryState::total, read once.
int64_t host_memory_total();

}  // namespace compute
