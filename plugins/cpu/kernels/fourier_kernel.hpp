// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of complex lines, one in each lane of a vector: one table of functions per instruction set.
// Included by code of every instruction set, so it contains no functions and nothing of the standard library.
#pragma once

#include <stdint.h>

namespace compute::cpu {

constexpr int kMostFourierPasses = 40;

/// The passes of a transform of n elements, with the sign -1 in the exponent. A pass of radix r takes element (k, p, q)
/// of [r, m, s] to (p, j, q) of [m, r, s], times root^(p j), where s is the product of the radices before.
template <class T>
struct FourierPasses {
  int64_t n;
  int32_t count;
  int32_t radix[kMostFourierPasses];   // 2, 3, 4, 5, 7, 8, or another odd number up to kMostFourierRadix
  const T* roots[kMostFourierPasses];  // of each pass but the last: for each p, the radix - 1 roots for j = 1, 2, …
  const T* own_roots[kMostFourierPasses];  // of radices from 9 on: exp(-2 pi i k / radix) for each k
};

constexpr int kMostFourierRadix = 47;

/// The real part of element i of line j is at data + i * step + j * line, its imaginary part `part` further.
template <class T>
struct FourierLines {
  T* data;
  int64_t step, line;
  int64_t part = 1;
};

/// Element k of line j is multiplied by steps[k] lanes[k][j]: lanes has, for each k, a vector of real parts and one of
/// imaginary ones.
template <class T>
struct FourierTwist {
  const T* steps;
  const T* lanes;
};

/// Lines of n complex numbers stand for 2 n real ones in pairs. roots has exp(-2 pi i k / (2 n)) for k up to n / 2.
template <class T>
struct FourierHalf {
  const T* roots = nullptr;  // NULL if numbers are complex
  bool is_back = false;      // src has the first n + 1 elements of the real numbers' transform; if not, dst
};

template <class T>
struct FourierKernel {
  /// Lines that are transformed at a time.
  int32_t lanes;
  /// Transforms up to `lanes` lines. Real and imaginary parts change places in src and in dst where that is asked for;
  /// in both, it makes the sign in the exponent 1. `twist` may be NULL. `scratch` has 4 * lanes * (n + 1) elements and
  /// begins at a cache line. src and dst may be the same lines. With `half`, nothing changes places.
  void (*transform)(const FourierPasses<T>& passes, FourierLines<const T> src, bool swaps_src, FourierLines<T> dst,
                    bool swaps_dst, int64_t count, T scale, const FourierTwist<T>* twist, FourierHalf<T> half,
                    T* scratch);
  /// Transforms lines of adjacent elements by vectors along them; src_row and dst_row are between lines. The first
  /// radix is 8 or 4, the others are up to 8; each quotient n / radix is at least `lanes`, and so is the product of the
  /// first two. If the product of the radices before a pass is less than `lanes`, the pass reads its roots as vectors:
  /// for each vector of (p, q) and for j = 1, 2, …, the real parts, then the imaginary parts. The last vector ends at
  /// the last (p, q). `scratch` has 4 * count * (n + 2 * lanes) elements and begins at a cache line. src and dst may be
  /// the same lines.
  void (*rows)(const FourierPasses<T>& passes, const T* src, int64_t src_row, bool swaps_src, T* dst, int64_t dst_row,
               bool swaps_dst, int64_t count, T scale, T* scratch);
  /// dst[i] = scale x[i] y[i] for complex numbers; the parts of x, or of the results, change places where asked for.
  void (*multiply)(const T* x, bool swaps_x, const T* y, T scale, bool swaps_dst, T* dst, int64_t n);
  /// z has the transform of n / 2 numbers, made of pairs of n real numbers; afterwards the first n / 2 + 1 elements of
  /// the transform of these. roots has exp(-2 pi i k / n) for k up to n / 4 + lanes.
  void (*to_half)(T* z, const T* roots, int64_t n);
  /// The way back, with parts exchanged: what a forward transform takes to n real numbers in pairs, parts exchanged.
  void (*from_half)(const T* x, const T* roots, int64_t n, T* z);
};

struct FourierKernels {
  FourierKernel<float> float32;
  FourierKernel<double> float64;
};

namespace baseline {
extern const FourierKernels fourier_kernels;
}
namespace avx2 {
extern const FourierKernels fourier_kernels;
}
namespace avx512 {
extern const FourierKernels fourier_kernels;
}

}  // namespace compute::cpu
