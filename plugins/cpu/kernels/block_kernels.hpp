// SPDX-License-Identifier: Apache-2.0
// Functions of blocks: one table per instruction set. Included by code of every instruction set, so it contains no
// functions and nothing of the standard library.
#pragma once

#include <stdint.h>

#include "plugins/cpu/vector/ids.hpp"

namespace compute::cpu {

/// A scalar operand is read from a buffer of this many bytes, filled with copies of the value.
constexpr int kSplatBytes = 64;

/// Applies one function to `n` contiguous elements.
///
/// Operand i is at x[i]. If steps[i] is 1 it is contiguous; if steps[i] is 0 it is one value, repeated over kSplatBytes
/// at x[i]. `out` is contiguous. It is either the address of a contiguous operand with the same element size, or
/// overlaps no operand. No alignment is needed.
using BlockFunction = void (*)(const void* const* x, const int64_t* steps, void* out, int64_t n);

/// A compiled expression with one output; called as a block function whose operands are the expression's inputs.
struct CompiledRow {
  uint64_t digest_high;  // the digest's first 8 bytes, big-endian
  uint64_t digest_low;
  BlockFunction run;
};

/// A block function, and the same function with stores that bypass the cache, which stream_end orders. Both are null
/// for a row whose result is bool.
struct StreamedFunction {
  BlockFunction run;
  BlockFunction streamed;
};

/// Memory that will be read soon: from `data` on, 2^scale bytes for every byte copied at the same time. It need not
/// exist.
struct FetchAhead {
  uintptr_t data;
  int32_t scale;
};

struct BlockKernels {
  /// By intrinsic and the dtype of its last operand; null if the operand class does not have the dtype. Does not
  /// contain `convert` and `bitcast`. Expressions never compute in half types: a function of halves is the float32
  /// function between conversions, and most are null.
  BlockFunction calls[kIntrinsicLimit][kDtypeLimit];
  /// By the source dtype and the result dtype; null from complex to real ones.
  BlockFunction converts[kDtypeLimit][kDtypeLimit];
  /// Copies `n` elements of 1 << index bytes, `stride` bytes apart in src, to contiguous dst; and the reverse.
  void (*gather[5])(const void* src, int64_t stride, void* dst, int64_t n);
  void (*scatter[5])(const void* src, void* dst, int64_t stride, int64_t n);
  /// dst[4 i + k] = src[k][i], of 4 bytes each, for i < n; and the same of two sources of 8 bytes.
  void (*interleave4)(const void* const* src, void* dst, int64_t n);
  void (*interleave2)(const void* const* src, void* dst, int64_t n);
  /// Copies `rows` rows of `n` elements of 1 << index bytes to contiguous dst. In src rows are `row_stride` bytes apart
  /// and elements `stride` bytes. Writes up to kSplatBytes - 1 arbitrary bytes after the last row, but none if a row
  /// has kSplatBytes.
  void (*gather_rows[5])(const void* src, int64_t row_stride, int64_t stride, void* dst, int64_t n, int64_t rows);
  /// first, first + step, ...: `n` integers of 4 and of 8 bytes.
  void (*positions[2])(int64_t first, int64_t step, void* dst, int64_t n);
  /// Element first + i of linspace from a to b in `steps` steps, without the exact ends, for i < n: of float32 and of
  /// float64.
  void (*even_steps[2])(double a, double b, double steps, int64_t first, void* dst, int64_t n);
  /// The four words of Philox 4x32-10 for each of `n` counters of int64 at x[0], with the key of two words at x[1] and
  /// x[2]: four arrays at `out`, which begin steps[2] elements apart, a multiple of 64, and have as many. Operands are
  /// those of a BlockFunction.
  BlockFunction philox;
  /// Copies with non-temporal stores, and prefetches `ahead` at the same time. stream_end orders its stores.
  void (*stream_copy)(void* dst, const void* src, int64_t size_bytes, const FetchAhead* ahead, int ahead_count);
  void (*stream_end)();
  /// Functions whose own stores bypass the cache; the results of other functions are copied by stream_copy.
  const StreamedFunction* streamed;
  int64_t streamed_count;
  const CompiledRow* rows;
  int64_t row_count;
};

}  // namespace compute::cpu
