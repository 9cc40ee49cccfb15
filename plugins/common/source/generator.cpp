// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/generator.hpp"

#include <algorithm>

#include "plugins/common/op/core.hpp"
#include "plugins/common/op/matrix_product.hpp"
#include "plugins/common/op/pooling.hpp"
#include "plugins/common/op/windows.hpp"
#include "plugins/common/source/attention/ops.hpp"
#include "plugins/common/source/convolution/ops.hpp"
#include "plugins/common/source/expressions/combination.hpp"
#include "plugins/common/source/expressions/expression.hpp"
#include "plugins/common/source/expressions/types.hpp"
#include "plugins/common/source/map/ops.hpp"
#include "plugins/common/source/move/ops.hpp"
#include "plugins/common/source/order/ops.hpp"
#include "plugins/common/source/products/ops.hpp"
#include "plugins/common/source/reduce/ops.hpp"

namespace compute::common {
namespace {

std::optional<Refusal> refuse_expression(const compute_plugin_expression& expression, const Dialect& dialect) {
  if (const int32_t id = unknown_intrinsic(expression); id != 0) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_INTRINSIC, id, "intrinsic " + std::to_string(id) + " is not supported", ""};
  }
  if (!dialect.has_fp64 && uses_fp64(expression)) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, -1, "float64 needs cl_khr_fp64", "cast to float32"};
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_expressions(const Op& op, const Dialect& dialect) {
  for (int32_t i = 0; i < op.expression_count(); ++i) {
    if (auto refusal = refuse_expression(op.expression(i), dialect)) return refusal;
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_contraction(const Op& op, const Dialect& dialect) {
  const compute_dtype dtype = op.output(0).dtype;
  for (int32_t i = 0; i < op.input_count(); ++i) {
    const compute_plugin_tensor& tensor = op.input(i);
    if (i >= 2 && tensor.rank < 0) continue;
    if (tensor.rank < 2)
      return Refusal{COMPUTE_PLUGIN_REFUSE_RANK, i, "contraction: operands must have at least two axes", ""};
    if (tensor.dtype != dtype) {
      return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, i,
                     cat("contraction: ", dtype_name(tensor.dtype), " operands with a result of ", dtype_name(dtype)),
                     "cast to one dtype"};
    }
  }
  if (auto refusal = refuse_epilogue(op)) return refusal;
  if (auto refusal = refuse_expressions(op, dialect)) return refusal;
  const int64_t tiles = 2 * 16 * 36 * static_cast<int64_t>(dtype_size(computed_in(dtype)));
  if (dialect.group_size < 64 || dialect.group_size > 256 || dialect.local_memory_bytes < tiles) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "contraction: work groups or local memory are too small",
                   ""};
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_arg_reduce(const Op& op, const Dialect&) {
  if (op.text("kind") != "max" && op.text("kind") != "min") {
    return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, cat("arg_reduce: unknown kind \"", op.text("kind"), "\""), ""};
  }
  if (is_complex(op.input(0).dtype))
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "arg_reduce: complex numbers are not ordered", ""};
  return std::nullopt;
}

std::optional<Refusal> refuse_convolution(const Op& op, const Dialect&) {
  constexpr int64_t kMostProducts = 64;  // each is a launch
  return refuse_windows(op, kMostProducts);
}

std::optional<Refusal> refuse_row(const Op& op, const Dialect& dialect) {
  if (auto refusal = refuse_expressions(op, dialect)) return refusal;
  return refuse_row_shape(op, dialect);
}

std::optional<Refusal> refuse_scan(const Op& op, const Dialect& dialect) {
  const Combination kind = combination_of(op.text("kind"));
  const compute_dtype accumulator = op.dtype("accumulator");
  if (kind > Combination::max)
    return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, cat("scan: unknown kind \"", op.text("kind"), "\""), ""};
  if (is_half(accumulator) || accumulator == COMPUTE_DTYPE_BOOL || (!dialect.has_fp64 && needs_fp64(accumulator)))
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, cat("scan: no accumulator of ", dtype_name(accumulator)), ""};
  return std::nullopt;
}

std::optional<Refusal> refuse_segments(const Op& op, const Dialect& dialect) {
  const compute_dtype accumulator = op.dtype("accumulator");
  if (combination_of(op.text("kind")) > Combination::max) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, cat("segmented_reduce: unknown kind \"", op.text("kind"), "\""),
                   ""};
  }
  if (is_half(accumulator) || accumulator == COMPUTE_DTYPE_BOOL || (!dialect.has_fp64 && needs_fp64(accumulator)))
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, cat("segmented_reduce: no accumulator of ", dtype_name(accumulator)),
                   ""};
  return std::nullopt;
}

std::optional<Refusal> refuse_pool(const Op& op, const Dialect&) { return refuse_pooling(op); }

std::optional<Refusal> refuse_nothing(const Op&, const Dialect&) { return std::nullopt; }

struct Primitive {
  std::string_view name;
  std::optional<Refusal> (*refuse)(const Op&, const Dialect&);
  BuiltKernels (*build)(const Op&, const Dialect&, bool with_text);
};

constexpr Primitive kPrimitives[] = {
    {"adam", refuse_optimizer, build_optimizer},
    {"adamw", refuse_optimizer, build_optimizer},
    {"attention", refuse_attention, build_attention},
    {"attention_grad", refuse_attention_grad, build_attention_grad},
    {"average_pool", refuse_pool, build_pooling},
    {"average_pool_grad", refuse_pool, build_pooling},
    {"cholesky", refuse_small_matrices, build_small_matrices},
    {"histogram", refuse_histogram, build_histogram},
    {"inv", refuse_small_matrices, build_small_matrices},
    {"lu", refuse_small_matrices, build_small_matrices},
    {"map", refuse_expressions, build_map},
    {"max_pool", refuse_pool, build_pooling},
    {"max_pool_grad", refuse_pool, build_pooling},
    {"copy", refuse_nothing, build_copy},
    {"reduce", refuse_expressions, build_reduce},
    {"gather", refuse_nothing, build_gather},
    {"gather_at", refuse_several_indices, build_gather},
    {"gather_nd", refuse_several_indices, build_gather},
    {"scatter", refuse_nothing, build_scatter},
    {"contraction", refuse_contraction, build_contraction},
    {"convolution", refuse_convolution, build_convolution},
    {"convolution_grad_input", refuse_convolution, build_convolution},
    {"convolution_grad_weight", refuse_convolution, build_convolution},
    {"arg_reduce", refuse_arg_reduce, build_arg_reduce},
    {"nonzero", refuse_select, build_select},
    {"qr", refuse_small_reflections, build_small_reflections},
    {"quantized_matmul", refuse_quantized_matmul, build_quantized_matmul},
    {"random_permutation", refuse_permutation, build_sort},
    {"row", refuse_row, build_row},
    {"scan", refuse_scan, build_scan},
    {"searchsorted", [](const Op& op, const Dialect&) { return refuse_search(op); }, build_search},
    {"segmented_reduce", refuse_segments, build_segments},
    {"sgd", refuse_optimizer, build_optimizer},
    {"sgd_momentum", refuse_optimizer, build_optimizer},
    {"solve", refuse_small_matrices, build_small_matrices},
    {"sort", refuse_sort_shape, build_sort},
    {"take_grad", refuse_take_grad, build_take_grad},
    {"top_k", refuse_top_k, build_sort},
    {"triangular_solve", refuse_small_matrices, build_small_matrices},
    {"unique", refuse_select, build_select},
};

const Primitive* find_primitive(const Op& op) {
  const auto found = std::find_if(std::begin(kPrimitives), std::end(kPrimitives),
                                  [&](const Primitive& p) { return p.name == op.name(); });
  return found == std::end(kPrimitives) || op.version() != 1 ? nullptr : found;
}

}  // namespace

std::optional<Refusal> refuse_op(const Op& op, const Dialect& dialect) {
  const Primitive* primitive = find_primitive(op);
  if (primitive == nullptr)
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, std::string(op.name()) + " has no generated kernel", ""};
  if (auto refusal = refuse_unaligned(op); refusal && !moves_parts(op)) return refusal;
  for (int32_t i = 0; i < op.tensor_count(); ++i) {
    const compute_plugin_tensor& tensor = op.tensor(i);
    if (tensor.rank >= 0 && !dialect.has_fp64 && needs_fp64(tensor.dtype)) {
      return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, i, cat(dtype_name(tensor.dtype), " needs cl_khr_fp64"),
                     "cast to float32"};
    }
  }
  return primitive->refuse(op, dialect);
}

LaunchPlan plan_launches(const Op& op, const Dialect& dialect) {
  BuiltKernels built = find_primitive(op)->build(op, dialect, false);
  LaunchPlan plan;
  plan.workspace_bytes = built.workspace_bytes;
  plan.reports_faults = built.reports_faults;
  for (BuiltKernel& kernel : built.kernels) plan.launches.push_back(std::move(kernel.launch));
  return plan;
}

KernelSource kernel_source(const Op& op, const Dialect& dialect, const Launch& launch) {
  BuiltKernels built = find_primitive(op)->build(op, dialect, true);
  for (BuiltKernel& kernel : built.kernels) {
    if (kernel.launch.key == launch.key) return std::move(kernel.source);
  }
  throw Error(COMPUTE_ERROR_INTERNAL, "the launch does not belong to this op");
}

}  // namespace compute::common
