// SPDX-License-Identifier: Apache-2.0
// The primitive `contraction`, which uses matmul's plans, and the state of the matrix libraries.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/common/table/emit.hpp"
#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_contraction(const Op& op);
std::unique_ptr<Plan> prepare_contraction(const Op& op);

// The requirements of the matrix libraries. Loads nothing: before the first product they have not been searched yet.
std::vector<common::Requirement> report_engines();

// Called once, when the plugin is opened.
void open_engines();

}  // namespace compute::cpu
