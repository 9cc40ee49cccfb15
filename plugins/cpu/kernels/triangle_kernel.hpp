// SPDX-License-Identifier: Apache-2.0
// Equations with a small triangular matrix: one table of functions per instruction set. Included by code of every
// instruction set, so it contains no functions and nothing of the standard library.
#pragma once

#include <stdint.h>

namespace compute::cpu {

constexpr int32_t kTriangleRows = 64;

/// A triangular matrix with n <= kTriangleRows rows. On the diagonal, beside the triangle and from row n on, columns
/// are 0. Columns from n on are not used.
template <class T>
struct alignas(64) PackedTriangle {
  T columns[kTriangleRows][kTriangleRows];
  T reciprocals[kTriangleRows];  // of the diagonal
  int32_t n;
  bool upper;
};

template <class T>
struct TriangleKernel {
  /// x with t x = b in place of b [n, count], column-major.
  void (*solve)(const PackedTriangle<T>& t, T* b, int64_t stride, int64_t count);
};

struct TriangleKernels {
  TriangleKernel<float> float32;
  TriangleKernel<double> float64;
};

namespace baseline {
extern const TriangleKernels triangle_kernels;
}
namespace avx2 {
extern const TriangleKernels triangle_kernels;
}
namespace avx512 {
extern const TriangleKernels triangle_kernels;
}

}  // namespace compute::cpu
