// SPDX-License-Identifier: Apache-2.0
// The program's functions for want of memory.
#pragma once

#include <compute/compute.h>

#include <cstdint>

namespace compute {

// As compute_memory_add_pressure_callback and compute_memory_remove_pressure_callback.
void add_pressure_callback(compute_pressure_callback callback, void* user_data);
void remove_pressure_callback(compute_pressure_callback callback, void* user_data);

// Calls them for a pool that is out of memory. False if none was called: there is none, or the calling thread is inside
// one or suppresses them.
bool relieve_pressure(compute_device& device, int64_t size_bytes);

// While it lives, allocations of the calling thread call no function: a lock is held that it must not run under.
class PressureHeldOff {
 public:
  PressureHeldOff() noexcept;
  PressureHeldOff(const PressureHeldOff&) = delete;
  PressureHeldOff& operator=(const PressureHeldOff&) = delete;
  ~PressureHeldOff();
};

}  // namespace compute
