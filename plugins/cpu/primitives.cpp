// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/primitives.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "plugins/cpu/contract/attention.hpp"
#include "plugins/cpu/contract/contraction.hpp"
#include "plugins/cpu/contract/convolution.hpp"
#include "plugins/cpu/contract/quantized_matmul.hpp"
#include "plugins/cpu/contract/recurrent.hpp"
#include "plugins/cpu/fourier/fourier.hpp"
#include "plugins/cpu/linalg/decompositions.hpp"
#include "plugins/cpu/map/linspace.hpp"
#include "plugins/cpu/map/map.hpp"
#include "plugins/cpu/move/copy.hpp"
#include "plugins/cpu/move/gather.hpp"
#include "plugins/cpu/move/scatter.hpp"
#include "plugins/cpu/order/histogram.hpp"
#include "plugins/cpu/order/scan.hpp"
#include "plugins/cpu/order/search.hpp"
#include "plugins/cpu/order/segments.hpp"
#include "plugins/cpu/order/select.hpp"
#include "plugins/cpu/order/sort.hpp"
#include "plugins/cpu/order/top_k.hpp"
#include "plugins/cpu/reduce/arg_reduce.hpp"
#include "plugins/cpu/reduce/network_rows.hpp"
#include "plugins/cpu/reduce/pool.hpp"
#include "plugins/cpu/reduce/pool_grad.hpp"
#include "plugins/cpu/reduce/reduce.hpp"
#include "plugins/cpu/reduce/row.hpp"
#include "plugins/cpu/user_kernels/user_kernel.hpp"

namespace compute::cpu {
namespace {

struct Primitive {
  std::string_view name;
  // Whether prepare() would succeed, and if not, the reason.
  std::optional<Refusal> (*refuse)(const Op& op);
  std::unique_ptr<Plan> (*prepare)(const Op& op);
};

constexpr Primitive kPrimitives[] = {
    {"attention", refuse_attention, prepare_attention},
    {"attention_grad", refuse_attention, prepare_attention_grad},
    {"map", refuse_map, prepare_map},
    {"copy", refuse_copy, prepare_copy},
    {"reduce", refuse_reduce, prepare_reduce},
    {"gather", refuse_gather, prepare_gather},
    {"scatter", refuse_scatter, prepare_scatter},
    {"contraction", refuse_contraction, prepare_contraction},
    {"convolution", refuse_convolution, prepare_convolution},
    {"convolution_grad_input", refuse_convolution, prepare_convolution},
    {"convolution_grad_weight", refuse_convolution, prepare_convolution},
    {"arg_reduce", refuse_arg_reduce, prepare_arg_reduce},
    {"batch_norm", refuse_batch_norm, prepare_batch_norm},
    {"cross_entropy", refuse_cross_entropy, prepare_cross_entropy},
    {"fft", refuse_fourier, prepare_fourier},
    {"irfft", refuse_fourier, prepare_fourier},
    {"cholesky", refuse_decomposition, prepare_decomposition},
    {"eig", refuse_decomposition, prepare_decomposition},
    {"eigh", refuse_decomposition, prepare_decomposition},
    {"expm", refuse_decomposition, prepare_decomposition},
    {"group_norm", refuse_group_norm, prepare_group_norm},
    {"gru", refuse_recurrent, prepare_recurrent},
    {"histogram", refuse_histogram, prepare_histogram},
    {"inv", refuse_decomposition, prepare_decomposition},
    {"lstm", refuse_recurrent, prepare_recurrent},
    {"lu", refuse_decomposition, prepare_decomposition},
    {"qr", refuse_decomposition, prepare_decomposition},
    {"solve", refuse_decomposition, prepare_decomposition},
    {"svd", refuse_decomposition, prepare_decomposition},
    {"triangular_solve", refuse_decomposition, prepare_decomposition},
    {"kernel", refuse_kernel, prepare_kernel},
    {"layer_norm", refuse_layer_norm, prepare_layer_norm},
    {"layer_norm_grad", refuse_layer_norm_grad, prepare_layer_norm_grad},
    {"linspace", refuse_linspace, prepare_linspace},
    {"average_pool", refuse_pool, prepare_pool},
    {"average_pool_grad", refuse_average_pool_grad, prepare_average_pool_grad},
    {"log_softmax", refuse_log_softmax, prepare_log_softmax},
    {"log_softmax_grad", refuse_log_softmax_grad, prepare_log_softmax_grad},
    {"max_pool", refuse_pool, prepare_pool},
    {"max_pool_grad", refuse_max_pool_grad, prepare_max_pool_grad},
    {"nonzero", refuse_nonzero, prepare_nonzero},
    {"quantized_matmul", refuse_quantized_matmul, prepare_quantized_matmul},
    {"random_permutation", refuse_permutation, prepare_permutation},
    {"rfft", refuse_fourier, prepare_fourier},
    {"row", refuse_row, prepare_row},
    {"scan", refuse_scan, prepare_scan},
    {"searchsorted", refuse_search, prepare_search},
    {"segmented_reduce", refuse_segments, prepare_segments},
    {"softmax", refuse_softmax, prepare_softmax},
    {"softmax_grad", refuse_softmax_grad, prepare_softmax_grad},
    {"sort", refuse_sort, prepare_sort},
    {"top_k", refuse_top_k, prepare_top_k},
    {"unique", refuse_unique, prepare_unique},
};

// NULL if there is none of this name.
const Primitive* find_primitive(const Op& op) {
  for (const Primitive& primitive : kPrimitives) {
    if (primitive.name == op.name()) return &primitive;
  }
  return nullptr;
}

std::optional<Refusal> refuse(const Primitive* primitive, const Op& op) {
  if (std::optional<Refusal> refusal = refuse_unknown(op)) return refusal;
  if (primitive == nullptr)
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1,
                   "the cpu plugin does not support op " + std::string(op.name()), ""};
  return primitive->refuse(op);
}

}  // namespace

std::optional<Refusal> refuse(const Op& op) { return refuse(find_primitive(op), op); }

common::PlanOrRefusal<Plan> prepare(const Op& op) {
  const Primitive* primitive = find_primitive(op);
  if (std::optional<Refusal> refusal = refuse(primitive, op)) return *std::move(refusal);
  std::unique_ptr<Plan> plan = primitive->prepare(op);
  plan->tensor_count = op.tensor_count();
  plan->scalar_count = op.scalar_count();
  return plan;
}

}  // namespace compute::cpu
