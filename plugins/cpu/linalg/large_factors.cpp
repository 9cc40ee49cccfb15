// SPDX-License-Identifier: Apache-2.0
// Right-looking factorizations. A step factors a panel of columns and updates the columns right of it, which threads
// share; one of them takes the next panel, and factors it while the others still update.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/cpu/linalg/large.hpp"
#include "plugins/cpu/linalg/products.hpp"
#include "plugins/cpu/linalg/transfer.hpp"
#include "plugins/cpu/threads/openmp.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr Int kPanel = 64;  // columns that are factored at a time
constexpr Int kWidth = 64;  // columns of the least part of an update

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

// The steps that the team shares, of column-major matrices with `rows` rows and so many columns at most.
template <class T>
class Factors {
 public:
  Factors(const LapackLibrary& library, Int rows, Int columns)
      : l_(library.of<T>()),
        openmp_(library.openmp),
        products_(l_),
        lu_width_(thread_count() > 1 ? kWidth : std::max(kWidth, columns)),
        slots_(thread_count() > 1 ? 1 + (columns + kWidth - 1) / kWidth : 1) {
    products_.expect(rows, lu_width_, kPanel, false, false, rows);
    products_.expect(rows, kWidth, kPanel, false, true, rows);
  }

  int64_t scratch_bytes() const { return slots_ * products_.scratch_bytes(); }

  // The lower factor of a [n, n], whose upper triangle is neither read nor kept. Returns what LAPACK does.
  Int cholesky(T* a, Int n, char* scratch) const {
    std::atomic<Int> failed = 0;  // also read by threads that update
    in_panels(
        n, n, kWidth,
        [&](Int j, Int size) {
          if (failed != 0) return;
          const Int below = n - j - size;
          T* const block = at(a, n, j, j);
          Int info = 0;
          l_.potrf("L", &size, block, &n, &info, 1);
          if (info != 0) failed = j + info;
          if (below > 0)
            l_.trsm("R", "L", kIsComplex<T> ? "C" : "T", "N", &below, &size, &kOne, block, &n, block + size, &n, 1, 1,
                    1, 1);
        },
        [&](Int j, Int size, Int begin, Int end, Int slot) {
          if (failed != 0) return;
          T* const rows = at(a, n, begin, j);
          products_.multiply(n - begin, end - begin, size, -1, {rows, n}, {rows, n, true}, true, at(a, n, begin, begin),
                             n, scratch + slot % slots_ * products_.scratch_bytes());
        });
    return failed;
  }

  // P L U = a [m, n]. pivots[i] is the row, from 0, that is exchanged with row i. Returns what LAPACK does.
  Int lu(T* a, Int m, Int n, Int* pivots, char* scratch) const {
    Int failed = 0;
    const Int k = std::min(m, n);
    in_panels(
        k, n, lu_width_,
        [&](Int j, Int size) {
          const Int rows = m - j;
          Int info = 0;
          l_.getrf(&rows, &size, at(a, m, j, j), &m, pivots + j, &info);
          if (info > 0 && failed == 0) failed = j + info;
          for (Int i = j; i < j + size; ++i) pivots[i] += j - 1;
        },
        [&](Int j, Int size, Int begin, Int end, Int slot) {
          const Int columns = end - begin, below = m - j - size;
          exchange(a, m, pivots, j, j + size, begin, end);
          l_.trsm("L", "L", "N", "U", &size, &columns, &kOne, at(a, m, j, j), &m, at(a, m, j, begin), &m, 1, 1, 1, 1);
          products_.multiply(below, columns, size, -1, {at(a, m, j + size, j), m}, {at(a, m, j, begin), m}, true,
                             at(a, m, j + size, begin), m, scratch + slot % slots_ * products_.scratch_bytes());
        });
    // The rows of earlier panels.
    parallel_tasks((k + kPanel - 1) / kPanel, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const Int begin = static_cast<Int>(i) * kPanel, end = std::min(begin + kPanel, k);
        exchange(a, m, pivots, end, k, begin, end);
      }
    });
    return failed;
  }

 private:
  static constexpr T kOne = 1;

  // factor(j, size) for the panels of the first k of n columns, update(j, size, begin, end, slot) for the columns
  // behind each, of which a part has `width` columns. Of several threads, one has a slot at a time.
  template <class Factor, class Update>
  void in_panels(Int k, Int n, Int width, const Factor& factor, const Update& update) const {
    {
      const OneOpenmpThread one(openmp_);
      factor(0, std::min(kPanel, k));
    }
    for (Int j = 0; j < k; j += kPanel) {
      const Int size = std::min(kPanel, k - j), next = j + size, rest = std::min(next + kPanel, n);
      if (next >= n) break;
      parallel_tasks(1 + (n - rest + width - 1) / width, 1, [&](int64_t first, int64_t last) {
        const OneOpenmpThread one(openmp_);
        if (first == 0) {
          update(j, size, next, rest, 0);
          if (next < k) factor(next, std::min(kPanel, k - next));
          ++first;
        }
        for (; first < last; ++first) {
          update(j, size, static_cast<Int>(rest + (first - 1) * width),
                 static_cast<Int>(std::min<int64_t>(rest + first * width, n)), static_cast<Int>(first));
        }
      });
    }
  }

  const Lapack<T>& l_;
  const Openmp& openmp_;
  Products<T> products_;
  const Int lu_width_;  // one thread packs the panel for all columns
  const int64_t slots_;
};

Int extent(const compute_plugin_tensor& x, int32_t from_end) { return static_cast<Int>(x.shape[x.rank - from_end]); }

template <class T>
class LargeDecomposition : public Decomposition<T> {
 public:
  LargeDecomposition(const LapackLibrary& library, const Op& op)
      : Decomposition<T>(library), m_(extent(op.input(0), 2)), n_(extent(op.input(0), 1)), factors_(library, m_, n_) {}
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
    char* const scratch = arrays.take<char>(this->factors_.scratch_bytes());
    if (operands == nullptr) return kDone;
    // As in decompositions.cpp, the upper factor is the transpose of a lower one.
    if (!load(upper_ ? transposed(operands[0]) : operands[0], a, Triangle::kLower)) return kNotFinite;
    if (this->factors_.cholesky(a, n_, scratch) != 0) return kNotPositiveDefinite;
    store(a, n_, upper_ ? transposed(operands[1]) : operands[1], Triangle::kLower);
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
    char* const scratch = arrays.take<char>(this->factors_.scratch_bytes());
    if (operands == nullptr) return kDone;
    if (load(operands[0], a)) {
      this->factors_.lu(a, m_, n_, pivots, scratch);
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

// solve, and inv with the unit matrix on the right.
template <class T>
class LargeSolve final : public LargeDecomposition<T> {
 public:
  LargeSolve(const LapackLibrary& library, const Op& op)
      : LargeDecomposition<T>(library, op),
        library_(library),
        is_inverse_(op.input_count() == 1),
        count_(is_inverse_ ? this->n_ : extent(op.input(1), 1)) {}

  Outcome run(Arrays& arrays, const View* operands) const override {
    T* const a = arrays.take<T>(int64_t{n_} * n_);
    T* const b = arrays.take<T>(int64_t{n_} * count_);
    Int* const pivots = arrays.take<Int>(n_);
    char* const scratch = arrays.take<char>(this->factors_.scratch_bytes());
    if (operands == nullptr) return kDone;
    if (!load(operands[0], a)) return kNotFinite;
    if (this->factors_.lu(a, n_, n_, pivots, scratch) != 0) return kSingular;
    if (is_inverse_) {
      invert(a, pivots, b);
    } else {
      load(operands[1], b);
      substitute<T>(library_, a, n_, pivots, false, true, b, count_);
      substitute<T>(library_, a, n_, nullptr, true, false, b, count_);
    }
    store(b, n_, operands[is_inverse_ ? 1 : 2]);
    return kDone;
  }

 private:
  using LargeDecomposition<T>::n_;

  // b = the inverse of P L U. That of L is zero above the diagonal, so that its columns are shorter ones.
  void invert(const T* a, const Int* pivots, T* b) const {
    const Int parts = (n_ + kWidth - 1) / kWidth;
    parallel_tasks(parts, 1, [&](int64_t first, int64_t last) {
      const OneOpenmpThread one(library_.openmp);
      for (; first < last; ++first) {
        const Int j = static_cast<Int>(first) * kWidth, columns = std::min(kWidth, n_ - j), below = n_ - j;
        const T alpha = 1;
        T* const part = at(b, n_, 0, j);
        std::fill_n(part, int64_t{columns} * n_, T(0));
        for (Int i = 0; i < columns; ++i) *at(part, n_, j + i, i) = 1;
        this->l_.trsm("L", "L", "N", "U", &below, &columns, &alpha, at(a, n_, j, j), &n_, part + j, &n_, 1, 1, 1, 1);
        this->l_.trsm("L", "U", "N", "N", &n_, &columns, &alpha, a, &n_, part, &n_, 1, 1, 1, 1);
      }
    });
    parallel_tasks(parts, 1, [&](int64_t first, int64_t last) {
      const Int begin = static_cast<Int>(first) * kWidth;
      const Int end = static_cast<Int>(std::min<int64_t>(last * kWidth, n_));
      for (Int j = n_; j-- > 0;) {
        if (pivots[j] != j) std::swap_ranges(at(b, n_, begin, j), at(b, n_, end, j), at(b, n_, begin, pivots[j]));
      }
    });
  }

  const LapackLibrary& library_;
  const bool is_inverse_;
  const Int count_;
};

}  // namespace

template <class T>
void substitute(const LapackLibrary& library, const T* a, Int n, const Int* pivots, bool upper, bool unit, T* b,
                Int count) {
  parallel_tasks((count + kWidth - 1) / kWidth, 1, [&](int64_t first, int64_t last) {
    const OneOpenmpThread one(library.openmp);
    const Int begin = static_cast<Int>(first * kWidth), end = static_cast<Int>(std::min<int64_t>(last * kWidth, count));
    const Int columns = end - begin;
    const T alpha = 1;
    if (pivots != nullptr) exchange(b, n, pivots, 0, n, begin, end);
    library.of<T>().trsm("L", upper ? "U" : "L", "N", unit ? "U" : "N", &n, &columns, &alpha, a, &n, at(b, n, 0, begin),
                         &n, 1, 1, 1, 1);
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

template void substitute(const LapackLibrary&, const float*, Int, const Int*, bool, bool, float*, Int);
template void substitute(const LapackLibrary&, const double*, Int, const Int*, bool, bool, double*, Int);
template void substitute(const LapackLibrary&, const std::complex<float>*, Int, const Int*, bool, bool,
                         std::complex<float>*, Int);
template void substitute(const LapackLibrary&, const std::complex<double>*, Int, const Int*, bool, bool,
                         std::complex<double>*, Int);

}  // namespace compute::cpu
