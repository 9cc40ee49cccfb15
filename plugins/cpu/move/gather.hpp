// SPDX-License-Identifier: Apache-2.0
// The primitive `gather`.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_gather(const Op& op);
std::unique_ptr<Plan> prepare_gather(const Op& op);

}  // namespace compute::cpu
