// SPDX-License-Identifier: Apache-2.0
// The parsed form of an expression's text: children before parents. Nodes that have a name can have several parents.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/expressions/expression.hpp"

namespace compute {

enum class TemplateKind : uint8_t { kLeaf, kIndex, kInteger, kReal, kBool, kCall };

struct TemplateNode {
  TemplateKind kind;
  int32_t value = 0;                          // leaf, axis, truth or intrinsic
  compute_dtype target = COMPUTE_DTYPE_NONE;  // of convert and bitcast
  int32_t operands[3] = {-1, -1, -1};
  int32_t operand_count = 0;
  int32_t begin = 0, end = 0;  // bytes of the text
  bool negative = false;       // INTEGER
  uint64_t magnitude = 0;      // INTEGER
  double real = 0;             // REAL
  float real32 = 0;            // REAL, rounded once
};

struct ExpressionTemplateData {
  std::string text;
  std::vector<std::string> leaf_names;  // inputs, then scalars
  int32_t input_count = 0;
  int32_t scalar_count = 0;
  int32_t max_index_axis = -1;
  std::vector<TemplateNode> nodes;
  std::vector<int32_t> outputs;

  // Set for a gradient, which has neither text nor nodes: the expression that is differentiated. Its inputs, the
  // gradients with respect to its outputs, and its scalars are the leaves. `outputs` are the inputs whose gradients are
  // requested.
  std::shared_ptr<const ExpressionTemplateData> primal;

  // Without the blanks that were skipped to find the next token.
  std::string_view source(const TemplateNode& node) const {
    std::string_view part =
        std::string_view(text).substr(static_cast<size_t>(node.begin), static_cast<size_t>(node.end - node.begin));
    return part.substr(0, part.find_last_not_of(" \t\r\n") + 1);
  }
};

// Throws INVALID_ARGUMENT with `op`, a column and `what`. The line of the text and a caret below byte `position` follow
// on separate lines.
[[noreturn]] void throw_expression_fault(std::string_view op, std::string_view text, int32_t position,
                                         const std::string& what);

}  // namespace compute
