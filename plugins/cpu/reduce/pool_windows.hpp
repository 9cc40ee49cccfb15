// SPDX-License-Identifier: Apache-2.0
// The windows of pooling ops, and the kernels for them.
#pragma once

#include "plugins/common/pooling.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/reduce/pool_kernel.hpp"

namespace compute::cpu {

using common::kPoolLead;
using common::kPoolSpatial;
using common::pool_strides;
using common::pool_windows;
using common::PoolStrides;
using common::PoolWindow;
using common::PoolWindows;

template <class T>
const PoolKernel<T>& pool_kernel() {
  if constexpr (sizeof(T) == 4) {
    return isa().pool->float32;
  } else {
    return isa().pool->float64;
  }
}

}  // namespace compute::cpu
