// SPDX-License-Identifier: Apache-2.0
// Transposing blocks and copying rows: one table of functions per instruction set. Included by code of every
// instruction set, so it contains no functions and nothing of the standard library.
#pragma once

#include <stdint.h>

namespace compute::cpu {

struct CopyKernels {
  // dst[j][i] = src[i][j] for i < rows, j < columns. Rows of src are src_stride bytes apart, rows of dst dst_stride
  // bytes; elements of a row are contiguous. Index: log2 of the element's size in bytes, 1 to 16.
  void (*transpose[5])(const void* src, int64_t src_stride, void* dst, int64_t dst_stride, int64_t rows,
                       int64_t columns);
  // Copies `rows` rows of `row_bytes` bytes. Row i of dst is row positions[i] of src, or row i if `positions` is NULL.
  // Strides are in bytes. For short rows: it makes no calls.
  void (*rows)(const void* src, int64_t src_stride, const int64_t* positions, void* dst, int64_t dst_stride,
               int64_t row_bytes, int64_t rows);
};

}  // namespace compute::cpu
