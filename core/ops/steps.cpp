// SPDX-License-Identifier: Apache-2.0
#include "core/ops/steps.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "core/base/error.hpp"
#include "core/ops/rules.hpp"

namespace compute {

namespace {

StepAttribute integers(const char* name, std::span<const int64_t> values) {
  StepAttribute attribute;
  attribute.name = name;
  attribute.integers.assign(values.begin(), values.end());
  return attribute;
}

StepAttribute text(const char* name, std::string_view value) {
  StepAttribute attribute;
  attribute.name = name;
  attribute.kind = COMPUTE_KIND_STRING;
  attribute.text = value;
  return attribute;
}

StepAttribute dtype_value(const char* name, compute_dtype value) {
  StepAttribute attribute;
  attribute.name = name;
  attribute.kind = COMPUTE_KIND_DTYPE;
  attribute.integers = {value};
  return attribute;
}

}  // namespace

// ---- Views ----------------------------------------------------------------------------------------------------------

StepOperand with_axis(StepOperand operand, int32_t axis, int64_t extent) {
  operand.shape.insert(operand.shape.begin() + axis, extent);
  operand.strides.insert(operand.strides.begin() + axis, 0);
  return operand;
}

StepOperand broadcast_to(const StepOperand& operand, std::span<const int64_t> shape) {
  OperandDesc view{operand.dtype, static_cast<int32_t>(operand.shape.size()), operand.shape.data(),
                   operand.strides.data()};
  StepOperand result = operand;
  result.strides = broadcast_strides(view, shape);
  result.shape.assign(shape.begin(), shape.end());
  return result;
}

StepOperand narrowed(StepOperand operand, int32_t axis, int64_t start, int64_t extent) {
  const auto i = static_cast<size_t>(axis);
  operand.offset += start * operand.strides[i];
  operand.shape[i] = extent;
  return operand;
}

// ---- Scalars --------------------------------------------------------------------------------------------------------

ScalarTerm extent_term(int64_t value) {
  const StepScalar source{ScalarSource::kValue, 0, COMPUTE_DTYPE_INT64, scalar_from_int64(value, COMPUTE_DTYPE_INT64)};
  return {source, {COMPUTE_DTYPE_INT64, true, true}};
}

ScalarTerm attribute_term(const OpCall& call, std::string_view name, compute_dtype dtype) {
  return {{ScalarSource::kRunTimeAttribute, run_time_index(call, name), dtype, {}}, {dtype, false, true}};
}

std::string convert_text(std::string_view operand, compute_dtype from, compute_dtype to) {
  if (from == to) return std::string(operand);
  return "convert(" + std::string(operand) + ", " + dtype_name(to) + ")";
}

// ---- Steps ----------------------------------------------------------------------------------------------------------

StepOperand Steps::input(int32_t index, compute_dtype dtype) {
  const OperandDesc& desc = call_.inputs[static_cast<size_t>(index)];
  StepOperand operand;
  operand.index = index;
  operand.dtype = desc.dtype;
  if (!desc.is_scalar) {
    operand.shape.assign(desc.shape, desc.shape + desc.rank);
    operand.strides.assign(desc.strides, desc.strides + desc.rank);
    return operand;
  }
  const compute_dtype as = dtype != COMPUTE_DTYPE_NONE ? dtype : desc.dtype;
  operand = temporary(as, {});
  const ScalarTerm term{{ScalarSource::kOperand, index, as, {}}, {as, false, true}};
  map({"a", {term}}, {}, operand);
  return operand;
}

StepOperand Steps::output(int32_t index) const {
  const LoweringTarget::Output& desc = target_.outputs[static_cast<size_t>(index)];
  StepOperand operand{ValueKind::kOutput, index, desc.dtype, COMPUTE_PLUGIN_TENSOR_OUTPUT, {}, {}, 0};
  operand.shape.assign(desc.shape.begin(), desc.shape.end());
  operand.strides.assign(desc.strides.begin(), desc.strides.end());
  return operand;
}

StepOperand Steps::temporary(compute_dtype dtype, std::span<const int64_t> shape) {
  StepOperand operand{ValueKind::kTemporary,
                      static_cast<int32_t>(lowering_.temporaries.size()),
                      dtype,
                      COMPUTE_PLUGIN_TENSOR_INPUT,
                      {},
                      {},
                      0};
  operand.shape.assign(shape.begin(), shape.end());
  operand.strides = row_major_strides(shape);
  const int64_t size = element_count(call_.schema.name, shape, dtype_size(dtype)) * dtype_size(dtype);
  lowering_.temporaries.push_back({dtype, size, 0});
  return operand;
}

StepOperand Steps::as_dtype(const StepOperand& operand, compute_dtype dtype) {
  if (operand.dtype == dtype) return operand;
  // Repeated elements are converted once.
  StepOperand src = operand;
  for (size_t i = 0; i < src.shape.size(); ++i) {
    if (src.strides[i] == 0) src.shape[i] = 1;
  }
  const StepOperand dst = temporary(dtype, src.shape);
  copy(src, dst);
  return broadcast_to(dst, operand.shape);
}

StepOperand Steps::as_indices(const StepOperand& operand) {
  if (operand.dtype == COMPUTE_DTYPE_INT32 || operand.dtype == COMPUTE_DTYPE_INT64) return operand;
  if (operand.dtype != COMPUTE_DTYPE_UINT64) return as_dtype(operand, COMPUTE_DTYPE_INT64);
  const StepOperand dst = temporary(COMPUTE_DTYPE_INT64, operand.shape);
  map({"convert(min(x, 9223372036854775807), int64)"}, {operand}, dst);
  return dst;
}

TypedExpression Steps::type(const StepExpression& expression, std::span<const compute_dtype> inputs,
                            compute_dtype wanted, std::vector<StepScalar>& out_scalars) const {
  static constexpr std::string_view kInputs[] = {"x", "y", "z"};
  static constexpr auto kScalars = [] {
    std::array<std::string_view, kScalarNames.size()> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = kScalarNames.substr(i, 1);
    return names;
  }();
  assert(inputs.size() <= std::size(kInputs) && expression.scalars.size() <= kScalars.size());
  const ExpressionTemplate parsed = parse(expression.text, std::span(kInputs).first(inputs.size()),
                                          std::span(kScalars).first(expression.scalars.size()));
  std::vector<LeafDesc> leaves;
  for (const compute_dtype dtype : inputs) leaves.push_back({dtype});
  for (const ScalarTerm& term : expression.scalars) leaves.push_back(term.leaf);
  TypedExpression typed = type_expression(parsed, leaves, {&wanted, 1}, call_.schema.name);
  for (const ScalarSlot& slot : typed.scalars()) {
    StepScalar scalar = expression.scalars[static_cast<size_t>(slot.leaf) - inputs.size()].source;
    if (scalar.source == ScalarSource::kValue) scalar.bits = convert_scalar(scalar.bits, scalar.dtype, slot.dtype);
    scalar.dtype = slot.dtype;
    out_scalars.push_back(scalar);
  }
  return typed;
}

Step& Steps::add(const char* primitive, std::vector<StepOperand> inputs, StepOperand output) {
  Step step;
  step.name = primitive;
  for (StepOperand& operand : inputs) operand.access = COMPUTE_PLUGIN_TENSOR_INPUT;
  if (output.access != (COMPUTE_PLUGIN_TENSOR_INPUT | COMPUTE_PLUGIN_TENSOR_OUTPUT))
    output.access = COMPUTE_PLUGIN_TENSOR_OUTPUT;
  step.inputs = std::move(inputs);
  step.outputs.push_back(std::move(output));
  lowering_.steps.push_back(std::move(step));
  return lowering_.steps.back();
}

void Steps::map(const StepExpression& expression, std::vector<StepOperand> inputs, StepOperand output) {
  std::vector<compute_dtype> dtypes;
  for (StepOperand& operand : inputs) {
    dtypes.push_back(operand.dtype);
    operand = broadcast_to(operand, output.shape);
  }
  const compute_dtype wanted = output.dtype;
  Step& step = add("map", std::move(inputs), std::move(output));
  step.expressions.push_back(type(expression, dtypes, wanted, step.scalars));
}

void Steps::copy(StepOperand src, StepOperand dst) { add("copy", {std::move(src)}, std::move(dst)); }

void Steps::fill(StepOperand dst, const ScalarBits& value) {
  const compute_dtype dtype = dst.dtype;
  const ScalarTerm term{{ScalarSource::kValue, 0, dtype, value}, {dtype, false, true}};
  map({"a", {term}}, {}, std::move(dst));
}

void Steps::reduce(const char* kind, compute_dtype accumulator, std::span<const int64_t> axes,
                   const StepExpression& before, std::vector<StepOperand> inputs, const StepExpression& after,
                   StepOperand output) {
  std::vector<compute_dtype> dtypes;
  for (const StepOperand& operand : inputs) {
    dtypes.push_back(operand.dtype);
    assert(operand.shape == inputs[0].shape);
  }
  const compute_dtype wanted = output.dtype;
  Step& step = add("reduce", std::move(inputs), std::move(output));
  step.attributes = {integers("axes", axes), text("kind", kind), dtype_value("accumulator", accumulator)};
  step.expressions.push_back(type(before, dtypes, accumulator, step.scalars));
  step.expressions.push_back(type(after, {&accumulator, 1}, wanted, step.scalars));
}

void Steps::gather(StepOperand src, StepOperand indices, StepOperand dst, int32_t axis) {
  const int64_t value = axis;
  add("gather", {std::move(src), std::move(indices)}, std::move(dst)).attributes = {integers("axis", {&value, 1})};
}

void Steps::scatter(StepOperand indices, StepOperand updates, StepOperand dst, int32_t axis, std::string_view reduction,
                    bool deterministic) {
  const int64_t value = axis;
  dst.access = COMPUTE_PLUGIN_TENSOR_INPUT | COMPUTE_PLUGIN_TENSOR_OUTPUT;
  Step& step = add("scatter", {std::move(indices), std::move(updates)}, std::move(dst));
  step.attributes = {integers("axis", {&value, 1}), text("reduction", reduction)};
  step.deterministic = deterministic;
}

}  // namespace compute
