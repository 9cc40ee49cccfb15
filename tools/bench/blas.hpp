// SPDX-License-Identifier: Apache-2.0
// The matrix libraries that the CPU plugin uses, called directly.
#pragma once

#include <cstdint>

namespace compute::bench {

// c = a b, row-major and dense. NULL where the library is not there.
using Sgemm = void (*)(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c);
using Dgemm = void (*)(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c);

// Call these after a first matmul on `cpu`: its plugin opens both libraries and chooses OpenBLAS's processor type,
// unless the user did.
Sgemm onednn_sgemm();
Sgemm openblas_sgemm();
Dgemm openblas_dgemm();

}  // namespace compute::bench
