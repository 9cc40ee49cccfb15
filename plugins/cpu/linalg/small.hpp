// SPDX-License-Identifier: Apache-2.0
// Factors of matrices that are so small that a call of LAPACK takes longer than their numbers. Column-major, in place.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include "plugins/cpu/linalg/lapack.hpp"

namespace compute::cpu {

constexpr LapackInt kMostSmallRows = 16;

template <class T>
Real<T> size_of(const T& x) {
  if constexpr (kIsComplex<T>) {
    return std::abs(x.real()) + std::abs(x.imag());
  } else {
    return std::abs(x);
  }
}

template <class T>
T conjugate(const T& x) {
  if constexpr (kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// x y without std::complex's treatment of infinities: operands are finite.
template <class T>
T times(const T& x, const T& y) {
  if constexpr (kIsComplex<T>) {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  } else {
    return x * y;
  }
}

// As getrf: pivots are from 1; returns the number of the first pivot that is 0, or 0.
template <class T>
LapackInt factor_small(LapackInt m, LapackInt n, T* a, LapackInt* pivots) {
  LapackInt info = 0;
  for (LapackInt j = 0; j < std::min(m, n); ++j) {
    T* const column = a + j * m;
    LapackInt pivot = j;
    Real<T> best = size_of(column[j]);
    for (LapackInt i = j + 1; i < m; ++i) {
      const Real<T> size = size_of(column[i]);
      if (size > best) {
        best = size;
        pivot = i;
      }
    }
    pivots[j] = pivot + 1;
    if (best == 0) {
      if (info == 0) info = j + 1;
      continue;
    }
    if (pivot != j) {
      for (LapackInt c = 0; c < n; ++c) std::swap(a[c * m + j], a[c * m + pivot]);
    }
    const T diagonal = column[j];
    for (LapackInt i = j + 1; i < m; ++i) column[i] = column[i] / diagonal;
    for (LapackInt c = j + 1; c < n; ++c) {
      T* const other = a + c * m;
      const T factor = other[j];
      for (LapackInt i = j + 1; i < m; ++i) other[i] -= times(column[i], factor);
    }
  }
  return info;
}

// As getrs with the factors of a regular matrix, kTogether columns at a time, as the lanes of vectors.
template <LapackInt kTogether, class T>
void solve_columns(LapackInt n, LapackInt count, const T* a, const LapackInt* pivots, T* b) {
  using Row = std::array<T, kTogether>;
  std::array<Row, kMostSmallRows> x;
  const auto subtract = [&x](LapackInt i, LapackInt j, const T& factor) {
    for (LapackInt c = 0; c < kTogether; ++c) x[i][c] -= times(factor, x[j][c]);
  };
  for (LapackInt first = 0; first < count; first += kTogether) {
    const LapackInt columns = std::min(kTogether, count - first);
    for (LapackInt i = 0; i < n; ++i) {
      for (LapackInt c = 0; c < kTogether; ++c) x[i][c] = c < columns ? b[(first + c) * n + i] : T(0);
    }
    for (LapackInt j = 0; j < n; ++j) {
      if (pivots[j] - 1 != j) std::swap(x[j], x[pivots[j] - 1]);
    }
    for (LapackInt j = 0; j < n; ++j) {
      for (LapackInt i = j + 1; i < n; ++i) subtract(i, j, a[j * n + i]);
    }
    for (LapackInt j = n; j-- > 0;) {
      for (LapackInt c = 0; c < kTogether; ++c) x[j][c] = x[j][c] / a[j * n + j];
      for (LapackInt i = 0; i < j; ++i) subtract(i, j, a[j * n + i]);
    }
    for (LapackInt c = 0; c < columns; ++c) {
      for (LapackInt i = 0; i < n; ++i) b[(first + c) * n + i] = x[i][c];
    }
  }
}

template <class T>
void solve_small(LapackInt n, LapackInt count, const T* a, const LapackInt* pivots, T* b) {
  if constexpr (!kIsComplex<T>) {
    if (count > 1) return solve_columns<8>(n, count, a, pivots, b);
  }
  solve_columns<1>(n, count, a, pivots, b);
}

// As potrf of the lower triangle.
template <class T>
LapackInt cholesky_small(LapackInt n, T* a) {
  for (LapackInt j = 0; j < n; ++j) {
    T* const column = a + j * n;
    const Real<T> diagonal = std::real(column[j]);
    if (!(diagonal > 0)) return j + 1;
    const Real<T> root = std::sqrt(diagonal);
    column[j] = root;
    for (LapackInt i = j + 1; i < n; ++i) column[i] = column[i] / root;
    for (LapackInt c = j + 1; c < n; ++c) {
      const T factor = conjugate(column[c]);
      for (LapackInt i = c; i < n; ++i) a[c * n + i] -= times(column[i], factor);
    }
  }
  return 0;
}

// As geqrf and orgqr: r of a [m, n] on and above the diagonal of a, and q [m, columns], by columns. Both are computed
// in rows of kWide numbers, as the lanes of vectors.
template <LapackInt kWide, class T>
void qr_small(LapackInt m, LapackInt n, LapackInt columns, T* a, T* q) {
  using Row = std::array<T, kWide>;
  using Limits = std::numeric_limits<Real<T>>;
  const LapackInt k = std::min(m, n);
  Real<T> most = 0;
  for (LapackInt i = 0; i < m * n; ++i) most = std::max(most, size_of(a[i]));
  int exponent = 0;
  std::frexp(most, &exponent);
  const Real<T> scale = std::ldexp(Real<T>(1), std::clamp(-exponent, Limits::min_exponent, Limits::max_exponent - 2));
  const Real<T> least = Limits::min() / Limits::epsilon();  // of a column, below which it counts as zeros
  std::array<Row, kMostSmallRows> x{};
  std::array<std::array<T, kMostSmallRows>, kWide> reflectors{};
  std::array<T, kMostSmallRows> tau{};
  for (LapackInt i = 0; i < m; ++i) {
    for (LapackInt c = 0; c < n; ++c) x[i][c] = a[c * m + i] * scale;
  }
  // x -= factor v (v^H x), from row j on.
  const auto reflect = [&x, m](LapackInt j, const T* v, const T& factor) {
    Row sums{};
    for (LapackInt i = j; i < m; ++i) {
      const T element = conjugate(v[i]);
      for (LapackInt c = 0; c < kWide; ++c) sums[c] += times(element, x[i][c]);
    }
    for (LapackInt i = j; i < m; ++i) {
      const T element = times(v[i], factor);
      for (LapackInt c = 0; c < kWide; ++c) x[i][c] -= times(element, sums[c]);
    }
  };
  for (LapackInt j = 0; j < k; ++j) {
    T* const v = reflectors[j].data();
    Real<T> size = 0, squares = 0;
    for (LapackInt i = j; i < m; ++i) {
      v[i] = x[i][j];
      if (i > j) size = std::max(size, size_of(v[i]));
    }
    const T alpha = v[j];
    const bool is_reduced = size == 0 && std::imag(alpha) == 0;
    size = std::max(size, size_of(alpha));
    if (!is_reduced && size >= least) {
      for (LapackInt i = j; i < m; ++i) squares += std::norm(v[i] / size);
      const Real<T> norm = size * std::sqrt(squares), beta = std::real(alpha) > 0 ? -norm : norm;
      tau[j] = (beta - alpha) / beta;
      for (LapackInt i = j + 1; i < m; ++i) v[i] = v[i] / (alpha - beta);
      v[j] = 1;
      reflect(j, v, conjugate(tau[j]));
      x[j][j] = beta;
    }
    for (LapackInt i = j + 1; i < m; ++i) x[i][j] = 0;
  }
  for (LapackInt i = 0; i < m; ++i) {
    for (LapackInt c = i; c < n; ++c) a[c * m + i] = x[i][c] / scale;
  }
  for (LapackInt i = 0; i < m; ++i) x[i] = Row{};
  for (LapackInt i = 0; i < std::min(m, columns); ++i) x[i][i] = 1;
  for (LapackInt j = k; j-- > 0;) reflect(j, reflectors[j].data(), tau[j]);
  for (LapackInt i = 0; i < m; ++i) {
    for (LapackInt c = 0; c < columns; ++c) q[c * m + i] = x[i][c];
  }
}

}  // namespace compute::cpu
