// SPDX-License-Identifier: Apache-2.0
// argmax and argmin.
#include "core/array_ops/reduction.hpp"

namespace compute {

namespace {

std::vector<OutputDesc> infer_arg(const OpCall& call) {
  require_class(call, 0, DtypeClass::kReal);
  Reduction reduction = read_arg_reduction(call);
  refuse_empty(call, reduction);
  return {{COMPUTE_DTYPE_INT64, std::move(reduction.shape)}};
}

std::vector<OutputDesc> infer_argmax(const OpCall& call) { return infer_arg(call); }
std::vector<OutputDesc> infer_argmin(const OpCall& call) { return infer_arg(call); }

// The arg_reduce primitive takes one axis; nothing if the reduced axes cannot be collapsed to one.
std::optional<Lowering> lower_primitive(const OpCall& call, const LoweringTarget& target, const char* kind) {
  Steps steps(call, target);
  const Reduction reduction = read_arg_reduction(call);
  StepOperand x = steps.input(0), output = reduced_output(steps, reduction);
  int64_t axis = reduction.axes.size() == 1 ? reduction.axes[0] : 0;
  if (reduction.axes.size() != 1) {
    const std::optional<StepOperand> flat = flattened(x);
    if (!flat) return std::nullopt;
    x = *flat;
    output.shape = {1};
    output.strides = {0};
  }
  Step& step = steps.add("arg_reduce", {std::move(x)}, std::move(output));
  step.attributes.resize(2);
  step.attributes[0].name = "axis";
  step.attributes[0].integers = {axis};
  step.attributes[1].name = "kind";
  step.attributes[1].kind = COMPUTE_KIND_STRING;
  step.attributes[1].texts = {kind};
  return steps.take();
}

// The greatest value first, then the least position that holds it; a NaN is greatest and least.
Lowering lower_to_reduce(const OpCall& call, const LoweringTarget& target, const char* kind) {
  Steps steps(call, target);
  const Reduction reduction = read_arg_reduction(call);
  const StepOperand x = steps.input(0);
  const StepOperand best = steps.temporary(x.dtype, reduction.kept_shape);
  steps.reduce(kind, computed_in(x.dtype), reduction.axes, {"x"}, {x}, {"x"}, best);

  // The row-major position within the reduced axes. Their extents are scalars, so that no size makes a kernel.
  StepExpression position;
  std::string linear;
  for (const int64_t axis : reduction.axes) {
    const std::string index = "index(" + std::to_string(axis) + ")";
    if (linear.empty()) {
      linear = index;
      continue;
    }
    linear = "(" + linear + ") * " + scalar_name(position.scalars.size()) + " + " + index;
    position.scalars.push_back(extent_term(x.shape[static_cast<size_t>(axis)]));
  }
  position.text = "where((x == y) | isnan(x), " + linear + ", " + scalar_name(position.scalars.size()) + ")";
  position.scalars.push_back(extent_term(reduction.count));
  steps.reduce("min", COMPUTE_DTYPE_INT64, reduction.axes, position, {x, broadcast_to(best, x.shape)}, {"x"},
               reduced_output(steps, reduction));
  return steps.take();
}

std::optional<Lowering> lower_arg(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                  const char* kind) {
  if (read_arg_reduction(call).axes.empty()) {
    if (alternative > 0) return std::nullopt;
    Steps steps(call, target);
    steps.fill(steps.output(), scalar_from_int64(0, COMPUTE_DTYPE_INT64));
    return steps.take();
  }
  if (alternative == 0) {
    if (std::optional<Lowering> primitive = lower_primitive(call, target, kind)) return primitive;
    return lower_to_reduce(call, target, kind);
  }
  const bool is_second = alternative == 1 && lower_primitive(call, target, kind).has_value();
  return is_second ? std::optional(lower_to_reduce(call, target, kind)) : std::nullopt;
}

std::optional<Lowering> lower_argmax(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_arg(call, target, alternative, "max");
}

std::optional<Lowering> lower_argmin(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_arg(call, target, alternative, "min");
}

}  // namespace

const OpRules argmax_1_rules{infer_argmax, lower_argmax};
const OpRules argmin_1_rules{infer_argmin, lower_argmin};

}  // namespace compute
