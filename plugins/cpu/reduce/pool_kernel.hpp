// SPDX-License-Identifier: Apache-2.0
// Windows and the gradients of their maxima: one table of functions per instruction set. Included by code of every
// instruction set, so it contains no functions and nothing of the standard library.
#pragma once

#include <stdint.h>

namespace compute::cpu {

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
  // Windows of two by two elements, which n pairs of columns of two rows are: dx is set, to dy[i] at the first element
  // of window i that is y[i] or NaN, and to 0 elsewhere.
  void (*give_squares)(const T* x0, const T* x1, const T* y, const T* dy, int64_t n, T* dx0, T* dx1);
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
