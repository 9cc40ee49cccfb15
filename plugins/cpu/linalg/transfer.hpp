// SPDX-License-Identifier: Apache-2.0
// Copies of matrices to and from column-major memory. Those of large ones, which threads share, go by tiles, so that
// the lines of both sides stay in the cache.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/copy_kernel.hpp"
#include "plugins/cpu/linalg/matrix.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {

enum class Triangle { kAll, kLower, kUpper };

constexpr int64_t kTile = 64;
constexpr int64_t kFewElements = 2048;  // up to which tiles are not worth it

// The operand as its transpose.
inline View transposed(View x) {
  std::swap(x.rows, x.columns);
  std::swap(x.row_stride, x.column_stride);
  return x;
}

inline bool is_in(Triangle part, int64_t i, int64_t j) {
  return part == Triangle::kAll || (part == Triangle::kLower ? i >= j : i <= j);
}

// Calls body(i0, i1, j0, j1) for the tiles of a matrix.
template <class F>
void for_tiles(int64_t rows, int64_t columns, const F& body) {
  const int64_t per_part = std::max<int64_t>(1, (int64_t{1} << 15) / (std::max<int64_t>(rows, 1) * kTile));
  const int64_t strips = (columns + kTile - 1) / kTile;
  parallel_tasks((strips + per_part - 1) / per_part, 1, [&](int64_t first, int64_t last) {
    for (int64_t j = first * per_part * kTile; j < std::min(last * per_part * kTile, columns); j += kTile) {
      for (int64_t i = 0; i < rows; i += kTile) body(i, std::min(i + kTile, rows), j, std::min(j + kTile, columns));
    }
  });
}

template <class T>
bool all_finite(const T* x, int64_t n) {
  using R = Real<T>;
  using Bits = std::conditional_t<sizeof(R) == 4, uint32_t, uint64_t>;
  constexpr Bits kOne =
      Bits(1) << (std::numeric_limits<R>::digits - 1);  // of the exponent, whose bits end below the sign
  constexpr Bits kSign = Bits(1) << (8 * sizeof(Bits) - 1), kExponent = kSign - kOne;
  const R* const parts = reinterpret_cast<const R*>(x);
  Bits carries = 0;
  for (int64_t i = 0; i < n * static_cast<int64_t>(sizeof(T) / sizeof(R)); ++i)
    carries |= (std::bit_cast<Bits>(parts[i]) & kExponent) + kOne;
  return (carries & kSign) == 0;
}

// dst[j][i] = src[i][j]; rows are so many bytes apart, and their elements adjacent.
template <class T>
void transpose_tile(const void* src, int64_t src_stride, void* dst, int64_t dst_stride, int64_t rows, int64_t columns) {
  isa().copy->transpose[std::countr_zero(sizeof(T))](src, src_stride, dst, dst_stride, rows, columns);
}

// False if an element is infinite or NaN. Of a triangle, the other elements may be anything, and are 0 in `to`.
template <class T>
bool load(const View& from, T* to, Triangle part = Triangle::kAll) {
  if (from.rows * from.columns <= kFewElements) {
    bool finite = true;
    for (int64_t j = 0; j < from.columns; ++j) {
      const char* src = from.data + j * from.column_stride;
      for (int64_t i = 0; i < from.rows; ++i, src += from.row_stride, ++to) {
        *to = T(0);
        if (is_in(part, i, j)) std::memcpy(to, src, sizeof(T));
        finite &= is_finite(*to);
      }
    }
    return finite;
  }
  std::atomic<bool> is_all_finite = true;
  for_tiles(from.rows, from.columns, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    constexpr int64_t kSize = sizeof(T);
    const int64_t rows = i1 - i0;
    const char* const src = from.data + i0 * from.row_stride + j0 * from.column_stride;
    T* const dst = to + j0 * from.rows + i0;
    if (from.column_stride == kSize) transpose_tile<T>(src, from.row_stride, dst, from.rows * kSize, rows, j1 - j0);
    bool finite = true;
    const bool is_whole = is_in(part, i0, j1 - 1) && is_in(part, i1 - 1, j0);
    for (int64_t j = j0; j < j1; ++j) {
      T* const column = dst + (j - j0) * from.rows;
      const char* const src_column = src + (j - j0) * from.column_stride;
      if (from.row_stride == kSize) {
        std::memcpy(column, src_column, static_cast<size_t>(rows) * sizeof(T));
      } else if (from.column_stride != kSize) {
        for (int64_t i = 0; i < rows; ++i) std::memcpy(column + i, src_column + i * from.row_stride, sizeof(T));
      }
      for (int64_t i = 0; !is_whole && i < rows; ++i) {
        if (!is_in(part, i0 + i, j)) column[i] = T(0);
      }
      finite &= all_finite(column, rows);
    }
    if (!finite) is_all_finite.store(false, std::memory_order_relaxed);
  });
  return is_all_finite.load(std::memory_order_relaxed);
}

// From column-major memory with `stride` elements from column to column. Beside a triangle, 0 is stored.
template <class T>
void store(const T* from, int64_t stride, const View& to, Triangle part = Triangle::kAll) {
  const auto store_part = [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    for (int64_t j = j0; j < j1; ++j) {
      char* dst = to.data + i0 * to.row_stride + j * to.column_stride;
      for (int64_t i = i0; i < i1; ++i, dst += to.row_stride) {
        const T value = is_in(part, i, j) ? from[j * stride + i] : T(0);
        std::memcpy(dst, &value, sizeof value);
      }
    }
  };
  if (to.rows * to.columns <= kFewElements) return store_part(0, to.rows, 0, to.columns);
  for_tiles(to.rows, to.columns, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    constexpr int64_t kSize = sizeof(T);
    const bool is_whole = is_in(part, i0, j1 - 1) && is_in(part, i1 - 1, j0);
    if (!is_whole || (to.row_stride != kSize && to.column_stride != kSize)) return store_part(i0, i1, j0, j1);
    char* const dst = to.data + i0 * to.row_stride + j0 * to.column_stride;
    const T* const src = from + j0 * stride + i0;
    if (to.column_stride == kSize) return transpose_tile<T>(src, stride * kSize, dst, to.row_stride, j1 - j0, i1 - i0);
    for (int64_t j = 0; j < j1 - j0; ++j)
      std::memcpy(dst + j * to.column_stride, src + j * stride, static_cast<size_t>(i1 - i0) * sizeof(T));
  });
}

}  // namespace compute::cpu
