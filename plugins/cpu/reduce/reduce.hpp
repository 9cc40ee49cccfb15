// SPDX-License-Identifier: Apache-2.0
// The primitive `reduce`.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "plugins/cpu/base/plan.hpp"
#include "plugins/cpu/kernels/reduce_kernel.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_reduce(const Op& op);
std::unique_ptr<Plan> prepare_reduce(const Op& op);

// sum, prod, min, max, all or any.
std::optional<ReduceKind> reduce_kind(std::string_view name);

}  // namespace compute::cpu
