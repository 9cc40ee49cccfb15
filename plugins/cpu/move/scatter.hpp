// SPDX-License-Identifier: Apache-2.0
// The primitive `scatter`.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_scatter(const Op& op);
std::unique_ptr<Plan> prepare_scatter(const Op& op);

}  // namespace compute::cpu
