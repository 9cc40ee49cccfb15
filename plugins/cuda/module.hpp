// SPDX-License-Identifier: Apache-2.0
// Programs loaded on the device whose context is current.
#pragma once

#include "plugins/cuda/compiler.hpp"
#include "plugins/cuda/kernel_table.hpp"

namespace compute::cuda {

/// Loads the whole program, so its first launch loads nothing. Throws COMPILE_FAILED with the driver's log.
Kernel load(const Program& program);

}  // namespace compute::cuda
