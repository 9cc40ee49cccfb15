// SPDX-License-Identifier: Apache-2.0
// Rows of quantised weights: one table of functions per instruction set. Included by code of every instruction set, so
// it contains no functions and nothing of the standard library.
#pragma once

#include <stdint.h>

namespace compute::cpu {

// Numbers of a block: 16 bytes with 4 bits, of which byte j has the numbers j and j + 16; 32 with 8 bits.
constexpr int64_t kQuantizedBlock = 32;
// Rows of weights, and of x, that are multiplied at a time.
constexpr int64_t kQuantizedRows = 4, kQuantizedLines = 4;

/// Rows of weights scale q + offset, in whole blocks.
struct QuantizedRows {
  const uint8_t* packed;  // of row i: packed + i * packed_row
  int64_t packed_row;
  const float* scales;  // of row i: scales + i * scales_row; one for each group
  int64_t scales_row;
  const float* offsets;  // as scales
  int64_t rows, blocks;
  int64_t group_shift;  // a group has 2^group_shift blocks; -1: half a block
};

struct QuantizedKernels {
  /// y[line][i] = the sum of x[line][.] times row i, for up to kQuantizedRows rows and kQuantizedLines lines, of which
  /// each is contiguous. Results of a line are y_step apart. A result depends on its line, its row and the number of
  /// lines.
  using Multiply = void (*)(const QuantizedRows& weights, const float* x, int64_t x_line, int64_t lines, float* y,
                            int64_t y_line, int64_t y_step);
  /// Writes the rows, y_row apart.
  using Dequantize = void (*)(const QuantizedRows& weights, float* y, int64_t y_row);

  Multiply multiply4, multiply8;
  Dequantize dequantize4, dequantize8;
};

namespace baseline {
extern const QuantizedKernels quantized_kernels;
}
namespace avx2 {
extern const QuantizedKernels quantized_kernels;
}
namespace avx512 {
extern const QuantizedKernels quantized_kernels;
}

}  // namespace compute::cpu
