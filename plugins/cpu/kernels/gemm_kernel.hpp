// SPDX-License-Identifier: Apache-2.0
// The plugin's own packed matrix product: one table of functions per instruction set. It supports every dtype and any
// strides, on one thread; matmul.cpp divides a problem into such calls.
#pragma once

#include <stdint.h>

#include "plugins/cpu/vector/ids.hpp"

namespace compute::cpu {

/// One product over strided views: c = alpha · a · b, or c += alpha · a · b.
///
/// a and b have the kernel's dtype, c and *alpha its output dtype: float32 for float16 and bfloat16,
/// else the same. Strides are in elements and may have any sign; strides of a and b may be 0. k is at
/// least 1.
///
/// The value of an element of c depends only on its row of a, its column of b and k: not on m, n, strides or its
/// position.
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

// Of a, in products that read b in place.
constexpr int64_t kThinRows = 16, kThinAdjacentRows = 12;

// Products of so few terms take the time to write their results.
constexpr int64_t kFlatTerms = 8;
// The same with rows of results of at least so many columns: bytes of a row of a, at most.
constexpr int64_t kFlatColumns = 512, kFlatRowBytes = 80;

struct GemmKernel {
  void (*run)(const GemmCall& call);
  /// The same for n = 1, if the elements of b are adjacent and so are those of each row or each column of a. It reads a
  /// once, in place, and needs no scratch memory. The value of an element depends only on its row of a, on b, k, and
  /// whether the rows of a are adjacent elements.
  void (*run_vector)(const GemmCall& call);
  /// The same for 2 to kThinRows rows of a, if the elements of each row of b are adjacent; and for up to
  /// kThinAdjacentRows rows, if the elements of each column of b and of each row of a are adjacent. It reads b once, in
  /// place, and needs no scratch memory. The value of an element depends only on its row of a, its column of b, k, and
  /// which of b's elements are adjacent. NULL for dtypes that have no such kernel.
  void (*run_thin)(const GemmCall& call);
  int64_t (*scratch_bytes)(int64_t m, int64_t n, int64_t k);
  /// Whether `run` multiplies without packing and without scratch memory, which it does for small products. Reads no
  /// element.
  bool (*is_in_place)(const GemmCall& call);
  /// Whether products of fewer columns than half of `columns`, if these are adjacent in c, are as fast as longer ones:
  /// they read a where it is.
  bool has_narrow_panels;
  int32_t rows, columns;  // of the register tile: parts that are multiples of these waste nothing
  /// If not NULL, it packs b into the scratch memory, which `run` then needs, for any rows of a.
  void (*pack)(const GemmCall& call) = nullptr;
  /// Of kernels that flush subnormal numbers: the least nonzero magnitude of bfloat16 as bits, less 1, or the one that
  /// is given; and whether numbers with such least magnitudes have no subnormal products and sums of products.
  uint16_t (*least)(const uint16_t* src, int64_t stride, int64_t n, uint16_t given) = nullptr;
  bool (*is_normal)(uint16_t least_a, uint16_t least_b) = nullptr;
};

/// Of float16 or bfloat16: conversions of rows to and from float32, which round to nearest even, and products of both.
/// Strides are in elements.
struct HalfRows {
  void (*widen)(const uint16_t* src, int64_t stride, float* dst, int64_t n);
  void (*narrow)(const float* src, uint16_t* dst, int64_t stride, int64_t n);
  /// run_thin for 1 to kThinRows rows of float32 in a, if the elements of each row of b are adjacent halves.
  void (*run_thin)(const GemmCall& call);
};

struct GemmKernels {
  GemmKernel by_dtype[kDtypeLimit];  // index: compute_dtype; entry 0 is empty
  HalfRows float16, bfloat16;
};

}  // namespace compute::cpu
