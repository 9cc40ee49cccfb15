// SPDX-License-Identifier: Apache-2.0
// Copies of matrices to and from column-major memory. Those of large ones, which threads share, go through tiles, so
// that both sides are accessed along their lines.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "plugins/cpu/linalg/matrix.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {

enum class Triangle { kAll, kLower, kUpper };

constexpr int64_t kTile = 32;
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
  std::atomic<bool> all_finite = true;
  for_tiles(from.rows, from.columns, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    T tile[kTile][kTile];  // by columns
    const bool by_rows = std::abs(from.row_stride) > std::abs(from.column_stride);
    const int64_t outer_end = by_rows ? i1 - i0 : j1 - j0, inner_end = by_rows ? j1 - j0 : i1 - i0;
    const int64_t outer_step = by_rows ? from.row_stride : from.column_stride;
    const int64_t inner_step = by_rows ? from.column_stride : from.row_stride;
    const char* const first = from.data + i0 * from.row_stride + j0 * from.column_stride;
    for (int64_t outer = 0; outer < outer_end; ++outer) {
      const char* src = first + outer * outer_step;
      for (int64_t inner = 0; inner < inner_end; ++inner, src += inner_step)
        std::memcpy(by_rows ? &tile[inner][outer] : &tile[outer][inner], src, sizeof(T));
    }
    bool finite = true;
    for (int64_t j = j0; j < j1; ++j) {
      T* const column = tile[j - j0];
      for (int64_t i = i0; part != Triangle::kAll && i < i1; ++i) {
        if (!is_in(part, i, j)) column[i - i0] = T(0);
      }
      for (int64_t i = 0; i < i1 - i0; ++i) finite &= is_finite(column[i]);
      std::memcpy(to + j * from.rows + i0, column, static_cast<size_t>(i1 - i0) * sizeof(T));
    }
    if (!finite) all_finite.store(false, std::memory_order_relaxed);
  });
  return all_finite.load(std::memory_order_relaxed);
}

// From column-major memory with `stride` elements from column to column. Beside a triangle, 0 is stored.
template <class T>
void store(const T* from, int64_t stride, const View& to, Triangle part = Triangle::kAll) {
  const auto element = [&](int64_t i, int64_t j) { return is_in(part, i, j) ? from[j * stride + i] : T(0); };
  if (to.rows * to.columns <= kFewElements) {
    for (int64_t j = 0; j < to.columns; ++j) {
      char* dst = to.data + j * to.column_stride;
      for (int64_t i = 0; i < to.rows; ++i, dst += to.row_stride) {
        const T value = element(i, j);
        std::memcpy(dst, &value, sizeof value);
      }
    }
    return;
  }
  for_tiles(to.rows, to.columns, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    T tile[kTile][kTile];  // by rows
    for (int64_t j = j0; j < j1; ++j) {
      for (int64_t i = i0; i < i1; ++i) tile[i - i0][j - j0] = element(i, j);
    }
    const bool by_rows = std::abs(to.row_stride) > std::abs(to.column_stride);
    const int64_t outer_end = by_rows ? i1 - i0 : j1 - j0, inner_end = by_rows ? j1 - j0 : i1 - i0;
    const int64_t outer_step = by_rows ? to.row_stride : to.column_stride;
    const int64_t inner_step = by_rows ? to.column_stride : to.row_stride;
    char* const first = to.data + i0 * to.row_stride + j0 * to.column_stride;
    for (int64_t outer = 0; outer < outer_end; ++outer) {
      char* dst = first + outer * outer_step;
      for (int64_t inner = 0; inner < inner_end; ++inner, dst += inner_step)
        std::memcpy(dst, by_rows ? &tile[outer][inner] : &tile[inner][outer], sizeof(T));
    }
  });
}

}  // namespace compute::cpu
