// SPDX-License-Identifier: Apache-2.0
// Equations with triangular matrices. The diagonal is divided into small triangles, which are prepared for all right
// sides; what lies beside them is multiplied. The plugin's kernel solves real triangles, and OpenBLAS complex ones.
#pragma once

#include <algorithm>
#include <type_traits>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/triangle_kernel.hpp"
#include "plugins/cpu/linalg/products.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {

// A triangle where it lies, of a or, with is_adjoint, of the adjoint of a.
template <class T>
struct TriangleInPlace {
  const T* a;
  Int stride, n;
  bool upper, unit, is_adjoint;
};

template <class T>
using PreparedTriangle = std::conditional_t<kIsComplex<T>, TriangleInPlace<T>, PackedTriangle<T>>;

// n <= kTriangleRows.
template <class T>
void prepare(const TriangleInPlace<T>& from, PreparedTriangle<T>& to) {
  if constexpr (kIsComplex<T>) {
    to = from;
  } else {
    const Int n = from.n;
    const int64_t row_step = from.is_adjoint ? from.stride : 1, column_step = from.is_adjoint ? 1 : from.stride;
    to.n = n;
    to.upper = from.upper;
    for (Int j = 0; j < n; ++j) {
      const T* const column = from.a + j * column_step;
      T* const copy = to.columns[j];
      std::fill_n(copy, kTriangleRows, T(0));
      const Int begin = from.upper ? 0 : j + 1, end = from.upper ? j : n;
      if (row_step == 1) {
        std::copy(column + begin, column + std::max(begin, end), copy + begin);
      } else {
        for (Int i = begin; i < end; ++i) copy[i] = column[i * row_step];
      }
      to.reciprocals[j] = from.unit ? T(1) : 1 / column[j * row_step];
    }
  }
}

template <class T>
void solve(const Lapack<T>& library, const PreparedTriangle<T>& t, T* b, Int stride, Int count) {
  if constexpr (std::is_same_v<T, float>) {
    isa().triangles->float32.solve(t, b, stride, count);
  } else if constexpr (std::is_same_v<T, double>) {
    isa().triangles->float64.solve(t, b, stride, count);
  } else {
    const T one = 1;
    library.trsm("L", t.upper != t.is_adjoint ? "U" : "L", t.is_adjoint ? "C" : "N", t.unit ? "U" : "N", &t.n, &count,
                 &one, t.a, &t.stride, b, &stride, 1, 1, 1, 1);
  }
}

// Equations with triangular matrices a [n, n] and `count` right sides.
template <class T>
class Equations {
 public:
  Equations(const LapackLibrary& library, Int n, Int count);

  struct Scratch {
    char* products;
    PreparedTriangle<T>* triangles;
  };
  Scratch take(Arrays& arrays) const;

  // x with a x = b in place of b [n, count]. With is_lower, b is a lower triangle, and so is x. The team shares columns
  // of b; within a piece of its work, the calling thread takes all.
  void solve(const T* a, bool upper, bool unit, T* b, bool is_lower, const Scratch& scratch) const;

 private:
  const Lapack<T>& l_;
  const Openmp& openmp_;
  Products<T> products_;
  const Int n_, count_, width_, blocks_;
};

}  // namespace compute::cpu
