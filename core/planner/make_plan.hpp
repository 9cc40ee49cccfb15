// SPDX-License-Identifier: Apache-2.0
// Makes plans: from a call to plans of the device's plugin.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <span>

#include "core/loading/plugin_table.hpp"
#include "core/planner/plan.hpp"

namespace compute {

// Makes the plan of a call: lowers it and lets the plugin prepare every step. It packs operands whose layout the plugin
// refuses, replaces intrinsics that the plugin does not know, and tries the next lowering if a step is refused. Throws
// UNSUPPORTED with the plugin's last reason.
struct PlanRequest {
  compute_device& device;
  const Inference& inference;    // of the call
  const OpCall* call = nullptr;  // an op, or …
  const MapCall* map = nullptr;  // … an expression
  const char* name = "";
  std::span<const LoweringTarget::Output> output_layouts{};
  bool in_place = false;
  std::span<const int32_t> input_alignment{};  // bytes
  std::span<const int32_t> output_alignment{};
};
void make_plan(const PlanRequest& request, Plan& plan);

// The same without making a plan, as compute_support says it.
struct PlanSupport {
  int32_t support = COMPUTE_SUPPORT_NONE;
  PluginRefusal refusal;  // `argument` is of the call; COMPUTE_REASON_NONE: the plugin refused nothing
  int64_t workspace_bytes = 0;
};
PlanSupport query_plan(const PlanRequest& request);

}  // namespace compute
