// SPDX-License-Identifier: Apache-2.0
// attention of float16 and bfloat16 by cuDNN, if it is found.
#pragma once

#include <memory>

#include "plugins/cuda/plan.hpp"

namespace compute::cuda {

/// NULL if a generated kernel should do it: COMPUTE_CUDA_CUDNN says so, cuDNN was not found, it has no engine for
/// the op, or the op is small. The device's context must be current.
std::unique_ptr<Plan> prepare_attention(Device& device, const common::Op& op);

/// The same for attention_grad. Its results have the same bits in each run if the op is to be deterministic.
std::unique_ptr<Plan> prepare_attention_grad(Device& device, const common::Op& op);

}  // namespace compute::cuda
