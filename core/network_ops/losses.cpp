// SPDX-License-Identifier: Apache-2.0
// cross_entropy and cross_entropy_soft with their gradients.
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

// What an expression over labels knows of the attributes.
struct Labels {
  Labels(const OpCall& call, int64_t classes, compute_dtype computed)
      : scalars{attribute_term(call, "label_smoothing", computed).named("smoothing"),
                extent_term(classes).named("classes")} {
    const int32_t index = attribute_index(call, "ignore_index");
    ignores = call.attributes.has(index);
    if (ignores) scalars.push_back(extent_term(call.attributes.int64(index)).named("ignored"));
  }
  // `value`, or 0 if the label is ignored.
  std::string kept(const std::string& value) const {
    return ignores ? "where(convert(label, int64) == ignored, 0, " + value + ")" : value;
  }

  std::vector<ScalarTerm> scalars;  // the smoothing, the classes, the label to ignore
  bool ignores;
};

// The first two stages of a loss: the greatest logit, and the logarithm of the sum of exponentials. They are complete
// if there are no logits.
std::optional<Row> logsumexp_row(Steps& steps, const StepOperand& x, int32_t axis) {
  const StepOperand loss = with_axis(steps.output(0), axis), logsumexp = with_axis(steps.output(1), axis);
  if (!has_elements(x.shape)) {
    steps.fill(loss, scalar_from_double(0, loss.dtype));
    steps.fill(logsumexp, scalar_from_double(-std::numeric_limits<double>::infinity(), loss.dtype));
    return std::nullopt;
  }
  const compute_dtype computed = computed_in(x.dtype);
  Row row{{x}, {axis}, {}};
  row.stages.push_back({"max", computed, {"x"}, {"where(isfinite(x), x, 0)"}, computed, "greatest"});
  row.stages.push_back(
      {"sum", computed, {"exp(x - greatest)"}, {"log(sum) + greatest", {}, {"sum"}}, computed, "logsumexp"});
  row.stored = {{1, logsumexp}, {2, loss}};
  return row;
}

// The last stage is the difference between the logarithm and the label's logit. If labels can be ignored, the logarithm
// is one of the terms.
std::optional<Lowering> lower_cross_entropy(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.input(0);
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(x.shape.size()));
  std::optional<Row> row = logsumexp_row(steps, x, axis);
  if (!row) return alternative > 0 ? std::nullopt : std::optional(steps.take());
  const int64_t classes = x.shape[static_cast<size_t>(axis)];
  const compute_dtype computed = computed_in(x.dtype);
  const Labels labels(call, classes, computed);
  row->inputs.push_back(with_axis(steps.input(1), axis, classes));
  row->names = {"x", "label"};
  const std::string position = "index(" + std::to_string(axis) + ")";
  const std::string logit =
      "where(" + position +
      " == convert(label, int64), x * (1 - smoothing), 0) + where(smoothing == 0, 0, x * (smoothing / classes))";
  StepExpression before{logit, labels.scalars}, after{"logsumexp - x"};
  if (labels.ignores) {
    before.text = labels.kept("where(" + position + " == 0, logsumexp, 0) - (" + logit + ")");
    after.text = "x";
  }
  row->stages.push_back({"sum", computed, before, after, computed});
  alternative == 0 ? steps.row(*row) : steps.row_in_steps(*row);
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
  const Labels labels(call, x.shape[static_cast<size_t>(axis)], computed_in(x.dtype));
  const std::string is_label = "index(" + std::to_string(axis) + ") == convert(label, int64)";
  const std::string text =
      "dy * (exp(x - logsumexp) - where(" + is_label + ", 1 - smoothing, 0) - smoothing / classes)";
  steps.map({labels.kept(text), labels.scalars, {"dy", "x", "label", "logsumexp"}}, {along(0), x, along(2), along(3)},
            steps.output());
  return steps.take();
}

// ---- Probabilities as targets ---------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_cross_entropy_soft(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  require_same(call, 1, 0);
  const std::vector<int64_t> shape = label_shape(call, 0);
  const compute_dtype dtype = computed_in(call.inputs[0].dtype);
  return {{dtype, shape}, {dtype, shape}};
}

std::optional<Lowering> lower_cross_entropy_soft(const OpCall& call, const LoweringTarget& target,
                                                 int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.input(0);
  std::optional<Row> row = logsumexp_row(steps, x, axis_attribute(call, static_cast<int32_t>(x.shape.size())));
  if (!row) return alternative > 0 ? std::nullopt : std::optional(steps.take());
  const compute_dtype computed = computed_in(x.dtype);
  row->inputs.push_back(steps.input(1));
  row->names = {"x", "target"};
  row->stages.push_back({"sum", computed, {"where(target == 0, 0, target * (logsumexp - x))"}, {"x"}, computed});
  alternative == 0 ? steps.row(*row) : steps.row_in_steps(*row);
  return steps.take();
}

std::vector<OutputDesc> infer_cross_entropy_soft_grad(const OpCall& call) {
  require_class(call, 1, DtypeClass::kFloat);
  require_same(call, 2, 1);
  const std::vector<int64_t> shape = label_shape(call, 1);
  const compute_dtype dtype = computed_in(call.inputs[1].dtype);
  require_tensor(call, 0, dtype, shape);
  require_tensor(call, 3, dtype, shape);
  const std::span<const int64_t> logits = call.inputs[1].extents();
  return {{call.inputs[1].dtype, {logits.begin(), logits.end()}}};
}

std::optional<Lowering> lower_cross_entropy_soft_grad(const OpCall& call, const LoweringTarget& target,
                                                      int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.input(1);
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(x.shape.size()));
  const int64_t classes = x.shape[static_cast<size_t>(axis)];
  const auto along = [&](int32_t index) { return with_axis(steps.input(index), axis, classes); };
  const compute_dtype computed = computed_in(x.dtype);
  Row row{{along(0), x, steps.input(2), along(3)}, {axis}, {}};
  row.names = {"dy", "x", "target", "logsumexp"};
  row.stages.push_back({"sum", computed, {"target"}, {"x"}, computed, "total"});
  row.map = StepExpression{"dy * (exp(x - logsumexp) * total - target)"};
  row.outputs = {steps.output()};
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  return steps.take();
}

}  // namespace

const OpRules cross_entropy_1_rules{infer_cross_entropy, lower_cross_entropy, true};
const OpRules cross_entropy_grad_1_rules{infer_cross_entropy_grad, lower_cross_entropy_grad, true};
const OpRules cross_entropy_soft_1_rules{infer_cross_entropy_soft, lower_cross_entropy_soft, true};
const OpRules cross_entropy_soft_grad_1_rules{infer_cross_entropy_soft_grad, lower_cross_entropy_soft_grad, true};

}  // namespace compute
