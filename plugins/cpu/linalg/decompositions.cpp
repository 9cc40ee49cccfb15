// SPDX-License-Identifier: Apache-2.0
// Each matrix is copied into column-major memory of its slot, computed there, and stored from there. A matrix with
// infinities or NaN is not computed: LAPACK need not end for it, so its results are NaN. They are NaN too where the
// result does not exist, which the fault record says.
#include "plugins/cpu/linalg/decompositions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/linalg/jacobi.hpp"
#include "plugins/cpu/linalg/large.hpp"
#include "plugins/cpu/linalg/matrix.hpp"
#include "plugins/cpu/linalg/small.hpp"
#include "plugins/cpu/linalg/transfer.hpp"
#include "plugins/cpu/linalg/triangles.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kGrain = 100'000;     // operations that justify waking a thread
constexpr int64_t kCallCost = 2'000;    // of a call of LAPACK, in operations
constexpr int64_t kSlotsPerThread = 4;  // at most: one that the system runs late holds up a few matrices

// ---- One matrix -----------------------------------------------------------------------------------------------------

template <class T>
class Cholesky final : public Decomposition<T> {
 public:
  Cholesky(const LapackLibrary& library, const Op& op)
      : Decomposition<T>(library),
        n_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 1])),
        upper_(op.integer("upper", 0) != 0) {}

  Outcome run(Arrays& arrays, const View* operands) const override {
    T* const a = arrays.take<T>(int64_t{n_} * n_);
    if (operands == nullptr) return kDone;
    // The transpose of a Hermitian matrix has the conjugate factor, so the upper factor is its transpose.
    if (!load(upper_ ? transposed(operands[0]) : operands[0], a, Triangle::kLower)) return kNotFinite;
    Int info = 0;
    if (n_ <= kMostSmallRows) {
      info = cholesky_small(n_, a);
    } else {
      this->l_.potrf("L", &n_, a, &n_, &info, 1);
    }
    if (info != 0) return kNotPositiveDefinite;
    store(a, n_, upper_ ? transposed(operands[1]) : operands[1], Triangle::kLower);
    return kDone;
  }

 private:
  const Int n_;
  const bool upper_;
};

// What uses the factors of a matrix with exchanged rows.
template <class T>
class ByFactors : public Decomposition<T> {
 public:
  using Decomposition<T>::Decomposition;

 protected:
  // Both return what LAPACK does.
  Int factor(Int m, Int n, T* a, Int* pivots) const {
    if (std::max(m, n) <= kMostSmallRows) return factor_small(m, n, a, pivots);
    Int info = 0;
    this->l_.getrf(&m, &n, a, &m, pivots, &info);
    return info;
  }
  void solve(Int n, Int count, const T* a, const Int* pivots, T* b) const {
    if (n <= kMostSmallRows && count <= kMostSmallRows) return solve_small(n, count, a, pivots, b);
    Int info = 0;
    this->l_.getrs("N", &n, &count, a, &n, pivots, b, &n, &info, 1);
  }
};

template <class T>
class Lu final : public ByFactors<T> {
 public:
  Lu(const LapackLibrary& library, const Op& op)
      : ByFactors<T>(library),
        m_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 2])),
        n_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 1])) {}

  Outcome run(Arrays& arrays, const View* operands) const override {
    const Int count = std::min(m_, n_);
    T* const a = arrays.take<T>(int64_t{m_} * n_);
    Int* const pivots = arrays.take<Int>(count);
    if (operands == nullptr) return kDone;
    const bool all_finite = load(operands[0], a);
    if (all_finite) {
      this->factor(m_, n_, a, pivots);
      store(a, m_, operands[1]);
    } else {
      store_all(kNan<T>, operands[1]);
      for (Int i = 0; i < count; ++i) pivots[i] = i + 1;
    }
    const View& to = operands[2];
    for (Int i = 0; i < count; ++i) {
      const int64_t row = pivots[i] - 1;
      std::memcpy(to.data + i * to.row_stride, &row, sizeof row);
    }
    return kDone;
  }

 private:
  const Int m_, n_;
};

template <class T>
class TriangularSolve final : public Decomposition<T> {
 public:
  TriangularSolve(const LapackLibrary& library, const Op& op)
      : Decomposition<T>(library),
        is_shared_(are_shared(op)),
        n_(static_cast<Int>(op.input(1).shape[op.input(1).rank - 2])),
        count_(static_cast<Int>(op.input(1).shape[op.input(1).rank - 1])),
        upper_(op.integer("upper", 0) != 0),
        unit_(op.integer("unit_diagonal", 0) != 0),
        equations_(library, n_, count_) {}

  bool takes_all_threads() const override { return is_shared_; }

  Outcome run(Arrays& arrays, const View* operands) const override {
    T* const a = arrays.take<T>(int64_t{n_} * n_);
    T* const b = arrays.take<T>(int64_t{n_} * count_);
    const auto scratch = equations_.take(arrays);
    if (operands == nullptr) return kDone;
    load(operands[0], a);
    load(operands[1], b);
    equations_.solve(a, upper_, unit_, b, false, scratch);
    store(b, n_, operands[2]);
    return kDone;
  }

 private:
  const bool is_shared_;
  const Int n_, count_;
  const bool upper_, unit_;
  const Equations<T> equations_;
};

template <class T>
class Solve final : public ByFactors<T> {
 public:
  Solve(const LapackLibrary& library, const Op& op)
      : ByFactors<T>(library),
        n_(static_cast<Int>(op.input(1).shape[op.input(1).rank - 2])),
        count_(static_cast<Int>(op.input(1).shape[op.input(1).rank - 1])) {}

  Outcome run(Arrays& arrays, const View* operands) const override {
    T* const a = arrays.take<T>(int64_t{n_} * n_);
    T* const b = arrays.take<T>(int64_t{n_} * count_);
    Int* const pivots = arrays.take<Int>(n_);
    if (operands == nullptr) return kDone;
    if (!load(operands[0], a)) return kNotFinite;
    load(operands[1], b);
    if (this->factor(n_, n_, a, pivots) != 0) return kSingular;
    this->solve(n_, count_, a, pivots, b);
    store(b, n_, operands[2]);
    return kDone;
  }

 private:
  const Int n_, count_;
};

template <class T>
class Inverse final : public ByFactors<T> {
 public:
  Inverse(const LapackLibrary& library, const Op& op)
      : ByFactors<T>(library), n_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 1])) {
    T answer = 0;
    const Int ask = -1;
    Int info = 0, pivots = 0;
    this->l_.getri(&n_, nullptr, &n_, &pivots, &answer, &ask, &info);
    work_ = work_size(answer);
  }

  Outcome run(Arrays& arrays, const View* operands) const override {
    T* const a = arrays.take<T>(int64_t{n_} * n_);
    T* const work = arrays.take<T>(std::max(work_, is_small() ? n_ * n_ : 1));
    Int* const pivots = arrays.take<Int>(n_);
    if (operands == nullptr) return kDone;
    if (!load(operands[0], a)) return kNotFinite;
    if (this->factor(n_, n_, a, pivots) != 0) return kSingular;
    if (is_small()) {
      for (Int i = 0; i < n_ * n_; ++i) work[i] = i % (n_ + 1) == 0 ? T(1) : T(0);
      this->solve(n_, n_, a, pivots, work);
      store(work, n_, operands[1]);
      return kDone;
    }
    Int info = 0;
    this->l_.getri(&n_, a, &n_, pivots, work, &work_, &info);
    if (info != 0) return kSingular;
    store(a, n_, operands[1]);
    return kDone;
  }

 private:
  // LAPACK uses that it inverts triangles.
  bool is_small() const { return n_ <= 6; }

  const Int n_;
  Int work_ = 1;
};

template <class T>
class Qr final : public Decomposition<T> {
 public:
  Qr(const LapackLibrary& library, const Op& op)
      : Decomposition<T>(library),
        m_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 2])),
        n_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 1])),
        columns_(static_cast<Int>(op.output(0).shape[op.output(0).rank - 1])) {
    T answer = 0;
    const Int ask = -1, count = std::min(m_, n_);
    Int info = 0;
    T none = 0;
    this->l_.geqrf(&m_, &n_, &none, &m_, &none, &answer, &ask, &info);
    work_ = work_size(answer);
    this->l_.orgqr(&m_, &columns_, &count, &none, &m_, &none, &answer, &ask, &info);
    work_ = std::max(work_, work_size(answer));
  }

  Outcome run(Arrays& arrays, const View* operands) const override {
    const Int count = std::min(m_, n_), widest = std::max(n_, columns_);
    T* const a = arrays.take<T>(int64_t{m_} * widest);
    T* const tau = arrays.take<T>(count);
    const bool is_small = std::max(m_, widest) <= kMostSmallRows;
    T* const work = arrays.take<T>(is_small ? m_ * columns_ : work_);
    if (operands == nullptr) return kDone;
    if (!load(operands[0], a)) return kNotFinite;
    if (is_small) {
      if (widest <= kMostSmallRows / 2) {
        qr_small<kMostSmallRows / 2>(m_, n_, columns_, a, work);
      } else {
        qr_small<kMostSmallRows>(m_, n_, columns_, a, work);
      }
      store(a, m_, operands[2], Triangle::kUpper);
      store(work, m_, operands[1]);
      return kDone;
    }
    Int info = 0;
    this->l_.geqrf(&m_, &n_, a, &m_, tau, work, &work_, &info);
    store(a, m_, operands[2], Triangle::kUpper);
    this->l_.orgqr(&m_, &columns_, &count, a, &m_, tau, work, &work_, &info);
    store(a, m_, operands[1]);
    return kDone;
  }

 private:
  const Int m_, n_, columns_;  // of q
  Int work_ = 1;
};

// Of Hermitian matrices, of which one triangle is read.
template <class T>
class Eigh final : public Decomposition<T> {
 public:
  Eigh(const LapackLibrary& library, const Op& op)
      : Decomposition<T>(library),
        n_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 1])),
        upper_(op.integer("upper", 0) != 0),
        has_vectors_(op.output_count() == 2) {
    T answer = 0;
    Real<T> real_answer = 0;
    Int info = 0, integer_answer = 0;
    call(nullptr, nullptr, &answer, -1, &real_answer, -1, &integer_answer, -1, info);
    work_ = work_size(answer);
    real_work_ = work_size(real_answer);
    integer_work_ = std::max(1, integer_answer);
  }

  Outcome run(Arrays& arrays, const View* operands) const override {
    T* const a = arrays.take<T>(int64_t{n_} * n_);
    auto* const values = arrays.take<Real<T>>(n_);
    T* const work = arrays.take<T>(work_);
    auto* const real_work = arrays.take<Real<T>>(kIsComplex<T> ? real_work_ : 1);
    Int* const integer_work = arrays.take<Int>(integer_work_);
    if (operands == nullptr) return kDone;
    if (!load(operands[0], a, upper_ ? Triangle::kUpper : Triangle::kLower)) return kNotFinite;
    Int info = 0;
    call(a, values, work, work_, real_work, real_work_, integer_work, integer_work_, info);
    if (info != 0) return kNotConverged;
    store(values, n_, operands[1]);
    if (has_vectors_) store(a, n_, operands[2]);
    return kDone;
  }

 private:
  void call(T* a, Real<T>* values, T* work, Int size, Real<T>* real_work, Int real_size, Int* integer_work,
            Int integer_size, Int& info) const {
    const char *const job = has_vectors_ ? "V" : "N", *const triangle = upper_ ? "U" : "L";
    if constexpr (kIsComplex<T>) {
      this->l_.syevd(job, triangle, &n_, a, &n_, values, work, &size, real_work, &real_size, integer_work,
                     &integer_size, &info, 1, 1);
    } else {
      static_cast<void>(real_work);
      static_cast<void>(real_size);
      this->l_.syevd(job, triangle, &n_, a, &n_, values, work, &size, integer_work, &integer_size, &info, 1, 1);
    }
  }

  const Int n_;
  const bool upper_, has_vectors_;
  Int work_ = 1, real_work_ = 1, integer_work_ = 1;
};

// Of any square matrices; the results are complex.
template <class T>
class Eig final : public Decomposition<T> {
 public:
  using Complex = std::complex<Real<T>>;

  Eig(const LapackLibrary& library, const Op& op)
      : Decomposition<T>(library),
        n_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 1])),
        has_vectors_(op.output_count() == 2) {
    T answer = 0;
    Real<T> real_answer = 0;
    Int info = 0;
    call(nullptr, nullptr, nullptr, nullptr, &answer, -1, &real_answer, info);
    work_ = work_size(answer);
  }

  Outcome run(Arrays& arrays, const View* operands) const override {
    const int64_t size = has_vectors_ ? int64_t{n_} * n_ : 1;
    T* const a = arrays.take<T>(int64_t{n_} * n_);
    T* const values = arrays.take<T>(n_);     // or their real parts
    T* const imaginary = arrays.take<T>(n_);  // of real matrices
    T* const vectors = arrays.take<T>(size);
    T* const work = arrays.take<T>(work_);
    auto* const real_work = arrays.take<Real<T>>(kIsComplex<T> ? 2 * n_ : 1);
    if (operands == nullptr) return kDone;
    if (!load(operands[0], a)) return kNotFinite;
    Int info = 0;
    call(a, values, imaginary, vectors, work, work_, real_work, info);
    if (info != 0) return kNotConverged;
    if constexpr (kIsComplex<T>) {
      store(values, n_, operands[1]);
      if (has_vectors_) store(vectors, n_, operands[2]);
    } else {
      store_pairs(values, imaginary, vectors, operands);
    }
    return kDone;
  }

 private:
  // Two conjugate eigenvalues have vectors x + iy and x - iy, whose x and y are two columns.
  void store_pairs(const T* values, const T* imaginary, const T* vectors, const View* operands) const {
    for (Int j = 0; j < n_; ++j) {
      const Complex value(values[j], imaginary[j]);
      std::memcpy(operands[1].data + j * operands[1].row_stride, &value, sizeof value);
      if (!has_vectors_) continue;
      const bool is_first = imaginary[j] > 0 && j + 1 < n_, is_second = imaginary[j] < 0 && j > 0;
      const T* const x = vectors + int64_t{is_second ? j - 1 : j} * n_;
      for (Int i = 0; i < n_; ++i) {
        const Complex element(x[i], is_first ? x[n_ + i] : is_second ? -x[n_ + i] : 0);
        std::memcpy(operands[2].data + i * operands[2].row_stride + j * operands[2].column_stride, &element,
                    sizeof element);
      }
    }
  }

  void call(T* a, T* values, T* imaginary, T* vectors, T* work, Int size, Real<T>* real_work, Int& info) const {
    const char* const job = has_vectors_ ? "V" : "N";
    if constexpr (kIsComplex<T>) {
      static_cast<void>(imaginary);
      this->l_.geev("N", job, &n_, a, &n_, values, nullptr, &n_, vectors, &n_, work, &size, real_work, &info, 1, 1);
    } else {
      static_cast<void>(real_work);
      this->l_.geev("N", job, &n_, a, &n_, values, imaginary, nullptr, &n_, vectors, &n_, work, &size, &info, 1, 1);
    }
  }

  const Int n_;
  const bool has_vectors_;
  Int work_ = 1;
};

template <class T>
class Svd final : public Decomposition<T> {
 public:
  Svd(const LapackLibrary& library, const Op& op)
      : Decomposition<T>(library),
        m_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 2])),
        n_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 1])),
        has_vectors_(op.output_count() == 3) {
    const Int count = std::min(m_, n_);
    if (has_vectors_) {
      columns_ = static_cast<Int>(op.output(0).shape[op.output(0).rank - 1]);
      rows_ = static_cast<Int>(op.output(2).shape[op.output(2).rank - 2]);
    }
    job_ = !has_vectors_ ? "N" : columns_ > count || rows_ > count ? "A" : "S";
    T answer = 0;
    Real<T> real_answer = 0;
    Int info = 0, integer_answer = 0;
    call(nullptr, nullptr, nullptr, nullptr, &answer, -1, &real_answer, &integer_answer, info);
    work_ = work_size(answer);
  }

  Outcome run(Arrays& arrays, const View* operands) const override {
    const int64_t least = std::min(m_, n_), most = std::max(m_, n_);
    T* const a = arrays.take<T>(int64_t{m_} * n_);
    auto* const values = arrays.take<Real<T>>(least);
    T* const u = arrays.take<T>(int64_t{m_} * columns_);
    T* const v = arrays.take<T>(int64_t{rows_} * n_);
    T* const work = arrays.take<T>(work_);
    const int64_t real_size = has_vectors_ ? least * std::max(5 * least + 7, 2 * most + 2 * least + 1) : 7 * least;
    auto* const real_work = arrays.take<Real<T>>(kIsComplex<T> ? real_size : 1);
    Int* const integer_work = arrays.take<Int>(8 * least);
    if (operands == nullptr) return kDone;
    if (!load(operands[0], a)) return kNotFinite;
    Int info = 0;
    call(a, values, u, v, work, work_, real_work, integer_work, info);
    if (info != 0) return kNotConverged;
    if (!has_vectors_) {
      store(values, least, operands[1]);
    } else {
      store(u, m_, operands[1]);
      store(values, least, operands[2]);
      store(v, rows_, operands[3]);
    }
    return kDone;
  }

 private:
  void call(T* a, Real<T>* values, T* u, T* v, T* work, Int size, Real<T>* real_work, Int* integer_work,
            Int& info) const {
    const Int v_stride = std::max(1, rows_);
    if constexpr (kIsComplex<T>) {
      this->l_.gesdd(job_, &m_, &n_, a, &m_, values, u, &m_, v, &v_stride, work, &size, real_work, integer_work, &info,
                     1);
    } else {
      static_cast<void>(real_work);
      this->l_.gesdd(job_, &m_, &n_, a, &m_, values, u, &m_, v, &v_stride, work, &size, integer_work, &info, 1);
    }
  }

  const Int m_, n_;
  const bool has_vectors_;
  Int columns_ = 0, rows_ = 0;  // of u and of v
  const char* job_ = "N";
  Int work_ = 1;
};

// By scaling and squaring (Higham 2005): the Padé approximant [13/13] of the matrix divided by a power of two, to that
// power.
template <class T>
class Exponential final : public Decomposition<T> {
 public:
  Exponential(const LapackLibrary& library, const Op& op)
      : Decomposition<T>(library), n_(static_cast<Int>(op.input(0).shape[op.input(0).rank - 1])) {}

  Outcome run(Arrays& arrays, const View* operands) const override {
    const int64_t size = int64_t{n_} * n_;
    std::array<T*, 7> m{};
    for (T*& matrix : m) matrix = arrays.take<T>(size);
    Int* const pivots = arrays.take<Int>(n_);
    if (operands == nullptr) return kDone;
    auto& [a, a2, a4, a6, u, v, w] = m;
    if (!load(operands[0], a)) return kNotFinite;
    const int squarings = scale(a, size);
    static constexpr double kB[] = {64764752532480000.,
                                    32382376266240000.,
                                    7771770303897600.,
                                    1187353796428800.,
                                    129060195264000.,
                                    10559470521600.,
                                    670442572800.,
                                    33522128640.,
                                    1323241920.,
                                    40840800.,
                                    960960.,
                                    16380.,
                                    182.,
                                    1.};
    multiply(a, a, a2);
    multiply(a2, a2, a4);
    multiply(a2, a4, a6);
    // The polynomial b[1] + b[3] a^2 + ... of the given first coefficient.
    const auto polynomial = [&](int first, T* result, T* free) {
      const auto b = [&](int i) { return static_cast<Real<T>>(kB[first + i]); };
      for (int64_t i = 0; i < size; ++i) free[i] = b(12) * a6[i] + b(10) * a4[i] + b(8) * a2[i];
      multiply(a6, free, result);
      for (int64_t i = 0; i < size; ++i) result[i] += b(6) * a6[i] + b(4) * a4[i] + b(2) * a2[i];
      for (int64_t i = 0; i < n_; ++i) result[i * n_ + i] += b(0);
    };
    polynomial(1, v, w);
    multiply(a, v, u);
    polynomial(0, v, w);
    for (int64_t i = 0; i < size; ++i) {  // (v - u) e = v + u
      w[i] = v[i] - u[i];
      v[i] += u[i];
    }
    Int info = 0;
    this->l_.getrf(&n_, &n_, w, &n_, pivots, &info);
    if (info != 0) return kSingular;
    this->l_.getrs("N", &n_, &n_, w, &n_, pivots, v, &n_, &info, 1);
    T *x = v, *y = u;
    for (int i = 0; i < squarings; ++i) {
      multiply(x, x, y);
      std::swap(x, y);
    }
    store(x, n_, operands[1]);
    return kDone;
  }

 private:
  void multiply(const T* a, const T* b, T* c) const {
    const T one = 1, zero = 0;
    this->l_.gemm("N", "N", &n_, &n_, &n_, &one, a, &n_, b, &n_, &zero, c, &n_, 1, 1);
  }

  // Divides the matrix by 2^s, so that its norm is at most where the approximant is exact to the type; returns s.
  int scale(T* a, int64_t size) const {
    const double most = sizeof(Real<T>) == 4 ? 3.925724783138660 : 5.371920351148152;
    double norm = 0;
    for (int64_t j = 0; j < n_; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < n_; ++i) sum += static_cast<double>(std::abs(a[j * n_ + i]));
      norm = std::max(norm, sum);
    }
    int exponent = 0;
    if (!std::isfinite(norm)) {
      exponent = 1060;  // more than the sum of 2^31 numbers needs
    } else if (norm > most) {
      std::frexp(norm / most, &exponent);
    }
    if (exponent > 0) {
      const auto factor = static_cast<Real<T>>(std::ldexp(1., -exponent));
      for (int64_t i = 0; i < size; ++i) a[i] *= factor;
    }
    return exponent;
  }

  const Int n_;
};

// ---- Batches --------------------------------------------------------------------------------------------------------

// The first matrix of a batch that has no result. Written by several threads.
class FirstFault {
 public:
  void add(int64_t position, int32_t code) {
    const std::lock_guard lock(mutex_);
    if (position_ >= 0 && position_ < position) return;
    position_ = position;
    code_ = code;
  }

  void report(const compute_plugin_run& run, const std::string& op) const {
    if (position_ < 0) return;
    if (run.fault.buffer == 0)
      throw Error(COMPUTE_ERROR_NUMERICAL,
                  op + ": matrix " + std::to_string(position_) + " of the batch has no result");
    auto* fault = reinterpret_cast<compute_plugin_fault*>(address(run.fault));
    if (fault->code != COMPUTE_PLUGIN_FAULT_NONE) return;
    fault->argument = 0;
    fault->value = -1;
    fault->limit = 0;
    fault->position = position_;
    __atomic_store_n(&fault->code, code_, __ATOMIC_RELEASE);
  }

 private:
  std::mutex mutex_;
  int64_t position_ = -1;
  int32_t code_ = COMPUTE_PLUGIN_FAULT_NONE;
};

// How many of the last axes of an operand belong to one matrix.
struct Operands {
  std::string_view name;
  std::array<int8_t, 4> axes;  // inputs, then outputs
};

constexpr Operands kOperands[] = {
    {"cholesky", {2, 2}},  {"eig", {2, 1, 2}},
    {"eigh", {2, 1, 2}},   {"expm", {2, 2}},
    {"inv", {2, 2}},       {"lu", {2, 2, 1}},
    {"qr", {2, 2, 2}},     {"solve", {2, 2, 2}},
    {"svd", {2, 2, 1, 2}}, {"triangular_solve", {2, 2, 2}},
};

int32_t matrix_axes(const Op& op, int32_t tensor) {
  if (op.name() == "svd" && op.output_count() == 1) return tensor == 0 ? 2 : 1;  // values alone
  for (const Operands& row : kOperands) {
    if (row.name == op.name()) return row.axes[static_cast<size_t>(tensor)];
  }
  return 2;
}

template <class T>
std::unique_ptr<Decomposition<T>> make_decomposition(const LapackLibrary& library, const Op& op) {
  const std::string_view name = op.name();
  if (auto large = make_large<T>(library, op)) return large;
  if constexpr (!kIsComplex<T>) {
    if (auto jacobi = make_jacobi<T>(library, op)) return jacobi;
  }
  if (name == "cholesky") return std::make_unique<Cholesky<T>>(library, op);
  if (name == "eig") return std::make_unique<Eig<T>>(library, op);
  if (name == "eigh") return std::make_unique<Eigh<T>>(library, op);
  if (name == "expm") return std::make_unique<Exponential<T>>(library, op);
  if (name == "inv") return std::make_unique<Inverse<T>>(library, op);
  if (name == "lu") return std::make_unique<Lu<T>>(library, op);
  if (name == "qr") return std::make_unique<Qr<T>>(library, op);
  if (name == "solve") return std::make_unique<Solve<T>>(library, op);
  if (name == "svd") return std::make_unique<Svd<T>>(library, op);
  return std::make_unique<TriangularSolve<T>>(library, op);
}

template <class T>
class DecompositionPlan final : public Plan {
 public:
  DecompositionPlan(const LapackLibrary& library, const Op& op)
      : name_(op.name()), openmp_(library.openmp), decomposition_(make_decomposition<T>(library, op)) {
    std::vector<std::vector<int64_t>> strides;
    std::vector<const int64_t*> pointers;
    std::vector<int64_t> batch;
    int64_t cost = 1;
    for (int32_t i = 0; i < op.tensor_count(); ++i) {
      const compute_plugin_tensor& tensor = op.tensor(i);
      const int32_t axes = matrix_axes(op, i), first = tensor.rank - axes;
      const int64_t size = common::dtype_size(tensor.dtype);
      View view;
      view.rows = tensor.shape[first];
      view.row_stride = tensor.strides[first] * size;
      view.columns = axes == 2 ? tensor.shape[first + 1] : 1;
      view.column_stride = axes == 2 ? tensor.strides[first + 1] * size : 0;
      views_.push_back(view);
      dtypes_.push_back(tensor.dtype);
      std::vector<int64_t>& list = strides.emplace_back();
      for (int32_t axis = 0; axis < first; ++axis) list.push_back(tensor.strides[axis] * size);
      if (i == 0) {
        batch.assign(tensor.shape, tensor.shape + first);
        cost = kCallCost + 4 * view.rows * view.columns * std::min(view.rows, view.columns);
      }
    }
    inputs_ = op.input_count();
    // The last one is the position in the batch, which faults name.
    std::vector<int64_t>& positions = strides.emplace_back(batch.size());
    int64_t step = 1;
    for (size_t axis = batch.size(); axis-- > 0; step *= batch[axis]) positions[axis] = step;
    for (const auto& list : strides) pointers.push_back(list.data());
    nest_ = common::collapse(batch, pointers, 0);
    slot_bytes_ = decomposition_->memory_bytes();
    const int64_t matrices = nest_.points();
    together_ = decomposition_->together();
    groups_ = (matrices + together_ - 1) / together_;
    const double work = static_cast<double>(matrices) * static_cast<double>(cost) / static_cast<double>(kGrain);
    const int64_t most = std::min<int64_t>(groups_, kSlotsPerThread * thread_count());
    slots_ = decomposition_->takes_all_threads()
                 ? 1
                 : std::clamp<int64_t>(static_cast<int64_t>(std::min(work, 1e9)), 1, most);
    workspace_bytes = slots_ * slot_bytes_;
    reports_faults = true;
  }

  void run(const compute_plugin_run& run) const override {
    FirstFault fault;
    parallel_tasks(slots_, 1, [&](int64_t begin, int64_t end) {
      const OneOpenmpThread one(openmp_);
      for (int64_t slot = begin; slot < end; ++slot) {
        if (together_ == 1) {
          run_slot<1>(run, slot, fault);
        } else {
          run_slot<kMostTogether>(run, slot, fault);
        }
      }
    });
    fault.report(run, name_);
  }

 private:
  template <int64_t kMost>
  void run_slot(const compute_plugin_run& run, int64_t slot, FirstFault& fault) const {
    const int64_t first = groups_ * slot / slots_ * together_;
    const int64_t last = std::min(groups_ * (slot + 1) / slots_ * together_, nest_.points());
    const size_t count = views_.size();
    std::array<int64_t, kMostOperands + 1> offsets{};
    std::array<View, kMostOperands * kMost> operands;
    std::array<int64_t, kMost> positions{};
    std::array<Outcome, kMost> outcomes;
    Walk walk(nest_, nest_.rank, first, offsets.data());
    for (int64_t i = first; i < last; i += together_) {
      const auto matrices = static_cast<size_t>(std::min(together_, last - i));
      for (size_t m = 0; m < matrices; ++m, walk.next()) {
        for (size_t k = 0; k < count; ++k) {
          View& view = operands[m * kMostOperands + k];
          view = views_[k];
          view.data = address(run.tensors[k]) + nest_.offsets[k] + offsets[k];
        }
        positions[m] = nest_.offsets[count] + offsets[count];
      }
      Arrays arrays(address(run.workspace) + slot * slot_bytes_);
      decomposition_->run_together(arrays, operands.data(), static_cast<int64_t>(matrices), outcomes.data());
      for (size_t m = 0; m < matrices; ++m) {
        if (outcomes[m].is_done) continue;
        for (size_t k = static_cast<size_t>(inputs_); k < count; ++k)
          store_nan(operands[m * kMostOperands + k], dtypes_[k]);
        if (outcomes[m].fault != COMPUTE_PLUGIN_FAULT_NONE) fault.add(positions[m], outcomes[m].fault);
      }
    }
  }

  static void store_nan(const View& to, compute_dtype dtype) {
    if (dtype == COMPUTE_DTYPE_FLOAT32) store_all(kNan<float>, to);
    if (dtype == COMPUTE_DTYPE_FLOAT64) store_all(kNan<double>, to);
    if (dtype == COMPUTE_DTYPE_COMPLEX64) store_all(std::complex<float>(kNan<float>, kNan<float>), to);
    if (dtype == COMPUTE_DTYPE_COMPLEX128) store_all(std::complex<double>(kNan<double>, kNan<double>), to);
  }

  const std::string name_;
  const Openmp& openmp_;
  const std::unique_ptr<const Decomposition<T>> decomposition_;
  common::LoopNest nest_;  // over the batch
  std::vector<View> views_;
  std::vector<compute_dtype> dtypes_;
  int32_t inputs_ = 1;
  int64_t together_ = 1, groups_ = 1;   // matrices of a group, and groups
  int64_t slot_bytes_ = 0, slots_ = 1;  // groups that are computed at a time
};

}  // namespace

std::optional<Refusal> refuse_decomposition(const Op& op) {
  const compute_dtype dtype = op.input(0).dtype;
  if (dtype != COMPUTE_DTYPE_FLOAT32 && dtype != COMPUTE_DTYPE_FLOAT64 && !is_complex(dtype))
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, std::string(op.name()) + ": LAPACK has no " + dtype_name(dtype), ""};
  for (int32_t i = 0; i < op.tensor_count(); ++i) {
    for (int32_t axis = 0; axis < op.tensor(i).rank; ++axis) {
      if (op.tensor(i).shape[axis] > (1 << 30) && axis + matrix_axes(op, i) >= op.tensor(i).rank)
        return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, i,
                       std::string(op.name()) + ": a matrix has more than 2^30 rows or columns", ""};
    }
  }
  std::string reason;
  if (lapack(&reason) == nullptr)
    return Refusal{COMPUTE_PLUGIN_REFUSE_LIBRARY_MISSING, -1,
                   std::string(op.name()) + " needs LAPACK of OpenBLAS: " + reason, ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_decomposition(const Op& op) {
  const LapackLibrary& library = *lapack();
  const OneOpenmpThread one(library.openmp);
  switch (op.input(0).dtype) {
    case COMPUTE_DTYPE_FLOAT32:
      return std::make_unique<DecompositionPlan<float>>(library, op);
    case COMPUTE_DTYPE_FLOAT64:
      return std::make_unique<DecompositionPlan<double>>(library, op);
    case COMPUTE_DTYPE_COMPLEX64:
      return std::make_unique<DecompositionPlan<std::complex<float>>>(library, op);
    default:
      return std::make_unique<DecompositionPlan<std::complex<double>>>(library, op);
  }
}

}  // namespace compute::cpu
