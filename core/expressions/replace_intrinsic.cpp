// SPDX-License-Identifier: Apache-2.0
// The substitution of definitions.
#include <algorithm>
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
  const auto keep = [](compute_dtype dtype) { return dtype; };
  return rewrite(
      expression, keep,
      [&](ExpressionBuilder& builder, const compute_plugin_node& node, const std::vector<int32_t>& operands) {
        if (node.value != id) return builder.any_call(node.value, operands, node.dtype);
        std::vector<TypedLeaf> leaves;
        for (const int32_t operand : operands) leaves.push_back({builder.dtype(operand), false, operand, -1});
        const int32_t made = build_expression(builder, definition_of(*info).data(), leaves, {}, info->name).front();
        assert(builder.dtype(made) == node.dtype);
        return made;
      });
}

TypedExpression with_composed_replaced(TypedExpression expression) {
  const auto newest = [&] {
    int32_t id = 0;
    for (const compute_plugin_node& node : expression.nodes())
      if (node.kind == COMPUTE_PLUGIN_NODE_CALL) id = std::max(id, node.value);
    return id;
  };
  // A definition consists of functions with smaller ids.
  for (int32_t id = newest(); id > 0 && find_intrinsic(id)->composed; id = newest())
    expression = *replace_intrinsic(expression, id);
  return expression;
}

}  // namespace compute
