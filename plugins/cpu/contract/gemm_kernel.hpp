// SPDX-License-Identifier: Apache-2.0
// The packed matrix product of our own: one table of functions per instruction set. It serves every dtype and any
// strides, on one thread; matmul.cpp cuts a problem into such calls.
#pragma once

#include <stdint.h>

#include "plugins/cpu/isa/ids.hpp"

namespace compute::cpu {

/// One product over strided views: c = alpha · a · b, or c += alpha · a · b.
///
/// The elements of a and b are of the kernel's dtype, those of c and *alpha of its output dtype: float32 for float16
/// and bfloat16, else the dtype itself. Strides are in elements, of any sign and also 0 for a and b. k is at least 1.
///
/// The value of an element of c depends on its row of a, its column of b and k alone: not on m, n, strides or its
/// place.
struct GemmCall {
  int64_t m, n, k;
  const void* a;
  int64_t a_row, a_column;
  const void* b;
  int64_t b_row, b_column;
  void* c;
  int64_t c_row, c_column;
  const void* alpha;
  bool accumulate;
  void* scratch;  // scratch_bytes(m, n, k), 64-byte aligned
};

struct GemmKernel {
  void (*run)(const GemmCall& call);
  int64_t (*scratch_bytes)(int64_t m, int64_t n, int64_t k);
  int32_t rows, columns;  // of the register tile: cuts at multiples of these waste nothing
};

/// Rows of float16 or bfloat16 to and from float32, rounding to nearest even. Strides are in elements.
struct HalfRows {
  void (*widen)(const uint16_t* src, int64_t stride, float* dst, int64_t n);
  void (*narrow)(const float* src, uint16_t* dst, int64_t stride, int64_t n);
};

struct GemmKernels {
  GemmKernel by_dtype[kDtypeLimit];  // index: compute_dtype; entry 0 is empty
  HalfRows float16, bfloat16;
};

}  // namespace compute::cpu
