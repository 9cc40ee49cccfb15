// SPDX-License-Identifier: Apache-2.0
// Failures that a plugin reports by itself, before anybody waits for the work that failed.
#pragma once

#include <compute/compute.h>

#include <cstdint>

namespace compute {

// core->report_async: `core_device` and `core_stream` are what the device and the stream were opened with, which live
// as long as the process; 0 as stream means all of the device that have work in flight. Consumes `error`. From any
// thread, also inside a call of ours: it takes no lock that a submission holds.
void take_async_report(uint64_t core_device, uint64_t core_stream, uint64_t last_good, uint64_t seen,
                       compute_error* error) noexcept;

}  // namespace compute
