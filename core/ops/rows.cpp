// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rows.hpp"

#include <algorithm>
#include <cassert>
#include <string>

#include "core/base/error.hpp"
#include "core/expressions/expression_type.hpp"
#include "core/ops/rules.hpp"

namespace compute {

namespace {

compute_dtype row_output(const OpSchema& schema, compute_dtype common) {
  switch (schema.result) {
    case RowResult::kBool:
      return COMPUTE_DTYPE_BOOL;
    case RowResult::kPart:
      return real_part_dtype(common);
    default:
      return common;
  }
}

}  // namespace

std::vector<LeafDesc> map_leaves(const MapCall& call) {
  std::vector<LeafDesc> leaves;
  for (const OperandDesc& operand : call.operands) leaves.push_back({operand.dtype, operand.weak, operand.is_scalar});
  return leaves;
}

// ---- Elementwise ops ------------------------------------------------------------------------------------------------

RowTypes row_types(const OpSchema& schema, std::span<const OperandDesc> operands) {
  assert(operands.size() == schema.inputs.size() && operands.size() <= kMaxRowInputs);
  const bool has_condition = schema.result == RowResult::kSecond;
  if (has_condition && !is_bool(operands[0].dtype)) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, schema.name + ": " + schema.inputs[0] + " is " +
                                                    dtype_name(operands[0].dtype) + ", not bool; cast it (cast(" +
                                                    schema.inputs[0] + ", bool))")
        .with_argument(0);
  }
  PromotionOperand list[kMaxRowInputs];
  size_t count = 0;
  for (size_t i = has_condition ? 1 : 0; i < operands.size(); ++i) {
    list[count++] = {operands[i].dtype, operands[i].is_scalar && operands[i].weak, schema.inputs[i],
                     static_cast<int32_t>(i)};
  }
  RowTypes types;
  types.common = common_in_class(schema.name, {list, count}, schema.input_class);
  types.output = row_output(schema, types.common);
  return types;
}

TypedExpression type_row(const OpSchema& schema, std::span<const OperandDesc> operands, const RowTypes& types) {
  ExpressionBuilder builder;
  std::vector<TypedLeaf> leaves;
  std::vector<int32_t> input_leaves;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool condition = schema.result == RowResult::kSecond && i == 0;
    TypedLeaf leaf{condition ? COMPUTE_DTYPE_BOOL : types.common};
    if (operands[i].is_scalar) {
      leaf.scalar_leaf = static_cast<int32_t>(i);
    } else {
      leaf.node = builder.input(static_cast<int32_t>(input_leaves.size()), operands[i].dtype);
      input_leaves.push_back(static_cast<int32_t>(i));
    }
    leaves.push_back(leaf);
  }
  // Numbers of the call take the dtype of the operands.
  for (size_t i = 0; i < schema.run_time.size(); ++i) {
    leaves.push_back({types.common, false, -1, static_cast<int32_t>(operands.size() + i)});
  }
  const std::vector<int32_t> outputs =
      build_expression(builder, schema.expression.data(), leaves, {&types.output, 1}, schema.name);
  return builder.finish(outputs, std::move(input_leaves));
}

}  // namespace compute
