// SPDX-License-Identifier: Apache-2.0
#include "core/infer.hpp"

#include <algorithm>
#include <cassert>
#include <string>

#include "core/error.hpp"
#include "core/expression_type.hpp"
#include "core/ops/rules.hpp"

namespace compute {

namespace {

// Every extent and the size in bytes of an output must be ones that a tensor can have.
void check_output(std::string_view op, const OutputDesc& output) {
  if (output.shape.size() > COMPUTE_MAX_RANK) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(op) + ": a result of rank " +
                                                    std::to_string(output.shape.size()) + "; at most " +
                                                    std::to_string(COMPUTE_MAX_RANK));
  }
  element_count(op, output.shape, dtype_size(output.dtype));
}

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

std::vector<OutputDesc> infer(const OpCall& call) {
  std::vector<OutputDesc> outputs;
  if (call.schema.is_elementwise) {
    const RowTypes types = row_types(call.schema, call.inputs);
    outputs.push_back({types.output, broadcast_shapes(call.schema.name, call.inputs)});
  } else {
    outputs = op_rules(call.schema.id).infer(call);
  }
  for (const OutputDesc& output : outputs) check_output(call.schema.name, output);
  return outputs;
}

std::vector<OutputDesc> infer(const MapCall& call) {
  const ExpressionTemplate& expression = call.expression;
  const auto expected = static_cast<size_t>(expression.input_count() + expression.scalar_count());
  if (call.operands.size() != expected) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "expression: it takes " + std::to_string(expected) +
                                                    " inputs and scalars, not " + std::to_string(call.operands.size()));
  }
  const bool has_tensor = std::any_of(call.operands.begin(), call.operands.begin() + expression.input_count(),
                                      [](const OperandDesc& x) { return !x.is_scalar; });
  std::vector<int64_t> shape =
      has_tensor ? broadcast_shapes("expression", call.operands.first(static_cast<size_t>(expression.input_count())))
                 : std::vector<int64_t>(call.wanted_shape.begin(), call.wanted_shape.end());
  if (expression.max_index_axis() >= static_cast<int32_t>(shape.size())) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "expression: index(" + std::to_string(expression.max_index_axis()) +
                                                    ") in an index space of shape " + shape_text(shape));
  }
  const TypedExpression typed = type_expression(expression, map_leaves(call), call.wanted);
  std::vector<OutputDesc> outputs;
  for (int32_t i = 0; i < typed.output_count(); ++i) {
    outputs.push_back({typed.output_dtype(i), shape});
    check_output("expression", outputs.back());
  }
  return outputs;
}

std::vector<LeafDesc> map_leaves(const MapCall& call) {
  std::vector<LeafDesc> leaves;
  for (const OperandDesc& operand : call.operands) leaves.push_back({operand.dtype, operand.weak, operand.is_scalar});
  return leaves;
}

// ---- Elementwise ops ------------------------------------------------------------------------------------------------

RowTypes row_types(const OpSchema& schema, std::span<const OperandDesc> operands) {
  assert(operands.size() == schema.inputs.size() && operands.size() <= 3);
  const bool has_condition = schema.result == RowResult::kSecond;
  if (has_condition && !is_bool(operands[0].dtype)) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, schema.name + ": " + schema.inputs[0] + " is " +
                                                    dtype_name(operands[0].dtype) + ", not bool; cast it (cast(" +
                                                    schema.inputs[0] + ", bool))")
        .with_argument(0);
  }
  PromotionOperand list[3];
  size_t count = 0;
  for (size_t i = has_condition ? 1 : 0; i < operands.size(); ++i) {
    list[count++] = {operands[i].dtype, operands[i].is_scalar && operands[i].weak, schema.inputs[i]};
  }
  // An operand outside the class is the better news than two that do not promote.
  const std::span<const PromotionOperand> joined(list, count);
  for (const PromotionOperand& x : joined) {
    if (!x.weak && !in_class(x.dtype, schema.input_class)) {
      refuse_dtype(schema.name, x.name, x.dtype, schema.input_class,
                   static_cast<int32_t>(&x - list) + (has_condition ? 1 : 0));
    }
  }
  RowTypes types;
  types.common = result_type(schema.name, joined);
  if (!in_class(types.common, schema.input_class)) {
    refuse_dtype(schema.name, joined[0].name, types.common, schema.input_class, -1);
  }
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
  const std::vector<int32_t> outputs =
      build_expression(builder, schema.expression.data(), leaves, {&types.output, 1}, schema.name);
  return builder.finish(outputs, std::move(input_leaves));
}

void refuse_dtype(std::string_view op, std::string_view input, compute_dtype given, DtypeClass wanted,
                  int32_t argument) {
  std::string message = std::string(op) + ": " + std::string(input) + " is " + dtype_name(given) + "; " +
                        std::string(op) + " takes " + class_description(wanted);
  const compute_dtype hint = class_cast_hint(given, wanted);
  if (hint != COMPUTE_DTYPE_NONE) message += "; cast it (cast(" + std::string(input) + ", " + dtype_name(hint) + "))";
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::move(message)).with_argument(argument);
}

// ---- Shapes ---------------------------------------------------------------------------------------------------------

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

int64_t element_count(std::string_view op, std::span<const int64_t> shape, int64_t element_size) {
  // An extent of 0 makes the size 0, however great the others are; strides are still products of the others.
  int64_t count = element_size;
  bool overflow = false;
  for (const int64_t extent : shape) {
    if (extent < 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  std::string(op) + ": shape " + shape_text(shape) + " has a negative extent");
    }
    overflow = __builtin_mul_overflow(count, std::max<int64_t>(extent, 1), &count) || overflow;
  }
  if (overflow) {
    throw Error(COMPUTE_ERROR_OUT_OF_RANGE, std::string(op) + ": the size of shape " + shape_text(shape) +
                                                " with elements of " + std::to_string(element_size) +
                                                " bytes does not fit in int64");
  }
  return has_elements(shape) ? count / element_size : 0;
}

int64_t element_count(std::span<const int64_t> shape) noexcept {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

bool has_elements(std::span<const int64_t> shape) noexcept {
  return std::find(shape.begin(), shape.end(), 0) == shape.end();
}

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

std::vector<int64_t> broadcast_shapes(std::string_view op, std::span<const OperandDesc> operands) {
  std::vector<int64_t> shape;
  for (const OperandDesc& operand : operands) {
    if (operand.is_scalar || operand.dtype == COMPUTE_DTYPE_NONE) continue;
    const std::span<const int64_t> other = operand.extents();
    std::vector<int64_t> both(std::max(shape.size(), other.size()), 1);
    const size_t mine = both.size() - shape.size(), theirs = both.size() - other.size();
    for (size_t i = 0; i < both.size(); ++i) {
      const int64_t a = i < mine ? 1 : shape[i - mine], b = i < theirs ? 1 : other[i - theirs];
      if (a != b && a != 1 && b != 1) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(op) + ": shapes " + shape_text(shape) + " and " +
                                                        shape_text(other) + " do not broadcast")
            .with_argument(static_cast<int32_t>(&operand - operands.data()));
      }
      both[i] = a == 1 ? b : a;
    }
    shape = std::move(both);
  }
  return shape;
}

std::vector<int64_t> broadcast_strides(const OperandDesc& operand, std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  const size_t missing = shape.size() - static_cast<size_t>(operand.rank);
  for (size_t i = missing; i < shape.size(); ++i) {
    if (operand.shape[i - missing] == shape[i]) strides[i] = operand.strides[i - missing];
  }
  return strides;
}

int32_t normalize_axis(std::string_view op, int64_t axis, int32_t rank) {
  if (axis < -rank || axis >= rank) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                std::string(op) + ": axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank));
  }
  return static_cast<int32_t>(axis < 0 ? axis + rank : axis);
}

}  // namespace compute
