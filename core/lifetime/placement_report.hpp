// SPDX-License-Identifier: Apache-2.0
// Reports about all open devices: where ops ran and why, and the cached memory.
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
