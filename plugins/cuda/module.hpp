// SPDX-License-Identifier: Apache-2.0
// Programs loaded on the device whose context is current.
#pragma once

#include "plugins/cuda/compiler.hpp"
#include "plugins/cuda/kernel_table.hpp"

namespace compute::cuda {

/// Loads the program whole: its first launch has nothing left to load. Throws COMPILE_FAILED with the driver's log.
Kernel load(const Program& program);

}  // namespace compute::cuda
