// SPDX-License-Identifier: Apache-2.0
// The primitive `sort`, and the op `random_permutation`, which core requests by name.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_sort(const Op& op);
std::unique_ptr<Plan> prepare_sort(const Op& op);

std::optional<Refusal> refuse_permutation(const Op& op);
std::unique_ptr<Plan> prepare_permutation(const Op& op);

}  // namespace compute::cpu
