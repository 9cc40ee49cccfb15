// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp: the greatest element first, so that no exponential overflows, then the sum of the
// exponentials of the differences from it.
#include <limits>

#include "core/array_ops/reduction.hpp"

namespace compute {

namespace {

std::vector<OutputDesc> infer_softmax(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  axis_attribute(call, call.inputs[0].rank);
  const std::span<const int64_t> extents = call.inputs[0].extents();
  return {{call.inputs[0].dtype, {extents.begin(), extents.end()}}};
}

std::vector<OutputDesc> infer_logsumexp(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  return {{call.inputs[0].dtype, read_reduction(call).shape}};
}

// A row whose stage `greatest` is subtracted from the elements and whose stage `total` is `after` of `sum`, the sum of
// their exponentials.
Row exponential_row(Steps& steps, std::vector<int64_t> axes, const char* greatest, const char* after,
                    compute_dtype result) {
  const StepOperand x = steps.input(0);
  const compute_dtype computed = computed_in(x.dtype);
  Row row{{x}, std::move(axes), {}};
  row.stages.push_back({"max", computed, {"x"}, {greatest}, computed, "greatest"});
  row.stages.push_back({"sum", computed, {"exp(x - greatest)"}, {after, {}, {"sum"}}, result, "total"});
  return row;
}

std::optional<Lowering> lower_softmax(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                      bool logarithm) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.input(0);
  const compute_dtype computed = computed_in(x.dtype);
  Row row = exponential_row(steps, {axis_attribute(call, call.inputs[0].rank)}, "x", logarithm ? "log(sum)" : "1 / sum",
                            computed);
  row.map = StepExpression{logarithm ? "x - greatest - total" : "exp(x - greatest) * total"};
  row.outputs = {steps.output()};
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  return steps.take();
}

std::optional<Lowering> lower_softmax(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_softmax(call, target, alternative, false);
}

std::optional<Lowering> lower_log_softmax(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_softmax(call, target, alternative, true);
}

std::optional<Lowering> lower_logsumexp(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const Reduction reduction = read_reduction(call);
  const StepOperand output = reduced_output(steps, reduction);
  if (reduction.count == 0) {
    if (alternative > 0) return std::nullopt;
    steps.fill(output, scalar_from_double(-std::numeric_limits<double>::infinity(), output.dtype));
    return steps.take();
  }
  // From an infinity nothing can be subtracted: where the greatest is one, the sum says it all.
  Row row = exponential_row(steps, reduction.axes, "where(isfinite(x), x, 0)", "log(sum) + greatest", output.dtype);
  row.stored.push_back({1, output});
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  return steps.take();
}

std::vector<OutputDesc> infer_softmax_grad(const OpCall& call) {
  require_same(call, 0, 1);
  return infer_softmax(call);
}

// softmax: y * (dy - sum(dy * y)). log_softmax: dy - exp(y) * sum(dy).
std::optional<Lowering> lower_softmax_grad(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                           bool logarithm) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand dy = steps.input(0);
  const compute_dtype computed = computed_in(dy.dtype);
  Row row{{dy, steps.input(1)}, {axis_attribute(call, call.inputs[0].rank)}, {}};
  row.names = {"dy", "y"};
  row.stages.push_back({"sum", computed, {logarithm ? "dy" : "dy * y"}, {"x"}, computed, "total"});
  row.map = StepExpression{logarithm ? "dy - exp(y) * total" : "y * (dy - total)"};
  row.outputs = {steps.output()};
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  return steps.take();
}

std::optional<Lowering> lower_grad_of_softmax(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_softmax_grad(call, target, alternative, false);
}

std::optional<Lowering> lower_grad_of_log_softmax(const OpCall& call, const LoweringTarget& target,
                                                  int32_t alternative) {
  return lower_softmax_grad(call, target, alternative, true);
}

}  // namespace

const OpRules log_softmax_grad_1_rules{infer_softmax_grad, lower_grad_of_log_softmax, true};
const OpRules softmax_grad_1_rules{infer_softmax_grad, lower_grad_of_softmax, true};
const OpRules log_softmax_1_rules{infer_softmax, lower_log_softmax, true};
const OpRules logsumexp_1_rules{infer_logsumexp, lower_logsumexp, true};
const OpRules softmax_1_rules{infer_softmax, lower_softmax, true};

}  // namespace compute
