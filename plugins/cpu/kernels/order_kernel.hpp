// SPDX-License-Identifier: Apache-2.0
// Keys and running sums of blocks of elements: one table of functions per instruction set. Included by code of every
// instruction set, so it contains no functions and nothing of the standard library.
#pragma once

#include <stdint.h>

#include "plugins/cpu/vector/ids.hpp"

namespace compute::cpu {

// y[i] = the greatest, or the least, of running[i % period], x[i], x[i - period], x[i - 2 period] and so on; the first
// NaN wins. running[j] becomes the last y[i] of its column. n is a multiple of `period`.
using RunningExtremes = void (*)(const void* x, int64_t n, int64_t period, void* running, void* y);

constexpr int64_t kRandomBlocks = 8, kRankedWords = 128;

// The running combinations of `lines` lines of n elements, which are x_stride and y_stride bytes apart. They begin with
// *identity, a state of order/running.hpp.
using LineScan = void (*)(const void* x, int64_t x_stride, int64_t lines, int64_t n, void* y, int64_t y_stride,
                          const void* identity);

// y[i] = before + running + x[0] + … + x[i]; then *running becomes its sum with all x. `before` and `running` are
// states of Sum of order/running.hpp, in two parts. A term passes through 3 additions with its neighbours, and 3 more.
// `y` may be NULL.
using PairSums = void (*)(const double* x, int64_t n, const double* before, double* running, double* y);

// Of n keys, unsigned numbers of one size.
struct KeyKernels {
  // The least and the greatest one of one or more.
  void (*range)(const void* keys, int64_t n, void* least, void* greatest);
  // How many keys are at most `last`.
  int64_t (*up_to)(const void* keys, int64_t n, uint64_t last);
  // Writes their positions and returns their number. `positions` has room for one more.
  int64_t (*find_up_to)(const void* keys, int64_t n, uint64_t last, uint32_t* positions);
  // ranks[i] = how many keys are less than keys[i], or are equal to it and before it. Both arrays have room for a
  // vector after the n.
  void (*ranks)(const void* keys, int64_t n, uint32_t* ranks);
};

struct OrderKernels {
  // keys[i] = the key of float32 number i. Keys compare as unsigned numbers like the floats, with NaN last; reversed if
  // `descending`. Returns how many are less than `limit`.
  int64_t (*float32_keys)(const uint32_t* bits, int64_t n, bool descending, uint32_t limit, uint32_t* keys);
  KeyKernels narrow_keys, wide_keys;  // of 32 and of 64 bits
  // pairs[2 i] and pairs[2 i + 1] = words 1 and 3 of the Philox block offset + i, above the numbers 2 i and 2 i + 1,
  // for i in [begin, end), two multiples of kRandomBlocks.
  void (*random_pairs)(uint64_t seed, uint64_t offset, int64_t begin, int64_t end, uint64_t* pairs);
  // Sorts at most kRankedWords words by their upper halves. Equal ones stay in order.
  void (*sort_words)(const uint64_t* words, int64_t n, uint64_t* sorted);
  // x[i] = the lesser of x[i] and y[i], and y[i] = the greater one. n is a multiple of 8.
  void (*exchange_words)(uint64_t* x, uint64_t* y, int64_t n);
  // y[i] = *running + x[0] + … + x[i], in float64; *running becomes the sum of all. -0 is the identity.
  void (*float32_sums)(const float* x, int64_t n, double* running, float* y);
  // x[0] + … + x[n - 1], in float64.
  double (*float32_total)(const float* x, int64_t n);
  // Of n columns: running[j] += x[j] and y[j] = running[j], in float64. `y` may be NULL.
  void (*float32_column_sums)(const float* x, int64_t n, double* running, float* y);
  // The same for rows of `period` elements that follow one another, n elements in all.
  void (*float32_row_sums)(const float* x, int64_t n, int64_t period, double* running, float* y);
  // The same for products, of 2 columns or more.
  void (*float32_row_products)(const float* x, int64_t n, int64_t period, double* running, float* y);
  // The sums of their columns alone: totals[j] += x[j] + x[period + j] + …
  void (*float32_row_totals)(const float* x, int64_t n, int64_t period, double* totals);
  // Of n columns in `rows` rows, which are x_stride and y_stride bytes apart: running sums in two parts. running[2 j]
  // and running[2 j + 1] are the sum of a column and what it has lost by rounding. `y` may be NULL, or x.
  void (*float64_column_sums)(const double* x, int64_t x_stride, int64_t rows, int64_t n, double* running, double* y,
                              int64_t y_stride);
  PairSums float64_sums, complex128_sums;
  // Of the dtypes of 4 and 8 bytes.
  RunningExtremes greatest[kDtypeLimit], least[kDtypeLimit];
  // Of the dtypes of 4 and 8 bytes, sums also of complex128; products of the floats alone.
  LineScan line_sums[kDtypeLimit], line_products[kDtypeLimit], line_greatest[kDtypeLimit], line_least[kDtypeLimit];
};

namespace baseline {
extern const OrderKernels order_kernels;
}
namespace avx2 {
extern const OrderKernels order_kernels;
}
namespace avx512 {
extern const OrderKernels order_kernels;
}

}  // namespace compute::cpu
