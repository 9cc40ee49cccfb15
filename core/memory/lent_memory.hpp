// SPDX-License-Identifier: Apache-2.0
// Memory from a program, for the tensors of a device, through the two callbacks of a compute_allocator.
#pragma once

#include <compute/compute.h>

#include <memory>

#include "core/devices/device.hpp"
#include "core/memory/pool.hpp"

namespace compute {

// `allocator` was checked. Throws UNSUPPORTED, with the reason, if the device cannot use such memory.
std::unique_ptr<RawMemory> make_lent_memory(Device& device, const compute_allocator& allocator);

}  // namespace compute
