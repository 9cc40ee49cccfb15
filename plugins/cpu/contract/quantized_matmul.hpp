// SPDX-License-Identifier: Apache-2.0
// quantized_matmul, which core requests by name.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_quantized_matmul(const Op& op);
std::unique_ptr<Plan> prepare_quantized_matmul(const Op& op);

}  // namespace compute::cpu
