// SPDX-License-Identifier: Apache-2.0
// The windows of pooling ops, and the kernels for them.
#pragma once

#include "plugins/common/op/pooling.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/pool_kernel.hpp"

namespace compute::cpu {

using common::kPoolLead;
using common::kPoolSpatial;
using common::pool_strides;
using common::pool_windows;
using common::PoolStrides;
using common::PoolWindow;
using common::PoolWindows;

/// Whether windows of a plane are two by two elements, whole, and share nothing.
inline bool are_squares(const PoolWindows& windows) {
  const auto is_pair = [](const PoolWindow& w) {
    return w.size == 2 && w.stride == 2 && w.dilation == 1 && w.before == 0 && 2 * w.count <= w.extent;
  };
  return windows[0].extent == 1 && windows[0].size == 1 && windows[0].count == 1 && is_pair(windows[1]) &&
         is_pair(windows[2]);
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
