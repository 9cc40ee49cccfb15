// SPDX-License-Identifier: Apache-2.0
// Combining contiguous elements: one table of functions per instruction set. Included by code of every instruction set,
// so it contains no functions and nothing of the standard library.
#pragma once

#include <stdint.h>

#include "plugins/cpu/vector/ids.hpp"

namespace compute::cpu {

enum class ReduceKind : int32_t { sum, prod, min, max, all, any };

constexpr int kReduceKinds = 6;

struct ReduceKernel {
  // dst[i] = the combination of the n >= 1 contiguous elements of row i. Rows are stride_bytes apart. In a sum of
  // floats each term passes through at most log2(n) + 6 additions.
  void (*rows)(const void* src, int64_t stride_bytes, int64_t rows, int64_t n, void* dst);

  // dst[j] = the combination of src[i][j] for 0 <= i < rows, and of the old dst[j] if `accumulate`. Rows are
  // stride_bytes apart, rows >= 1; elements of a row are contiguous. A term passes through at most 3 additions within
  // its group of kColumnRows rows (up to 6 in the last group, which may have fewer rows), and one more for every group
  // that is accumulated.
  void (*columns)(const void* src, int64_t stride_bytes, int64_t rows, int64_t n, void* dst, bool accumulate);
};

constexpr int kColumnRows = 8;

// dst[j] = the sum of the squares of x[i] - y[i][j] for 0 <= i < rows, and of the old dst[j] if `accumulate`, in
// float64. Numbers x[i] and rows y[i] are x_stride and y_stride bytes apart. Within its group of kColumnRows rows a
// term passes through at most 5 additions.
using SquareDifferences = void (*)(const void* x, int64_t x_stride, const void* y, int64_t y_stride, int64_t rows,
                                   int64_t n, double* dst, bool accumulate);

struct ArgKernel {
  // best[j] and position[j] become the first greatest or least of themselves and src[i][j] for 0 <= i < rows, whose
  // position is first + i; NaN counts as beyond all others. Positions are integers as wide as the elements. Rows are
  // stride_bytes apart; elements of a row are contiguous. `best` and `position` have room for whole vectors.
  void (*columns)(const void* src, int64_t stride_bytes, int64_t rows, int64_t n, int64_t first, void* best,
                  void* position);
};

struct ReduceKernels {
  // By the accumulator's dtype, which is also the source's.
  ReduceKernel plain[kReduceKinds][kDtypeLimit];
  // Sums by the source's dtype into the accumulator that `sum` gives it: int64, uint64, float32 (of halves) or float64
  // (of float32).
  ReduceKernel widening_sum[kDtypeLimit];
  // Sums of x * x, by the source's and accumulator's dtype.
  ReduceKernel square_sum[kDtypeLimit];
  // The same in float64, of float32, or in float32, of halves.
  ReduceKernel widening_square_sum[kDtypeLimit];
  // Sums without NaN, of float32 and float64.
  ReduceKernel number_sum[kDtypeLimit];
  SquareDifferences square_differences;
  // Of the greatest and the least, by dtypes of 4 and 8 bytes.
  ArgKernel arg_max[kDtypeLimit], arg_min[kDtypeLimit];
  // Whether `rows` is fast for rows of 2, 4 or 8 elements, of 4 bytes or more, without gaps between them.
  bool packs_rows;
};

}  // namespace compute::cpu
