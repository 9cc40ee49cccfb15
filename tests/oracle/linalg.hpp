// SPDX-License-Identifier: Apache-2.0
// Matrices of complex numbers in long double, and what tests of decompositions compute with them.
#pragma once

#include <vector>

#include "array.hpp"

namespace compute::oracle {

class Matrix {
 public:
  Matrix() = default;
  Matrix(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), elements_(static_cast<size_t>(rows * columns)) {}
  static Matrix unit(int64_t n);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  Complex& operator()(int64_t i, int64_t j) { return elements_[static_cast<size_t>(i * columns_ + j)]; }
  const Complex& operator()(int64_t i, int64_t j) const { return elements_[static_cast<size_t>(i * columns_ + j)]; }
  bool is_finite() const;
  bool is_real() const;

 private:
  int64_t rows_ = 0, columns_ = 0;
  std::vector<Complex> elements_;
};

Matrix operator*(const Matrix& a, const Matrix& b);
Matrix operator+(const Matrix& a, const Matrix& b);
Matrix operator-(const Matrix& a, const Matrix& b);
Matrix operator*(Real factor, const Matrix& a);
Matrix adjoint(const Matrix& a);
Matrix diagonal(const std::vector<Real>& values);
/// The Frobenius norm.
Real norm(const Matrix& a);

/// Row exchanges and the factors in one matrix, by partial pivoting. False if a pivot is 0.
struct Lu {
  Matrix factors;
  std::vector<int64_t> pivots;
  Complex determinant = 1;
  bool is_regular = true;
};
Lu lu(const Matrix& a);
/// Of a regular matrix.
Matrix solve(const Matrix& a, const Matrix& b);
/// a = u diag(s) vh, reduced, by one-sided Jacobi rotations; s descends.
struct Svd {
  Matrix u;
  std::vector<Real> s;
  Matrix vh;
};
Svd svd(const Matrix& a);
Matrix exponential(const Matrix& a);

/// Matrices [..., m, n]: how many there are, and one of them.
int64_t matrix_count(const Array& x);
Matrix matrix_at(const Array& x, int64_t index);

/// The half of the distance from 1 to the next number of the dtype in which matrices of `dtype` are computed.
Real unit_roundoff(Dtype dtype);
/// The relative change of operands that the bound "backward" of ops.def allows.
Real backward_bound(Dtype dtype, int64_t rows, int64_t columns);

}  // namespace compute::oracle
