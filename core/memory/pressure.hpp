// SPDX-License-Identifier: Apache-2.0
// The program's function for want of memory.
#pragma once

#include <compute/compute.h>

#include <cstdint>

namespace compute {

// As compute_memory_set_pressure_callback.
void set_pressure_callback(compute_pressure_callback callback, void* user_data);

// Calls it for a pool that is out of memory. False if it was not called: none is set, or the calling thread is inside
// it or suppresses it.
bool relieve_pressure(compute_device& device, int64_t size_bytes);

// While it lives, allocations of the calling thread do not call the function: a lock is held that it must not run
// under.
class PressureHeldOff {
 public:
  PressureHeldOff() noexcept;
  PressureHeldOff(const PressureHeldOff&) = delete;
  PressureHeldOff& operator=(const PressureHeldOff&) = delete;
  ~PressureHeldOff();
};

}  // namespace compute
