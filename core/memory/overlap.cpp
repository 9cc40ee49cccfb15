// SPDX-License-Identifier: Apache-2.0
#include "core/memory/overlap.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

namespace compute {

bool same_view(const Tensor& a, const Tensor& b) {
  return a.buffer == b.buffer && a.dtype == b.dtype && a.offset_bytes == b.offset_bytes && a.rank == b.rank &&
         std::equal(a.shape(), a.shape() + 2 * a.rank, b.shape());
}

namespace {

// Where the bytes of `tensor` are modulo `period`: `size` of them from `begin` on. Empty if they are everywhere.
struct Window {
  int64_t begin, size;
};
std::optional<Window> window_of(const Tensor& tensor, int64_t period) {
  Window window{tensor.offset_bytes, dtype_size(tensor.dtype)};
  for (int32_t i = 0; i < tensor.rank; ++i) {
    const int64_t stride = tensor.strides()[i] * dtype_size(tensor.dtype), reach = stride * (tensor.shape()[i] - 1);
    if (stride % period == 0) continue;
    window.begin += std::min<int64_t>(reach, 0);
    window.size += std::abs(reach);
  }
  window.begin = (window.begin % period + period) % period;
  return window.size <= period ? std::optional(window) : std::nullopt;
}

// Whether both repeat with `period` and have different bytes of it, as columns of a matrix do with its rows.
bool are_apart(const Tensor& a, const Tensor& b, int64_t period) {
  const std::optional<Window> in_a = window_of(a, period), in_b = window_of(b, period);
  if (!in_a || !in_b) return false;
  const int64_t distance = (in_b->begin - in_a->begin + period) % period;
  return distance >= in_a->size && distance + in_b->size <= period;
}

bool are_apart_by_a_stride_of(const Tensor& of, const Tensor& a, const Tensor& b) {
  for (int32_t i = 0; i < of.rank; ++i) {
    const int64_t period = std::abs(of.strides()[i]) * dtype_size(of.dtype);
    if (of.shape()[i] > 1 && period > 0 && are_apart(a, b, period)) return true;
  }
  return false;
}

}  // namespace

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
  if (distance >= dtype_size(b.dtype) && distance <= grid - dtype_size(a.dtype)) return false;
  return !are_apart_by_a_stride_of(a, a, b) && !are_apart_by_a_stride_of(b, a, b);
}

}  // namespace compute
