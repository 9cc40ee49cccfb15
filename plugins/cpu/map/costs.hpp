// SPDX-License-Identifier: Apache-2.0
// What functions cost, for the decision to share work between threads.
#pragma once

#include "compute/plugin.h"
#include "plugins/cpu/map/block_program.hpp"

namespace compute::cpu {

/// Estimated nanoseconds for one element of node `i`, a CALL, on one thread, within the cache.
inline double node_cost(const compute_plugin_expression& expression, int32_t i) {
  const compute_plugin_node& node = expression.nodes[i];
  if (node.kind != COMPUTE_NODE_CALL) return 0;
  const int32_t last = expression.operands[node.first_operand + node.operand_count - 1];
  const int32_t dtype = expression.nodes[last].dtype;
  const double width = static_cast<double>(dtype_size(dtype)) / 4;  // in float32s
  const bool complex = dtype == COMPUTE_DTYPE_COMPLEX64 || dtype == COMPUTE_DTYPE_COMPLEX128;
  const bool integer = dtype < COMPUTE_DTYPE_FLOAT16;
  switch (node.value) {
    case COMPUTE_INTRINSIC_CONVERT:
      return (dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16) && node.dtype != COMPUTE_DTYPE_FLOAT32
                 ? 2
                 : 0.1;
    case COMPUTE_INTRINSIC_FLOOR_DIV:
    case COMPUTE_INTRINSIC_MOD:
      return integer ? width : 2 * width;
    case COMPUTE_INTRINSIC_POW:
      return complex ? 200 : 2 * width;
    case COMPUTE_INTRINSIC_DIV:
    case COMPUTE_INTRINSIC_SQRT:
    case COMPUTE_INTRINSIC_RSQRT:
      return complex ? (node.value == COMPUTE_INTRINSIC_DIV ? width : 30) : 0.2 * width;
    default:
      break;
  }
  const bool transcendental = (node.value >= COMPUTE_INTRINSIC_CBRT && node.value <= COMPUTE_INTRINSIC_HYPOT) ||
                              node.value == COMPUTE_INTRINSIC_ERF || node.value == COMPUTE_INTRINSIC_ERFC ||
                              node.value == COMPUTE_INTRINSIC_LOGADDEXP || node.value == COMPUTE_INTRINSIC_ARG;
  if (transcendental) return complex ? 60 : 0.5 * width;
  return 0.05 * width;
}

}  // namespace compute::cpu
