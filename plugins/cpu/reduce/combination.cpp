// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/reduce/combination.hpp"

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/map/block_program.hpp"

namespace compute::cpu {
namespace {

// What the kernels add up floats in.
compute_dtype wide_float(compute_dtype dtype) {
  return dtype == COMPUTE_DTYPE_FLOAT32 ? COMPUTE_DTYPE_FLOAT64 : COMPUTE_DTYPE_FLOAT32;
}

}  // namespace

// The forms of `before` for which there are kernels that read the input itself.
Source find_direct(const compute_plugin_expression& before, ReduceKind kind, compute_dtype accumulator) {
  const ReduceKernels& kernels = *isa().reduce;
  Source source;
  const auto take = [&](int32_t input, compute_dtype dtype, const ReduceKernel& kernel) {
    if (kernel.rows != nullptr) source = {input, dtype_size(dtype), kernel};
    return source;
  };
  const compute_plugin_node& last = before.nodes[before.outputs[0]];
  if (last.kind == COMPUTE_PLUGIN_NODE_INPUT) {
    return take(last.value, last.dtype, kernels.plain[static_cast<int>(kind)][last.dtype]);
  }
  if (last.kind != COMPUTE_PLUGIN_NODE_CALL || kind != ReduceKind::sum) return source;
  const compute_plugin_node& x = before.nodes[before.operands[last.first_operand]];
  const int32_t* operands = before.operands + last.first_operand;
  const bool squares = last.value == COMPUTE_PLUGIN_INTRINSIC_MUL && operands[0] == operands[1];
  if (squares && x.kind == COMPUTE_PLUGIN_NODE_CALL && x.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT) {
    const compute_plugin_node& narrow = before.nodes[before.operands[x.first_operand]];
    if (narrow.kind == COMPUTE_PLUGIN_NODE_INPUT && x.dtype == wide_float(narrow.dtype))
      return take(narrow.value, narrow.dtype, kernels.widening_square_sum[narrow.dtype]);
  }
  if (last.value == COMPUTE_PLUGIN_INTRINSIC_WHERE) {  // where(isnan(x), 0, x)
    const compute_plugin_node &zero = before.nodes[operands[1]], &value = before.nodes[operands[2]];
    constexpr char kZero[sizeof zero.bits] = {};
    const bool chooses_numbers = x.kind == COMPUTE_PLUGIN_NODE_CALL && x.value == COMPUTE_PLUGIN_INTRINSIC_ISNAN &&
                                 before.operands[x.first_operand] == operands[2] &&
                                 zero.kind == COMPUTE_PLUGIN_NODE_CONSTANT &&
                                 std::memcmp(zero.bits, kZero, sizeof kZero) == 0;
    return chooses_numbers && value.kind == COMPUTE_PLUGIN_NODE_INPUT
               ? take(value.value, value.dtype, kernels.number_sum[value.dtype])
               : source;
  }
  if (x.kind != COMPUTE_PLUGIN_NODE_INPUT) return source;
  if (last.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT) {
    const bool is_unsigned = x.dtype >= COMPUTE_DTYPE_UINT8 && x.dtype <= COMPUTE_DTYPE_UINT64;
    const compute_dtype wide = is_float(x.dtype) ? wide_float(x.dtype)
                               : is_unsigned     ? COMPUTE_DTYPE_UINT64
                                                 : COMPUTE_DTYPE_INT64;
    const bool counts = x.dtype == COMPUTE_DTYPE_BOOL && accumulator == COMPUTE_DTYPE_UINT64;
    if (accumulator == wide || counts) return take(x.value, x.dtype, kernels.widening_sum[x.dtype]);
  }
  return squares ? take(x.value, x.dtype, kernels.square_sum[x.dtype]) : source;
}

}  // namespace compute::cpu
