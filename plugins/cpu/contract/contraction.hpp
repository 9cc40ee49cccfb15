// SPDX-License-Identifier: Apache-2.0
// The primitive `contraction`, which uses matmul's plans.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_contraction(const Op& op);
std::unique_ptr<Plan> prepare_contraction(const Op& op);

}  // namespace compute::cpu
