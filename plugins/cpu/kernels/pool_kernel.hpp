// SPDX-License-Identifier: Apache-2.0
// Windows and the gradients of their maxima: one table of functions per instruction set. Included by code of every
// instruction set, so it contains no functions and nothing of the standard library.
#pragma once

#include <stdint.h>

namespace compute::cpu {

// Rows and columns of windows, whose elements along a row are adjacent; x_row and dx_row are strides of single rows.
template <class T>
struct PoolSquares {
  const T *x, *y, *dy;
  T* dx;
  int64_t x_row, y_row, dy_row, dx_row, rows, columns;
};

template <class T>
struct PoolKernel {
  // One element of each of n windows: y[i] is the greater of y[i] and x[i * step], or a NaN if either is one. With step
  // 2, x[2 * n - 1] may be read.
  void (*take_greater)(const T* x, int64_t step, int64_t n, T* y);
  // Adds x[i * step] to y[i].
  void (*add)(const T* x, int64_t step, int64_t n, double* y);
  // Adds dy[i] to dx[i * step].
  void (*share)(const T* dy, int64_t step, int64_t n, T* dx);
  // One element of each of n windows: where x[i * step] is y[i] or NaN and taken[i] is 0, adds dy[i] to dx[i * step]
  // and sets taken[i].
  void (*give)(const T* x, const T* y, const T* dy, int64_t step, int64_t n, uint8_t* taken, T* dx);
  // Windows of two by two elements that share nothing: dx is set, to the element of dy at the first element of a window
  // that is its element of y or NaN, and to 0 elsewhere.
  void (*give_squares)(const PoolSquares<T>& squares);
  // The greatest elements of such windows, or a NaN.
  void (*find_squares)(const T* x, int64_t x_row, int64_t rows, int64_t columns, T* y, int64_t y_row);
};

struct PoolKernels {
  PoolKernel<float> float32;
  PoolKernel<double> float64;
};

namespace baseline {
extern const PoolKernels pool_kernels;
}
namespace avx2 {
extern const PoolKernels pool_kernels;
}
namespace avx512 {
extern const PoolKernels pool_kernels;
}

}  // namespace compute::cpu
