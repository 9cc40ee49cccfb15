// SPDX-License-Identifier: Apache-2.0
// What ran where and why, and what memory is cached: reports about all open devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/observation/live_tensors.hpp"

namespace compute {

// As compute_placement_report. `format` is a COMPUTE_FORMAT_.
std::string placement_report(int32_t format);

// Of every open device.
std::vector<CachedMemory> cached_memory();

}  // namespace compute
