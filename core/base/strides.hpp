// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace compute {

// The strides of a row-major tensor, in which an extent of 0 counts as 1.
inline void row_major_strides(std::span<const int64_t> shape, int64_t* out_strides) noexcept {
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    out_strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
}

}  // namespace compute
