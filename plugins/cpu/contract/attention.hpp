// SPDX-License-Identifier: Apache-2.0
// attention and attention_grad, which core requests by name.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_attention(const Op& op);
std::unique_ptr<Plan> prepare_attention(const Op& op);
std::unique_ptr<Plan> prepare_attention_grad(const Op& op);

}  // namespace compute::cpu
