// SPDX-License-Identifier: Apache-2.0
// The primitives that the plugin supports.
#pragma once

#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

// Why `op` is refused; nothing if prepare() makes a plan.
std::optional<Refusal> refuse(const Op& op);
common::PlanOrRefusal<Plan> prepare(const Op& op);

}  // namespace compute::cpu
