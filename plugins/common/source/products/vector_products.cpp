// SPDX-License-Identifier: Apache-2.0
// Contractions with a vector on one side, as reductions of the products of elements: they read the matrix once, in the
// order in which it lies in memory.
#include <algorithm>
#include <cstring>

#include "plugins/common/source/products/ops.hpp"
#include "plugins/common/source/reduce/ops.hpp"

namespace compute::common {
namespace {

// An expression of this file, and its data.
struct OwnExpression {
  int32_t add(int32_t kind, compute_dtype dtype, int32_t value, std::initializer_list<int32_t> given = {}) {
    const auto first = static_cast<int64_t>(operands.size());
    operands.insert(operands.end(), given);
    nodes.push_back({kind, dtype, value, static_cast<int32_t>(given.size()), first, {}});
    output = static_cast<int32_t>(nodes.size()) - 1;
    return output;
  }
  int32_t input(int32_t index, compute_dtype dtype, compute_dtype converted) {
    const int32_t node = add(COMPUTE_PLUGIN_NODE_INPUT, dtype, index);
    if (dtype == converted) return node;
    return add(COMPUTE_PLUGIN_NODE_CALL, converted, COMPUTE_PLUGIN_INTRINSIC_CONVERT, {node});
  }
  // `digest` is that of this expression alone.
  compute_plugin_expression view(int32_t input_count, const int32_t (&digest)[4]) const {
    compute_plugin_expression view{};
    view.struct_size = sizeof view;
    std::memcpy(view.digest, digest, sizeof digest);
    view.node_count = static_cast<int32_t>(nodes.size());
    view.input_count = input_count;
    view.output_count = 1;
    view.nodes = nodes.data();
    view.operands = operands.data();
    view.operand_total = static_cast<int64_t>(operands.size());
    view.outputs = &output;
    return view;
  }

  std::vector<compute_plugin_node> nodes;
  std::vector<int32_t> operands;
  int32_t output = 0;
};

constexpr int32_t kDigest = 0x7665630a;  // of expressions of this file

}  // namespace

bool is_vector_product(const Op& op) {
  const compute_plugin_tensor& c = op.output(0);
  const compute_dtype wide = computed_in(c.dtype);
  const int64_t k = op.input(0).shape[c.rank - 1];
  for (int32_t i = 2; i < op.input_count(); ++i) {
    if (op.input(i).rank >= 0) return false;
  }
  return (c.shape[c.rank - 1] == 1 || c.shape[c.rank - 2] == 1) && k > 1 && op.integer("scaled", 0) == 0 &&
         (is_float(wide) || is_integer(wide));
}

BuiltKernels build_vector_product(const Op& op, const Dialect& dialect, bool with_text) {
  const compute_plugin_tensor& c = op.output(0);
  const compute_dtype given = op.input(0).dtype, wide = computed_in(c.dtype);
  const auto last = static_cast<size_t>(c.rank - 1);
  const bool is_row = c.shape[last] != 1;  // times a matrix; else it is a matrix times a column

  OwnExpression before, after;
  const int32_t a = before.input(0, given, wide), b = before.input(1, given, wide);
  before.add(COMPUTE_PLUGIN_NODE_CALL, wide, COMPUTE_PLUGIN_INTRINSIC_MUL, {a, b});
  after.input(0, wide, c.dtype);
  const compute_plugin_expression product = before.view(2, {kDigest, given, wide, 0});
  const compute_plugin_expression result = after.view(1, {kDigest, c.dtype, wide, 1});
  const compute_plugin_expression* const expressions[] = {&product,
                                                          op.expression_count() > 0 ? &op.expression(0) : &result};

  // The index space is the batch, the places of the result, and the terms; its last two axes lie as the matrix does.
  compute_plugin_tensor tensors[3] = {op.input(0), op.input(1), c};
  std::vector<int64_t> shape(c.shape, c.shape + c.rank), strides[2];
  const int64_t axis = is_row ? c.rank - 2 : c.rank - 1;
  shape[static_cast<size_t>(axis)] = op.input(0).shape[last];
  for (size_t i = 0; i < 2; ++i) {
    strides[i].assign(tensors[i].strides, tensors[i].strides + c.rank);
    int64_t& down = strides[i][last - 1];
    int64_t& along = strides[i][last];
    if (i == 0 && is_row) {
      down = along;
      along = 0;
    } else if (i == 1 && !is_row) {
      along = down;
      down = 0;
    }
    tensors[i].shape = shape.data();
    tensors[i].strides = strides[i].data();
  }

  const compute_string kind = {"sum", 3};
  const int32_t accumulator = wide;
  compute_attribute attributes[3] = {};
  const auto set = [](compute_attribute& attribute, std::string_view name, int32_t of, const void* value) {
    attribute.struct_size = sizeof attribute;
    attribute.name = name.data();
    attribute.name_size = static_cast<int64_t>(name.size());
    attribute.kind = of;
    attribute.count = 1;
    attribute.values = value;
  };
  set(attributes[0], "axes", COMPUTE_KIND_INT64, &axis);
  set(attributes[1], "kind", COMPUTE_KIND_STRING, &kind);
  set(attributes[2], "accumulator", COMPUTE_KIND_DTYPE, &accumulator);

  compute_plugin_op reduction = op.description();
  reduction.name = {"reduce", 6};
  reduction.input_count = 2;
  reduction.output_count = 1;
  reduction.tensors = tensors;
  reduction.attributes = attributes;
  reduction.attribute_count = 3;
  reduction.expressions = expressions;
  reduction.expression_count = 2;
  BuiltKernels built = build_reduce(Op(&reduction), dialect, with_text);
  for (BuiltKernel& kernel : built.kernels) {
    for (Pointer& pointer : kernel.launch.pointers) {
      if (pointer.kind == Pointer::kTensor && pointer.index == 2) pointer.index = op.input_count();
    }
  }
  return built;
}

}  // namespace compute::common
