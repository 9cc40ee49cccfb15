// SPDX-License-Identifier: Apache-2.0
#include "core/memory/overlap.hpp"

#include <algorithm>
#include <numeric>

namespace compute {

bool same_view(const Tensor& a, const Tensor& b) {
  return a.buffer == b.buffer && a.dtype == b.dtype && a.offset_bytes == b.offset_bytes && a.rank == b.rank &&
         std::equal(a.shape(), a.shape() + 2 * a.rank, b.shape());
}

bool may_overlap_in_buffer(const Tensor& a, const Tensor& b) {
  if (a.buffer == nullptr || a.element_count == 0 || b.element_count == 0) return false;
  int64_t a_begin = 0, a_end = 0, b_begin = 0, b_end = 0;
  a.byte_range(&a_begin, &a_end);
  b.byte_range(&b_begin, &b_end);
  if (a_end <= b_begin || b_end <= a_begin) return false;
  int64_t grid = 0;
  const auto fold = [&](const Tensor& tensor) {
    for (int32_t i = 0; i < tensor.rank; ++i) {
      if (tensor.shape()[i] > 1) grid = std::gcd(grid, tensor.strides()[i] * dtype_size(tensor.dtype));
    }
  };
  fold(a);
  fold(b);
  if (grid == 0) return true;
  const int64_t distance = ((a.offset_bytes - b.offset_bytes) % grid + grid) % grid;
  return distance < dtype_size(b.dtype) || distance > grid - dtype_size(a.dtype);
}

}  // namespace compute
