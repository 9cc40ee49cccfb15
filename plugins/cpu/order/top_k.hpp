// SPDX-License-Identifier: Apache-2.0
// The op top_k.
#pragma once

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_top_k(const Op& op);
std::unique_ptr<Plan> prepare_top_k(const Op& op);

}  // namespace compute::cpu
