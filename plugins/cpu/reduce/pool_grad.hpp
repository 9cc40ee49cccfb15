// SPDX-License-Identifier: Apache-2.0
// The ops max_pool_grad and average_pool_grad.
#pragma once

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_max_pool_grad(const Op& op);
std::unique_ptr<Plan> prepare_max_pool_grad(const Op& op);
std::optional<Refusal> refuse_average_pool_grad(const Op& op);
std::unique_ptr<Plan> prepare_average_pool_grad(const Op& op);

}  // namespace compute::cpu
