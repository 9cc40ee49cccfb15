// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/linalg/jacobi.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/jacobi_kernel.hpp"
#include "plugins/cpu/linalg/transfer.hpp"

namespace compute::cpu {
namespace {

Int extent(const compute_plugin_tensor& x, int32_t from_end) { return static_cast<Int>(x.shape[x.rank - from_end]); }

template <class T>
const JacobiKernel<T>& kernel() {
  if constexpr (std::is_same_v<T, float>) {
    return isa().jacobi->float32;
  } else {
    return isa().jacobi->float64;
  }
}

// Matrices of so many elements in the lanes of vectors, and the power of two by which each is multiplied, so that its
// elements are at most 1.
template <class T>
class Lanes {
 public:
  Lanes(Arrays& arrays, int64_t size, int64_t largest)
      : lanes_(kernel<T>().lanes), size_(size), all_(arrays.take<T>(size * lanes_)), one_(arrays.take<T>(largest)) {}

  // False, and zeros, if an element is infinite or NaN.
  bool load(int64_t lane, const View& from, Triangle part) {
    const bool finite = cpu::load(from, one_, part);
    T most = 0;
    for (int64_t i = 0; i < size_; ++i) most = std::max(most, std::abs(one_[i]));
    int exponent = 0;
    if (finite) std::frexp(most, &exponent);
    using Limits = std::numeric_limits<T>;
    const T scale = std::ldexp(T(1), std::clamp(-exponent, Limits::min_exponent, Limits::max_exponent - 2));
    scales_[static_cast<size_t>(lane)] = scale;
    for (int64_t i = 0; i < size_; ++i) all_[i * lanes_ + lane] = finite ? one_[i] * scale : T(0);
    return finite;
  }
  void clear(int64_t first) {
    for (int64_t i = 0; i < size_; ++i) std::fill(all_ + i * lanes_ + first, all_ + (i + 1) * lanes_, T(0));
  }
  T* all() const { return all_; }

  void store(int64_t lane, const T* from, int64_t rows, int64_t columns, const View& to) const {
    for (int64_t i = 0; i < rows * columns; ++i) one_[i] = from[i * lanes_ + lane];
    cpu::store(one_, rows, to);
  }
  // Values of the matrix as it was loaded.
  void store_values(int64_t lane, const T* from, int64_t count, const View& to) const {
    const T scale = scales_[static_cast<size_t>(lane)];
    for (int64_t i = 0; i < count; ++i) one_[i] = from[i * lanes_ + lane] / scale;
    cpu::store(one_, count, to);
  }

 private:
  const int64_t lanes_, size_;
  T *const all_, *const one_;
  std::array<T, kMostTogether> scales_{};
};

template <class T>
class JacobiDecomposition : public Decomposition<T> {
 public:
  using Decomposition<T>::Decomposition;

  int64_t together() const final { return kernel<T>().lanes; }
  Outcome run(Arrays& arrays, const View* operands) const final {
    Outcome outcome;
    this->run_together(arrays, operands, 1, &outcome);
    return outcome;
  }
};

template <class T>
class JacobiEigh final : public JacobiDecomposition<T> {
 public:
  JacobiEigh(const LapackLibrary& library, const Op& op)
      : JacobiDecomposition<T>(library),
        n_(extent(op.input(0), 1)),
        upper_(op.integer("upper", 0) != 0),
        has_vectors_(op.output_count() == 2) {}

  void run_together(Arrays& arrays, const View* operands, int64_t count, Outcome* outcomes) const override {
    const int64_t size = int64_t{n_} * n_, lanes = kernel<T>().lanes;
    Lanes<T> a(arrays, size, size);
    T* const v = has_vectors_ ? arrays.take<T>(size * lanes) : nullptr;
    T* const values = arrays.take<T>(n_ * lanes);
    if (operands == nullptr) return;
    for (int64_t i = 0; i < count; ++i) {
      const View& from = operands[i * kMostOperands];
      outcomes[i] = a.load(i, upper_ ? transposed(from) : from, Triangle::kLower) ? kDone : kNotFinite;
    }
    a.clear(count);
    const bool has_converged = kernel<T>().eigen(n_, a.all(), v, values);
    for (int64_t i = 0; i < count; ++i) {
      if (!outcomes[i].is_done) continue;
      if (!has_converged) outcomes[i] = kNotConverged;
      a.store_values(i, values, n_, operands[i * kMostOperands + 1]);
      if (has_vectors_) a.store(i, v, n_, n_, operands[i * kMostOperands + 2]);
    }
  }

 private:
  const Int n_;
  const bool upper_, has_vectors_;
};

// Matrices with more columns than rows are transposed, so that m >= n.
template <class T>
class JacobiSvd final : public JacobiDecomposition<T> {
 public:
  JacobiSvd(const LapackLibrary& library, const Op& op)
      : JacobiDecomposition<T>(library),
        is_wide_(extent(op.input(0), 2) < extent(op.input(0), 1)),
        m_(extent(op.input(0), is_wide_ ? 1 : 2)),
        n_(extent(op.input(0), is_wide_ ? 2 : 1)),
        has_vectors_(op.output_count() == 3) {
    if (has_vectors_) columns_ = is_wide_ ? extent(op.output(2), 2) : extent(op.output(0), 1);
  }

  void run_together(Arrays& arrays, const View* operands, int64_t count, Outcome* outcomes) const override {
    const int64_t size = int64_t{m_} * n_, lanes = kernel<T>().lanes;
    Lanes<T> a(arrays, size, int64_t{m_} * m_);
    T* const u = has_vectors_ ? arrays.take<T>(int64_t{m_} * columns_ * lanes) : nullptr;
    T* const v = has_vectors_ ? arrays.take<T>(int64_t{n_} * n_ * lanes) : nullptr;
    T* const values = arrays.take<T>(n_ * lanes);
    if (operands == nullptr) return;
    for (int64_t i = 0; i < count; ++i) {
      const View& from = operands[i * kMostOperands];
      outcomes[i] = a.load(i, is_wide_ ? transposed(from) : from, Triangle::kAll) ? kDone : kNotFinite;
    }
    a.clear(count);
    const bool has_converged = kernel<T>().singular(m_, n_, columns_, a.all(), u, v, values);
    for (int64_t i = 0; i < count; ++i) {
      if (!outcomes[i].is_done) continue;
      if (!has_converged) outcomes[i] = kNotConverged;
      const View* const to = operands + i * kMostOperands + 1;
      a.store_values(i, values, n_, to[has_vectors_ ? 1 : 0]);
      if (!has_vectors_) continue;
      a.store(i, u, m_, columns_, is_wide_ ? transposed(to[2]) : to[0]);
      a.store(i, v, n_, n_, is_wide_ ? to[0] : transposed(to[2]));
    }
  }

 private:
  const bool is_wide_;
  const Int m_, n_;
  const bool has_vectors_;
  Int columns_ = 0;  // of u
};

}  // namespace

template <class T>
std::unique_ptr<Decomposition<T>> make_jacobi(const LapackLibrary& library, const Op& op) {
  const compute_plugin_tensor& a = op.input(0);
  if (op.name() != "eigh" && op.name() != "svd") return nullptr;
  if (std::max(extent(a, 1), extent(a, 2)) > std::min(kMostJacobiRows, 8 * kernel<T>().lanes)) return nullptr;
  int64_t matrices = 1;
  for (int32_t i = 0; i < a.rank - 2; ++i) matrices *= a.shape[i];
  if (matrices < 2 * kernel<T>().lanes) return nullptr;
  if (op.name() == "eigh") return std::make_unique<JacobiEigh<T>>(library, op);
  return std::make_unique<JacobiSvd<T>>(library, op);
}

template std::unique_ptr<Decomposition<float>> make_jacobi(const LapackLibrary&, const Op&);
template std::unique_ptr<Decomposition<double>> make_jacobi(const LapackLibrary&, const Op&);

}  // namespace compute::cpu
