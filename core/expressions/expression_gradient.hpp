// SPDX-License-Identifier: Apache-2.0
// Gradients of expressions, by the rules of intrinsics.def.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/expressions/expression_type.hpp"

namespace compute {

// Like build_expression, also for gradients (data.primal is set). For a gradient it types the expression that is
// differentiated and processes its nodes from the outputs to the inputs (reverse mode). The leaves are the inputs of
// the expression, one leaf per output with the gradient with respect to it, and the scalars.
std::vector<int32_t> build_any(ExpressionBuilder& builder, const ExpressionTemplateData& data,
                               std::span<const TypedLeaf> leaves, std::span<const compute_dtype> wanted,
                               std::string_view op);

}  // namespace compute
