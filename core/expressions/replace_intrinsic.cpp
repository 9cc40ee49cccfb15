// SPDX-License-Identifier: Apache-2.0
// The substitution of definitions.
#include <array>
#include <cassert>

#include "core/expressions/expression_builder.hpp"
#include "core/expressions/expression_template.hpp"
#include "core/expressions/expression_type.hpp"

namespace compute {
namespace {

// The definitions, parsed once; an empty one for a basic intrinsic.
const ExpressionTemplate& definition_of(const IntrinsicInfo& info) {
  using Definitions = std::vector<ExpressionTemplate>;
  static const Definitions& parsed = *new Definitions([] {
    Definitions all(intrinsics().size());
    const std::string_view names[] = {"x", "y", "z"};
    for (size_t i = 0; i < all.size(); ++i) {
      if (*intrinsics()[i].definition == '\0') continue;
      all[i] = parse(intrinsics()[i].definition, std::span(names).first(static_cast<size_t>(intrinsics()[i].arity)));
    }
    return all;
  }());
  return parsed[static_cast<size_t>(info.id) - 1];
}

}  // namespace

std::optional<TypedExpression> replace_intrinsic(const TypedExpression& expression, int32_t id) {
  const IntrinsicInfo* info = find_intrinsic(id);
  if (info == nullptr || !definition_of(*info)) return std::nullopt;
  ExpressionBuilder builder;
  std::vector<int32_t> made;
  for (const compute_plugin_node& node : expression.nodes()) {
    std::vector<int32_t> operands;
    for (const int32_t operand : expression.operands(node)) operands.push_back(made[static_cast<size_t>(operand)]);
    int32_t copy = -1;
    switch (node.kind) {
      case COMPUTE_PLUGIN_NODE_INPUT:
        copy = builder.input(node.value, node.dtype);
        break;
      case COMPUTE_PLUGIN_NODE_SCALAR:
        copy = builder.scalar(expression.scalars()[static_cast<size_t>(node.value)], node.dtype);
        break;
      case COMPUTE_PLUGIN_NODE_INDEX:
        copy = builder.index(node.value);
        break;
      case COMPUTE_PLUGIN_NODE_CONSTANT:
        copy = builder.constant(scalar_from_memory(node.dtype, node.bits), node.dtype);
        break;
      default:
        if (node.value == id) {
          std::vector<TypedLeaf> leaves;
          for (const int32_t operand : operands) leaves.push_back({builder.dtype(operand), false, operand, -1});
          copy = build_expression(builder, definition_of(*info).data(), leaves, {}, info->name).front();
          assert(builder.dtype(copy) == node.dtype);
        } else if (node.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT) {
          copy = builder.convert(operands[0], node.dtype);
        } else if (node.value == COMPUTE_PLUGIN_INTRINSIC_BITCAST) {
          copy = builder.bitcast(operands[0], node.dtype);
        } else {
          copy = builder.call(node.value, operands);
        }
    }
    made.push_back(copy);
  }
  std::vector<int32_t> outputs;
  const compute_plugin_expression& view = expression.plugin_view();
  for (int32_t i = 0; i < view.output_count; ++i) outputs.push_back(made[static_cast<size_t>(view.outputs[i])]);
  const auto leaves = expression.input_leaves();
  return builder.finish(outputs, {leaves.begin(), leaves.end()});
}

}  // namespace compute
