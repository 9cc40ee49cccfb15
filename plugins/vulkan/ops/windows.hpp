// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients in one form: a product of matrices, one of which consists of windows of a tensor.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "builder.hpp"

namespace vulkan {

constexpr int kMaxSpatial = 3;
constexpr int kWindowAxes = 1 + kMaxSpatial;  // images or channels, then the spatial axes

// For every group: c [row, column] = sum over depth of a [row, depth] · b [depth, column].
//
// Columns and depth are index spaces of four axes each, the last one fastest; missing spatial axes come first and have
// extent 1. The element of b is at position start + depth · depth_step + column · column_step along each spatial axis,
// and is 0 if a position lies outside of the extent. All strides and offsets are in elements. Every result is in
// one product; depth may have no points.
struct WindowProduct {
  std::array<int64_t, kWindowAxes> depth, column;  // extents
  int64_t groups, rows;
  int64_t a_group, a_row, b_group, c_group, c_row;
  std::array<int64_t, kWindowAxes> a_depth, c_column;               // strides
  int64_t b_depth, b_column;                                        // strides of b along axis 0 of either space
  std::array<int64_t, kMaxSpatial> extent, stride;                  // of b's spatial axes
  std::array<int64_t, kMaxSpatial> start, depth_step, column_step;  // positions
  int64_t a_offset, c_offset;
  int64_t bias_group, bias_row;  // strides, if there is a bias

  int64_t depth_points() const;
  int64_t columns() const;
};

// The roles of the op's tensors.
struct WindowOperands {
  int32_t a, b, c;
  int32_t bias;  // -1: none
};
WindowOperands window_operands(const Op& op);

// The products that make up the primitive `op`: one, or for the gradient of the input one for every remainder of a
// position divided by the stride. Throws Refused.
std::vector<WindowProduct> read_windows(const Op& op);

}  // namespace vulkan
