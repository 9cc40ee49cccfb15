// SPDX-License-Identifier: Apache-2.0
#include "core/ops/infer.hpp"

#include <algorithm>
#include <string>

#include "core/base/error.hpp"
#include "core/ops/composition.hpp"
#include "core/ops/op_kernels.hpp"
#include "core/ops/rows.hpp"
#include "core/ops/rules.hpp"
#include "core/ops/shapes.hpp"

namespace compute {

namespace {

// Every extent and the size in bytes of an output must be ones that a tensor can have.
void check_output(std::string_view op, const OutputDesc& output) {
  if (output.shape.size() > COMPUTE_MAX_RANK) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(op) + ": the result has rank " +
                                                    std::to_string(output.shape.size()) + "; the limit is " +
                                                    std::to_string(COMPUTE_MAX_RANK));
  }
  element_count(op, output.shape, dtype_size(output.dtype));
}

// The outputs of the calls in order.
std::vector<OutputDesc> infer_composition(const OpCall& call) {
  const Composition& composition = *call.schema.composition;
  ComposedValues values(call, composition);
  std::vector<OutputDesc> results(static_cast<size_t>(composition.value_count));
  for (const ComposedCall& inner : composition.calls) {
    const InnerAttributes attributes = inner_attributes(inner, call);
    const std::vector<OperandDesc> inputs = values.inputs_of(inner);
    Inference inference;
    try {
      inference = infer(OpCall{*inner.op, attributes.statics, inputs});
    } catch (Error& error) {
      error.message = call.schema.name + ": " + error.message;
      error.argument = -1;
      throw;
    }
    for (size_t i = 0; i < inference.outputs.size(); ++i) {
      const auto value = inner.first_result + static_cast<int32_t>(i);
      results[static_cast<size_t>(value)] = inference.outputs[i];
      values.set(value, inference.outputs[i], nullptr);
    }
  }
  std::vector<OutputDesc> outputs;
  for (const int32_t value : composition.outputs) outputs.push_back(results[static_cast<size_t>(value)]);
  return outputs;
}

}  // namespace

Inference infer(const OpCall& call) {
  Inference result;
  precision_attribute(call);
  if (call.schema.is_elementwise) {
    RowTypes types = row_types(call.schema, call.inputs);
    // Kernels and plugins take registered ops with one dtype.
    const compute_dtype wanted = call.wanted.empty() || call.schema.is_registered ? COMPUTE_DTYPE_NONE : call.wanted[0];
    if (wanted != COMPUTE_DTYPE_NONE && kinds_mix() && kind_of(types.output) <= kind_of(wanted)) types.output = wanted;
    result.outputs.push_back({types.output, broadcast_shapes(call.schema.name, call.inputs)});
    result.map = type_row(call.schema, call.inputs, types);
  } else if (call.schema.composition) {
    result.outputs = infer_composition(call);
  } else if (call.schema.is_registered) {
    result.outputs = infer_kernel_op(call);
  } else {
    result.outputs = op_rules(call.schema.id).infer(call);
  }
  for (const OutputDesc& output : result.outputs) check_output(call.schema.name, output);
  return result;
}

Inference infer(const MapCall& call) {
  if (call.reduction != nullptr) {
    Inference result = infer_map_reduction(call);
    check_output("reduce", result.outputs[0]);
    return result;
  }
  const ExpressionTemplate& expression = call.expression;
  const auto expected = static_cast<size_t>(expression.input_count() + expression.scalar_count());
  if (call.operands.size() != expected) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "expression: expected " + std::to_string(expected) +
                                                    " inputs and scalars, got " + std::to_string(call.operands.size()));
  }
  const bool has_tensor = std::any_of(call.operands.begin(), call.operands.begin() + expression.input_count(),
                                      [](const OperandDesc& x) { return !x.is_scalar; });
  std::vector<int64_t> shape =
      has_tensor ? broadcast_shapes("expression", call.operands.first(static_cast<size_t>(expression.input_count())))
                 : std::vector<int64_t>(call.wanted_shape.begin(), call.wanted_shape.end());
  if (expression.max_index_axis() >= static_cast<int32_t>(shape.size())) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "expression: index(" + std::to_string(expression.max_index_axis()) +
                                                    ") is outside the index space of shape " + shape_text(shape));
  }
  Inference result;
  result.map = type_expression(expression, map_leaves(call), call.wanted);
  for (int32_t i = 0; i < result.map.output_count(); ++i) {
    result.outputs.push_back({result.map.output_dtype(i), shape});
    check_output("expression", result.outputs.back());
  }
  return result;
}

}  // namespace compute
