// SPDX-License-Identifier: Apache-2.0
// The ops `nonzero` and `unique`, which core requests by name.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_nonzero(const Op& op);
std::unique_ptr<Plan> prepare_nonzero(const Op& op);

std::optional<Refusal> refuse_unique(const Op& op);
std::unique_ptr<Plan> prepare_unique(const Op& op);

}  // namespace compute::cpu
