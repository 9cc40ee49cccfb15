// SPDX-License-Identifier: Apache-2.0
#include "windows.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

namespace vulkan {
namespace {

constexpr std::string_view kForward = "convolution", kGradInput = "convolution_grad_input",
                           kGradWeight = "convolution_grad_weight";

int64_t points(const std::array<int64_t, kWindowAxes>& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

// Of an axis, in elements.
int64_t steps(const Tensor& tensor, size_t axis) { return tensor.strides[axis] / bytes_of(tensor.dtype); }

int64_t ceiling_divide(int64_t x, int64_t y) { return x >= 0 ? (x + y - 1) / y : -(-x / y); }

// The tensors of a convolution by role, whichever primitive it is of, and its attributes per spatial axis.
struct Geometry {
  explicit Geometry(const Op& op)
      : x(op.name() == kForward     ? op.input(0)
          : op.name() == kGradInput ? op.output(0)
                                    : op.input(1)),
        weight(op.name() == kGradWeight ? op.output(0) : op.input(1)),
        y(op.name() == kForward ? op.output(0) : op.input(0)),
        groups(op.integer("groups", 1)),
        missing(kWindowAxes + 1 - static_cast<int>(x.shape.size())) {
    for (int i = 0; i < kMaxSpatial; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto value = [&](std::string_view name, int64_t otherwise) {
        return i < missing ? otherwise : op.integers(name)[at - static_cast<size_t>(missing)];
      };
      strides[at] = value("strides", 1);
      dilations[at] = value("dilations", 1);
      begin[at] = value("pads_begin", 0);
    }
  }

  int64_t extent(const Tensor& tensor, size_t axis) const {
    return static_cast<int>(axis) < missing ? 1
                                            : tensor.shape[static_cast<size_t>(2 + static_cast<int>(axis) - missing)];
  }
  int64_t stride(const Tensor& tensor, size_t axis) const {
    return static_cast<int>(axis) < missing ? 0
                                            : steps(tensor, static_cast<size_t>(2 + static_cast<int>(axis) - missing));
  }

  const Tensor &x, &weight, &y;
  const int64_t groups;
  const int missing;  // spatial axes
  std::array<int64_t, kMaxSpatial> strides, dilations, begin;
};

WindowProduct forward(const Geometry& g) {
  WindowProduct p{};
  p.groups = g.groups;
  p.rows = g.weight.shape[0] / g.groups;
  p.a_row = steps(g.weight, 0);
  p.a_group = p.a_row * p.rows;
  p.b_group = steps(g.x, 1) * (g.x.shape[1] / g.groups);
  p.c_row = steps(g.y, 1);
  p.c_group = p.c_row * p.rows;
  p.depth[0] = g.weight.shape[1];
  p.a_depth[0] = steps(g.weight, 1);
  p.b_depth = steps(g.x, 1);
  p.column[0] = g.x.shape[0];
  p.c_column[0] = steps(g.y, 0);
  p.b_column = steps(g.x, 0);
  for (size_t i = 0; i < kMaxSpatial; ++i) {
    p.extent[i] = g.extent(g.x, i);
    p.stride[i] = g.stride(g.x, i);
    p.depth[1 + i] = g.extent(g.weight, i);
    p.a_depth[1 + i] = g.stride(g.weight, i);
    p.depth_step[i] = g.dilations[i];
    p.column[1 + i] = g.extent(g.y, i);
    p.c_column[1 + i] = g.stride(g.y, i);
    p.column_step[i] = g.strides[i];
    p.start[i] = -g.begin[i];
  }
  return p;
}

WindowProduct grad_weight(const Geometry& g) {
  WindowProduct p{};
  p.groups = g.groups;
  p.rows = g.weight.shape[0] / g.groups;
  p.a_row = steps(g.y, 1);
  p.a_group = p.a_row * p.rows;
  p.b_group = steps(g.x, 1) * (g.x.shape[1] / g.groups);
  p.c_row = steps(g.weight, 0);
  p.c_group = p.c_row * p.rows;
  p.depth[0] = g.x.shape[0];
  p.a_depth[0] = steps(g.y, 0);
  p.b_depth = steps(g.x, 0);
  p.column[0] = g.weight.shape[1];
  p.c_column[0] = steps(g.weight, 1);
  p.b_column = steps(g.x, 1);
  for (size_t i = 0; i < kMaxSpatial; ++i) {
    p.extent[i] = g.extent(g.x, i);
    p.stride[i] = g.stride(g.x, i);
    p.depth[1 + i] = g.extent(g.y, i);
    p.a_depth[1 + i] = g.stride(g.y, i);
    p.depth_step[i] = g.strides[i];
    p.column[1 + i] = g.extent(g.weight, i);
    p.c_column[1 + i] = g.stride(g.weight, i);
    p.column_step[i] = g.dilations[i];
    p.start[i] = -g.begin[i];
  }
  return p;
}

// The kernel elements t that meet positions of x whose sum with the pad is `remainder` modulo the stride, expressed by
// the position of y that they meet: (position of x + pad) / stride - first - t · step.
struct Phase {
  int64_t kernel_first = 0, kernel_step = 1, kernel_count = 0;
  int64_t x_first = 0, x_count = 0;  // x_first + i · stride
  int64_t y_start = 0, y_step = 0;
};

Phase find_phase(const Geometry& g, size_t axis, int64_t remainder) {
  Phase phase;
  const int64_t stride = g.strides[axis], dilation = g.dilations[axis], kernel = g.extent(g.weight, axis);
  const int64_t common = std::gcd(stride, dilation);
  phase.kernel_step = stride / common;
  phase.y_step = -(dilation / common);
  int64_t k = 0;
  while (k < std::min(phase.kernel_step, kernel) && k * dilation % stride != remainder) ++k;
  phase.kernel_first = k;
  const bool any = k < std::min(phase.kernel_step, kernel);
  phase.kernel_count = any ? (kernel - 1 - k) / phase.kernel_step + 1 : 0;
  const int64_t first = ceiling_divide(g.begin[axis] - remainder, stride);  // of (position + pad) / stride
  phase.x_first = remainder - g.begin[axis] + first * stride;
  const int64_t left = g.extent(g.x, axis) - phase.x_first;
  phase.x_count = left > 0 ? ceiling_divide(left, stride) : 0;
  phase.y_start = any ? first - (k * dilation - remainder) / stride : 0;
  return phase;
}

std::optional<WindowProduct> grad_input(const Geometry& g, const std::array<int64_t, kMaxSpatial>& remainders) {
  WindowProduct p{};
  p.groups = g.groups;
  p.rows = g.weight.shape[1];
  p.a_row = steps(g.weight, 1);
  p.depth[0] = g.weight.shape[0] / g.groups;
  p.a_depth[0] = steps(g.weight, 0);
  p.a_group = p.a_depth[0] * p.depth[0];
  p.b_depth = steps(g.y, 1);
  p.b_group = p.b_depth * p.depth[0];
  p.c_row = steps(g.x, 1);
  p.c_group = p.c_row * p.rows;
  p.column[0] = g.x.shape[0];
  p.c_column[0] = steps(g.x, 0);
  p.b_column = steps(g.y, 0);
  for (size_t i = 0; i < kMaxSpatial; ++i) {
    const Phase phase = find_phase(g, i, remainders[i]);
    if (phase.x_count == 0) return std::nullopt;
    p.extent[i] = g.extent(g.y, i);
    p.stride[i] = g.stride(g.y, i);
    p.depth[1 + i] = phase.kernel_count;
    p.a_offset += phase.kernel_first * g.stride(g.weight, i);
    p.a_depth[1 + i] = phase.kernel_step * g.stride(g.weight, i);
    p.depth_step[i] = phase.y_step;
    p.column[1 + i] = phase.x_count;
    p.c_offset += phase.x_first * g.stride(g.x, i);
    p.c_column[1 + i] = g.strides[i] * g.stride(g.x, i);
    p.column_step[i] = 1;
    p.start[i] = phase.y_start;
  }
  return p;
}

std::vector<WindowProduct> grad_input(const Geometry& g) {
  std::vector<WindowProduct> products;
  std::array<int64_t, kMaxSpatial> limits, at{};
  for (size_t i = 0; i < kMaxSpatial; ++i) limits[i] = g.strides[i];
  while (true) {
    if (std::optional<WindowProduct> one = grad_input(g, at)) products.push_back(*one);
    size_t axis = kMaxSpatial;
    while (axis > 0 && ++at[axis - 1] == limits[axis - 1]) at[--axis] = 0;
    if (axis == 0) return products;
  }
}

}  // namespace

int64_t WindowProduct::depth_points() const { return points(depth); }
int64_t WindowProduct::columns() const { return points(column); }

WindowOperands window_operands(const Op& op) {
  const int32_t output = op.input_count();
  if (op.name() == kGradWeight) return {0, 1, output, -1};
  const bool has_bias = op.input_count() > 2 && !op.input(2).is_absent;
  return {1, 0, output, has_bias ? 2 : -1};
}

std::vector<WindowProduct> read_windows(const Op& op) {
  const size_t rank = op.output(0).shape.size();
  if (rank < 3 || rank > 2 + kMaxSpatial)
    throw Refused{COMPUTE_PLUGIN_REFUSE_RANK, op.input_count(), "1 to 3 spatial axes are supported"};
  constexpr int64_t kMostProducts = 16;
  int64_t count = 1;
  for (const int64_t stride : op.integers("strides")) count *= std::min<int64_t>(stride, kMostProducts + 1);
  if (op.name() == kGradInput && count > kMostProducts)
    throw Refused{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, "the product of the strides is above 16"};
  const Geometry g(op);
  std::vector<WindowProduct> products;
  if (op.name() == kGradInput) {
    products = grad_input(g);
  } else {
    products = {op.name() == kForward ? forward(g) : grad_weight(g)};
  }
  if (const int32_t bias = window_operands(op).bias; bias >= 0) {
    for (WindowProduct& p : products) {
      p.bias_row = steps(op.input(bias), 0);
      p.bias_group = p.bias_row * p.rows;
    }
  }
  return products;
}

}  // namespace vulkan
