// SPDX-License-Identifier: Apache-2.0
// An expression before a reduction and one after it: one reduce step.
#include <algorithm>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "core/expressions/expression_type.hpp"
#include "core/ops/infer.hpp"
#include "core/ops/lower.hpp"
#include "core/ops/rules.hpp"
#include "core/ops/shapes.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

constexpr std::string_view kName = "reduce";

[[noreturn]] void refuse_call(const std::string& what, int32_t argument = -1) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(kName) + ": " + what).with_argument(argument);
}

bool is_kind(const MapReduction& reduction, std::string_view a, std::string_view b) {
  return reduction.kind == a || reduction.kind == b;
}

// The dtype of the combined values for values of dtype `from`.
compute_dtype combined_dtype(const MapReduction& reduction, compute_dtype from) {
  const compute_dtype to = reduction.accumulator;
  if (is_kind(reduction, "all", "any")) {
    if (to != COMPUTE_DTYPE_NONE && !is_bool(to))
      refuse_call(std::string(reduction.kind) + " gives bool, not " + dtype_name(to));
    return COMPUTE_DTYPE_BOOL;
  }
  const bool orders = is_kind(reduction, "min", "max");
  if (orders && (is_bool(from) || is_complex(from)))
    refuse_call("the values are " + dtype_name(from) + "; " + reduction.kind + " takes real numbers");
  if (to != COMPUTE_DTYPE_NONE) {
    if (is_bool(to) || (is_complex(from) && !is_complex(to)) || (orders && is_complex(to)))
      refuse_call("the values are " + dtype_name(from) + "; their " + reduction.kind + " has no " + dtype_name(to));
    return to;
  }
  if (orders) return from;
  if (is_unsigned_integer(from)) return COMPUTE_DTYPE_UINT64;
  return is_bool(from) || is_integer(from) ? COMPUTE_DTYPE_INT64 : from;
}

// `expression` typed with its result as the accumulator's dtype, whatever its kind; *out_natural is its own dtype.
TypedExpression type_before(const ExpressionTemplate& expression, std::span<const LeafDesc> leaves,
                            const MapReduction& reduction, compute_dtype* out_accumulator,
                            compute_dtype* out_combined) {
  const compute_dtype natural = type_expression(expression, leaves, {}, kName).output_dtype(0);
  *out_combined = combined_dtype(reduction, is_float8(natural) ? computed_in(natural) : natural);
  const compute_dtype accumulator = *out_accumulator = computed_in(*out_combined);
  ExpressionBuilder builder;
  std::vector<TypedLeaf> typed;
  std::vector<int32_t> input_leaves;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    if (leaves[i].is_scalar || number >= expression.input_count()) {
      typed.push_back({leaves[i].dtype, leaves[i].weak, -1, number});
    } else {
      const int32_t node = builder.input(static_cast<int32_t>(input_leaves.size()), leaves[i].dtype);
      typed.push_back({leaves[i].dtype, false, node, -1});
      input_leaves.push_back(number);
    }
  }
  // Half types are not rounded on the way.
  const compute_dtype computed = computed_in(natural);
  int32_t node = build_expression(builder, expression.data(), typed, {&computed, 1}, kName).front();
  if (is_bool(accumulator) && !is_bool(computed)) {
    const int32_t operands[] = {node, builder.constant(scalar_from_int64(0, computed), computed)};
    node = builder.call(COMPUTE_PLUGIN_INTRINSIC_NE, operands);
  } else {
    node = builder.convert(node, accumulator);
  }
  return builder.finish({&node, 1}, std::move(input_leaves));
}

const ExpressionTemplate& identity_template() {
  static const ExpressionTemplate& identity = *new ExpressionTemplate([] {
    constexpr std::string_view kNames[] = {"x"};
    return parse("x", kNames);
  }());
  return identity;
}

// The axes and the shapes that follow from them.
void reduce_shape(const MapReduction& asked, ReductionInference& out) {
  const auto rank = static_cast<int32_t>(out.shape.size());
  for (int32_t i = 0; asked.over_all && i < rank; ++i) out.axes.push_back(i);
  for (const int64_t axis : asked.axes) out.axes.push_back(normalize_axis(kName, axis, rank, "axes"));
  std::sort(out.axes.begin(), out.axes.end());
  const auto twice = std::adjacent_find(out.axes.begin(), out.axes.end());
  if (twice != out.axes.end()) refuse_call("axis " + std::to_string(*twice) + " is given twice");
  out.kept_shape = out.shape;
  for (const int64_t axis : out.axes) {
    int64_t& extent = out.kept_shape[static_cast<size_t>(axis)];
    out.count *= extent;
    extent = 1;
  }
}

}  // namespace

Inference infer_map_reduction(const MapCall& call) {
  const MapReduction& asked = *call.reduction;
  const ExpressionTemplate& before = call.expression;
  const ExpressionTemplate& after = asked.after ? asked.after : identity_template();
  const auto inputs = static_cast<size_t>(before.input_count());
  const auto of_before = inputs + static_cast<size_t>(before.scalar_count());
  if (std::all_of(call.operands.begin(), call.operands.begin() + before.input_count(),
                  [](const OperandDesc& x) { return x.is_scalar; }))
    refuse_call("no input has a shape; at least one is a tensor with memory");
  Inference result;
  ReductionInference& reduction = result.reduction;
  reduction.shape = broadcast_shapes(kName, call.operands.first(inputs));
  if (before.max_index_axis() >= static_cast<int32_t>(reduction.shape.size())) {
    refuse_call("index(" + std::to_string(before.max_index_axis()) + ") in an index space of shape " +
                shape_text(reduction.shape));
  }
  reduce_shape(asked, reduction);
  std::vector<int64_t> shape = reduction.kept_shape;
  if (!asked.keepdims) {
    for (size_t i = reduction.axes.size(); i-- > 0;) shape.erase(shape.begin() + reduction.axes[i]);
  }
  if (reduction.count == 0 && is_kind(asked, "min", "max") && has_elements(shape))
    refuse_call(std::string(asked.kind) + " over no elements is undefined; the inputs have shape " +
                shape_text(reduction.shape));

  std::vector<LeafDesc> leaves;
  for (const OperandDesc& operand : call.operands) leaves.push_back({operand.dtype, operand.weak, operand.is_scalar});
  compute_dtype combined = COMPUTE_DTYPE_NONE;
  result.map = type_before(before, std::span(leaves).first(of_before), asked, &reduction.accumulator, &combined);
  // `after` types its input by the result's dtype, and computes with the accumulator.
  std::vector<LeafDesc> after_leaves(leaves.begin() + static_cast<std::ptrdiff_t>(of_before), leaves.end());
  after_leaves.insert(after_leaves.begin(), LeafDesc{combined, false, reduction.count == 0});
  const compute_dtype output = type_expression(after, after_leaves, call.wanted, kName).output_dtype(0);
  after_leaves[0].dtype = reduction.accumulator;
  reduction.after = type_expression(after, after_leaves, {&output, 1}, kName);
  result.outputs.push_back({output, std::move(shape)});
  return result;
}

Lowering lower_map_reduction(const MapCall& call, const Inference& inference, const LoweringTarget& target) {
  const ReductionInference& reduction = inference.reduction;
  const LoweringTarget::Output& given = target.outputs[0];
  StepOperand output{ValueKind::kOutput, 0, given.dtype, COMPUTE_PLUGIN_TENSOR_OUTPUT, {}, {}, 0};
  output.shape.assign(given.shape.begin(), given.shape.end());
  output.strides.assign(given.strides.begin(), given.strides.end());
  if (output.shape.size() != reduction.kept_shape.size()) {
    for (const int64_t axis : reduction.axes) output = with_axis(std::move(output), static_cast<int32_t>(axis));
  }
  Step step;
  const int32_t first = call.expression.input_count() + call.expression.scalar_count();
  const bool has_values = reduction.count > 0;
  if (has_values) {
    for (const int32_t leaf : inference.map.input_leaves()) {
      const OperandDesc& desc = call.operands[static_cast<size_t>(leaf)];
      step.inputs.push_back({ValueKind::kInput, leaf, desc.dtype, COMPUTE_PLUGIN_TENSOR_INPUT, reduction.shape,
                             broadcast_strides(desc, reduction.shape), 0});
    }
    for (const ScalarSlot& slot : inference.map.scalars())
      step.scalars.push_back({ScalarSource::kOperand, slot.leaf, slot.dtype, {}});
    step.attributes = reduce_attributes(reduction.axes, call.reduction->kind, reduction.accumulator);
    step.expressions.push_back(inference.map);
  }
  const int64_t of_nothing = is_kind(*call.reduction, "prod", "all") ? 1 : 0;
  for (const ScalarSlot& slot : reduction.after.scalars()) {
    if (slot.leaf == 0) {
      step.scalars.push_back({ScalarSource::kValue, 0, slot.dtype, scalar_from_int64(of_nothing, slot.dtype)});
    } else {
      step.scalars.push_back({ScalarSource::kOperand, first + slot.leaf - 1, slot.dtype, {}});
    }
  }
  step.name = has_values ? "reduce" : "map";
  step.expressions.push_back(reduction.after);
  step.outputs.push_back(std::move(output));
  Lowering lowering;
  lowering.steps.push_back(std::move(step));
  return lowering;
}

}  // namespace compute
