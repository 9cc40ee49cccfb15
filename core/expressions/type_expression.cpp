// SPDX-License-Identifier: Apache-2.0
#include "core/expressions/expression_gradient.hpp"

namespace compute {

TypedExpression type_expression(const ExpressionTemplate& expression, std::span<const LeafDesc> leaves,
                                std::span<const compute_dtype> wanted, std::string_view op) {
  const ExpressionTemplateData& data = expression.data();
  ExpressionBuilder builder;
  std::vector<TypedLeaf> typed;
  std::vector<int32_t> input_leaves;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    if (leaves[i].is_scalar || number >= data.input_count) {
      typed.push_back({leaves[i].dtype, leaves[i].weak, -1, number});
    } else {
      const int32_t node = builder.input(static_cast<int32_t>(input_leaves.size()), leaves[i].dtype);
      typed.push_back({leaves[i].dtype, false, node, -1});
      input_leaves.push_back(number);
    }
  }
  return builder.finish(build_any(builder, data, typed, wanted, op), std::move(input_leaves));
}

}  // namespace compute
