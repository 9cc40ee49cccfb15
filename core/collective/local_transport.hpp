// SPDX-License-Identifier: Apache-2.0
// A transport between the threads of one process.
#pragma once

#include <compute/compute.h>

#include <vector>

namespace compute {

// One table for each of `size` ranks. Each must be closed.
std::vector<compute_transport> local_transports(int32_t size);

}  // namespace compute
