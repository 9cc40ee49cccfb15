// SPDX-License-Identifier: Apache-2.0
// Gradients of expressions, by the rules of intrinsics.def.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/expressions/expression_type.hpp"

namespace compute {

// As build_expression, also for gradients (data.primal is set). These type the expression that is differentiated and go
// through its nodes from the outputs to the inputs (reverse mode). Their leaves are the inputs of the expression, one
// per output with the gradient by it, and the scalars.
std::vector<int32_t> build_any(ExpressionBuilder& builder, const ExpressionTemplateData& data,
                               std::span<const TypedLeaf> leaves, std::span<const compute_dtype> wanted,
                               std::string_view op);

}  // namespace compute
