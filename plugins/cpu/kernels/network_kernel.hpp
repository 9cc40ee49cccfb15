// SPDX-License-Identifier: Apache-2.0
// Rows of networks' ops that are computed while they are in the first cache: one table of functions per instruction
// set. Included by code of every instruction set, so it contains no functions and nothing of the standard library.
#pragma once

#include <stdint.h>

namespace compute::cpu {

// Rows of n >= 1 contiguous elements. In each sum a term passes through at most log2(n) + 8 additions.
struct RowKernels {
  // `scratch` has n elements that begin at a cache line.
  void (*softmax)(const float* x, int64_t n, float* scratch, float* y);
  void (*softmax_grad)(const float* dy, const float* y, int64_t n, float* dx);
  void (*log_softmax)(const float* x, int64_t n, float* scratch, float* y);
  void (*log_softmax_grad)(const float* dy, const float* y, int64_t n, float* dx);
  // scale and bias may be NULL.
  void (*layer_norm)(const float* x, const float* scale, const float* bias, float epsilon, int64_t n, float* y,
                     float* mean, float* rstd);
  // The same for a row of channels of equal length, whose scale and bias are one number for each.
  void (*group_norm)(const float* x, const float* scale, const float* bias, float epsilon, int64_t n, int64_t channels,
                     float* y, float* mean, float* rstd);
  // The row's terms are added to dscale and dbias. scale may be NULL.
  void (*layer_norm_grad)(const float* dy, const float* x, const float* scale, float mean, float rstd, int64_t n,
                          float* dx, float* dscale, float* dbias);
};

struct NetworkKernels {
  // NaN counts as -infinity.
  float (*greatest)(const float* x, int64_t n);
  float (*sum)(const float* x, int64_t n);
  // The sum of exp(x[i] - base).
  float (*exponentials)(const float* x, float base, int64_t n);
  // x[i] = exp(x[i] - base); returns the sum.
  float (*weights)(float* x, float base, int64_t n);
  // y[i] = exp(x[i] - base) as bfloat16; returns the sum of what is not rounded. NULL without AVX-512.
  float (*bfloat16_weights)(const float* x, float base, int64_t n, uint16_t* y);
  // The sum of (x[i] - mean)^2.
  float (*square_differences)(const float* x, float mean, int64_t n);
  // y[i] = (x[i] - mean) * rstd * scale + bias
  void (*normalise_channel)(const float* x, float mean, float rstd, float scale, float bias, int64_t n, float* y);
  // sums[i] += terms[i], and terms[i] = 0.
  void (*flush)(float* terms, int64_t n, double* sums);
  RowKernels near;
  // For rows, or channels, of 16 * m elements that begin at cache lines and follow each other in memory, of tensors
  // that no cache holds. Non-temporal stores write results until end_far.
  RowKernels far;
  void (*end_far)();
};

namespace baseline {
extern const NetworkKernels network_kernels;
}
namespace avx2 {
extern const NetworkKernels network_kernels;
}
namespace avx512 {
extern const NetworkKernels network_kernels;
}

}  // namespace compute::cpu
