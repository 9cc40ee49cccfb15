// SPDX-License-Identifier: Apache-2.0
// The primitive `contraction`, on matmul's plans, and what becomes of the libraries behind them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/cpu/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_contraction(const Op& op);
std::unique_ptr<Plan> prepare_contraction(const Op& op);

// A matrix library, as compute_plugin_requirement describes it.
struct EngineReport {
  std::string name, tried, found, error, effect, remedy;
  int32_t state;
};

// Loads nothing: before the first product the libraries have not been looked for yet.
std::vector<EngineReport> report_engines();

// Once, when the plugin is opened.
void open_engines();

}  // namespace compute::cpu
