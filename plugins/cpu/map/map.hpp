// SPDX-License-Identifier: Apache-2.0
// The primitive `map`.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_map(const Op& op);
std::unique_ptr<Plan> prepare_map(const Op& op);

}  // namespace compute::cpu
