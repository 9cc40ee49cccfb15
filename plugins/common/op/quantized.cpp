// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/op/quantized.hpp"

#include "plugins/common/op/layout.hpp"
#include "plugins/common/op/matrix_product.hpp"

namespace compute::common {
namespace {

enum { kX, kWeight, kScales, kOffsets };

// The step from line to line; nothing if it is not the same everywhere.
std::optional<int64_t> line_step(const compute_plugin_tensor& tensor) {
  const auto leading = static_cast<size_t>(tensor.rank - 1);
  return row_major_step({tensor.shape, leading}, {tensor.strides, leading});
}

}  // namespace

std::optional<Refusal> refuse_quantized_form(const Op& op) {
  const auto refused = [](int32_t argument, const char* what) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, argument, what, ""};
  };
  if (op.input(kX).dtype == COMPUTE_DTYPE_FLOAT64)
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, kX, "quantized_matmul: x is float64", "cast to float32"};
  if (!line_step(op.input(kX))) return refused(kX, "quantized_matmul: the lines of x are not in steps");
  if (!line_step(op.output(0))) return refused(op.input_count(), "quantized_matmul: the lines of y are not in steps");
  for (int32_t i = kWeight; i <= kOffsets; ++i) {
    if (!is_given(op, i)) continue;
    const compute_plugin_tensor& tensor = op.input(i);
    if (tensor.shape[1] > 1 && tensor.strides[1] != 1)
      return refused(i, "quantized_matmul: the rows of weights are not contiguous");
  }
  return std::nullopt;
}

QuantizedProduct read_quantized_product(const Op& op) {
  const compute_plugin_tensor &x = op.input(kX), &y = op.output(0);
  QuantizedProduct product;
  for (int32_t axis = 0; axis + 1 < x.rank; ++axis) product.m *= x.shape[axis];
  product.n = y.shape[y.rank - 1];
  product.k = x.shape[x.rank - 1];
  product.bits = op.integer("bits", 4);
  product.group = op.integer("group_size", 32);
  product.has_offsets = is_given(op, kOffsets);
  product.x_line = line_step(x).value_or(0);
  product.x_step = x.strides[x.rank - 1];
  product.weight_row = op.input(kWeight).strides[0];
  product.scales_row = op.input(kScales).strides[0];
  if (product.has_offsets) product.offsets_row = op.input(kOffsets).strides[0];
  product.y_line = line_step(y).value_or(0);
  product.y_step = y.strides[y.rank - 1];
  return product;
}

}  // namespace compute::common
