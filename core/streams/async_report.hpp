// SPDX-License-Identifier: Apache-2.0
// Failures that a plugin reports itself, before any thread waits for the failed work.
#pragma once

#include <compute/compute.h>

#include <cstdint>

namespace compute {

// core->report_async: `core_device` and `core_stream` are the values with which the device and the stream were opened;
// they are valid for the life of the process. 0 as stream means all streams of the device that have work in flight.
// Consumes `error`. May be called from any thread, also inside a call of the library: it takes no lock that a
// submission holds.
void take_async_report(uint64_t core_device, uint64_t core_stream, uint64_t last_good, uint64_t seen,
                       compute_error* error) noexcept;

}  // namespace compute
