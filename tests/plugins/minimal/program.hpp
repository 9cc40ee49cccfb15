// SPDX-License-Identifier: Apache-2.0
// Expressions, ready to be evaluated.
#pragma once

#include <array>
#include <vector>

#include "functions.hpp"

namespace minimal {

// Why an op is not taken. Thrown where that is found out, and delivered by op_query.
struct Refused {
  int32_t reason;
  int32_t argument;
  const char* text;
};

// Where an expression is evaluated.
struct Point {
  const std::byte* const* inputs;        // the element of every input
  const compute_plugin_scalar* scalars;  // the first one is scalar 0 of the expression
  const int64_t* position;               // in the index space
};

// An expression as a list of steps, one per node, in the order of the nodes.
class Program {
 public:
  explicit Program(const compute_plugin_expression& expression);  // throws Refused

  int64_t node_count() const { return static_cast<int64_t>(steps_.size()); }
  int64_t output_count() const { return static_cast<int64_t>(outputs_.size()); }
  // Computes all nodes at one point; values[output(i)] is the result i.
  void evaluate(const Point& point, Value* values) const;
  int32_t output(int64_t index) const { return outputs_[index]; }

 private:
  struct Step {
    int32_t kind = 0;
    int32_t value = 0;
    int64_t size_bytes = 0;
    Value constant;
    Function function = nullptr;
    std::array<int32_t, 3> operands = {};
  };

  std::vector<Step> steps_;
  std::vector<int32_t> outputs_;
};

}  // namespace minimal
