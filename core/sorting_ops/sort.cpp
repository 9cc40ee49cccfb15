// SPDX-License-Identifier: Apache-2.0
// sort, argsort and top_k.
#include "core/ops/rules.hpp"
#include "core/sorting_ops/parts.hpp"

namespace compute {

namespace {

void check_order(const OpCall& call) {
  const compute_dtype dtype = call.inputs[0].dtype;
  if (!is_bool(dtype)) require_class(call, 0, DtypeClass::kReal);
  axis_attribute(call, call.inputs[0].rank);
}

std::vector<OutputDesc> infer_sort(const OpCall& call) {
  check_order(call);
  flag_attribute(call, "descending");
  return {{call.inputs[0].dtype, shape_of(call)}};
}

std::vector<OutputDesc> infer_argsort(const OpCall& call) {
  std::vector<OutputDesc> outputs = infer_sort(call);
  outputs[0].dtype = COMPUTE_DTYPE_INT64;
  return outputs;
}

std::vector<OutputDesc> infer_top_k(const OpCall& call) {
  check_order(call);
  flag_attribute(call, "largest");
  const int64_t k = extent_attribute(call, "k");
  std::vector<int64_t> shape = shape_of(call);
  int64_t& extent = shape[static_cast<size_t>(axis_attribute(call, call.inputs[0].rank))];
  if (k > extent) {
    refuse_attribute(call, "k",
                     "k is " + std::to_string(k) + ", but x of shape " + shape_text(call.inputs[0].extents()) +
                         " has " + std::to_string(extent) + " elements along the axis");
  }
  extent = k;
  return {{call.inputs[0].dtype, shape}, {COMPUTE_DTYPE_INT64, shape}};
}

std::optional<Lowering> lower(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                              bool wants_indices) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  sort(steps, steps.input(0), axis, flag_attribute(call, "descending"), wants_indices ? StepOperand{} : y,
       wants_indices ? y : StepOperand{}, alternative == 0);
  return steps.take();
}

std::optional<Lowering> lower_sort(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower(call, target, alternative, false);
}
std::optional<Lowering> lower_argsort(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower(call, target, alternative, true);
}

std::optional<Lowering> lower_top_k(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.input(0), values = steps.output(0), indices = steps.output(1);
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  const StepOperand sorted = steps.temporary(x.dtype, x.shape), order = steps.temporary(indices.dtype, x.shape);
  sort(steps, x, axis, flag_attribute(call, "largest"), sorted, order, alternative == 0);
  const int64_t k = values.shape[static_cast<size_t>(axis)];
  steps.copy(narrowed(sorted, axis, 0, k), values);
  steps.copy(narrowed(order, axis, 0, k), indices);
  return steps.take();
}

}  // namespace

const OpRules argsort_1_rules{infer_argsort, lower_argsort};
const OpRules sort_1_rules{infer_sort, lower_sort};
const OpRules top_k_1_rules{infer_top_k, lower_top_k, true};

}  // namespace compute
