// SPDX-License-Identifier: Apache-2.0
#include "core/ops/infer.hpp"

#include <algorithm>
#include <string>

#include "core/base/error.hpp"
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

}  // namespace

Inference infer(const OpCall& call) {
  Inference result;
  if (call.schema.is_elementwise) {
    const RowTypes types = row_types(call.schema, call.inputs);
    result.outputs.push_back({types.output, broadcast_shapes(call.schema.name, call.inputs)});
    result.map = type_row(call.schema, call.inputs, types);
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
