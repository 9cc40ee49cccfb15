// SPDX-License-Identifier: Apache-2.0
// The primitive `scan`.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_scan(const Op& op);
std::unique_ptr<Plan> prepare_scan(const Op& op);

}  // namespace compute::cpu
