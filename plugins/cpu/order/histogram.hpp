// SPDX-License-Identifier: Apache-2.0
// The op `histogram`, which core requests by name.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_histogram(const Op& op);
std::unique_ptr<Plan> prepare_histogram(const Op& op);

}  // namespace compute::cpu
