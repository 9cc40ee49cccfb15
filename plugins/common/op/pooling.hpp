// SPDX-License-Identifier: Apache-2.0
// Pooling ops and their gradients in one form.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "plugins/common/op/op.hpp"

namespace compute::common {

constexpr size_t kPoolLead = 2;  // the axes n and c
constexpr size_t kPoolSpatial = 3;

/// The windows along an axis of x.
struct PoolWindow {
  int64_t extent = 1, size = 1, stride = 1, dilation = 1, before = 0, after = 0, count = 1;

  int64_t reach() const { return (size - 1) * dilation + 1; }
  /// The position of an element of a window, which may lie in the padding.
  int64_t at(int64_t window, int64_t tap) const { return window * stride + tap * dilation - before; }
  bool has(int64_t position) const { return position >= 0 && position < extent; }
  /// The windows [first, last) whose element `tap` is not padding.
  int64_t first(int64_t tap) const { return std::max<int64_t>(0, (before - tap * dilation + stride - 1) / stride); }
  int64_t last(int64_t tap) const {
    const int64_t room = extent - 1 + before - tap * dilation;
    return room < 0 ? 0 : std::min(count, room / stride + 1);
  }
  /// The number of elements of a window without dilation that are not padding; negative or 0 if none.
  int64_t inside(int64_t window) const {
    const int64_t from = at(window, 0);
    return std::min(from + size, extent) - std::max<int64_t>(from, 0);
  }
};

/// The axes that an op does not have come first, with one window of one element.
using PoolWindows = std::array<PoolWindow, kPoolSpatial>;
/// Of the elements x and the results y of the op, which has at most kPoolSpatial spatial axes.
PoolWindows pool_windows(const Op& op, const compute_plugin_tensor& x, const compute_plugin_tensor& y);

/// Strides in elements, over n, c and the spatial axes; missing axes come first.
using PoolStrides = std::array<int64_t, kPoolLead + kPoolSpatial>;
PoolStrides pool_strides(const compute_plugin_tensor& tensor);

/// Any of the ops.
struct Pooling {
  explicit Pooling(const Op& op);

  PoolWindows windows;
  bool is_max, is_grad;
  bool counts_padding;  // averages are over all elements of a window
  bool is_padded;
  bool is_overlapping;  // an element can be in several windows

  /// The elements of a window.
  int64_t taps() const { return windows[0].size * windows[1].size * windows[2].size; }
};

/// Refuses cases for which core's steps are as fast: windows without padding that do not overlap (for pools also
/// overlapping ones), and more than three spatial axes.
std::optional<Refusal> refuse_pooling(const Op& op);

}  // namespace compute::common
