// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and singular values of small matrices by Jacobi's rotations, one matrix in each lane of a vector: one
// table of functions per instruction set. Included by code of every instruction set, so it contains no functions and
// nothing of the standard library.
#pragma once

#include <stdint.h>

namespace compute::cpu {

constexpr int kMostJacobiRows = 24;

/// Matrices are column-major: element (i, j) of one with m rows is the vector (j * m + i). Their elements are finite,
/// and the largest of each matrix is about 1, or all are 0. Results in a lane do not depend on other lanes.
template <class T>
struct JacobiKernel {
  /// Matrices that are computed at a time.
  int32_t lanes;
  /// Of symmetric matrices a [n, n], whose lower triangle is read and overwritten: the eigenvalues, ascending, and,
  /// unless v is NULL, the eigenvectors as columns of v [n, n]. False if a lane did not converge.
  bool (*eigen)(int32_t n, T* a, T* v, T* values);
  /// Of matrices a [m, n] with m >= n, which are overwritten: the singular values, descending, and, unless u is NULL,
  /// u [m, columns] with orthonormal columns and v [n, n], such that a = u diag(values) v^T. False if a lane did not
  /// converge.
  bool (*singular)(int32_t m, int32_t n, int32_t columns, T* a, T* u, T* v, T* values);
};

struct JacobiKernels {
  JacobiKernel<float> float32;
  JacobiKernel<double> float64;
};

namespace baseline {
extern const JacobiKernels jacobi_kernels;
}
namespace avx2 {
extern const JacobiKernels jacobi_kernels;
}
namespace avx512 {
extern const JacobiKernels jacobi_kernels;
}

}  // namespace compute::cpu
