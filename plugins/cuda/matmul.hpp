// SPDX-License-Identifier: Apache-2.0
// Contractions by cuBLASLt: all strides that a flag, a leading dimension and a batch stride can express, without a
// copy.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "plugins/cuda/plan.hpp"

namespace compute::cuda {

struct MatmulVerdict {
  bool is_taken = false;
  std::string reason;                      // why it is refused
  std::optional<common::Refusal> packing;  // set if a packed copy of an operand would be accepted and is worthwhile
};

/// Whether cuBLASLt supports a contraction.
MatmulVerdict judge_matmul(Device& device, const common::Op& op);

/// For an op that judge_matmul accepts. NULL if cuBLASLt has no algorithm for its layouts.
std::unique_ptr<Plan> prepare_matmul(Device& device, const common::Op& op);

}  // namespace compute::cuda
