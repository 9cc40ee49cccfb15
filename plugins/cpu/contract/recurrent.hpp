// SPDX-License-Identifier: Apache-2.0
// lstm and gru, which core requests by name.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_recurrent(const Op& op);
std::unique_ptr<Plan> prepare_recurrent(const Op& op);

}  // namespace compute::cpu
