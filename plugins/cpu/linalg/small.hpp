// SPDX-License-Identifier: Apache-2.0
// Factors of matrices that are so small that a call of LAPACK takes longer than their numbers. Column-major, in place.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
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

// As getrs with the factors of a regular matrix.
template <class T>
void solve_small(LapackInt n, LapackInt count, const T* a, const LapackInt* pivots, T* b) {
  for (LapackInt c = 0; c < count; ++c) {
    T* const x = b + c * n;
    for (LapackInt j = 0; j < n; ++j) {
      if (pivots[j] - 1 != j) std::swap(x[j], x[pivots[j] - 1]);
    }
    for (LapackInt j = 0; j < n; ++j) {
      for (LapackInt i = j + 1; i < n; ++i) x[i] -= times(a[j * n + i], x[j]);
    }
    for (LapackInt j = n; j-- > 0;) {
      x[j] = x[j] / a[j * n + j];
      for (LapackInt i = 0; i < j; ++i) x[i] -= times(a[j * n + i], x[j]);
    }
  }
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

}  // namespace compute::cpu
