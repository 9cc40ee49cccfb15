// SPDX-License-Identifier: Apache-2.0
// The primitives `convolution`, `convolution_grad_input` and `convolution_grad_weight`.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_convolution(const Op& op);
std::unique_ptr<Plan> prepare_convolution(const Op& op);

}  // namespace compute::cpu
