// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/contract/patches.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace compute::cpu {
namespace {

using common::kMaxSpatial;
using common::kWindowAxes;
using common::WindowProduct;

using Extents = std::array<int64_t, kWindowAxes>;

/// Elements of 8 and 16 bytes. Complex ones need the alignment of their parts alone.
struct Eight {
  uint32_t low, high;
};
struct Sixteen {
  uint64_t low, high;
};

/// One of the two index spaces, as b sees it.
struct Side {
  const Extents& extents;
  int64_t stride;  // along axis 0
  const std::array<int64_t, kMaxSpatial>& step;
};

void point_at(const Extents& extents, int64_t point, int64_t* at) {
  for (size_t axis = kWindowAxes; axis-- > 0;) {
    at[axis] = point % extents[axis];
    point /= extents[axis];
  }
}

void advance(const Extents& extents, int64_t* at) {
  for (size_t axis = kWindowAxes; axis-- > 0;) {
    if (++at[axis] < extents[axis]) return;
    at[axis] = 0;
  }
}

/// Copies short rows without a call, in whole vectors; the last one overlaps the previous one.
template <class T>
inline void copy_row(const T* src, T* dst, int64_t n) {
  constexpr int64_t kVector = 32 / static_cast<int64_t>(sizeof(T));
  if (n >= kVector) {
    int64_t i = 0;
    for (; i + kVector <= n; i += kVector) std::memcpy(dst + i, src + i, 32);
    if (i < n) std::memcpy(dst + n - kVector, src + n - kVector, 32);
    return;
  }
  constexpr int64_t kHalf = kVector / 2;
  if (n >= kHalf && kHalf > 0) {
    std::memcpy(dst, src, 16);
    std::memcpy(dst + n - kHalf, src + n - kHalf, 16);
    return;
  }
  for (int64_t i = 0; i < n; ++i) dst[i] = src[i];
}

/// dst[i] = src[2 · i]. Reads no element beyond the last of these.
template <class T>
inline void copy_even(const T* src, T* dst, int64_t n) {
  int64_t i = 0;
  if constexpr (sizeof(T) == 4) {
    typedef uint32_t Four __attribute__((vector_size(16)));
    for (; i + 4 < n; i += 4) {
      Four low, high;
      std::memcpy(&low, src + 2 * i, sizeof low);
      std::memcpy(&high, src + 2 * i + 4, sizeof high);
      const Four even = __builtin_shufflevector(low, high, 0, 2, 4, 6);
      std::memcpy(dst + i, &even, sizeof even);
    }
  }
  for (; i < n; ++i) dst[i] = src[2 * i];
}

/// dst[i] = the element at position `first` + i · step of an axis, or 0 outside of it.
template <class T>
inline void copy_axis(const T* src, int64_t stride, int64_t extent, int64_t first, int64_t step, int64_t n, T* dst) {
  if (step <= 0) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = first + i * step;
      dst[i] = at >= 0 && at < extent ? src[at * stride] : T{};
    }
    return;
  }
  int64_t begin = 0, end = n;
  if (first < 0) begin = std::min(n, step == 1 ? -first : (-first + step - 1) / step);
  if (first + (n - 1) * step >= extent) {
    end = first >= extent ? 0 : step == 1 ? extent - first : (extent - 1 - first) / step + 1;
    end = std::max(end, begin);
  }
  for (int64_t i = 0; i < begin; ++i) dst[i] = T{};
  const T* from = src + first * stride;
  const int64_t each = step * stride;
  if (each == 1) {
    copy_row(from + begin, dst + begin, end - begin);
  } else if (each == 2) {
    copy_even(from + 2 * begin, dst + begin, end - begin);
  } else {
    for (int64_t i = begin; i < end; ++i) dst[i] = from[i * each];
  }
  for (int64_t i = end; i < n; ++i) dst[i] = T{};
}

template <class T>
void copy_windows(const WindowProduct& p, const T* b, const Side& line_side, const Side& point_side, PointRange lines,
                  T* dst, int64_t leading, const PointRun* runs, int64_t run_count) {
  int64_t at[kWindowAxes];
  point_at(line_side.extents, lines.begin, at);
  for (int64_t line = lines.begin; line < lines.end; ++line, dst += leading, advance(line_side.extents, at)) {
    int64_t position[kMaxSpatial];
    for (size_t i = 0; i < kMaxSpatial; ++i) position[i] = p.start[i] + at[1 + i] * line_side.step[i];
    const T* const base = b + at[0] * line_side.stride;
    T* to = dst;
    for (int64_t r = 0; r < run_count; ++r) {
      const PointRun& run = runs[r];
      const int64_t p0 = position[0] + run.at[1] * point_side.step[0];
      const int64_t p1 = position[1] + run.at[2] * point_side.step[1];
      const int64_t p2 = position[2] + run.at[3] * point_side.step[2];
      if (p0 < 0 || p0 >= p.extent[0] || p1 < 0 || p1 >= p.extent[1]) {
        std::fill_n(to, run.count, T{});
      } else {
        copy_axis(base + run.at[0] * point_side.stride + p0 * p.stride[0] + p1 * p.stride[1], p.stride[2], p.extent[2],
                  p2, point_side.step[2], run.count, to);
      }
      to += run.count;
    }
  }
}

template <class T>
void copy_factors(const WindowProduct& p, const T* a, PointRange rows, T* dst, int64_t leading, const PointRun* runs,
                  int64_t run_count) {
  for (int64_t row = rows.begin; row < rows.end; ++row, dst += leading) {
    T* to = dst;
    for (int64_t r = 0; r < run_count; ++r) {
      const T* from = a + row * p.a_row;
      for (size_t axis = 0; axis < kWindowAxes; ++axis) from += runs[r].at[axis] * p.a_depth[axis];
      if (p.a_depth[kMaxSpatial] == 1) {
        copy_row(from, to, runs[r].count);
      } else {
        for (int64_t i = 0; i < runs[r].count; ++i) to[i] = from[i * p.a_depth[kMaxSpatial]];
      }
      to += runs[r].count;
    }
  }
}

template <class F>
void with_element(int32_t bytes, const F& f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(Eight{});
    default:
      return f(Sixteen{});
  }
}

}  // namespace

int64_t find_runs(const Extents& extents, PointRange points, PointRun* runs) {
  int64_t count = 0, at[kWindowAxes];
  if (points.begin < points.end) point_at(extents, points.begin, at);
  for (int64_t point = points.begin; point < points.end; ++count) {
    PointRun& run = runs[count];
    std::copy_n(at, kWindowAxes, run.at);
    run.count = std::min(points.end - point, extents[kMaxSpatial] - at[kMaxSpatial]);
    point += run.count;
    at[kMaxSpatial] = extents[kMaxSpatial] - 1;
    advance(extents, at);
  }
  return count;
}

void copy_windows(const WindowProduct& product, int32_t element_bytes, const void* b, bool depth_adjacent,
                  PointRange lines, PointRange points, void* dst, int64_t leading, PointRun* runs) {
  const Side depth = {product.depth, product.b_depth, product.depth_step};
  const Side column = {product.column, product.b_column, product.column_step};
  const Side &line_side = depth_adjacent ? column : depth, &point_side = depth_adjacent ? depth : column;
  const int64_t run_count = find_runs(point_side.extents, points, runs);
  with_element(element_bytes, [&](auto element) {
    using T = decltype(element);
    copy_windows(product, static_cast<const T*>(b), line_side, point_side, lines, static_cast<T*>(dst), leading, runs,
                 run_count);
  });
}

void copy_factors(const WindowProduct& product, int32_t element_bytes, const void* a, PointRange rows,
                  PointRange points, void* dst, int64_t leading, PointRun* runs) {
  // Axes that follow from each other in memory are one.
  WindowProduct merged = product;
  int64_t& inner = merged.depth[kMaxSpatial];
  for (size_t axis = kMaxSpatial; axis-- > 0;) {
    if (merged.depth[axis] != 1 && merged.a_depth[axis] != inner * merged.a_depth[kMaxSpatial]) break;
    inner *= std::exchange(merged.depth[axis], 1);
  }
  const int64_t run_count = find_runs(merged.depth, points, runs);
  with_element(element_bytes, [&](auto element) {
    using T = decltype(element);
    copy_factors(merged, static_cast<const T*>(a), rows, static_cast<T*>(dst), leading, runs, run_count);
  });
}

void copy_plane(int32_t element_bytes, const void* src, const PlaneAxis& y, const PlaneAxis& x, void* dst) {
  with_element(element_bytes, [&](auto element) {
    using T = decltype(element);
    T* to = static_cast<T*>(dst);
    for (int64_t i = 0; i < y.count; ++i, to += x.count) {
      const int64_t at = y.first + i * y.step;
      if (at < 0 || at >= y.extent) {
        std::fill_n(to, x.count, T{});
      } else {
        copy_axis(static_cast<const T*>(src) + at * y.stride, x.stride, x.extent, x.first, x.step, x.count, to);
      }
    }
  });
}

}  // namespace compute::cpu
