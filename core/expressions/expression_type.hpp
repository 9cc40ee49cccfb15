// SPDX-License-Identifier: Apache-2.0
// Typing of templates, on a builder that may already hold nodes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/expressions/expression_builder.hpp"
#include "core/expressions/expression_template.hpp"

namespace compute {

// A leaf of a template, for its typing.
struct TypedLeaf {
  compute_dtype dtype;       // its dtype; a node of another dtype is converted to it
  bool weak = false;         // a scalar that takes the dtype of the operand that it is combined with
  int32_t node = -1;         // in the builder; -1: a scalar, whose nodes are made when its dtype is known
  int32_t scalar_leaf = -1;  // a scalar's number for ScalarSlot
};

// Adds the template's nodes; returns one node per output, of the wanted dtypes if there are any.
std::vector<int32_t> build_expression(ExpressionBuilder& builder, const ExpressionTemplateData& data,
                                      std::span<const TypedLeaf> leaves, std::span<const compute_dtype> wanted,
                                      std::string_view op);

}  // namespace compute
