// SPDX-License-Identifier: Apache-2.0
// Right-looking factorizations. A step factors a panel and updates what is behind it, which threads share; one of them
// updates the next panel first, and factors it while the others still update.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/cpu/linalg/large.hpp"
#include "plugins/cpu/linalg/products.hpp"
#include "plugins/cpu/linalg/transfer.hpp"
#include "plugins/cpu/linalg/triangles.hpp"
#include "plugins/cpu/threads/openmp.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr Int kPanel = kTriangleRows;  // columns that are factored at a time
constexpr Int kNarrowPanel = 16;       // of those, columns that LAPACK factors at a time
constexpr Int kWidth = 64;             // columns of the least part of an update

template <class E>
E* at(E* a, Int stride, Int i, Int j) {
  return a + int64_t{j} * stride + i;
}

// Rows i and pivots[i] for i from `first` on, of the columns [begin, end).
template <class T>
void exchange(T* a, Int stride, const Int* pivots, Int first, Int last, Int begin, Int end) {
  for (Int j = begin; j < end; ++j) {
    T* const column = at(a, stride, 0, j);
    for (Int i = first; i < last; ++i) std::swap(column[i], column[pivots[i]]);
  }
}

// With one thread, a part has all columns, so that products pack their other operand once.
Int width_of(Int columns) { return thread_count() > 1 ? kWidth : std::max(kWidth, columns); }
Int parts_of(Int columns, Int width) { return (columns + width - 1) / width; }

// The steps that the team shares, of column-major matrices with `rows` rows and so many columns at most.
template <class T>
class Factors {
 public:
  Factors(const LapackLibrary& library, Int rows, Int columns)
      : l_(library.of<T>()),
        openmp_(library.openmp),
        products_(l_),
        width_(width_of(columns)),
        slots_(thread_count() > 1 ? 1 + parts_of(columns, kWidth) : 1) {
    products_.expect(rows, width_, kPanel, false, false, rows);
    products_.expect(rows, std::min(width_, 2 * kWidth), kPanel, true, false, rows);
    products_.expect(kPanel, kPanel, kPanel, true, false, rows);
    products_.expect(rows, kPanel / 2, kPanel / 2, false, false, rows);
  }

  // Memory of a factorization. Of several threads, one has a slot of `products` at a time.
  struct Scratch {
    char* products;
    PreparedTriangle<T>* triangles;
  };
  Scratch take(Arrays& arrays) const {
    return {arrays.take<char>(slots_ * products_.scratch_bytes()), arrays.take<PreparedTriangle<T>>(3)};
  }

  // u with u^H u = a [n, n], whose lower triangle is neither read nor kept. Returns what LAPACK does.
  Int cholesky(T* a, Int n, const Scratch& scratch) const {
    // Of a part, half of a square on the diagonal is computed for nothing.
    const Int width = std::min(width_, 2 * kWidth);
    std::atomic<Int> failed = 0;
    PreparedTriangle<T>& triangle = scratch.triangles[0];
    const auto factor = [&](Int j) {
      const Int size = std::min(kPanel, n - j);
      Int info = 0;
      l_.potrf("U", &size, at(a, n, j, j), &n, &info, 1);
      if (info != 0) failed = j + info;
      prepare<T>({at(a, n, j, j), n, size, false, false, true}, triangle);
    };
    {
      const OneOpenmpThread one(openmp_);
      factor(0);
    }
    for (Int j = 0, next = kPanel; next < n && failed == 0; j = next, next += kPanel) {
      parallel_tasks(parts_of(n - next, width), 1, [&](int64_t first, int64_t last) {
        const OneOpenmpThread one(openmp_);
        const Int begin = next + static_cast<Int>(first) * width;
        const auto end = static_cast<Int>(std::min<int64_t>(next + last * width, n));
        solve<T>(l_, triangle, at(a, n, j, begin), n, end - begin);
      });
      // The rows [next, end) of the columns [begin, end).
      const auto update = [&](Int begin, Int end, int64_t slot) {
        products_.multiply(end - next, end - begin, kPanel, -1, {at(a, n, j, next), n, true}, {at(a, n, j, begin), n},
                           true, at(a, n, next, begin), n, scratch.products + slot * products_.scratch_bytes());
      };
      const Int rest = std::min(next + kPanel, n), parts = parts_of(n - rest, width);
      parallel_tasks(1 + parts, 1, [&](int64_t first, int64_t last) {
        const OneOpenmpThread one(openmp_);
        for (; first < last; ++first) {
          if (first == 0) {
            update(next, rest, 0);
            factor(next);
            continue;
          }
          // The longest columns first.
          const Int begin = rest + (parts - static_cast<Int>(first)) * width;
          update(begin, std::min(begin + width, n), first % slots_);
        }
      });
    }
    return failed;
  }

  // P L U = a [m, n]. pivots[i] is the row, from 0, that is exchanged with row i. Without keeps_l, rows of L are not
  // exchanged. Returns what LAPACK does.
  Int lu(T* a, Int m, Int n, Int* pivots, bool keeps_l, const Scratch& scratch) const {
    Int failed = 0;
    const Int k = std::min(m, n);
    const auto factor = [&](Int j) {
      const Int size = std::min(kPanel, k - j);
      const Int info = factor_panel(at(a, m, j, j), m, m - j, size, pivots + j, scratch);
      if (info > 0 && failed == 0) failed = j + info;
      for (Int i = j; i < j + size; ++i) pivots[i] += j;
      prepare<T>({at(a, m, j, j), m, size, false, true, false}, scratch.triangles[j / kPanel % 2]);
    };
    const auto update = [&](Int j, Int begin, Int end, int64_t slot) {
      const Int size = std::min(kPanel, k - j), columns = end - begin, below = m - j - size;
      exchange(a, m, pivots, j, j + size, begin, end);
      solve<T>(l_, scratch.triangles[j / kPanel % 2], at(a, m, j, begin), m, columns);
      products_.multiply(below, columns, size, -1, {at(a, m, j + size, j), m}, {at(a, m, j, begin), m}, true,
                         at(a, m, j + size, begin), m, scratch.products + slot * products_.scratch_bytes());
    };
    {
      const OneOpenmpThread one(openmp_);
      factor(0);
    }
    for (Int j = 0; j < k; j += kPanel) {
      const Int next = std::min(j + kPanel, k), rest = std::min(next + kPanel, n);
      if (next >= n) break;
      parallel_tasks(1 + parts_of(n - rest, width_), 1, [&](int64_t first, int64_t last) {
        const OneOpenmpThread one(openmp_);
        for (; first < last; ++first) {
          if (first == 0) {
            update(j, next, rest, 0);
            if (next < k) factor(next);
            continue;
          }
          const Int begin = rest + static_cast<Int>(first - 1) * width_;
          update(j, begin, std::min(begin + width_, n), first % slots_);
        }
      });
    }
    if (!keeps_l) return failed;
    // The rows of earlier panels.
    parallel_tasks(parts_of(k, kPanel), 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const Int begin = static_cast<Int>(i) * kPanel, end = std::min(begin + kPanel, k);
        exchange(a, m, pivots, end, k, begin, end);
      }
    });
    return failed;
  }

 private:
  // P L U = a [m, n] for n <= kPanel, half of the columns after the other; pivots are from 0.
  Int factor_panel(T* a, Int stride, Int m, Int n, Int* pivots, const Scratch& scratch) const {
    Int info = 0;
    if (kIsComplex<T> || n <= kNarrowPanel) {
      l_.getrf(&m, &n, a, &stride, pivots, &info);
      for (Int i = 0; i < n; ++i) --pivots[i];
      return info;
    }
    const Int left = (n / 2 + kNarrowPanel - 1) / kNarrowPanel * kNarrowPanel, right = n - left;
    T *const top = at(a, stride, 0, left), *const below = at(a, stride, left, left);
    info = factor_panel(a, stride, m, left, pivots, scratch);
    exchange(a, stride, pivots, 0, left, left, n);
    prepare<T>({a, stride, left, false, true, false}, scratch.triangles[2]);
    solve<T>(l_, scratch.triangles[2], top, stride, right);
    products_.multiply(m - left, right, left, -1, {a + left, stride}, {top, stride}, true, below, stride,
                       scratch.products);
    const Int more = factor_panel(below, stride, m - left, right, pivots + left, scratch);
    for (Int i = left; i < n; ++i) pivots[i] += left;
    exchange(a, stride, pivots, left, n, 0, left);
    return info != 0 || more == 0 ? info : left + more;
  }

  const Lapack<T>& l_;
  const Openmp& openmp_;
  Products<T> products_;
  const Int width_;
  const int64_t slots_;
};

Int extent(const compute_plugin_tensor& x, int32_t from_end) { return static_cast<Int>(x.shape[x.rank - from_end]); }

template <class T>
class LargeDecomposition : public Decomposition<T> {
 public:
  LargeDecomposition(const LapackLibrary& library, const Op& op, Int more_columns = 0)
      : Decomposition<T>(library),
        m_(extent(op.input(0), 2)),
        n_(extent(op.input(0), 1)),
        factors_(library, m_, n_ + more_columns) {}
  bool takes_all_threads() const override { return true; }

 protected:
  const Int m_, n_;
  const Factors<T> factors_;
};

template <class T>
class LargeCholesky final : public LargeDecomposition<T> {
 public:
  LargeCholesky(const LapackLibrary& library, const Op& op)
      : LargeDecomposition<T>(library, op), upper_(op.integer("upper", 0) != 0) {}

  Outcome run(Arrays& arrays, const View* operands) const override {
    T* const a = arrays.take<T>(int64_t{n_} * n_);
    const auto scratch = this->factors_.take(arrays);
    if (operands == nullptr) return kDone;
    // As in decompositions.cpp, the lower factor is the transpose of an upper one.
    if (!load(upper_ ? operands[0] : transposed(operands[0]), a, Triangle::kUpper)) return kNotFinite;
    if (this->factors_.cholesky(a, n_, scratch) != 0) return kNotPositiveDefinite;
    store(a, n_, upper_ ? operands[1] : transposed(operands[1]), Triangle::kUpper);
    return kDone;
  }

 private:
  using LargeDecomposition<T>::n_;

  const bool upper_;
};

template <class T>
class LargeLu final : public LargeDecomposition<T> {
 public:
  LargeLu(const LapackLibrary& library, const Op& op) : LargeDecomposition<T>(library, op) {}

  Outcome run(Arrays& arrays, const View* operands) const override {
    const Int count = std::min(m_, n_);
    T* const a = arrays.take<T>(int64_t{m_} * n_);
    Int* const pivots = arrays.take<Int>(count);
    const auto scratch = this->factors_.take(arrays);
    if (operands == nullptr) return kDone;
    if (load(operands[0], a)) {
      this->factors_.lu(a, m_, n_, pivots, true, scratch);
      store(a, m_, operands[1]);
    } else {
      store_all(kNan<T>, operands[1]);
      for (Int i = 0; i < count; ++i) pivots[i] = i;
    }
    const View& to = operands[2];
    for (Int i = 0; i < count; ++i) {
      const int64_t row = pivots[i];
      std::memcpy(to.data + i * to.row_stride, &row, sizeof row);
    }
    return kDone;
  }

 private:
  using LargeDecomposition<T>::m_, LargeDecomposition<T>::n_;
};

// solve, whose right sides become columns behind those of the matrix, and inv, with the unit matrix on the right.
template <class T>
class LargeSolve final : public LargeDecomposition<T> {
 public:
  LargeSolve(const LapackLibrary& library, const Op& op)
      : LargeDecomposition<T>(library, op, op.input_count() == 1 ? 0 : extent(op.input(1), 1)),
        is_inverse_(op.input_count() == 1),
        count_(is_inverse_ ? this->n_ : extent(op.input(1), 1)),
        equations_(library, this->n_, count_) {}

  Outcome run(Arrays& arrays, const View* operands) const override {
    T* const a = arrays.take<T>(int64_t{n_} * (n_ + count_));
    T* const b = at(a, n_, 0, n_);
    Int* const pivots = arrays.take<Int>(n_);
    const auto scratch = this->factors_.take(arrays);
    const auto equations = equations_.take(arrays);
    if (operands == nullptr) return kDone;
    if (!load(operands[0], a)) return kNotFinite;
    if (!is_inverse_) load(operands[1], b);
    if (this->factors_.lu(a, n_, is_inverse_ ? n_ : n_ + count_, pivots, is_inverse_, scratch) != 0) return kSingular;
    if (is_inverse_) {
      std::fill_n(b, int64_t{n_} * n_, T(0));
      for (Int i = 0; i < n_; ++i) *at(b, n_, i, i) = 1;
      equations_.solve(a, false, true, b, true, equations);
    }
    equations_.solve(a, true, false, b, false, equations);
    if (is_inverse_) exchange_columns(b, pivots);
    store(b, n_, operands[is_inverse_ ? 1 : 2]);
    return kDone;
  }

 private:
  using LargeDecomposition<T>::n_;

  void exchange_columns(T* b, const Int* pivots) const {
    parallel_tasks(parts_of(n_, kWidth), 1, [&](int64_t first, int64_t last) {
      const Int begin = static_cast<Int>(first) * kWidth;
      const Int end = static_cast<Int>(std::min<int64_t>(last * kWidth, n_));
      for (Int j = n_; j-- > 0;) {
        if (pivots[j] != j) std::swap_ranges(at(b, n_, begin, j), at(b, n_, end, j), at(b, n_, begin, pivots[j]));
      }
    });
  }

  const bool is_inverse_;
  const Int count_;
  const Equations<T> equations_;
};

}  // namespace

template <class T>
Equations<T>::Equations(const LapackLibrary& library, Int n, Int count)
    : l_(library.of<T>()),
      openmp_(library.openmp),
      products_(l_),
      n_(n),
      count_(count),
      width_(width_of(count)),
      blocks_(parts_of(n, kTriangleRows)) {
  products_.expect(n, std::min(width_, count), kTriangleRows, false, false, n);
}

template <class T>
typename Equations<T>::Scratch Equations<T>::take(Arrays& arrays) const {
  return {arrays.take<char>(parts_of(count_, width_) * products_.scratch_bytes()),
          arrays.take<PreparedTriangle<T>>(blocks_)};
}

template <class T>
void Equations<T>::solve(const T* a, bool upper, bool unit, T* b, bool is_lower, const Scratch& scratch) const {
  parallel_tasks(blocks_, 1, [&](int64_t first, int64_t last) {
    for (; first < last; ++first) {
      const Int j = static_cast<Int>(first) * kTriangleRows;
      prepare<T>({at(a, n_, j, j), n_, std::min(kTriangleRows, n_ - j), upper, unit, false}, scratch.triangles[first]);
    }
  });
  parallel_tasks(parts_of(count_, width_), 1, [&](int64_t first, int64_t last) {
    const OneOpenmpThread one(openmp_);
    for (; first < last; ++first) {
      const Int begin = static_cast<Int>(first) * width_, end = std::min(begin + width_, count_);
      char* const slot = scratch.products + first * products_.scratch_bytes();
      for (Int i = 0; i < blocks_; ++i) {
        const Int j = (upper ? blocks_ - 1 - i : i) * kTriangleRows, rows = std::min(kTriangleRows, n_ - j);
        const Int next = upper ? 0 : j + rows, columns = is_lower ? std::min(end, j + rows) - begin : end - begin;
        if (columns <= 0) continue;
        T* const x = at(b, n_, j, begin);
        cpu::solve<T>(l_, scratch.triangles[j / kTriangleRows], x, n_, columns);
        products_.multiply(upper ? j : n_ - next, columns, rows, -1, {at(a, n_, next, j), n_}, {x, n_}, true,
                           at(b, n_, next, begin), n_, slot);
      }
    }
  });
}

template <class T>
std::unique_ptr<Decomposition<T>> make_large_factors(const LapackLibrary& library, const Op& op) {
  const std::string_view name = op.name();
  if (name == "cholesky") return std::make_unique<LargeCholesky<T>>(library, op);
  if (name == "lu") return std::make_unique<LargeLu<T>>(library, op);
  if (name == "solve" || name == "inv") return std::make_unique<LargeSolve<T>>(library, op);
  return nullptr;
}

template std::unique_ptr<Decomposition<float>> make_large_factors(const LapackLibrary&, const Op&);
template std::unique_ptr<Decomposition<double>> make_large_factors(const LapackLibrary&, const Op&);
template std::unique_ptr<Decomposition<std::complex<float>>> make_large_factors(const LapackLibrary&, const Op&);
template std::unique_ptr<Decomposition<std::complex<double>>> make_large_factors(const LapackLibrary&, const Op&);

template class Equations<float>;
template class Equations<double>;
template class Equations<std::complex<float>>;
template class Equations<std::complex<double>>;

}  // namespace compute::cpu
