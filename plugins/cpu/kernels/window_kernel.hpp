// SPDX-License-Identifier: Apache-2.0
// Sums of shifted rows, for products whose matrices have too few rows for gemm_kernel: one table of functions per
// instruction set.
#pragma once

#include <stdint.h>

namespace compute::cpu {

template <class T>
struct ShiftedRows {
  /// out[row][i] = initial[row] + the sum of factors[row][t] · sources[t][step · i], over t in order, for 1 to 4 rows.
  /// Rows of `out` are `out_row` elements apart. Unless `before` is NULL, before[row][i] takes the place of
  /// initial[row]; its rows are as far apart, and it shares no memory with `out`.
  void (*add_up)(const T* const* sources, const T* factors, int64_t terms, int64_t step, const T* initial,
                 const T* before, int32_t rows, T* out, int64_t out_row, int64_t n);
  /// sums[t] += the sum of x[i] · sources[t][i] over `rows` rows of n elements, `pitch` apart in x and sources. The
  /// lanes of a vector are added up at the end. Reads up to a vector beyond the end of a row.
  void (*multiply)(const T* x, const T* const* sources, int64_t terms, int64_t rows, int64_t pitch, int64_t n, T* sums);
};

struct WindowKernels {
  ShiftedRows<float> float32;
  ShiftedRows<double> float64;
};

namespace baseline {
extern const WindowKernels window_kernels;
}
namespace avx2 {
extern const WindowKernels window_kernels;
}
namespace avx512 {
extern const WindowKernels window_kernels;
}

}  // namespace compute::cpu
