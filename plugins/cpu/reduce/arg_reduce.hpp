// SPDX-License-Identifier: Apache-2.0
// The primitive `arg_reduce`.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_arg_reduce(const Op& op);
std::unique_ptr<Plan> prepare_arg_reduce(const Op& op);

}  // namespace compute::cpu
