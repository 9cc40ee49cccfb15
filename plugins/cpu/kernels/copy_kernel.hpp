// SPDX-License-Identifier: Apache-2.0
// Transposing blocks: one table of functions per instruction set. Included by code of every instruction set, so it
// contains no functions and nothing of the standard library.
#pragma once

#include <stdint.h>

namespace compute::cpu {

struct CopyKernels {
  // dst[j][i] = src[i][j] for i < rows, j < columns. Rows of src are src_stride bytes apart, rows of dst dst_stride
  // bytes; elements of a row are contiguous. Index: log2 of the element's size in bytes, 1 to 16.
  void (*transpose[5])(const void* src, int64_t src_stride, void* dst, int64_t dst_stride, int64_t rows,
                       int64_t columns);
};

}  // namespace compute::cpu
