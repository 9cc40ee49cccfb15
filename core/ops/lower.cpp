// SPDX-License-Identifier: Apache-2.0
#include "core/ops/lower.hpp"

#include <algorithm>
#include <cassert>

#include "core/base/error.hpp"
#include "core/ops/composed_lowering.hpp"
#include "core/ops/composition.hpp"
#include "core/ops/op_kernels.hpp"
#include "core/ops/rules.hpp"
#include "core/ops/shapes.hpp"
#include "core/ops/temporaries.hpp"

namespace compute {

namespace {

StepOperand input_operand(std::span<const OperandDesc> inputs, int32_t index) {
  const OperandDesc& desc = inputs[static_cast<size_t>(index)];
  if (desc.dtype == COMPUTE_DTYPE_NONE) return {};
  StepOperand operand{ValueKind::kInput, index, desc.dtype, COMPUTE_PLUGIN_TENSOR_INPUT, {}, {}, 0};
  operand.shape.assign(desc.shape, desc.shape + desc.rank);
  operand.strides.assign(desc.strides, desc.strides + desc.rank);
  return operand;
}

StepOperand output_operand(const LoweringTarget& target, size_t index) {
  const LoweringTarget::Output& desc = target.outputs[index];
  StepOperand operand{
      ValueKind::kOutput, static_cast<int32_t>(index), desc.dtype, COMPUTE_PLUGIN_TENSOR_OUTPUT, {}, {}, 0};
  operand.shape.assign(desc.shape.begin(), desc.shape.end());
  operand.strides.assign(desc.strides.begin(), desc.strides.end());
  return operand;
}

bool any_elements(const LoweringTarget& target) {
  return std::any_of(target.outputs.begin(), target.outputs.end(), [](const auto& x) { return has_elements(x.shape); });
}

// One map step over the leaves that are tensors, in the outputs' common index space. Leaves beyond the operands are
// run-time attributes.
Lowering map_lowering(TypedExpression expression, std::span<const OperandDesc> operands, const LoweringTarget& target) {
  Lowering lowering;
  if (!any_elements(target)) return lowering;
  Step step;
  step.name = "map";
  for (const int32_t leaf : expression.input_leaves()) {
    StepOperand operand = input_operand(operands, leaf);
    operand.strides = broadcast_strides(operands[static_cast<size_t>(leaf)], target.outputs[0].shape);
    operand.shape.assign(target.outputs[0].shape.begin(), target.outputs[0].shape.end());
    step.inputs.push_back(std::move(operand));
  }
  for (size_t i = 0; i < target.outputs.size(); ++i) {
    assert(target.outputs[i].dtype == expression.output_dtype(static_cast<int32_t>(i)));
    step.outputs.push_back(output_operand(target, i));
  }
  for (const ScalarSlot& slot : expression.scalars()) {
    const auto beyond = slot.leaf - static_cast<int32_t>(operands.size());
    step.scalars.push_back(beyond < 0 ? StepScalar{ScalarSource::kOperand, slot.leaf, slot.dtype, {}}
                                      : StepScalar{ScalarSource::kRunTimeAttribute, beyond, slot.dtype, {}});
  }
  step.expressions.push_back(std::move(expression));
  lowering.steps.push_back(std::move(step));
  return lowering;
}

StepAttribute step_attribute(const AttributeSchema& schema, const Attributes& attributes, int32_t index) {
  StepAttribute result;
  result.name = schema.name.c_str();  // schemas are immortal
  switch (schema.kind) {
    case AttributeKind::kFloat64:
      result.kind = COMPUTE_KIND_FLOAT64;
      result.reals = attributes.float64_list(index);
      return result;
    case AttributeKind::kString:
      result.kind = COMPUTE_KIND_STRING;
      result.texts = {std::string(attributes.string(index))};
      return result;
    default: {
      result.kind = schema.kind == AttributeKind::kDtype    ? COMPUTE_KIND_DTYPE
                    : schema.kind == AttributeKind::kHandle ? COMPUTE_KIND_HANDLE
                                                            : COMPUTE_KIND_INT64;
      const std::span<const int64_t> values = attributes.int64_list(index);
      result.integers.assign(values.begin(), values.end());
      return result;
    }
  }
}

// The op itself as one step: the call's tensors, the attributes that differ from their defaults, and run-time
// attributes as scalars.
Lowering composite_lowering(const OpCall& call, const LoweringTarget& target) {
  const OpSchema& schema = call.schema;
  const compute_dtype number = schema.is_registered ? COMPUTE_DTYPE_COMPLEX128 : op_rules(schema.id).composite_number;
  Step step;
  step.name = schema.name.c_str();
  step.version = schema.version;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    step.inputs.push_back(input_operand(call.inputs, static_cast<int32_t>(i)));
  for (size_t i = 0; i < target.outputs.size(); ++i) step.outputs.push_back(output_operand(target, i));
  for (size_t i = 0; i < schema.attributes.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    if (schema.attributes[i].name == "precision" && !schema.is_registered) continue;  // in the flags of the step
    if (!schema.attributes[i].run_time && !is_default(schema, call.attributes, index)) {
      step.attributes.push_back(step_attribute(schema.attributes[i], call.attributes, index));
    }
  }
  for (size_t i = 0; i < schema.run_time.size(); ++i) {
    const AttributeSchema& attribute = schema.attributes[static_cast<size_t>(schema.run_time[i])];
    const compute_dtype dtype = attribute.kind == AttributeKind::kInt64     ? COMPUTE_DTYPE_INT64
                                : attribute.kind == AttributeKind::kFloat64 ? COMPUTE_DTYPE_FLOAT64
                                                                            : number;
    step.scalars.push_back({ScalarSource::kRunTimeAttribute, static_cast<int32_t>(i), dtype, {}});
  }
  Lowering lowering;
  lowering.steps.push_back(std::move(step));
  lowering.is_composite = true;
  if (!schema.is_registered && op_rules(schema.id).composite_indices != nullptr)
    lowering.indices = std::make_shared<const IndexPlace>(op_rules(schema.id).composite_indices(call));
  return lowering;
}

// Plugins see tensors that have elements or are absent, and no scalars as tensors. A device without float64 gets no
// numbers of that dtype.
bool may_be_composite(const OpCall& call, const LoweringTarget& target) {
  const auto is_offered = [&](const OpRules& rules) {
    return rules.is_composite && (target.has_float64 || rules.composite_number != COMPUTE_DTYPE_FLOAT64);
  };
  return (call.schema.is_registered || is_offered(op_rules(call.schema.id))) &&
         std::all_of(call.inputs.begin(), call.inputs.end(), [](const OperandDesc& x) {
           return x.dtype == COMPUTE_DTYPE_NONE || (!x.is_scalar && has_elements(x.extents()));
         });
}

// Whether operands that promote are of another kind than the result. Then steps convert them: plugins and kernels take
// an op as a whole only without that.
bool converts_kinds(const OpCall& call, const LoweringTarget& target) {
  if (!call.schema.is_elementwise && call.schema.dtype_rule != "promote") return false;
  return !std::all_of(call.inputs.begin(), call.inputs.end(), [&](const OperandDesc& x) {
    return x.dtype == COMPUTE_DTYPE_NONE || x.is_scalar || are_of_one_kind(x.dtype, target.outputs[0].dtype);
  });
}

std::optional<Lowering> lower_any(const OpCall& call, const Inference& inference, const LoweringTarget& target,
                                  int32_t alternative) {
  if (!any_elements(target)) return alternative == 0 ? std::optional(Lowering()) : std::nullopt;
  const bool is_row = call.schema.is_elementwise && !call.schema.is_registered;
  const bool is_whole = !converts_kinds(call, target);
  if (!is_row && is_whole && may_be_composite(call, target)) {
    if (alternative == 0) return composite_lowering(call, target);
    --alternative;
  }
  if (call.schema.kernels != nullptr && is_whole) {
    if (std::optional<Lowering> lowering = lower_to_kernel(call, target, alternative)) return lowering;
    alternative -= std::min(alternative, static_cast<int32_t>(call.schema.kernels->list.size()));
  }
  if (call.schema.is_elementwise) {
    if (alternative > 0) return std::nullopt;
    return map_lowering(inference.map, call.inputs, target);
  }
  if (call.schema.composition) {
    if (alternative > 0) return std::nullopt;
    return lower_composition(call, target, std::vector<int32_t>(composed_call_count(call.schema)));
  }
  if (call.schema.is_registered) return std::nullopt;
  std::optional<Lowering> lowering = op_rules(call.schema.id).lower(call, target, alternative);
  if (lowering) layout_temporaries(*lowering);
  return lowering;
}

}  // namespace

std::optional<Lowering> lower(const OpCall& call, const Inference& inference, const LoweringTarget& target,
                              int32_t alternative) {
  std::optional<Lowering> lowering = lower_any(call, inference, target, alternative);
  const Precision precision = precision_attribute(call);
  if (!lowering || precision == Precision::kDefault) return lowering;
  for (Step& step : lowering->steps) step.precision = precision;
  return lowering;
}

std::optional<Lowering> lower_composition(const OpCall& call, const LoweringTarget& target,
                                          std::span<const int32_t> alternatives) {
  std::optional<Lowering> lowering = join_lowerings(call, target, alternatives, lower);
  if (lowering) layout_temporaries(*lowering);
  return lowering;
}

Lowering lower(const MapCall& call, const Inference& inference, const LoweringTarget& target) {
  if (call.reduction != nullptr)
    return any_elements(target) ? lower_map_reduction(call, inference, target) : Lowering();
  return map_lowering(inference.map, call.operands, target);
}

}  // namespace compute
