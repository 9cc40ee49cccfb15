// SPDX-License-Identifier: Apache-2.0
// Decompositions and solvers of matrices. Results that are unique are compared with the oracle's; all are judged by
// what they have to satisfy, in units of the norm.
#include <compute/ops.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "registry.hpp"
#include "tests/oracle/linalg.hpp"

namespace compute::conformance {

namespace {

using oracle::Matrix;

// Matrices that are easy and hard to decompose.
enum class Kind {
  RANDOM,
  REGULAR,   // random ones plus a multiple of the unit matrix
  POSITIVE,  // Hermitian and positive definite
  HERMITIAN,
  HILBERT,    // as ill-conditioned as the dtype allows
  CLUSTERED,  // Hermitian, with two eigenvalues
  GRADED,     // of rows of very different sizes
  DEFICIENT,  // of rank 1, in small integers
  ZERO
};

class Case {
 public:
  Case(const Session& session, const std::string& op, Dtype dtype)
      : session(session), op(op), dtype(dtype), inputs(seed_of(op + oracle::info(dtype).name)) {}

  bool full() const { return session.level() == Level::FULL; }
  // Relative to the norm: what a factor that is rounded to the dtype may miss.
  Real bound(int64_t m, int64_t n) const {
    const Real unit = dtype == dtype::FLOAT16 ? 0x1p-11L : dtype == dtype::BFLOAT16 ? 0x1p-8L : 0;
    return oracle::backward_bound(dtype, m, n) + 4 * unit * static_cast<Real>(std::max({m, n, int64_t{1}}));
  }

  Array matrices(Kind kind, const Shape& shape) {
    const auto rank = shape.size();
    const int64_t m = shape[rank - 2], n = shape[rank - 1];
    Array x = inputs.uniform(dtype, shape, -1, 1);
    for (int64_t k = 0; k < oracle::matrix_count(x) && m * n > 0; ++k) {
      const Matrix random = oracle::matrix_at(x, k);
      const Matrix made = of_kind(kind, random);
      for (int64_t i = 0; i < m * n; ++i) x.set(k * m * n + i, Value::of(made(i / n, i % n)));
    }
    return x;
  }
  Operand operand(Kind kind, const Shape& shape, Layout layout = Layout::CONTIGUOUS) {
    return session.upload(matrices(kind, shape), layout);
  }
  Operand uniform(const Shape& shape, Layout layout = Layout::CONTIGUOUS) {
    return session.upload(inputs.uniform(dtype, shape, -1, 1), layout);
  }

  void run(const Attributes& given, const std::vector<Operand>& operands, const std::string& what) {
    session.expect(op, given, operands, bound_of(op, dtype), what);
  }
  std::vector<Array> results(const Attributes& given, const std::vector<Operand>& operands, size_t count) {
    std::vector<Tensor> outputs(count);
    session.run_all(op, given, operands, nullptr, outputs);
    std::vector<Array> arrays;
    for (const Tensor& output : outputs) arrays.push_back(session.download(output));
    return arrays;
  }

  const Session& session;
  const std::string op;
  const Dtype dtype;
  oracle::Inputs inputs;

 private:
  Matrix of_kind(Kind kind, const Matrix& random) const {
    const int64_t m = random.rows(), n = random.columns();
    Matrix x = random;
    const auto each = [&](const std::function<oracle::Complex(int64_t, int64_t)>& f) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) x(i, j) = f(i, j);
      }
    };
    switch (kind) {
      case Kind::RANDOM:
        break;
      case Kind::REGULAR:
        for (int64_t i = 0; i < std::min(m, n); ++i) x(i, i) += 2 + static_cast<Real>(n) / 4;
        break;
      case Kind::POSITIVE:
        x = (1 / static_cast<Real>(n)) * (random * adjoint(random)) + Matrix::unit(n);
        break;
      case Kind::HERMITIAN:
        x = 0.5L * (random + adjoint(random));
        break;
      case Kind::HILBERT:
        each([](int64_t i, int64_t j) { return oracle::Complex(1 / static_cast<Real>(i + j + 1)); });
        break;
      case Kind::CLUSTERED:
        x = Matrix::unit(n) + 1e-4L * (random + adjoint(random));
        break;
      case Kind::GRADED:
        each([&](int64_t i, int64_t j) { return std::ldexp(1.0L, static_cast<int>(-2 * i)) * random(i, j); });
        break;
      case Kind::DEFICIENT:
        each([&](int64_t i, int64_t j) { return oracle::Complex(static_cast<Real>((i % 3 + 1) * (j % 4 + 1))); });
        break;
      case Kind::ZERO:
        each([](int64_t, int64_t) { return oracle::Complex(0); });
        break;
    }
    return x;
  }
};

std::vector<Layout> layouts(const Case& c) {
  if (!c.full()) return {Layout::CONTIGUOUS};
  return {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::NEGATIVE,
          Layout::BROADCAST,  Layout::OFFSET,     Layout::PERMUTED};
}

std::vector<int64_t> sizes(const Case& c) {
  return c.full() ? std::vector<int64_t>{0, 1, 2, 3, 7, 32, 33, 65} : std::vector<int64_t>{1, 5};
}

// Tall, wide and empty ones.
std::vector<Shape> shapes(const Case& c) {
  if (!c.full()) return {{2, 5, 3}};
  return {{2, 5, 3}, {3, 5}, {1, 4}, {4, 1}, {2, 2, 9, 9}, {40, 33}, {33, 64}, {70, 90}, {3, 0, 2}, {2, 0}, {0, 3, 3}};
}

// ---- What results have to satisfy -----------------------------------------------------------------------------------

void expect_small(const Matrix& difference, Real allowed, const std::string& what) {
  EXPECT_TRUE(norm(difference) <= allowed) << what << ": the difference is " << static_cast<double>(norm(difference))
                                           << ", allowed " << static_cast<double>(allowed);
}

// Columns of length 1, at right angles.
void expect_orthonormal(const Matrix& q, Real bound, const std::string& what) {
  expect_small(adjoint(q) * q - Matrix::unit(q.columns()), bound * std::sqrt(static_cast<Real>(q.columns() + 1)),
               what + ", orthonormality");
}

std::vector<Real> values_at(const Array& x, int64_t index) {
  const int64_t n = x.shape().back();
  std::vector<Real> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(x.at(index * n + i).re);
  return values;
}

Matrix triangle(const Matrix& x, bool upper) {
  Matrix result = x;
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < x.columns(); ++j) {
      if (upper ? i > j : i < j) result(i, j) = 0;
    }
  }
  return result;
}

Matrix narrowed(const Matrix& x, int64_t rows, int64_t columns) {
  Matrix result(rows, columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) result(i, j) = x(i, j);
  }
  return result;
}

// Calls `check(x, index)` for each matrix of an array.
void for_each_matrix(const Array& x, const std::function<void(const Matrix&, int64_t)>& check) {
  for (int64_t i = 0; i < oracle::matrix_count(x); ++i) check(oracle::matrix_at(x, i), i);
}

// ---- Decompositions -------------------------------------------------------------------------------------------------

void test_cholesky(Case& c) {
  for (const int64_t upper : {0, 1}) {
    const Attributes given = {{"upper", upper}};
    for (const Layout layout : layouts(c)) {
      if (layout != Layout::BROADCAST) c.run(given, {c.operand(Kind::POSITIVE, {2, 3, 3}, layout)}, name(layout));
    }
    for (const int64_t n : sizes(c)) {
      const Operand x = c.operand(Kind::POSITIVE, {2, n, n});
      c.run(given, {x}, std::to_string(n) + " rows");
      const Array factor = c.results(given, {x}, 1)[0];
      for_each_matrix(x.array, [&](const Matrix& a, int64_t i) {
        const Matrix l = oracle::matrix_at(factor, i);
        expect_small(l - triangle(l, upper != 0), 0, "the other triangle");
        const Matrix product = upper != 0 ? adjoint(l) * l : l * adjoint(l);
        expect_small(product - a, c.bound(n, n) * norm(a), std::to_string(n) + " rows");
      });
    }
  }
}

void check_lu(Case& c, const Operand& x, const std::string& what) {
  const std::vector<Array> found = c.results({}, {x}, 2);
  for_each_matrix(x.array, [&](const Matrix& a, int64_t index) {
    const int64_t m = a.rows(), n = a.columns(), k = std::min(m, n);
    if (k == 0) return;
    const Matrix both = oracle::matrix_at(found[0], index);
    Matrix l = narrowed(triangle(both, false), m, k), permuted = a;
    for (int64_t i = 0; i < k; ++i) {
      l(i, i) = 1;
      const auto pivot = static_cast<int64_t>(found[1].at(index * k + i).integer);
      ASSERT_TRUE(pivot >= i && pivot < m) << what << ": pivot " << pivot << " of row " << i;
      for (int64_t j = 0; j < n && pivot != i; ++j) std::swap(permuted(i, j), permuted(pivot, j));
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < k; ++j) EXPECT_LE(std::abs(l(i, j)), 1.001L * std::sqrt(2.0L)) << what;
    }
    const Matrix u = narrowed(triangle(both, true), k, n);
    expect_small(l * u - permuted, c.bound(m, n) * (norm(a) + norm(l) * norm(u)), what);
  });
}

void test_lu(Case& c) {
  for (const Layout layout : layouts(c)) {
    const Operand x = c.operand(Kind::RANDOM, {2, 5, 4}, layout);
    c.run({}, {x}, name(layout));
    check_lu(c, x, name(layout));
  }
  for (const Shape& shape : shapes(c)) check_lu(c, c.operand(Kind::RANDOM, shape), "random");
  for (const Kind kind : {Kind::DEFICIENT, Kind::ZERO, Kind::HILBERT}) check_lu(c, c.operand(kind, {6, 6}), "singular");
}

void check_qr(Case& c, const Operand& x, const std::string& mode) {
  const std::vector<Array> found = c.results({{"mode", mode}}, {x}, 2);
  for_each_matrix(x.array, [&](const Matrix& a, int64_t i) {
    const Matrix q = oracle::matrix_at(found[0], i), r = oracle::matrix_at(found[1], i);
    const Real bound = c.bound(a.rows(), a.columns());
    expect_small(r - triangle(r, true), 0, "below the diagonal");
    expect_small(q * r - a, bound * norm(a), mode);
    expect_orthonormal(q, bound, mode);
  });
}

void test_qr(Case& c) {
  for (const std::string mode : {"reduced", "complete"}) {
    for (const Layout layout : layouts(c)) {
      const Operand x = c.operand(Kind::RANDOM, {2, 5, 3}, layout);
      c.run({{"mode", mode}}, {x}, name(layout));
      check_qr(c, x, mode);
    }
    for (const Shape& shape : shapes(c)) check_qr(c, c.operand(Kind::RANDOM, shape), mode);
    for (const Kind kind : {Kind::DEFICIENT, Kind::ZERO, Kind::HILBERT, Kind::GRADED})
      check_qr(c, c.operand(kind, {7, 5}), mode);
  }
}

void check_eigh(Case& c, const Operand& x, const Attributes& given, const std::string& what) {
  const std::vector<Array> found = c.results(given, {x}, 2);
  for_each_matrix(x.array, [&](const Matrix& a, int64_t i) {
    const Matrix v = oracle::matrix_at(found[1], i);
    const std::vector<Real> values = values_at(found[0], i);
    const Real bound = c.bound(a.rows(), a.rows());
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end())) << what;
    expect_small(a * v - v * oracle::diagonal(values), bound * norm(a), what);
    expect_orthonormal(v, bound, what);
  });
}

void test_eigh(Case& c) {
  for (const int64_t upper : {0, 1}) {
    const Attributes given = {{"upper", upper}};
    for (const Layout layout : layouts(c)) {
      if (layout != Layout::BROADCAST) c.run(given, {c.operand(Kind::HERMITIAN, {2, 3, 3}, layout)}, name(layout));
    }
    for (const int64_t n : sizes(c)) {
      const Operand x = c.operand(Kind::HERMITIAN, {2, n, n});
      c.run(given, {x}, std::to_string(n) + " rows");
      if (c.op == "eigh" && n > 0) check_eigh(c, x, given, std::to_string(n) + " rows");
    }
  }
  for (const Kind kind : {Kind::CLUSTERED, Kind::HILBERT, Kind::ZERO}) {
    const Operand x = c.operand(kind, {8, 8});
    c.run({}, {x}, "special");
    if (c.op == "eigh") check_eigh(c, x, {}, "special");
  }
}

void test_eig(Case& c) {
  const auto check = [&](const Operand& x, const std::string& what) {
    c.run({}, {x}, what);
    const std::vector<Array> found = c.results({}, {x}, c.op == "eig" ? 2 : 1);
    for_each_matrix(x.array, [&](const Matrix& a, int64_t index) {
      const int64_t n = a.rows();
      Matrix values(n, n);
      for (int64_t i = 0; i < n; ++i) values(i, i) = found[0].at(index * n + i).complex();
      const Real bound = c.bound(n, n);
      if (c.op == "eig") {
        const Matrix v = oracle::matrix_at(found[1], index);
        expect_small(a * v - v * values, bound * (norm(a) + norm(values)), what);
        for (int64_t j = 0; j < n; ++j) {
          Real sum = 0;
          for (int64_t i = 0; i < n; ++i) sum += std::norm(v(i, j));
          EXPECT_NEAR(static_cast<double>(sum), 1, static_cast<double>(bound)) << what;
        }
        return;
      }
      // Each value is one of a matrix nearby.
      for (int64_t i = 0; i < n; ++i) {
        Matrix shifted = a;
        for (int64_t j = 0; j < n; ++j) shifted(j, j) -= values(i, i);
        EXPECT_LE(oracle::svd(shifted).s.back(), bound * (norm(a) + std::abs(values(i, i)))) << what << ", value " << i;
      }
    });
  };
  for (const Layout layout : layouts(c)) {
    if (layout != Layout::BROADCAST) check(c.operand(Kind::RANDOM, {2, 4, 4}, layout), name(layout));
  }
  for (const int64_t n : sizes(c)) {
    if (n <= 33) check(c.operand(Kind::RANDOM, {2, n, n}), std::to_string(n) + " rows");
  }
  for (const Kind kind : {Kind::DEFICIENT, Kind::ZERO, Kind::HERMITIAN, Kind::GRADED})
    check(c.operand(kind, {6, 6}), "special");
}

void check_svd(Case& c, const Operand& x, int64_t full, const std::string& what) {
  const Attributes given = {{"full_matrices", full}};
  const std::vector<Array> found = c.results(given, {x}, 3);
  for_each_matrix(x.array, [&](const Matrix& a, int64_t i) {
    const Matrix u = oracle::matrix_at(found[0], i), vh = oracle::matrix_at(found[2], i);
    const std::vector<Real> s = values_at(found[1], i);
    const Real bound = c.bound(a.rows(), a.columns());
    const auto k = static_cast<int64_t>(s.size());
    EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend()) && (s.empty() || s.back() >= 0)) << what;
    if (k > 0)
      expect_small(narrowed(u, a.rows(), k) * oracle::diagonal(s) * narrowed(vh, k, a.columns()) - a, bound * norm(a),
                   what);
    expect_orthonormal(u, bound, what);
    expect_orthonormal(adjoint(vh), bound, what);
  });
}

void test_svd(Case& c) {
  const auto check = [&](const Operand& x, int64_t full, const std::string& what) {
    c.run({{"full_matrices", full}}, {x}, what);
    check_svd(c, x, full, what);
  };
  for (const int64_t full : {0, 1}) {
    for (const Layout layout : layouts(c)) check(c.operand(Kind::RANDOM, {2, 5, 3}, layout), full, name(layout));
    for (const Shape& shape : shapes(c)) check(c.operand(Kind::RANDOM, shape), full, "random");
    for (const Kind kind : {Kind::DEFICIENT, Kind::ZERO, Kind::HILBERT, Kind::GRADED})
      check(c.operand(kind, {7, 5}), full, "special");
  }
}

void test_svdvals(Case& c) {
  for (const Layout layout : layouts(c)) c.run({}, {c.operand(Kind::RANDOM, {2, 5, 3}, layout)}, name(layout));
  for (const Shape& shape : shapes(c)) c.run({}, {c.operand(Kind::RANDOM, shape)}, "random");
  for (const Kind kind : {Kind::DEFICIENT, Kind::ZERO, Kind::HILBERT, Kind::GRADED})
    c.run({}, {c.operand(kind, {5, 7})}, "special");
}

// ---- Solvers --------------------------------------------------------------------------------------------------------

void check_solution(Case& c, const Operand& a, const Operand& b, const Attributes& given,
                    const std::function<Matrix(const Matrix&)>& read, const std::string& what) {
  const Array found = c.results(given, {a, b}, 1)[0];
  for_each_matrix(a.array, [&](const Matrix& whole, int64_t i) {
    const Matrix m = read(whole), right = oracle::matrix_at(b.array, i), x = oracle::matrix_at(found, i);
    expect_small(m * x - right, c.bound(m.rows(), m.rows()) * (norm(m) * norm(x) + norm(right)), what);
  });
}

void test_solve(Case& c) {
  const bool is_triangular = c.op == "triangular_solve";
  const std::vector<Attributes> all =
      is_triangular ? std::vector<Attributes>{{}, {{"upper", int64_t{1}}}, {{"unit_diagonal", int64_t{1}}}}
                    : std::vector<Attributes>{{}};
  for (const Attributes& given : all) {
    const bool upper = oracle::integer_or(given, "upper", 0) != 0,
               unit = oracle::integer_or(given, "unit_diagonal", 0) != 0;
    const auto read = [&](const Matrix& a) {
      Matrix m = is_triangular ? triangle(a, upper) : a;
      for (int64_t i = 0; i < m.rows() && unit; ++i) m(i, i) = 1;
      return m;
    };
    for (const Layout layout : layouts(c)) {
      const Operand b = c.uniform({2, 3, 4}, layout);
      if (layout == Layout::BROADCAST) {
        c.run(given, {c.operand(Kind::REGULAR, {2, 3, 3}), b}, name(layout));
      } else {
        c.run(given, {c.operand(Kind::REGULAR, {2, 3, 3}, layout), b}, name(layout));
      }
    }
    for (const int64_t n : sizes(c)) {
      // A unit diagonal is not regular enough for many rows.
      if (unit && n > 7) continue;
      const Operand a = c.operand(Kind::REGULAR, {2, n, n}), b = c.uniform({2, n, 3});
      c.run(given, {a, b}, std::to_string(n) + " rows");
      c.run(given, {a, c.uniform({n})}, std::to_string(n) + " rows, a vector");
      if (n > 0) check_solution(c, a, b, given, read, std::to_string(n) + " rows");
    }
    c.run(given, {c.operand(Kind::REGULAR, {3, 1, 2, 2}), c.uniform({4, 2, 1})}, "batches that broadcast");
    c.run(given, {c.operand(Kind::REGULAR, {2, 2}), c.uniform({2, 0})}, "no columns");
  }
  if (is_triangular || oracle::is_half(c.dtype)) return;
  for (const Kind kind : {Kind::HILBERT, Kind::GRADED})
    check_solution(
        c, c.operand(kind, {1, 5, 5}), c.uniform({1, 5, 2}), {}, [](const Matrix& a) { return a; }, "hard");
}

void test_inv(Case& c) {
  for (const Layout layout : layouts(c)) {
    if (layout != Layout::BROADCAST) c.run({}, {c.operand(Kind::REGULAR, {2, 3, 3}, layout)}, name(layout));
  }
  for (const int64_t n : sizes(c)) c.run({}, {c.operand(Kind::REGULAR, {2, n, n})}, std::to_string(n) + " rows");
}

void test_det(Case& c) {
  for (const Layout layout : layouts(c)) c.run({}, {c.operand(Kind::RANDOM, {2, 3, 3}, layout)}, name(layout));
  for (const int64_t n : sizes(c)) {
    if (n <= 7 || c.op == "slogdet") c.run({}, {c.operand(Kind::REGULAR, {2, n, n})}, std::to_string(n) + " rows");
  }
  if (c.op == "det") c.run({}, {c.operand(Kind::DEFICIENT, {3, 3})}, "singular");
}

void test_pinv(Case& c) {
  const Operand rtol = c.session.upload([&] {
    Array x(oracle::part(c.dtype), {});
    x.set(0, Value::of(Real{0.125L}));
    return x;
  }());
  for (const Layout layout : layouts(c)) {
    if (layout == Layout::BROADCAST) continue;
    const Operand x = c.operand(Kind::REGULAR, {2, 5, 3}, layout);
    c.run({}, {x}, name(layout));
    c.run({}, {x, rtol}, std::string(name(layout)) + " with a tolerance");
  }
  for (const Shape& shape : shapes(c)) c.run({}, {c.operand(Kind::REGULAR, shape)}, "regular");
  for (const Kind kind : {Kind::DEFICIENT, Kind::ZERO}) {
    c.run({}, {c.operand(kind, {6, 4})}, "special");
    c.run({}, {c.operand(kind, {2, 64, 4})}, "special, tall");
  }
  for (const Layout layout : layouts(c)) {
    if (layout == Layout::BROADCAST) continue;
    c.run({}, {c.operand(Kind::REGULAR, {2, 64, 3}, layout), rtol}, std::string(name(layout)) + ", tall");
  }
}

void test_lstsq(Case& c) {
  for (const Layout layout : layouts(c)) {
    if (layout == Layout::BROADCAST) continue;
    c.run({}, {c.operand(Kind::REGULAR, {2, 5, 3}, layout), c.uniform({2, 5, 2}, layout)}, name(layout));
  }
  for (const Shape& shape : shapes(c)) {
    Shape right = shape;
    right.back() = 2;
    c.run({}, {c.operand(Kind::REGULAR, shape), c.uniform(right)}, "regular");
  }
  for (const Kind kind : {Kind::DEFICIENT, Kind::ZERO}) {
    c.run({}, {c.operand(kind, {6, 4}), c.uniform({6})}, "special");
    c.run({}, {c.operand(kind, {2, 64, 4}), c.uniform({64, 2})}, "special, tall");
  }
  for (const Layout layout : layouts(c)) {
    if (layout == Layout::BROADCAST) continue;
    c.run({}, {c.operand(Kind::REGULAR, {2, 64, 3}, layout), c.uniform({3, 1, 64, 2}, layout)},
          std::string(name(layout)) + ", tall");
  }
}

void test_matrix_norm(Case& c) {
  for (const std::string order : {"fro", "nuc", "1", "-1", "2", "-2", "inf", "-inf"}) {
    for (const Layout layout : layouts(c)) {
      const Operand x = c.operand(Kind::RANDOM, {2, 5, 3}, layout);
      c.run({{"ord", order}}, {x}, order);
      c.run({{"ord", order}, {"keepdims", int64_t{1}}}, {x}, order);
    }
    for (const Shape& shape : shapes(c)) c.run({{"ord", order}}, {c.operand(Kind::RANDOM, shape)}, order);
    c.run({{"ord", order}}, {c.operand(Kind::ZERO, {3, 3})}, order);
  }
}

void test_matrix_power(Case& c) {
  for (const int64_t n : {0, 1, 2, 3, 5, -1, -2}) {
    c.run({{"n", n}}, {c.operand(Kind::REGULAR, {2, 3, 3})}, std::to_string(n));
    if (c.full()) c.run({{"n", n}}, {c.operand(Kind::REGULAR, {0, 0})}, std::to_string(n));
  }
  for (const Layout layout : layouts(c))
    c.run({{"n", int64_t{3}}}, {c.operand(Kind::RANDOM, {2, 3, 3}, layout)}, name(layout));
}

void test_expm(Case& c) {
  for (const Layout layout : layouts(c)) c.run({}, {c.operand(Kind::RANDOM, {2, 3, 3}, layout)}, name(layout));
  for (const int64_t n : sizes(c)) c.run({}, {c.operand(Kind::HERMITIAN, {2, n, n})}, std::to_string(n) + " rows");
  c.run({}, {c.operand(Kind::ZERO, {3, 3})}, "zero");
}

// ---- Large matrices -------------------------------------------------------------------------------------------------

// Of so many rows that the library divides them into blocks. Products with a few vectors are compared.
void test_blocks(const Session& session, const std::string& op, Dtype dtype, const Attributes& given) {
  Case c(session, op, dtype);
  constexpr int64_t kRows = 600;
  const int64_t matrices = dtype == dtype::FLOAT32 ? 1 : 2;  // one is shared by the threads of a processor
  const Matrix probe = oracle::matrix_at(c.inputs.uniform(dtype, {kRows, 2}, -1, 1), 0);
  const bool upper = oracle::integer_or(given, "upper", 0) != 0;
  // Diagonally dominant, and Hermitian for cholesky.
  Array x = c.inputs.uniform(dtype, {matrices, kRows, kRows}, -1, 1);
  for (int64_t k = 0; k < matrices; ++k) {
    const Matrix a = oracle::matrix_at(x, k);
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        const auto set = [&](int64_t row, int64_t column, const oracle::Complex& value) {
          x.set((k * kRows + row) * kRows + column, Value::of(value));
        };
        if (op == "cholesky") set(j, i, i == j ? oracle::Complex(kRows) : std::conj(a(i, j)));
        if (op == "cholesky" && i == j) set(i, i, kRows);
        if (op == "triangular_solve" && i == j) set(i, i, 40);
      }
    }
  }
  const Operand operand = session.upload(x), b = c.uniform({matrices, kRows, 130});
  const Real bound = c.bound(kRows, kRows);
  if (op == "cholesky") {
    const Array found = c.results(given, {operand}, 1)[0];
    for_each_matrix(x, [&](const Matrix& a, int64_t i) {
      const Matrix factor = oracle::matrix_at(found, i), l = upper ? adjoint(factor) : factor;
      expect_small(factor - triangle(factor, upper), 0, "the other triangle");
      expect_small(l * (adjoint(l) * probe) - a * probe, bound * norm(a) * norm(probe), op);
    });
  } else if (op == "lu") {
    const std::vector<Array> found = c.results(given, {operand}, 2);
    for_each_matrix(x, [&](const Matrix& a, int64_t i) {
      const Matrix both = oracle::matrix_at(found[0], i), u = triangle(both, true);
      Matrix l = triangle(both, false), expected = a * probe;
      for (int64_t row = 0; row < kRows; ++row) {
        l(row, row) = 1;
        const auto pivot = static_cast<int64_t>(found[1].at(i * kRows + row).integer);
        ASSERT_TRUE(pivot >= row && pivot < kRows) << "pivot " << pivot << " of row " << row;
        for (int64_t j = 0; j < 2 && pivot != row; ++j) std::swap(expected(row, j), expected(pivot, j));
      }
      expect_small(l * (u * probe) - expected, bound * norm(l) * norm(u) * norm(probe), op);
    });
  } else if (op == "inv") {
    const Array found = c.results(given, {operand}, 1)[0];
    for_each_matrix(x, [&](const Matrix& a, int64_t i) {
      const Matrix inverse = oracle::matrix_at(found, i);
      expect_small(a * (inverse * probe) - probe, bound * norm(a) * norm(inverse) * norm(probe), op);
    });
  } else {
    const auto read = [&](const Matrix& a) { return op == "solve" ? a : triangle(a, upper); };
    check_solution(c, operand, b, given, read, op);
    if (op == "solve") check_solution(c, session.upload(x, Layout::TRANSPOSED), b, given, read, op + ", transposed");
  }
}

// Of so many rows that devices with a library for it do not leave them to the host.
void test_many_rows(const Session& session, const std::string& op, Dtype dtype) {
  Case c(session, op, dtype);
  constexpr int64_t kRows = 150, kOne = 260;  // one matrix of kOne rows is shared by the threads of a processor
  if (op == "eigh") {
    for (const int64_t upper : {0, 1})
      check_eigh(c, c.operand(Kind::HERMITIAN, {2, kRows, kRows}), {{"upper", upper}}, "");
    for (const Kind kind : {Kind::HERMITIAN, Kind::CLUSTERED, Kind::HILBERT, Kind::ZERO})
      check_eigh(c, c.operand(kind, {kOne, kOne}), {{"upper", kind == Kind::HERMITIAN ? 1 : 0}}, "one matrix");
    return;
  }
  for (const Shape& shape : {Shape{2, kRows, kRows}, Shape{kRows + 20, kRows}, Shape{2, kRows, kRows + 20},
                             Shape{kOne + 20, kOne}, Shape{kOne + 140, kOne}, Shape{kOne, kOne + 20}}) {
    const Operand x = c.session.upload(c.inputs.uniform(dtype, shape, -1, 1), Layout::TRANSPOSED);
    if (op == "qr") {
      check_qr(c, x, "reduced");
      check_qr(c, x, "complete");
    } else {
      check_svd(c, x, 0, "reduced");
      check_svd(c, x, 1, "full");
    }
  }
  if (op != "svd") return;
  // Of so many rows that methods for large matrices are taken; some of them are wrong for singular ones.
  for (const Kind kind : {Kind::RANDOM, Kind::DEFICIENT, Kind::HILBERT, Kind::ZERO})
    check_svd(c, c.operand(kind, {kOne, kOne}), 0, "one matrix");
}

// Of so many matrices that devices with a library for batches do not leave them to the host.
void test_many_matrices(const Session& session, const std::string& op, Dtype dtype) {
  Case c(session, op, dtype);
  const auto operand = [&](Kind kind, const Shape& shape) {
    Array x = c.matrices(Kind::HERMITIAN, shape);
    const Array special = c.matrices(kind, {1, shape[1], shape[2]});
    for (int64_t i = 0; i < special.size(); ++i) x.set(i, special.at(i));
    return session.upload(x, Layout::PERMUTED);
  };
  for (const Kind kind : {Kind::CLUSTERED, Kind::HILBERT, Kind::ZERO}) {
    if (op == "eigh") {
      for (const int64_t n : {16, 40}) check_eigh(c, operand(kind, {70, n, n}), {}, std::to_string(n) + " rows");
    } else {
      for (const int64_t full : {0, 1}) check_svd(c, operand(kind, {70, 16, 16}), full, "square");
    }
  }
  if (op != "svd") return;
  for (const int64_t full : {0, 1}) {
    check_svd(c, c.operand(Kind::RANDOM, {70, 20, 12}), full, "tall");
    check_svd(c, c.operand(Kind::DEFICIENT, {7, 10, 12, 20}), full, "wide");
  }
}

// ---- Matrices without a result --------------------------------------------------------------------------------------

// A matrix with NaN gives NaN, and the others of the batch are right.
void test_nan(const Session& session, const std::string& op, int64_t n) {
  Case c(session, op, dtype::FLOAT32);
  const int64_t count = n <= 20 ? 40 : 3;  // many small ones are computed together
  Array x = c.matrices(Kind::POSITIVE, {count, n, n});
  x.set(n * n + n, Value::of(std::numeric_limits<Real>::quiet_NaN()));
  x.set(n * n + 1, Value::of(std::numeric_limits<Real>::quiet_NaN()));
  const Tensor y = session.run(op, {}, std::vector<Operand>{session.upload(x)});
  const Array found = session.download(y);
  const int64_t size = found.size() / count;
  for (int64_t i = 0; i < found.size(); ++i) EXPECT_EQ(std::isfinite(found.at(i).re), i / size != 1) << "element " << i;
}

// A fault names the matrix, and the others of the batch are right.
void test_singular(const Session& session, const std::string& op, int64_t n) {
  Case c(session, op, dtype::FLOAT32);
  Array x = c.matrices(Kind::POSITIVE, {3, n, n});
  for (int64_t i = 0; i < n * n; ++i) x.set(2 * n * n + i, Value::of(Real{0}));
  std::vector<Operand> operands{session.upload(x)};
  if (op == "solve") operands.push_back(c.uniform({3, n, 2}));
  Tensor output;
  Error error = session.try_run(op, {}, operands, session.stream(), output);
  if (!error && output) {
    Array found(dtype::FLOAT32, {output ? operands.back().array.shape() : Shape{}});
    error = compute_tensor_read(output, found.data(), found.size_bytes());
  }
  EXPECT_EQ(error.code(), COMPUTE_ERROR_NUMERICAL) << error.message();
  EXPECT_TRUE(error.mentions("matrix 2")) << error.message();
  EXPECT_TRUE(error.mentions(op)) << error.message();
}

// A graph reports the fault of the op that has it, not of another one that reports faults.
void test_singular_in_graph(const Session& session, const std::string& op) {
  constexpr int64_t n = 4;
  Case c(session, op, dtype::FLOAT32);
  std::vector<Operand> operands{session.upload(Array(dtype::FLOAT32, {n, n}))};
  if (op == "solve") operands.push_back(c.uniform({n, 2}));
  const Operand before[] = {c.uniform({9}), session.upload(Array(dtype::INT64, {4}))};
  const Stream stream = session.stream();
  check(compute_graph_begin(stream, nullptr));
  Tensor taken, output;
  const Error refused[] = {session.try_run("take", {}, before, stream, taken),
                           session.try_run(op, {}, operands, stream, output)};
  Graph graph;
  const Error at_end(compute_graph_end(stream, graph.out()));
  for (const Error& error : refused)
    if (error.code() == COMPUTE_ERROR_UNSUPPORTED) return;  // left to the host, which is not recorded
  check(compute_graph_run(graph, stream));
  Array found(dtype::FLOAT32, operands.back().array.shape());
  const Error error(compute_tensor_read(output, found.data(), found.size_bytes()));
  EXPECT_EQ(error.code(), COMPUTE_ERROR_NUMERICAL) << error.message();
  EXPECT_TRUE(error.mentions(op)) << error.message();
}

// Ops that devices leave to the host need the cpu plugin, and LAPACK. Throws Lacking if one of them is missing.
void need_host() {
  static const std::string missing = [] {
    Device cpu;
    check(compute_device_open("cpu", cpu.out()));
    Tensor x, y;
    const int64_t shape[] = {1, 1};
    const float one = 1;
    check(compute_tensor_full(cpu, COMPUTE_DTYPE_FLOAT32, 2, shape, &one, x.out()));
    const Error error = compute_inv(nullptr, x, nullptr, y.out());
    return error.code() == COMPUTE_ERROR_UNSUPPORTED ? error.message() : "";
  }();
  if (!missing.empty()) throw Lacking(missing);
}

// ---- The list -------------------------------------------------------------------------------------------------------

struct Row {
  const char* op;
  void (*body)(Case&);
};

constexpr Row kRows[] = {
    {"cholesky", test_cholesky},
    {"det", test_det},
    {"eig", test_eig},
    {"eigh", test_eigh},
    {"eigvals", test_eig},
    {"eigvalsh", test_eigh},
    {"expm", test_expm},
    {"inv", test_inv},
    {"lstsq", test_lstsq},
    {"lu", test_lu},
    {"matrix_norm", test_matrix_norm},
    {"matrix_power", test_matrix_power},
    {"matrix_rank", test_pinv},
    {"pinv", test_pinv},
    {"qr", test_qr},
    {"slogdet", test_det},
    {"solve", test_solve},
    {"svd", test_svd},
    {"svdvals", test_svdvals},
    {"triangular_solve", test_solve},
};

}  // namespace

void add_linalg_tests(Registry& registry) {
  for (const Row& row : kRows) {
    for (const Dtype dtype : tested_dtypes(registry.level())) {
      if (!oracle::is_inexact(dtype)) continue;
      Test test{"linalg", std::string(row.op) + "_" + oracle::info(dtype).name,
                nullptr,  dtype == dtype::FLOAT32 ? Level::SMOKE : Level::QUICK,
                row.op,   {dtype, dtype::INT64}};
      test.body = [row, dtype](const Session& session) {
        need_host();
        Case c(session, row.op, dtype);
        row.body(c);
      };
      registry.add(std::move(test));
    }
  }
  for (const int64_t n : {4, 20, 140}) {
    const std::string rows = n == 4 ? "" : "_of_" + std::to_string(n);
    for (const char* op : {"cholesky", "det", "eigvalsh", "expm", "inv", "pinv", "qr", "svdvals"}) {
      registry.add({"linalg",
                    std::string("nan_") + op + rows,
                    [op, n](const Session& session) {
                      need_host();
                      test_nan(session, op, n);
                    },
                    n == 4 ? Level::QUICK : Level::FULL,
                    "",
                    {dtype::FLOAT32}});
    }
    for (const char* op : {"cholesky", "inv", "solve"}) {
      registry.add({"linalg",
                    std::string("no_result_of_") + op + rows,
                    [op, n](const Session& session) {
                      need_host();
                      test_singular(session, op, n);
                    },
                    n == 4 ? Level::QUICK : Level::FULL,
                    "",
                    {dtype::FLOAT32}});
    }
  }
  for (const char* op : {"cholesky", "inv", "solve"}) {
    registry.add({"linalg",
                  std::string("no_result_in_a_graph_of_") + op,
                  [op](const Session& session) {
                    need_host();
                    test_singular_in_graph(session, op);
                  },
                  Level::QUICK,
                  "",
                  {dtype::FLOAT32},
                  COMPUTE_DTYPE_LEVEL_ARITHMETIC,
                  false});
  }
  for (const char* op : {"eigh", "qr", "svd"}) {
    for (const Dtype dtype : {dtype::FLOAT32, dtype::FLOAT64, dtype::COMPLEX128}) {
      registry.add({"linalg",
                    std::string("many_rows_") + op + "_" + oracle::info(dtype).name,
                    [op, dtype](const Session& session) {
                      need_host();
                      test_many_rows(session, op, dtype);
                    },
                    Level::FULL,
                    op,
                    {dtype, dtype::INT64}});
    }
  }
  for (const char* op : {"eigh", "svd"}) {
    for (const Dtype dtype : {dtype::FLOAT32, dtype::FLOAT64, dtype::COMPLEX64, dtype::COMPLEX128}) {
      registry.add({"linalg",
                    std::string("many_matrices_") + op + "_" + oracle::info(dtype).name,
                    [op, dtype](const Session& session) {
                      need_host();
                      test_many_matrices(session, op, dtype);
                    },
                    Level::FULL,
                    op,
                    {dtype, dtype::INT64}});
    }
  }
  for (const char* op : {"cholesky", "inv", "lu", "solve", "triangular_solve"}) {
    for (const Dtype dtype : {dtype::FLOAT32, dtype::COMPLEX128}) {
      for (const int64_t upper : {0, 1}) {
        const bool has_upper = op == std::string_view("cholesky") || op == std::string_view("triangular_solve");
        if (upper != 0 && !has_upper) continue;
        const Attributes given = upper != 0 ? Attributes{{"upper", int64_t{1}}} : Attributes{};
        registry.add({"linalg",
                      std::string("large_") + op + (upper != 0 ? "_upper_" : "_") + oracle::info(dtype).name,
                      [=](const Session& session) {
                        need_host();
                        test_blocks(session, op, dtype, given);
                      },
                      Level::FULL,
                      op,
                      {dtype, dtype::INT64}});
      }
    }
  }
}

}  // namespace compute::conformance
