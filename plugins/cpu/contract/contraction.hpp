// SPDX-License-Identifier: Apache-2.0
// The primitive `contraction`, on matmul's plans, and what becomes of the libraries behind them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/common/emit.hpp"
#include "plugins/cpu/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_contraction(const Op& op);
std::unique_ptr<Plan> prepare_contraction(const Op& op);

// Of the matrix libraries. Loads nothing: before the first product they have not been looked for yet.
std::vector<common::Requirement> report_engines();

// Once, when the plugin is opened.
void open_engines();

}  // namespace compute::cpu
