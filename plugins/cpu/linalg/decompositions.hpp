// SPDX-License-Identifier: Apache-2.0
// The primitives of linear algebra, by LAPACK: one thread for each matrix of a batch.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_decomposition(const Op& op);
std::unique_ptr<Plan> prepare_decomposition(const Op& op);

}  // namespace compute::cpu
