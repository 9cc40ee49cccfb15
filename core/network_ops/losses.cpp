// SPDX-License-Identifier: Apache-2.0
// cross_entropy and its gradient.
#include <limits>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

// The shape of the labels: the logits' without the axis of classes.
std::vector<int64_t> label_shape(const OpCall& call, int32_t logits) {
  const std::span<const int64_t> shape = call.inputs[static_cast<size_t>(logits)].extents();
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(shape.size()));
  std::vector<int64_t> result(shape.begin(), shape.end());
  result.erase(result.begin() + axis);
  return result;
}

void check_labels(const OpCall& call, int32_t logits, int32_t labels) {
  require_class(call, logits, DtypeClass::kFloat);
  const compute_dtype dtype = call.inputs[static_cast<size_t>(labels)].dtype;
  if (!is_integer(dtype) || dtype == COMPUTE_DTYPE_UINT64) {
    refuse(call, "labels is " + dtype_name(dtype) + "; expected an integer dtype other than uint64", labels);
  }
  require_tensor(call, labels, dtype, label_shape(call, logits));
}

std::vector<OutputDesc> infer_cross_entropy(const OpCall& call) {
  check_labels(call, 0, 1);
  const std::vector<int64_t> shape = label_shape(call, 0);
  const compute_dtype dtype = computed_in(call.inputs[0].dtype);
  return {{dtype, shape}, {dtype, shape}};
}

// Greatest, logarithm of the sum of exponentials, and what the logit of the label differs from it.
std::optional<Lowering> lower_cross_entropy(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.input(0);
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(x.shape.size()));
  const StepOperand loss = with_axis(steps.output(0), axis), logsumexp = with_axis(steps.output(1), axis);
  if (!has_elements(x.shape)) {
    if (alternative > 0) return std::nullopt;
    steps.fill(loss, scalar_from_double(0, loss.dtype));
    steps.fill(logsumexp, scalar_from_double(-std::numeric_limits<double>::infinity(), loss.dtype));
    return steps.take();
  }
  const compute_dtype computed = computed_in(x.dtype);
  const StepOperand labels = with_axis(steps.input(1), axis, x.shape[static_cast<size_t>(axis)]);
  Row row{{x, labels}, {axis}, {}};
  const std::string label = "convert(y, int64)", position = "index(" + std::to_string(axis) + ")";
  row.stages.push_back({"max", computed, {"x"}, {"where(isfinite(x), x, 0)"}, computed});
  row.stages.push_back({"sum", computed, {"exp(x - r0)"}, {"log(x) + r0"}, computed});
  row.stages.push_back({"sum", computed, {"where(" + position + " == " + label + ", x, 0)"}, {"r1 - x"}, computed});
  row.stored = {{1, logsumexp}, {2, loss}};
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  return steps.take();
}

std::vector<OutputDesc> infer_cross_entropy_grad(const OpCall& call) {
  check_labels(call, 1, 2);
  const std::vector<int64_t> shape = label_shape(call, 1);
  const compute_dtype dtype = computed_in(call.inputs[1].dtype);
  require_tensor(call, 0, dtype, shape);
  require_tensor(call, 3, dtype, shape);
  const std::span<const int64_t> logits = call.inputs[1].extents();
  return {{call.inputs[1].dtype, {logits.begin(), logits.end()}}};
}

std::optional<Lowering> lower_cross_entropy_grad(const OpCall& call, const LoweringTarget& target,
                                                 int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.input(1);
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(x.shape.size()));
  const auto along = [&](int32_t index) { return with_axis(steps.input(index), axis); };
  const std::string is_label = "index(" + std::to_string(axis) + ") == convert(z, int64)";
  steps.map({"x * (exp(y - x3) - where(" + is_label + ", 1, 0))"}, {along(0), x, along(2), along(3)}, steps.output());
  return steps.take();
}

}  // namespace

const OpRules cross_entropy_1_rules{infer_cross_entropy, lower_cross_entropy, true};
const OpRules cross_entropy_grad_1_rules{infer_cross_entropy_grad, lower_cross_entropy_grad, true};

}  // namespace compute
