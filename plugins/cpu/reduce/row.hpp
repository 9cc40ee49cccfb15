// SPDX-License-Identifier: Apache-2.0
// The primitive `row`.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_row(const Op& op);
std::unique_ptr<Plan> prepare_row(const Op& op);

}  // namespace compute::cpu
