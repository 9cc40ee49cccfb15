// SPDX-License-Identifier: Apache-2.0
// The cost of functions, for the decision whether to share work between threads.
#pragma once

#include "compute/plugin.h"
#include "plugins/common/op/op.hpp"

namespace compute::cpu {

/// The column `cost` of intrinsics.def.
enum class Cost : uint8_t { SIMPLE, CONVERT, QUOTIENT, ROOT, REMAINDER, POWER, FUNCTION };

inline Cost cost_of(int32_t intrinsic) {
  switch (intrinsic) {
#define COMPUTE_INTRINSIC(id, name, arity, operands, result, ulp, commutes, cost, ...) \
  case id:                                                                             \
    return Cost::cost;
#include "compute/intrinsics.def"
#undef COMPUTE_INTRINSIC
    default:
      return Cost::SIMPLE;
  }
}

/// Estimated nanoseconds for one element of node `i`, a CALL, on one thread, within the cache.
inline double node_cost(const compute_plugin_expression& expression, int32_t i) {
  const compute_plugin_node& node = expression.nodes[i];
  if (node.kind != COMPUTE_PLUGIN_NODE_CALL) return 0;
  const int32_t last = expression.operands[node.first_operand + node.operand_count - 1];
  const int32_t dtype = expression.nodes[last].dtype;
  const double width = static_cast<double>(common::dtype_size(dtype)) / 4;  // in float32s
  const bool complex = dtype == COMPUTE_DTYPE_COMPLEX64 || dtype == COMPUTE_DTYPE_COMPLEX128;
  const bool integer = dtype < COMPUTE_DTYPE_FLOAT16;
  switch (cost_of(node.value)) {
    case Cost::CONVERT:
      return (dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16) && node.dtype != COMPUTE_DTYPE_FLOAT32
                 ? 2
                 : 0.1;
    case Cost::REMAINDER:
      return integer ? width : 2 * width;
    case Cost::POWER:
      return complex ? 200 : 2 * width;
    case Cost::QUOTIENT:
      return complex ? width : 0.2 * width;
    case Cost::ROOT:
      return complex ? 30 : 0.2 * width;
    case Cost::FUNCTION:
      return complex ? 60 : 0.5 * width;
    case Cost::SIMPLE:
      break;
  }
  return 0.05 * width;
}

}  // namespace compute::cpu
