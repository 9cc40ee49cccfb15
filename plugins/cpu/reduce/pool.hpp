// SPDX-License-Identifier: Apache-2.0
// The ops max_pool and average_pool.
#pragma once

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_pool(const Op& op);
std::unique_ptr<Plan> prepare_pool(const Op& op);

}  // namespace compute::cpu
