// SPDX-License-Identifier: Apache-2.0
// The op `linspace`, which core requests by name.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_linspace(const Op& op);
std::unique_ptr<Plan> prepare_linspace(const Op& op);

}  // namespace compute::cpu
