// SPDX-License-Identifier: Apache-2.0
// The windows of a pooling op along the spatial axes of [n, c, spatial...].
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "plugins/common/op.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/reduce/pool_kernel.hpp"

namespace compute::cpu {

constexpr size_t kPoolLead = 2;  // the axes n and c
constexpr size_t kPoolSpatial = 3;

struct PoolWindow {
  int64_t extent = 1, size = 1, stride = 1, dilation = 1, before = 0, count = 1;

  // The position of an element of a window, which may lie in the padding.
  int64_t at(int64_t window, int64_t tap) const { return window * stride + tap * dilation - before; }
  bool has(int64_t position) const { return position >= 0 && position < extent; }
  // The windows whose element `tap` is no padding.
  int64_t first(int64_t tap) const { return std::max<int64_t>(0, (before - tap * dilation + stride - 1) / stride); }
  int64_t last(int64_t tap) const {
    const int64_t room = extent - 1 + before - tap * dilation;
    return room < 0 ? 0 : std::min(count, room / stride + 1);
  }
  // The elements of a window without dilation that are no padding.
  int64_t inside(int64_t window) const {
    const int64_t from = at(window, 0);
    return std::min(from + size, extent) - std::max<int64_t>(from, 0);
  }
};

// The axes that an op does not have come first, with one window of one element.
using PoolWindows = std::array<PoolWindow, kPoolSpatial>;
// Strides in elements, over n, c and the spatial axes.
using PoolStrides = std::array<int64_t, kPoolLead + kPoolSpatial>;

inline PoolStrides pool_strides(const compute_plugin_tensor& tensor) {
  PoolStrides strides{};
  const size_t missing = kPoolLead + kPoolSpatial - static_cast<size_t>(tensor.rank);
  for (size_t i = 0; i < static_cast<size_t>(tensor.rank); ++i)
    strides[i < kPoolLead ? i : i + missing] = tensor.strides[i];
  return strides;
}

// Of the elements x and the results y of the op, which has at most kPoolSpatial spatial axes.
inline PoolWindows pool_windows(const common::Op& op, const compute_plugin_tensor& x, const compute_plugin_tensor& y) {
  PoolWindows windows;
  const size_t spatial = static_cast<size_t>(x.rank) - kPoolLead;
  const auto sizes = op.integers("window"), strides = op.integers("strides"), dilations = op.integers("dilations"),
             before = op.integers("pads_begin");
  for (size_t i = 0; i < spatial; ++i) {
    PoolWindow& w = windows[kPoolSpatial - spatial + i];
    w.extent = x.shape[kPoolLead + i];
    w.count = y.shape[kPoolLead + i];
    w.size = sizes[i];
    w.stride = strides.empty() ? w.size : strides[i];
    w.dilation = dilations.empty() ? 1 : dilations[i];
    if (!before.empty()) w.before = before[i];
    if (op.text("padding") == "same") {
      const int64_t reach = (w.size - 1) * w.dilation + 1;
      w.before = std::max<int64_t>((w.count - 1) * w.stride + reach - w.extent, 0) / 2;
    }
  }
  return windows;
}

template <class T>
const PoolKernel<T>& pool_kernel() {
  if constexpr (sizeof(T) == 4) {
    return isa().pool->float32;
  } else {
    return isa().pool->float64;
  }
}

}  // namespace compute::cpu
