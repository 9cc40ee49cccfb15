// SPDX-License-Identifier: Apache-2.0
// Eigenvectors of symmetric tridiagonal matrices by divide and conquer: LAPACK's stedc, in which the team shares the
// problems that are merged, or the columns of each merge.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "plugins/cpu/linalg/products.hpp"
#include "plugins/cpu/threads/openmp.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {

template <class T>
class TridiagonalVectors {
 public:
  TridiagonalVectors(const LapackLibrary& library, Int n)
      : l_(library.real<T>()), openmp_(library.openmp), products_(library.of<T>()), n_(n), threads_(thread_count()) {
    while (n_ / leaves_ > kLeaf) leaves_ *= 2;
    const Int half = n_ / 2 + 1;
    products_.expect(half, part_width(n_), half, false, false, n_);
    const Int piece = n_ / threads_ + 1;
    if (shares_problems(leaves_ / 2)) products_.expect(piece, piece, piece, false, false, n_);
  }

  struct Memory {
    T *q, *q2, *s, *z, *poles, *weights;
    Int *order, *integers;
    char* scratch;
  };
  Memory take(Arrays& arrays) const {
    Memory to{};
    for (T** const square : {&to.q, &to.q2, &to.s}) *square = arrays.take<T>(int64_t{n_} * n_);
    for (T** const vector : {&to.z, &to.poles, &to.weights}) *vector = arrays.take<T>(n_);
    to.order = arrays.take<Int>(n_);
    to.integers = arrays.take<Int>(kIntegers * int64_t{n_});
    to.scratch = arrays.take<char>(threads_ * products_.scratch_bytes());
    return to;
  }

  // Of the matrix with the diagonal d and the elements e beside it: eigenvalues in ascending order in place of d, and
  // vectors as the columns of the result, a matrix in `to`. NULL if an iteration does not converge. e is not kept.
  T* compute(T* d, T* e, const Memory& to) const {
    T norm = 0;
    for (Int i = 0; i < n_; ++i) norm = std::max({norm, std::abs(d[i]), i + 1 < n_ ? std::abs(e[i]) : T(0)});
    int exponent = 0;
    std::frexp(norm, &exponent);
    const T factor = std::ldexp(T(1), -exponent);
    for (Int i = 0; i < n_; ++i) {
      d[i] *= factor;
      e[i] *= i + 1 < n_ ? factor : T(0);
    }
    for (Int i = 1; i < leaves_; ++i) {
      const Int cut = start(i);
      d[cut - 1] -= std::abs(e[cut - 1]);
      d[cut] -= std::abs(e[cut - 1]);
    }
    std::atomic<bool> failed = false;
    parallel_tasks(leaves_, 1, [&](int64_t first, int64_t last) {
      const OneOpenmpThread one(openmp_);
      for (; first < last; ++first) {
        if (!solve(start(first), start(first + 1), d, e, to)) failed = true;
      }
    });
    for (Int step = 1; step < leaves_ && !failed; step *= 2) {
      const Int merges = leaves_ / 2 / step;
      const auto merge_at = [&](int64_t i, int64_t parts, char* scratch) {
        if (!merge(start(2 * step * i), start(2 * step * i + step), start(2 * step * (i + 1)), d, e, to, parts,
                   scratch))
          failed = true;
      };
      if (shares_problems(merges)) {
        parallel_tasks(threads_, 1, [&](int64_t first, int64_t last) {
          const OneOpenmpThread one(openmp_);
          for (int64_t i = merges * first / threads_; i < merges * last / threads_; ++i)
            merge_at(i, 1, to.scratch + first * products_.scratch_bytes());
        });
      } else {
        const OneOpenmpThread one(openmp_);
        for (Int i = 0; i < merges; ++i) merge_at(i, threads_, to.scratch);
      }
    }
    if (failed) return nullptr;
    std::copy_n(d, n_, to.z);
    // Neighbours may be exchanged by rounding.
    std::sort(to.order, to.order + n_, [&to](Int i, Int j) { return to.z[i - 1] < to.z[j - 1]; });
    parallel_tasks(n_, kCopied, [&](int64_t first, int64_t last) {
      for (; first < last; ++first) {
        const int64_t from = to.order[first] - 1;
        d[first] = to.z[from] / factor;
        std::copy_n(to.q + from * n_, n_, to.q2 + first * n_);
      }
    });
    return to.q2;
  }

 private:
  static constexpr Int kLeaf = 64;         // rows of the least problems, at most
  static constexpr Int kUnit = 32;         // columns of which parts of products are multiples
  static constexpr Int kIntegers = 8;      // for each row
  static constexpr int64_t kCopied = 16;   // columns that justify waking a thread
  static constexpr int64_t kTerms = 8192;  // of the secular equation that do

  Int start(int64_t leaf) const { return static_cast<Int>(n_ * leaf / leaves_); }
  bool shares_problems(Int count) const { return count >= threads_ || threads_ == 1; }
  // Of the parts of a product, one for each thread.
  Int part_width(Int columns) const { return ((columns + threads_ - 1) / threads_ + kUnit - 1) / kUnit * kUnit; }

  // Rows [begin, end).
  bool solve(Int begin, Int end, T* d, T* e, const Memory& to) const {
    const Int size = end - begin, work_size = size * n_, integers = kIntegers * size;
    T* const q = to.q + int64_t{begin} * n_;
    std::fill_n(q, int64_t{size} * n_, T(0));
    Int info = 0;
    l_.stedc("I", &size, d + begin, e + begin, q + begin, &n_, to.q2 + int64_t{begin} * n_, &work_size,
             to.integers + int64_t{kIntegers} * begin, &integers, &info, 1);
    for (Int i = 0; i < size; ++i) to.order[begin + i] = i + 1;
    return info == 0;
  }

  // Rows [begin, middle) and [middle, end), by LAPACK's laed1: the vectors of a diagonal matrix and one of rank 1.
  bool merge(Int begin, Int middle, Int end, T* d, const T* e, const Memory& to, int64_t parts, char* scratch) const {
    const Int size = end - begin, n1 = middle - begin, n2 = end - middle, one = 1, back = -1;
    T *const q = to.q + int64_t{begin} * (n_ + 1), *const z = to.z + begin, *const poles = to.poles + begin;
    T *const weights = to.weights + begin, *const q2 = to.q2 + int64_t{begin} * n_,
             *const s = to.s + int64_t{begin} * n_;
    Int *const order = to.order + begin, *const integers = to.integers + int64_t{kIntegers} * begin;
    Int *const columns = integers + size, *const types = integers + 3 * size;
    d += begin;
    for (Int i = 0; i < n1; ++i) z[i] = q[int64_t{i} * n_ + n1 - 1];
    for (Int i = n1; i < size; ++i) z[i] = q[int64_t{i} * n_ + n1];
    T rho = e[middle - 1];
    Int k = 0, info = 0;
    l_.laed2(&k, &size, &n1, d, q, &n_, order, &rho, z, poles, weights, q2, integers, columns, integers + 2 * size,
             types, &info);
    if (info != 0) return false;
    if (k == 0) {
      for (Int i = 0; i < size; ++i) order[i] = i + 1;
      return true;
    }
    std::atomic<bool> failed = false;
    const int64_t grain = std::max<int64_t>(1, kTerms / k);
    for_parts(parts, k, grain, [&](int64_t first, int64_t last) {
      for (; first < last; ++first) {
        const Int j = static_cast<Int>(first) + 1;
        Int status = 0;
        l_.laed4(&k, &j, poles, weights, q + first * n_, &rho, d + first, &status);
        if (status != 0) failed = true;
      }
    });
    if (failed) return false;
    // The vector for which the computed eigenvalues are exact (Gu and Eisenstat 1994), so that vectors are orthogonal.
    if (k > 2) {
      for_parts(parts, k, grain, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) z[i] = q[i * (n_ + 1)];
        for (int64_t j = 0; j < k; ++j) {
          const T* const x = q + j * n_;
          for (int64_t i = first; i < std::min(j, last); ++i) z[i] *= x[i] / (poles[i] - poles[j]);
          for (int64_t i = std::max(j + 1, first); i < last; ++i) z[i] *= x[i] / (poles[i] - poles[j]);
        }
        for (int64_t i = first; i < last; ++i) z[i] = std::copysign(std::sqrt(-z[i]), weights[i]);
      });
    }
    // Columns of the first problem's vectors, of both, and of the second's.
    const Int of_first = types[0] + types[1], of_second = types[1] + types[2], rows = of_first + of_second;
    for_parts(parts, k, grain, [&](int64_t first, int64_t last) {
      for (; first < last; ++first) {
        T *const x = q + first * n_, *const to_s = s + first * rows;
        T norm = 1;
        if (k > 2) {
          double squares = 0;
          for (Int i = 0; i < k; ++i) {
            x[i] = z[i] / x[i];
            squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
          }
          norm = static_cast<T>(std::sqrt(squares));
        }
        for (Int i = 0; i < of_first; ++i) to_s[i] = x[columns[i] - 1] / norm;
        for (Int i = 0; i < of_second; ++i) to_s[of_first + i] = x[columns[types[0] + i] - 1] / norm;
      }
    });
    const Int width = parts == 1 ? k : part_width(k);
    const T* const second = q2 + int64_t{n1} * of_first;
    for_parts(parts, (k + width - 1) / width, 1, [&](int64_t first, int64_t last) {
      for (; first < last; ++first) {
        const Int left = static_cast<Int>(first) * width, count = std::min(width, k - left);
        char* const own = scratch + first * products_.scratch_bytes();
        T *const x = q + int64_t{left} * n_, *const from = s + int64_t{left} * rows;
        multiply(n1, count, of_first, q2, from, rows, x, own);
        multiply(n2, count, of_second, second, from + of_first, rows, x + n1, own);
      }
    });
    const Int deflated = size - k;
    l_.lamrg(&k, &deflated, d, &one, &back, order);
    return true;
  }

  void multiply(Int m, Int n, Int k, const T* a, const T* b, Int b_stride, T* c, char* scratch) const {
    if (k > 0) return products_.multiply(m, n, k, 1, {a, m}, {b, b_stride}, false, c, n_, scratch);
    for (Int j = 0; j < n; ++j) std::fill_n(c + int64_t{j} * n_, m, T(0));
  }

  template <class F>
  void for_parts(int64_t parts, int64_t count, int64_t grain, const F& body) const {
    if (parts == 1) return body(0, count);
    parallel_tasks(count, grain, [&](int64_t first, int64_t last) {
      const OneOpenmpThread one(openmp_);
      body(first, last);
    });
  }

  const RealLapack<T>& l_;
  const Openmp& openmp_;
  Products<T> products_;
  const Int n_, threads_;
  Int leaves_ = 1;
};

}  // namespace compute::cpu
