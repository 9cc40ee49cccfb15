// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients by cuDNN, if it is found and has an engine whose results are within the bounds.
#pragma once

#include <memory>

#include "plugins/cuda/plan.hpp"

namespace compute::cuda {

/// NULL if generated kernels should do it: COMPUTE_CUDA_CUDNN says so, cuDNN was not found, or it has no engine
/// for the dtypes and layouts. The device's context must be current.
std::unique_ptr<Plan> prepare_convolution(Device& device, const common::Op& op);

}  // namespace compute::cuda
