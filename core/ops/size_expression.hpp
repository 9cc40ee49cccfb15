// SPDX-License-Identifier: Apache-2.0
// Integers that follow from the shapes of a call: "(x.shape[0] + 1) / 2", "y.size", "max(x.shape[-1], k)".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/schema.hpp"

namespace compute {

// A tensor as these expressions see it.
struct SizedTensor {
  std::string_view name;
  const std::vector<int64_t>* shape = nullptr;
  const std::vector<int64_t>* strides = nullptr;  // elements; NULL if a result's shape is not known yet
};

// Literals, static int64 attributes, x.size, x.rank, x.shape[i] and x.strides[i] (a negative i counts from the end),
// + - * / % (rounded down), parentheses, min(a, b), max(a, b), ceil_div(a, b).
class SizeExpression {
 public:
  // Checks the text against the names of the schema. Throws INVALID_ARGUMENT that begins with `what`.
  static SizeExpression parse(std::string_view text, const OpSchema& schema, const std::string& what);

  // Throws INVALID_ARGUMENT for a division by zero, an axis that does not exist and a value that does not fit.
  int64_t value(const OpSchema& schema, const Attributes& attributes, const std::vector<SizedTensor>& tensors) const;

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace compute
