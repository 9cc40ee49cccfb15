// SPDX-License-Identifier: Apache-2.0
// Products with blocks of Householder reflectors are shared by columns. The reduction to a tridiagonal or bidiagonal
// matrix multiplies the rest of the matrix by a vector for each column, which needs its memory once: each thread has
// the same columns, or rows, each time.
#include "plugins/cpu/linalg/large.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "plugins/cpu/linalg/divide.hpp"
#include "plugins/cpu/linalg/products.hpp"
#include "plugins/cpu/linalg/transfer.hpp"
#include "plugins/cpu/threads/openmp.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr Int kLeastRows = 256;                   // of matrices that are shared
constexpr Int kReflectors = 64;                   // that are applied at a time
constexpr Int kBlock = 32;                        // columns that are reduced at a time
constexpr Int kWidth = 64;                        // columns of the least part of a product
constexpr int64_t kPartBytes = int64_t{1} << 17;  // of a matrix that one thread multiplies by a vector
constexpr int64_t kGrainBytes = kPartBytes / 4;   // that justify handing over

Int rounded_up(Int n, Int unit) { return (n + unit - 1) / unit * unit; }

// The steps that the team shares, of column-major matrices.
template <class T>
class Shared {
 public:
  // For matrices of at most `rows` rows.
  Shared(const LapackLibrary& library, Int rows)
      : l_(library.of<T>()), openmp_(library.openmp), threads_(thread_count()), products_(l_) {
    for (const bool adjoint : {false, true}) products_.expect(kReflectors, kWidth, kReflectors, adjoint, false, rows);
    products_.expect(kReflectors, kWidth, rows, true, false, rows);
    products_.expect(rows, kWidth, kReflectors, false, false, rows);
  }

  int32_t threads() const { return threads_; }

  // Calls body(first, last) for ranges of columns [begin, end), which start at multiples of kWidth from `begin`.
  template <class F>
  void for_columns(Int begin, Int end, const F& body) const {
    parallel_tasks((end - begin + kWidth - 1) / kWidth, 1, [&](int64_t first, int64_t last) {
      const OneOpenmpThread one(openmp_);
      body(static_cast<Int>(begin + first * kWidth), static_cast<Int>(std::min<int64_t>(begin + last * kWidth, end)));
    });
  }

  // How many threads multiply a matrix of so many elements by a vector.
  int64_t parts_of(int64_t elements) const {
    return std::clamp<int64_t>(elements * static_cast<int64_t>(sizeof(T)) / kPartBytes, 1, threads_);
  }
  // Calls body(i) for each of the parts, always on the same thread.
  template <class F>
  void for_parts(int64_t parts, int64_t elements, const F& body) const {
    const int64_t bytes = elements * static_cast<int64_t>(sizeof(T)) / parts;
    parallel_for(parts, Grain{1, std::max<int64_t>(bytes / kGrainBytes, 1)}, [&](int64_t first, int64_t last) {
      const OneOpenmpThread one(openmp_);
      for (int64_t i = first; i < last; ++i) body(i);
    });
  }

  // ---- Reflectors ----
  //
  // They stand below the diagonal of v. For each block of them, t has the triangular factor, and behind those of all
  // blocks the unit triangle from which the reflectors of the block start: [kReflectors, k] twice.

  static int64_t factor_size(Int k) { return 2 * half_size(k); }
  // For products with so many columns.
  int64_t work_bytes(Int columns) const { return (1 + int64_t{columns + kWidth - 1} / kWidth) * slot_bytes(); }

  // c = Q c for all k reflectors. Column i of the rest of c, from `unit` on, is zero above row i.
  void apply(const T* v, Int v_stride, const T* t, Int m, Int k, T* c, Int c_stride, Int columns, Int unit,
             char* work) const {
    if (k < 1) return;
    for_columns(0, columns, [&](Int begin, Int end) {
      const Int last = std::min(begin >= unit ? end : k, k) - 1;
      for (Int j = last / kReflectors * kReflectors; j >= 0; j -= kReflectors) {
        apply_block(false, v, v_stride, t, k, j, m, c + int64_t{begin} * c_stride, c_stride, end - begin,
                    work + begin / kWidth * slot_bytes());
      }
    });
  }

  // What `apply` needs of k reflectors of m rows.
  void make_factors(const T* v, Int v_stride, const T* tau, Int m, Int k, T* t) const {
    parallel_tasks((k + kReflectors - 1) / kReflectors, 1, [&](int64_t first, int64_t last) {
      const OneOpenmpThread one(openmp_);
      for (int64_t i = first; i < last; ++i) {
        const Int j = static_cast<Int>(i) * kReflectors, rows = m - j, size = std::min(kReflectors, k - j),
                  block = kReflectors;
        l_.larft("F", "C", &rows, &size, v + int64_t{j} * v_stride + j, &v_stride, tau + j,
                 t + int64_t{j} * kReflectors, &block, 1, 1);
        complete_triangles(v, v_stride, t, k, j);
      }
    });
  }

  // a = Q R: the reflectors below the diagonal, R above. The next panel is factored while the rest of the columns is
  // still multiplied by the one before.
  void factor(T* a, Int m, Int n, T* t, char* work) const {
    const Int k = std::min(m, n), block = kReflectors;
    const auto panel = [&](Int j) {
      const Int rows = m - j, size = std::min(kReflectors, k - j);
      Int info = 0;
      l_.geqrt3(&rows, &size, a + int64_t{j} * m + j, &m, t + int64_t{j} * kReflectors, &block, &info);
      complete_triangles(a, m, t, k, j);
    };
    panel(0);
    for (Int j = 0; j < k; j += kReflectors) {
      const Int next = std::min(j + kReflectors, k), rest = std::min(next + kReflectors, n);
      if (next >= n) break;
      parallel_tasks(1 + (n - rest + kWidth - 1) / kWidth, 1, [&](int64_t first, int64_t last) {
        const OneOpenmpThread one(openmp_);
        for (int64_t i = first; i < last; ++i) {
          const Int begin = i == 0 ? next : static_cast<Int>(rest + (i - 1) * kWidth);
          const Int end = i == 0 ? rest : static_cast<Int>(std::min<int64_t>(rest + i * kWidth, n));
          apply_block(true, a, m, t, k, j, m, a + int64_t{begin} * m, m, end - begin, work + i * slot_bytes());
          if (i == 0 && next < k) panel(next);
        }
      });
    }
  }

 private:
  static int64_t half_size(Int k) { return int64_t{kReflectors} * rounded_up(std::max(k, 1), kReflectors); }
  // Bytes of work for kWidth columns: two blocks of kReflectors rows, and the scratch memory of the products.
  int64_t slot_bytes() const {
    return 2 * int64_t{kReflectors} * kWidth * static_cast<int64_t>(sizeof(T)) + products_.scratch_bytes();
  }

  // Behind LAPACK, which writes one triangle of a factor, and the reflectors beside R.
  static void complete_triangles(const T* v, Int v_stride, T* t, Int k, Int j) {
    const Int size = std::min(kReflectors, k - j);
    T *const factor = t + int64_t{j} * kReflectors, *const unit = factor + half_size(k);
    for (Int c = 0; c < size; ++c) {
      for (Int i = 0; i < size; ++i) {
        const int64_t at = int64_t{c} * kReflectors + i;
        if (i > c) factor[at] = 0;
        unit[at] = i > c ? v[int64_t{j + c} * v_stride + j + i] : T(i == c ? 1 : 0);
      }
    }
  }

  // c = Q c, or Q^H c, by the block at j of k reflectors, for `columns` columns of m rows: Q = 1 - V T V^H.
  void apply_block(bool adjoint, const T* v, Int v_stride, const T* t, Int k, Int j, Int m, T* c, Int c_stride,
                   Int columns, char* work) const {
    const Int size = std::min(kReflectors, k - j), below = m - j - size, block = kReflectors;
    const T *const factor = t + int64_t{j} * kReflectors, *const unit = factor + half_size(k);
    const T* const rest = v + int64_t{j} * v_stride + j + size;
    T *const first = reinterpret_cast<T*>(work), *const second = first + int64_t{kReflectors} * columns;
    char* const scratch = reinterpret_cast<char*>(second + int64_t{kReflectors} * columns);
    const auto multiply = [&](Int rows, Int depth, T sign, Factor<T> x, Factor<T> y, bool adds, T* to, Int stride) {
      products_.multiply(rows, columns, depth, sign, x, y, adds, to, stride, scratch);
    };
    multiply(size, size, 1, {unit, block, true}, {c + j, c_stride}, false, first, block);
    if (below > 0) multiply(size, below, 1, {rest, v_stride, true}, {c + j + size, c_stride}, true, first, block);
    multiply(size, size, 1, {factor, block, adjoint}, {first, block}, false, second, block);
    multiply(size, size, -1, {unit, block}, {second, block}, true, c + j, c_stride);
    multiply(below, size, -1, {rest, v_stride}, {second, block}, true, c + j + size, c_stride);
  }

 private:
  const Lapack<T>& l_;
  const Openmp& openmp_;
  const int32_t threads_;
  Products<T> products_;
};

// Columns of the unit matrix from `first` on, below `first` rows of zeros.
template <class T>
void fill_unit(T* a, Int rows, Int columns, Int first) {
  for (Int j = first; j < columns; ++j) {
    std::fill_n(a + int64_t{j} * rows, rows, T(0));
    if (j < rows) a[int64_t{j} * rows + j] = 1;
  }
}

// ---- qr -------------------------------------------------------------------------------------------------------------

template <class T>
class LargeQr final : public Decomposition<T> {
 public:
  LargeQr(const LapackLibrary& library, const Op& op)
      : Decomposition<T>(library),
        shared_(library, static_cast<Int>(op.input(0).shape[op.input(0).rank - 2])),
        m_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 2])),
        n_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 1])),
        columns_(static_cast<Int>(op.output(0).shape[op.output(0).rank - 1])) {}

  bool takes_all_threads() const override { return true; }

  Outcome run(Arrays& arrays, const View* operands) const override {
    const Int k = std::min(m_, n_);
    T* const a = arrays.take<T>(int64_t{m_} * n_);
    T* const q = arrays.take<T>(int64_t{m_} * columns_);
    T* const t = arrays.take<T>(shared_.factor_size(k));
    char* const work = arrays.take<char>(shared_.work_bytes(std::max(n_, columns_)));
    if (operands == nullptr) return kDone;
    if (!load(operands[0], a)) return kNotFinite;
    shared_.factor(a, m_, n_, t, work);
    store(a, m_, operands[2], Triangle::kUpper);
    fill_unit(q, m_, columns_, 0);
    shared_.apply(a, m_, t, m_, k, q, m_, columns_, 0, work);
    store(q, m_, operands[1]);
    return kDone;
  }

 private:
  const Shared<T> shared_;
  const Int m_, n_, columns_;  // of q
};

// ---- Reductions -----------------------------------------------------------------------------------------------------

// BLAS with vectors of stride 1, unless another one is given.
template <class T>
struct Vectors {
  const RealLapack<T>& l;

  // y = beta y + alpha a x, or with the transpose of a; a has m rows and n columns.
  void multiply(bool transpose, Int m, Int n, T alpha, const T* a, Int stride, const T* x, T beta, T* y,
                Int x_step = 1) const {
    const Int one = 1;
    if (n > 0 && m > 0) {
      l.gemv(transpose ? "T" : "N", &m, &n, &alpha, a, &stride, x, &x_step, &beta, y, &one, 1);
    } else if (beta == 0) {
      std::fill_n(y, transpose ? n : m, T(0));
    }
  }
  void scale(Int n, T factor, T* x) const {
    const Int one = 1;
    l.scal(&n, &factor, x, &one);
  }
  // The reflector that makes the n - 1 elements of x zero; *alpha becomes the first of the result.
  T reflect(Int n, T* alpha, T* x) const {
    const Int one = 1;
    T tau = 0;
    l.larfg(&n, alpha, x, &one, &tau);
    return tau;
  }
};

// A power of two by which a matrix is multiplied, so that squares of its elements stay within the range.
template <class T>
T scale_of(const T* a, int64_t size) {
  T most = 0;
  for (int64_t i = 0; i < size; ++i) most = std::max(most, std::abs(a[i]));
  int exponent = 0;
  if (most == 0) return 1;
  std::frexp(most, &exponent);
  constexpr int kFar = std::numeric_limits<T>::max_exponent / 4;
  return std::abs(exponent) < kFar
             ? T(1)
             : static_cast<T>(std::ldexp(T(1), std::clamp(-exponent, -4 * kFar + 8, 4 * kFar - 8)));
}

template <class T>
void multiply_all(T* x, int64_t size, T factor) {
  if (factor == 1) return;
  for (int64_t i = 0; i < size; ++i) x[i] *= factor;
}

// ---- eigh -----------------------------------------------------------------------------------------------------------

// Of real symmetric matrices.
template <class T>
class LargeEigh final : public Decomposition<T> {
 public:
  LargeEigh(const LapackLibrary& library, const Op& op)
      : Decomposition<T>(library),
        shared_(library, static_cast<Int>(op.input(0).shape[op.input(0).rank - 1])),
        r_(library.real<T>()),
        n_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 1])),
        upper_(op.integer("upper", 0) != 0),
        has_vectors_(op.output_count() == 2),
        tridiagonal_(library, n_) {}

  bool takes_all_threads() const override { return true; }

  Outcome run(Arrays& arrays, const View* operands) const override {
    const int64_t square = int64_t{n_} * n_;
    T* const a = arrays.take<T>(square);
    T* const d = arrays.take<T>(n_);
    T* const e = arrays.take<T>(n_);
    T* const tau = arrays.take<T>(n_);
    T* const w = arrays.take<T>(int64_t{n_} * kBlock);
    char* const products = arrays.take<char>(shared_.work_bytes(n_));
    T* const t = arrays.take<T>(shared_.factor_size(n_));
    T* const sums = arrays.take<T>(int64_t{shared_.threads()} * (n_ + 2 * kBlock));
    typename TridiagonalVectors<T>::Memory memory{};
    if (has_vectors_) memory = tridiagonal_.take(arrays);
    if (operands == nullptr) return kDone;
    if (!load(upper_ ? transposed(operands[0]) : operands[0], a, Triangle::kLower)) return kNotFinite;
    const T factor = scale_of(a, square);
    multiply_all(a, square, factor);
    reduce(a, d, e, tau, w, sums);
    T* vectors = nullptr;
    Int info = 0;
    if (has_vectors_) {
      vectors = tridiagonal_.compute(d, e, memory);
    } else {
      r_.sterf(&n_, d, e, &info);
    }
    if (info != 0 || (has_vectors_ && vectors == nullptr)) return kNotConverged;
    multiply_all(d, n_, 1 / factor);
    store(d, n_, operands[1]);
    if (!has_vectors_) return kDone;
    const Int k = n_ - 1;
    shared_.make_factors(a + 1, n_, tau, k, k, t);
    shared_.apply(a + 1, n_, t, k, k, vectors + 1, n_, n_, n_, products);
    store(vectors, n_, operands[2]);
    return kDone;
  }

 private:
  // Q^T a Q = the tridiagonal matrix of d and e; the reflectors of Q stand below the diagonal but one.
  void reduce(T* a, T* d, T* e, T* tau, T* w, T* sums) const {
    const Vectors<T> v{r_};
    for (Int j = 0; j < n_; j += kBlock) {
      const Int size = std::min(kBlock, n_ - j), n = n_ - j;
      T* const block = a + int64_t{j} * n_ + j;
      for (Int i = 0; i < size; ++i) {
        const Int rest = n - i - 1;
        T *const column = block + int64_t{i} * n_ + i, *const y = w + int64_t{i} * n + i + 1;
        v.multiply(false, rest + 1, i, -1, block + i, n_, w + i, 1, column, n);
        v.multiply(false, rest + 1, i, -1, w + i, n, block + i, 1, column, n_);
        d[j + i] = *column;
        if (rest == 0) break;
        T* const x = column + 1;
        tau[j + i] = v.reflect(rest, x, x + std::min(1, rest - 1));
        e[j + i] = *x;
        *x = 1;
        multiply_rest(block + int64_t{i + 1} * n_ + i + 1, rest, {block + i + 1, n_, w + i + 1, n, i}, x, y, sums);
        v.scale(rest, tau[j + i], y);
        const Int one = 1;
        const T alpha = T(-0.5) * tau[j + i] * r_.dot(&rest, y, &one, x, &one);
        r_.axpy(&rest, &alpha, x, &one, y, &one);
      }
      if (size < n) subtract_products(block, w, n, size);
    }
  }

  // The lower triangle of the rest: a -= v w^T + w v^T.
  void subtract_products(T* block, const T* w, Int n, Int size) const {
    const T minus = -1, one = 1;
    shared_.for_columns(size, n, [&](Int begin, Int end) {
      for (Int first = begin; first < end; first += kWidth) {
        const Int last = std::min(first + kWidth, end), columns = last - first, below = n - last;
        r_.syr2k("L", "N", &columns, &size, &minus, block + first, &n_, w + first, &n, &one,
                 block + int64_t{first} * n_ + first, &n_, 1, 1);
        if (below == 0) continue;
        T* const c = block + int64_t{first} * n_ + last;
        this->l_.gemm("N", "T", &below, &columns, &size, &minus, block + last, &n_, w + first, &n, &one, c, &n_, 1, 1);
        this->l_.gemm("N", "T", &below, &columns, &size, &minus, w + last, &n, block + first, &n_, &one, c, &n_, 1, 1);
      }
    });
  }

  // Columns of v and of w, by which a is not updated yet.
  struct Updates {
    const T* v;
    Int v_stride;
    const T* w;
    Int w_stride, count;
  };

  // y = (a - v w^T - w v^T) x. The lower triangle of a is read; the parts have columns of about as many elements.
  void multiply_rest(const T* a, Int n, const Updates& updates, const T* x, T* y, T* sums) const {
    const Int count = updates.count;
    const int64_t elements = int64_t{n} * n / 2, parts = shared_.parts_of(elements), sum_size = n_ + 2 * kBlock;
    const auto start = [&](int64_t part) {
      const double left = 1 - static_cast<double>(part) / static_cast<double>(parts);
      return part == parts ? n : static_cast<Int>(n * (1 - std::sqrt(left)));
    };
    const auto row = [&](int64_t part) { return static_cast<Int>(n * part / parts); };
    const Vectors<T> by{r_};
    const T one = 1;
    const Int step = 1;
    shared_.for_parts(parts, elements, [&](int64_t part) {
      T *const sum = sums + part * sum_size, *const products = sum + n_;
      const Int top = row(part), rows = row(part + 1) - top;
      by.multiply(true, rows, count, 1, updates.w + top, updates.w_stride, x + top, 0, products);
      by.multiply(true, rows, count, 1, updates.v + top, updates.v_stride, x + top, 0, products + kBlock);
      const Int begin = start(part), end = start(part + 1);
      std::fill(sum + begin, sum + n, T(0));
      for (Int first = begin; first < end; first += kWidth) {
        const Int last = std::min(first + kWidth, end), columns = last - first;
        const T* const block = a + int64_t{first} * n_;
        r_.symv("L", &columns, &one, block + first, &n_, x + first, &step, &one, sum + first, &step, 1);
        by.multiply(false, n - last, columns, 1, block + last, n_, x + first, 1, sum + last);
        by.multiply(true, n - last, columns, 1, block + last, n_, x + last, 1, sum + first);
      }
    });
    shared_.for_parts(parts, elements / 16, [&](int64_t part) {
      const Int top = row(part), end = row(part + 1), rows = end - top;
      T products[2 * kBlock] = {};
      std::fill(y + top, y + end, T(0));
      for (int64_t other = 0; other < parts; ++other) {
        const T* const sum = sums + other * sum_size;
        for (Int i = 0; i < count; ++i) {
          products[i] += sum[n_ + i];
          products[kBlock + i] += sum[n_ + kBlock + i];
        }
        for (Int i = std::max(top, start(other)); i < end; ++i) y[i] += sum[i];
      }
      by.multiply(false, rows, count, -1, updates.v + top, updates.v_stride, products, 1, y + top);
      by.multiply(false, rows, count, -1, updates.w + top, updates.w_stride, products + kBlock, 1, y + top);
    });
  }

  const Shared<T> shared_;
  const RealLapack<T>& r_;
  const Int n_;
  const bool upper_, has_vectors_;
  const TridiagonalVectors<T> tridiagonal_;
};

// ---- svd ------------------------------------------------------------------------------------------------------------

// Of real matrices. Those with more columns than rows are transposed, so that m >= n.
template <class T>
class LargeSvd final : public Decomposition<T> {
 public:
  LargeSvd(const LapackLibrary& library, const Op& op)
      : Decomposition<T>(library),
        shared_(library, static_cast<Int>(std::max(op.input(0).shape[op.input(0).rank - 2],
                                                   op.input(0).shape[op.input(0).rank - 1]))),
        r_(library.real<T>()),
        is_wide_(op.input(0).shape[op.input(0).rank - 2] < op.input(0).shape[op.input(0).rank - 1]),
        m_(static_cast<Int>(op.input(0).shape[op.input(0).rank - (is_wide_ ? 1 : 2)])),
        n_(static_cast<Int>(op.input(0).shape[op.input(0).rank - (is_wide_ ? 2 : 1)])),
        is_tall_(m_ >= n_ + n_ / 2),
        has_vectors_(op.output_count() == 3) {
    if (!has_vectors_) return;
    const compute_plugin_tensor& u = op.output(is_wide_ ? 2 : 0);
    columns_ = static_cast<Int>(u.shape[u.rank - (is_wide_ ? 2 : 1)]);
  }

  bool takes_all_threads() const override { return true; }

  Outcome run(Arrays& arrays, const View* operands) const override {
    const int64_t square = int64_t{n_} * n_;
    const Int rows = is_tall_ ? n_ : m_;  // of the matrix that is reduced
    T* const a = arrays.take<T>(int64_t{m_} * n_);
    T* const q_factors = arrays.take<T>(is_tall_ ? shared_.factor_size(n_) : 1);
    T* const b = is_tall_ ? arrays.take<T>(square) : a;
    Reduced to;
    to.d = arrays.take<T>(n_);
    to.e = arrays.take<T>(n_);
    to.left = arrays.take<T>(n_);
    to.right = arrays.take<T>(n_);
    to.v = arrays.take<T>(square);
    T* const x = arrays.take<T>(int64_t{rows} * kBlock);
    T* const y = arrays.take<T>(int64_t{n_} * kBlock);
    T* const t = arrays.take<T>(shared_.factor_size(n_));
    char* const products = arrays.take<char>(shared_.work_bytes(std::max(n_, columns_)));
    T* const u = arrays.take<T>(int64_t{m_} * columns_);
    T* const v = arrays.take<T>(has_vectors_ ? square : 1);
    T* const vt = arrays.take<T>(has_vectors_ ? square : 1);
    T* const work = arrays.take<T>(8 * int64_t{n_} + (has_vectors_ ? 3 * square : 0));
    Int* const integer_work = arrays.take<Int>(8 * int64_t{n_});
    if (operands == nullptr) return kDone;
    if (!load(is_wide_ ? transposed(operands[0]) : operands[0], a)) return kNotFinite;
    const T factor = scale_of(a, int64_t{m_} * n_);
    multiply_all(a, int64_t{m_} * n_, factor);
    if (is_tall_) {
      shared_.factor(a, m_, n_, q_factors, products);
      for (int64_t j = 0; j < n_; ++j) {
        for (int64_t i = 0; i < n_; ++i) b[j * n_ + i] = i <= j ? a[j * m_ + i] : T(0);
      }
    }
    reduce(b, rows, to, x, y);
    Int info = 0, none = 0;
    T nothing = 0;
    r_.bdsdc("U", has_vectors_ ? "I" : "N", &n_, to.d, to.e, u, &m_, vt, &n_, &nothing, &none, work, integer_work,
             &info, 1, 1);
    if (info != 0) return kNotConverged;
    multiply_all(to.d, n_, 1 / factor);
    if (!has_vectors_) {
      store(to.d, n_, operands[1]);
      return kDone;
    }
    store(to.d, n_, operands[2]);
    // u = Q [u 0; 0 1], for the reflectors of the reduction and for those of a tall matrix.
    for (int64_t j = 0; j < n_; ++j) std::fill(u + j * m_ + n_, u + (j + 1) * m_, T(0));
    fill_unit(u, m_, columns_, n_);
    shared_.make_factors(b, rows, to.left, rows, n_, t);
    shared_.apply(b, rows, t, rows, n_, u, m_, is_tall_ ? n_ : columns_, is_tall_ ? n_ : columns_, products);
    if (is_tall_) shared_.apply(a, m_, q_factors, m_, n_, u, m_, columns_, columns_, products);
    // v = P v, by columns.
    transpose(vt, v);
    const Int k = n_ - 1;
    shared_.make_factors(to.v + 1, n_, to.right, k, k, t);
    shared_.apply(to.v + 1, n_, t, k, k, v + 1, n_, n_, n_, products);
    if (is_wide_) {
      store(v, n_, operands[1]);
      store(u, m_, transposed(operands[3]));
    } else {
      store(u, m_, operands[1]);
      store(v, n_, transposed(operands[3]));
    }
    return kDone;
  }

 private:
  // A bidiagonal matrix, and the reflectors that made it: on the left below the diagonal of the matrix, on the right
  // below the diagonal but one of v.
  struct Reduced {
    T *d = nullptr, *e = nullptr, *left = nullptr, *right = nullptr, *v = nullptr;
  };

  // Of a [m, n]. x and y have kBlock columns.
  void reduce(T* a, Int rows, const Reduced& to, T* x, T* y) const {
    const Vectors<T> w{r_};
    for (Int j = 0; j < n_; j += kBlock) {
      const Int size = std::min(kBlock, n_ - j), m = rows - j, n = n_ - j;
      T *const block = a + int64_t{j} * rows + j, *const right = to.v + int64_t{j} * n_ + j;
      for (Int i = 0; i < size; ++i) {
        const Int below = m - i, after = n - i - 1;
        T* const column = block + int64_t{i} * rows + i;
        w.multiply(false, below, i, -1, block + i, rows, y + i, 1, column, n);
        w.multiply(false, below, i, -1, x + i, m, right + i, 1, column, n_);
        to.left[j + i] = w.reflect(below, column, column + std::min(1, below - 1));
        to.d[j + i] = *column;
        *column = 1;
        if (after == 0) break;
        T *const p = y + int64_t{i} * n + i + 1, *const p_first = y + int64_t{i} * n;
        multiply_by_columns(block + int64_t{i + 1} * rows + i, rows, below, after, column, p);
        w.multiply(true, below, i, 1, block + i, rows, column, 0, p_first);
        w.multiply(false, after, i, -1, y + i + 1, n, p_first, 1, p);
        w.multiply(true, below, i, 1, x + i, m, column, 0, p_first);
        w.multiply(false, after, i, -1, right + i + 1, n_, p_first, 1, p);
        w.scale(after, to.left[j + i], p);
        // The row, as a column of v.
        T* const row = right + int64_t{i} * n_ + i + 1;
        for (Int c = 0; c < after; ++c) row[c] = block[int64_t{i + 1 + c} * rows + i];
        w.multiply(false, after, i + 1, -1, y + i + 1, n, block + i, 1, row, rows);
        w.multiply(false, after, i, -1, right + i + 1, n_, x + i, 1, row, m);
        to.right[j + i] = w.reflect(after, row, row + std::min(1, after - 1));
        to.e[j + i] = *row;
        *row = 1;
        T *const q = x + int64_t{i} * m + i + 1, *const q_first = x + int64_t{i} * m;
        multiply_by_rows(block + int64_t{i + 1} * rows + i + 1, rows, below - 1, after, row, q);
        w.multiply(true, after, i + 1, 1, y + i + 1, n, row, 0, q_first);
        T first[kBlock];
        std::copy_n(q_first, i + 1, first);
        w.multiply(false, below - 1, i + 1, -1, block + i + 1, rows, first, 1, q);
        w.multiply(true, after, i, 1, right + i + 1, n_, row, 0, first);
        w.multiply(false, below - 1, i, -1, x + i + 1, m, first, 1, q);
        w.scale(below - 1, to.right[j + i], q);
      }
      if (size == n) return;
      const T minus = -1, one = 1;
      const Int left = m - size;
      shared_.for_columns(size, n, [&](Int begin, Int end) {
        const Int columns = end - begin;
        T* const c = block + int64_t{begin} * rows + size;
        this->l_.gemm("N", "T", &left, &columns, &size, &minus, block + size, &rows, y + begin, &n, &one, c, &rows, 1,
                      1);
        this->l_.gemm("N", "T", &left, &columns, &size, &minus, x + size, &m, right + begin, &n_, &one, c, &rows, 1, 1);
      });
    }
  }

  // y = a^T x of a [m, n], and y = a x.
  void multiply_by_columns(const T* a, Int stride, Int m, Int n, const T* x, T* y) const {
    share(m, n, n, [&](Int begin, Int end) {
      Vectors<T>{r_}.multiply(true, m, end - begin, 1, a + int64_t{begin} * stride, stride, x, 0, y + begin);
    });
  }
  void multiply_by_rows(const T* a, Int stride, Int m, Int n, const T* x, T* y) const {
    share(m, n, m, [&](Int begin, Int end) {
      Vectors<T>{r_}.multiply(false, end - begin, n, 1, a + begin, stride, x, 0, y + begin);
    });
  }
  template <class F>
  void share(Int m, Int n, Int count, const F& body) const {
    const int64_t elements = int64_t{m} * n, parts = shared_.parts_of(elements);
    shared_.for_parts(parts, elements, [&](int64_t part) {
      const Int begin = static_cast<Int>(count * part / parts), end = static_cast<Int>(count * (part + 1) / parts);
      if (begin < end) body(begin, end);
    });
  }

  void transpose(const T* from, T* to) const {
    shared_.for_columns(0, n_, [&](Int begin, Int end) {
      for (Int first = 0; first < n_; first += kBlock) {
        const Int last = std::min(first + kBlock, n_);
        for (int64_t j = begin; j < end; ++j) {
          for (int64_t i = first; i < last; ++i) to[j * n_ + i] = from[i * n_ + j];
        }
      }
    });
  }

  const Shared<T> shared_;
  const RealLapack<T>& r_;
  const bool is_wide_;
  const Int m_, n_;
  const bool is_tall_, has_vectors_;
  Int columns_ = 0;  // of u
};

}  // namespace

bool are_shared(const Op& op) {
  const compute_plugin_tensor& a = op.input(0);
  int64_t matrices = 1;
  for (int32_t i = 0; i < a.rank - 2; ++i) matrices *= a.shape[i];
  return std::min(a.shape[a.rank - 2], a.shape[a.rank - 1]) >= kLeastRows &&
         (matrices == 1 || 2 * matrices <= thread_count());
}

template <class T>
std::unique_ptr<Decomposition<T>> make_large(const LapackLibrary& library, const Op& op) {
  const std::string_view name = op.name();
  if (!are_shared(op)) return nullptr;
  if (name == "qr") return std::make_unique<LargeQr<T>>(library, op);
  if constexpr (!kIsComplex<T>) {
    if (name == "eigh" && thread_count() > 1) return std::make_unique<LargeEigh<T>>(library, op);
    if (name == "svd" && thread_count() > 1) return std::make_unique<LargeSvd<T>>(library, op);
  }
  return make_large_factors<T>(library, op);
}

template std::unique_ptr<Decomposition<float>> make_large(const LapackLibrary&, const Op&);
template std::unique_ptr<Decomposition<double>> make_large(const LapackLibrary&, const Op&);
template std::unique_ptr<Decomposition<std::complex<float>>> make_large(const LapackLibrary&, const Op&);
template std::unique_ptr<Decomposition<std::complex<double>>> make_large(const LapackLibrary&, const Op&);

}  // namespace compute::cpu
