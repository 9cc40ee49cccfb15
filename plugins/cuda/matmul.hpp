// SPDX-License-Identifier: Apache-2.0
// Contractions by cuBLASLt: any strides that a flag, a leading dimension and a batch stride can say, without a copy.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "plugins/cuda/plan.hpp"

namespace compute::cuda {

struct MatmulVerdict {
  bool is_taken = false;
  std::string reason;                      // why not
  std::optional<common::Refusal> packing;  // set where a packed copy of an operand would be taken, and is worth it
};

/// Whether cuBLASLt takes a contraction.
MatmulVerdict judge_matmul(Device& device, const common::Op& op);

/// For an op that judge_matmul takes. NULL if cuBLASLt knows no algorithm for its layouts.
std::unique_ptr<Plan> prepare_matmul(Device& device, const common::Op& op);

}  // namespace compute::cuda
