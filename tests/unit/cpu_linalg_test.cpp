// SPDX-License-Identifier: Apache-2.0
// The CPU's kernels for linear algebra, on every instruction set: results are judged by what they have to satisfy, in
// long double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/jacobi_kernel.hpp"
#include "plugins/cpu/kernels/triangle_kernel.hpp"

namespace compute::cpu {
namespace {

using Real = long double;

// Column-major.
struct Matrix {
  int32_t rows, columns;
  std::vector<Real> elements = std::vector<Real>(static_cast<size_t>(rows) * static_cast<size_t>(columns));

  Real& operator()(int32_t i, int32_t j) { return elements[static_cast<size_t>(j * rows + i)]; }
  Real operator()(int32_t i, int32_t j) const { return elements[static_cast<size_t>(j * rows + i)]; }
};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c{a.rows, b.columns};
  for (int32_t j = 0; j < b.columns; ++j) {
    for (int32_t k = 0; k < a.columns; ++k) {
      for (int32_t i = 0; i < a.rows; ++i) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix b{a.columns, a.rows};
  for (int32_t i = 0; i < a.rows; ++i) {
    for (int32_t j = 0; j < a.columns; ++j) b(j, i) = a(i, j);
  }
  return b;
}

Matrix scaled(Matrix a, const std::vector<Real>& columns) {
  for (int32_t j = 0; j < a.columns; ++j) {
    for (int32_t i = 0; i < a.rows; ++i) a(i, j) *= columns[static_cast<size_t>(j)];
  }
  return a;
}

Real distance(const Matrix& a, const Matrix& b) {
  Real sum = 0;
  for (size_t i = 0; i < a.elements.size(); ++i)
    sum += (a.elements[i] - b.elements[i]) * (a.elements[i] - b.elements[i]);
  return std::sqrt(sum);
}

Matrix unit(int32_t n) {
  Matrix a{n, n};
  for (int32_t i = 0; i < n; ++i) a(i, i) = 1;
  return a;
}

enum class Kind { RANDOM, CLUSTERED, HILBERT, GRADED, GRADED_UP, RANK_ONE, ZERO, ONES, NEARLY_ONES, DIAGONAL, ONE_ROW };
constexpr int kKinds = 11;

template <class T>
class CpuLinearAlgebra : public ::testing::Test {
 protected:
  std::mt19937_64 random{20261129};

  Real uniform() { return static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random)); }

  // Rounded to T, with elements up to about 1; of a symmetric one, both sides.
  Matrix make(Kind kind, int32_t m, int32_t n, bool is_symmetric) {
    Matrix a{m, n};
    for (int32_t j = 0; j < n; ++j) {
      for (int32_t i = 0; i < m; ++i) {
        const Real x = uniform();
        const int grade = is_symmetric ? i + j : i, top = is_symmetric ? m + n - 2 : m - 1;
        const Real diagonal = i == j ? 1 : 0;
        switch (kind) {
          case Kind::RANDOM:
            a(i, j) = x;
            break;
          case Kind::CLUSTERED:
            a(i, j) = diagonal + 1e-4L * x;
            break;
          case Kind::HILBERT:
            a(i, j) = 1 / static_cast<Real>(i + j + 1);
            break;
          case Kind::GRADED:
            a(i, j) = std::ldexp(x, -2 * grade);
            break;
          case Kind::GRADED_UP:
            a(i, j) = std::ldexp(x, -2 * (top - grade));
            break;
          case Kind::RANK_ONE:
            a(i, j) = static_cast<Real>((i % 3 + 1) * (j % (is_symmetric ? 3 : 4) + 1)) / 16;
            break;
          case Kind::ZERO:
            break;
          case Kind::ONES:
            a(i, j) = 1;
            break;
          case Kind::NEARLY_ONES:
            a(i, j) = 1 + 1e-6L * x;
            break;
          case Kind::DIAGONAL:
            a(i, j) = diagonal * static_cast<Real>(i < n / 2 ? 1 : -0.5);
            break;
          case Kind::ONE_ROW:
            a(i, j) = i == 0 || (is_symmetric && j == 0) ? x : 0;
            break;
        }
        a(i, j) = static_cast<T>(a(i, j));
        if (is_symmetric && i > j) a(j, i) = a(i, j);
      }
    }
    for (int32_t j = 0; is_symmetric && j < n; ++j) {
      for (int32_t i = 0; i < j; ++i) a(i, j) = a(j, i);
    }
    return a;
  }
};

using Dtypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CpuLinearAlgebra, Dtypes);

template <class T>
constexpr Real kEpsilon = std::numeric_limits<T>::epsilon();

// The matrix in a lane.
template <class T>
Matrix taken(const std::vector<T>& all, int32_t lanes, int32_t lane, int32_t rows, int32_t columns) {
  Matrix a{rows, columns};
  for (size_t i = 0; i < a.elements.size(); ++i)
    a.elements[i] = all[i * static_cast<size_t>(lanes) + static_cast<size_t>(lane)];
  return a;
}
template <class T>
void put(std::vector<T>& all, int32_t lanes, int32_t lane, const Matrix& a) {
  for (size_t i = 0; i < a.elements.size(); ++i)
    all[i * static_cast<size_t>(lanes) + static_cast<size_t>(lane)] = static_cast<T>(a.elements[i]);
}
template <class T>
std::vector<T> vectors(int32_t lanes, int32_t count) {
  return std::vector<T>(static_cast<size_t>(lanes) * static_cast<size_t>(count));
}

template <class F>
void for_each_isa(const F& test) {
  for (int i = 0; i <= static_cast<int>(widest_instruction_set()); ++i) {
    const Isa& isa = isa_of(static_cast<InstructionSet>(i));
    SCOPED_TRACE(isa.name);
    test(isa);
  }
}

template <class T>
const auto& kernel_of(const auto& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.float32;
  } else {
    return kernels.float64;
  }
}

TYPED_TEST(CpuLinearAlgebra, EigenvaluesInLanes) {
  using T = TypeParam;
  for_each_isa([&](const Isa& isa) {
    const JacobiKernel<T>& kernel = kernel_of<T>(*isa.jacobi);
    const int32_t lanes = kernel.lanes;
    for (const int32_t n : {1, 2, 3, 5, 8, 15, 16, kMostJacobiRows}) {
      for (int first = 0; first < kKinds; first += 3) {
        std::vector<Matrix> matrices;
        auto a = vectors<T>(lanes, n * n), v = vectors<T>(lanes, n * n), values = vectors<T>(lanes, n);
        for (int32_t lane = 0; lane < lanes; ++lane) {
          matrices.push_back(this->make(static_cast<Kind>((first + lane) % kKinds), n, n, true));
          put(a, lanes, lane, matrices.back());
        }
        auto again = a, values_again = values;
        EXPECT_TRUE(kernel.eigen(n, a.data(), v.data(), values.data()));
        EXPECT_TRUE(kernel.eigen(n, again.data(), nullptr, values_again.data()));
        EXPECT_EQ(values, values_again);
        for (int32_t lane = 0; lane < lanes; ++lane) {
          const Matrix& matrix = matrices[static_cast<size_t>(lane)];
          const Matrix q = taken(v, lanes, lane, n, n);
          const std::vector<Real> w = taken(values, lanes, lane, n, 1).elements;
          const Real bound = 4 * static_cast<Real>(n) * kEpsilon<T>;
          EXPECT_TRUE(std::is_sorted(w.begin(), w.end()));
          EXPECT_LE(distance(matrix * q, scaled(q, w)), bound * distance(matrix, Matrix{n, n}))
              << n << " rows, kind " << (first + lane) % kKinds;
          EXPECT_LE(distance(transposed(q) * q, unit(n)), bound * std::sqrt(static_cast<Real>(n + 1)));
        }
      }
    }
  });
}

TYPED_TEST(CpuLinearAlgebra, SingularValuesInLanes) {
  using T = TypeParam;
  for_each_isa([&](const Isa& isa) {
    const JacobiKernel<T>& kernel = kernel_of<T>(*isa.jacobi);
    const int32_t lanes = kernel.lanes;
    for (const int32_t n : {1, 2, 5, 8, 16, kMostJacobiRows}) {
      for (int32_t m = n; m <= std::min(n + 3, kMostJacobiRows); m += 3) {
        for (int first = 0; first < kKinds; first += 3) {
          const int32_t columns = first % 2 == 0 ? n : m;
          std::vector<Matrix> matrices;
          auto a = vectors<T>(lanes, m * n), u = vectors<T>(lanes, m * columns), v = vectors<T>(lanes, n * n),
               values = vectors<T>(lanes, n);
          for (int32_t lane = 0; lane < lanes; ++lane) {
            matrices.push_back(this->make(static_cast<Kind>((first + lane) % kKinds), m, n, false));
            put(a, lanes, lane, matrices.back());
          }
          auto again = a, values_again = values;
          EXPECT_TRUE(kernel.singular(m, n, columns, a.data(), u.data(), v.data(), values.data()));
          EXPECT_TRUE(kernel.singular(m, n, columns, again.data(), nullptr, nullptr, values_again.data()));
          EXPECT_EQ(values, values_again);
          for (int32_t lane = 0; lane < lanes; ++lane) {
            const Matrix& matrix = matrices[static_cast<size_t>(lane)];
            const Matrix left = taken(u, lanes, lane, m, columns), right = taken(v, lanes, lane, n, n);
            const std::vector<Real> s = taken(values, lanes, lane, n, 1).elements;
            const Real bound = 4 * static_cast<Real>(m) * kEpsilon<T>;
            EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend()) && s.back() >= 0);
            EXPECT_LE(distance(scaled(taken(u, lanes, lane, m, n), s) * transposed(right), matrix),
                      bound * distance(matrix, Matrix{m, n}))
                << m << " rows, " << n << " columns, kind " << (first + lane) % kKinds;
            EXPECT_LE(distance(transposed(left) * left, unit(columns)), bound * std::sqrt(static_cast<Real>(m + 1)));
            EXPECT_LE(distance(transposed(right) * right, unit(n)), bound * std::sqrt(static_cast<Real>(n + 1)));
          }
        }
      }
    }
  });
}

// By the componentwise backward error of substitution.
TYPED_TEST(CpuLinearAlgebra, Triangles) {
  using T = TypeParam;
  for_each_isa([&](const Isa& isa) {
    for (const int32_t n : {1, 5, 16, 31, 33, 63, kTriangleRows}) {
      for (const bool upper : {false, true}) {
        for (const int32_t count : {1, 4, 6, 13}) {
          const Matrix random = this->make(Kind::RANDOM, n, n, false), b = this->make(Kind::RANDOM, n, count, false);
          Matrix a{n, n};
          PackedTriangle<T> t{};
          t.n = n;
          t.upper = upper;
          for (int32_t j = 0; j < n; ++j) {
            for (int32_t i = 0; i < n; ++i) {
              if (upper ? i < j : i > j) a(i, j) = random(i, j) / 8;
              t.columns[j][i] = static_cast<T>(a(i, j));
            }
            a(j, j) = j % 2 == 0 ? 1 : 0.5L;
            t.reciprocals[j] = static_cast<T>(1 / a(j, j));
          }
          const int32_t stride = n + 3;
          std::vector<T> x(static_cast<size_t>(stride * count), T(7));
          for (int32_t j = 0; j < count; ++j) {
            for (int32_t i = 0; i < n; ++i) x[static_cast<size_t>(j * stride + i)] = static_cast<T>(b(i, j));
          }
          kernel_of<T>(*isa.triangles).solve(t, x.data(), stride, count);
          for (int32_t j = 0; j < count; ++j) {
            for (int32_t i = 0; i < stride; ++i) {
              if (i >= n) {
                EXPECT_EQ(x[static_cast<size_t>(j * stride + i)], T(7));
                continue;
              }
              Real sum = -b(i, j), size = std::abs(b(i, j));
              for (int32_t k = 0; k < n; ++k) {
                const Real term = a(i, k) * x[static_cast<size_t>(j * stride + k)];
                sum += term;
                size += std::abs(term);
              }
              EXPECT_LE(std::abs(sum), static_cast<Real>(n + 2) * kEpsilon<T> * size) << n << " rows, row " << i;
            }
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace compute::cpu
