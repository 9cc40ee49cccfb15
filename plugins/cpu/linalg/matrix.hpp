// SPDX-License-Identifier: Apache-2.0
// One matrix: its operands, the memory in which it is computed, and what a decomposition is.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>

#include "plugins/cpu/base/plan.hpp"
#include "plugins/cpu/linalg/lapack.hpp"

namespace compute::cpu {

constexpr int64_t kArrayAlignment = 64;

using Int = LapackInt;

// ---- Matrices -------------------------------------------------------------------------------------------------------

// One matrix, or vector of one column, of an operand; strides in bytes.
struct View {
  char* data = nullptr;
  int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;
};

template <class T>
bool is_finite(T x) {
  return std::isfinite(x);
}
template <class T>
bool is_finite(std::complex<T> x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}

template <class T>
void store_all(T value, const View& to) {
  for (int64_t j = 0; j < to.columns; ++j) {
    for (int64_t i = 0; i < to.rows; ++i)
      std::memcpy(to.data + i * to.row_stride + j * to.column_stride, &value, sizeof value);
  }
}

template <class T>
constexpr T kNan = std::numeric_limits<Real<T>>::quiet_NaN();

// ---- The memory of a slot -------------------------------------------------------------------------------------------

// Arrays in one block; without a block, it counts the bytes.
class Arrays {
 public:
  explicit Arrays(char* memory) : memory_(memory) {}

  template <class T>
  T* take(int64_t count) {
    char* const begin = memory_ == nullptr ? nullptr : memory_ + bytes_;
    bytes_ += (std::max<int64_t>(count, 1) * static_cast<int64_t>(sizeof(T)) + kArrayAlignment - 1) / kArrayAlignment *
              kArrayAlignment;
    return reinterpret_cast<T*>(begin);
  }
  int64_t bytes() const { return bytes_; }

 private:
  char* memory_;
  int64_t bytes_ = 0;
};

// What a routine answers when it is asked for the size of its work array.
template <class T>
Int work_size(T answer) {
  return std::max(1, static_cast<Int>(std::real(answer)) + 1);  // rounded to the type, the answer may be too small
}

// ---- One matrix -----------------------------------------------------------------------------------------------------

// How the computation of a matrix ended. Without a result, `fault` is the reason (COMPUTE_PLUGIN_FAULT_).
struct Outcome {
  bool is_done = false;
  int32_t fault = COMPUTE_PLUGIN_FAULT_NONE;
};

constexpr Outcome kDone{true};
constexpr Outcome kNotFinite{};  // an operand has infinities or NaN
constexpr Outcome kNotConverged{false, COMPUTE_PLUGIN_FAULT_NOT_CONVERGED};

constexpr Outcome kSingular{false, COMPUTE_PLUGIN_FAULT_SINGULAR};
constexpr Outcome kNotPositiveDefinite{false, COMPUTE_PLUGIN_FAULT_NOT_POSITIVE_DEFINITE};

constexpr int64_t kMostOperands = 4;
constexpr int64_t kMostTogether = 16;  // matrices

// A decomposition of matrices with elements T. `run` computes one of them: `operands` are the inputs, then the outputs.
template <class T>
class Decomposition {
 public:
  explicit Decomposition(const LapackLibrary& library) : l_(library.of<T>()) {}
  virtual ~Decomposition() = default;
  Decomposition(const Decomposition&) = delete;
  Decomposition& operator=(const Decomposition&) = delete;

  // Memory that a run needs; called after the constructor.
  int64_t memory_bytes() const {
    Arrays arrays(nullptr);
    static_cast<void>(run(arrays, nullptr));
    return arrays.bytes();
  }
  // Without operands, it takes its arrays and does nothing else.
  virtual Outcome run(Arrays& arrays, const View* operands) const = 0;
  // Then matrices are computed one after the other.
  virtual bool takes_all_threads() const { return false; }
  // How many matrices run_together() computes at most. Each has kMostOperands operands.
  virtual int64_t together() const { return 1; }
  virtual void run_together(Arrays& arrays, const View* operands, int64_t count, Outcome* outcomes) const {
    static_cast<void>(count);
    *outcomes = run(arrays, operands);
  }

 protected:
  const Lapack<T>& l_;
};

}  // namespace compute::cpu
