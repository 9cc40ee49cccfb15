// SPDX-License-Identifier: Apache-2.0
// Decompositions and solvers. A result may differ from the exact one by what a change of the operands within the bound
// "backward" causes, to first order: the slack of its elements. Results that are not unique are left open here, and
// their tests judge them by what they have to satisfy.
#include "linalg.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <type_traits>

#include "ops.hpp"
#include "tracked.hpp"

namespace compute::oracle {

// ---- Matrices -------------------------------------------------------------------------------------------------------

Matrix Matrix::unit(int64_t n) {
  Matrix result(n, n);
  for (int64_t i = 0; i < n; ++i) result(i, i) = 1;
  return result;
}

bool Matrix::is_finite() const {
  return std::all_of(elements_.begin(), elements_.end(),
                     [](const Complex& x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); });
}

bool Matrix::is_real() const {
  return std::all_of(elements_.begin(), elements_.end(), [](const Complex& x) { return x.imag() == 0; });
}

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows(), b.columns());
  if (a.is_real() && b.is_real()) {
    // A few columns at a time, whose sums stay in registers: loads and stores of long doubles take long.
    constexpr int64_t kTogether = 4;
    std::vector<Real> x(static_cast<size_t>(a.columns())), y(x.size() * kTogether);
    for (int64_t first = 0; first < b.columns(); first += kTogether) {
      const int64_t count = std::min(kTogether, b.columns() - first);
      for (int64_t k = 0; k < a.columns(); ++k) {
        for (int64_t j = 0; j < count; ++j) y[static_cast<size_t>(k * kTogether + j)] = b(k, first + j).real();
      }
      for (int64_t i = 0; i < a.rows(); ++i) {
        for (int64_t k = 0; k < a.columns(); ++k) x[static_cast<size_t>(k)] = a(i, k).real();
        Real s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (size_t k = 0; k < x.size(); ++k) {
          const Real* const row = y.data() + k * kTogether;
          s0 += x[k] * row[0];
          s1 += x[k] * row[1];
          s2 += x[k] * row[2];
          s3 += x[k] * row[3];
        }
        const Real sums[] = {s0, s1, s2, s3};
        for (int64_t j = 0; j < count; ++j) c(i, first + j) = sums[j];
      }
    }
    return c;
  }
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t k = 0; k < a.columns(); ++k) {
      const Complex x = a(i, k);
      for (int64_t j = 0; j < b.columns(); ++j) {
        const Complex y = b(k, j);
        c(i, j) += Complex(x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real());
      }
    }
  }
  return c;
}

namespace {

Matrix each(const Matrix& a, const std::function<Complex(int64_t, int64_t)>& f) {
  Matrix result(a.rows(), a.columns());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.columns(); ++j) result(i, j) = f(i, j);
  }
  return result;
}

}  // namespace

Matrix operator+(const Matrix& a, const Matrix& b) {
  return each(a, [&](int64_t i, int64_t j) { return a(i, j) + b(i, j); });
}
Matrix operator-(const Matrix& a, const Matrix& b) {
  return each(a, [&](int64_t i, int64_t j) { return a(i, j) - b(i, j); });
}
Matrix operator*(Real factor, const Matrix& a) {
  return each(a, [&](int64_t i, int64_t j) { return factor * a(i, j); });
}

Matrix adjoint(const Matrix& a) {
  Matrix result(a.columns(), a.rows());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.columns(); ++j) result(j, i) = std::conj(a(i, j));
  }
  return result;
}

Matrix diagonal(const std::vector<Real>& values) {
  const auto n = static_cast<int64_t>(values.size());
  Matrix result(n, n);
  for (int64_t i = 0; i < n; ++i) result(i, i) = values[static_cast<size_t>(i)];
  return result;
}

Real norm(const Matrix& a) {
  Real sum = 0;
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.columns(); ++j) sum += std::norm(a(i, j));
  }
  return std::sqrt(sum);
}

Lu lu(const Matrix& a) {
  Lu result{a, {}, 1, true};
  Matrix& m = result.factors;
  for (int64_t k = 0; k < std::min(a.rows(), a.columns()); ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < a.rows(); ++i) {
      if (std::abs(m(i, k)) > std::abs(m(pivot, k))) pivot = i;
    }
    result.pivots.push_back(pivot);
    if (pivot != k) {
      result.determinant = -result.determinant;
      for (int64_t j = 0; j < a.columns(); ++j) std::swap(m(k, j), m(pivot, j));
    }
    result.determinant *= m(k, k);
    if (m(k, k) == Complex(0)) {
      result.is_regular = false;
      continue;
    }
    for (int64_t i = k + 1; i < a.rows(); ++i) {
      const Complex factor = m(i, k) /= m(k, k);
      for (int64_t j = k + 1; j < a.columns(); ++j) m(i, j) -= factor * m(k, j);
    }
  }
  return result;
}

Matrix solve(const Matrix& a, const Matrix& b) {
  const Lu factors = lu(a);
  Matrix x = b;
  const int64_t n = a.rows();
  for (int64_t k = 0; k < n; ++k) {
    const int64_t pivot = factors.pivots[static_cast<size_t>(k)];
    for (int64_t j = 0; j < b.columns() && pivot != k; ++j) std::swap(x(k, j), x(pivot, j));
  }
  for (int64_t j = 0; j < b.columns(); ++j) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < i; ++k) x(i, j) -= factors.factors(i, k) * x(k, j);
    }
    for (int64_t i = n; i-- > 0;) {
      for (int64_t k = i + 1; k < n; ++k) x(i, j) -= factors.factors(i, k) * x(k, j);
      x(i, j) /= factors.factors(i, i);
    }
  }
  return x;
}

namespace {

Real conj(Real x) { return x; }
using std::conj;
Real squared(Real x) { return x * x; }
Real squared(const Complex& x) { return x.real() * x.real() + x.imag() * x.imag(); }
Real times(Real a, Real b) { return a * b; }
Complex times(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Columns of real or complex numbers.
template <class T>
using Columns = std::vector<std::vector<T>>;

// Rotates the columns of u until they are orthogonal, and those of v with them.
template <class T>
void orthogonalize(Columns<T>& u, Columns<T>& v) {
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool is_done = true;
    for (size_t p = 0; p < u.size(); ++p) {
      for (size_t q = p + 1; q < u.size(); ++q) {
        Real alpha = 0, beta = 0;
        T gamma = 0;
        for (size_t i = 0; i < u[p].size(); ++i) {
          alpha += squared(u[p][i]);
          beta += squared(u[q][i]);
          gamma += times(conj(u[p][i]), u[q][i]);
        }
        const Real size = std::abs(gamma);
        if (size == 0 || size <= 1e-19L * std::sqrt(alpha * beta)) continue;
        is_done = false;
        const T phase = conj(gamma / size);
        const Real zeta = (beta - alpha) / (2 * size);
        const Real t = (zeta < 0 ? -1 : 1) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
        const Real c = 1 / std::sqrt(1 + t * t), s = c * t;
        for (Columns<T>* const x : {&u, &v}) {
          for (size_t i = 0; i < (*x)[p].size(); ++i) {
            const T left = (*x)[p][i], right = times(phase, (*x)[q][i]);
            (*x)[p][i] = c * left - s * right;
            (*x)[q][i] = s * left + c * right;
          }
        }
      }
    }
    if (is_done) return;
  }
}

template <class T>
void orthogonalize(Matrix& u, Matrix& v) {
  const auto columns_of = [](const Matrix& x) {
    Columns<T> columns(static_cast<size_t>(x.columns()));
    for (int64_t j = 0; j < x.columns(); ++j) {
      for (int64_t i = 0; i < x.rows(); ++i) {
        if constexpr (std::is_same_v<T, Real>) {
          columns[static_cast<size_t>(j)].push_back(x(i, j).real());
        } else {
          columns[static_cast<size_t>(j)].push_back(x(i, j));
        }
      }
    }
    return columns;
  };
  Columns<T> of_u = columns_of(u), of_v = columns_of(v);
  orthogonalize(of_u, of_v);
  for (int64_t j = 0; j < u.columns(); ++j) {
    for (int64_t i = 0; i < u.rows(); ++i) u(i, j) = of_u[static_cast<size_t>(j)][static_cast<size_t>(i)];
    for (int64_t i = 0; i < v.rows(); ++i) v(i, j) = of_v[static_cast<size_t>(j)][static_cast<size_t>(i)];
  }
}

}  // namespace

Svd svd(const Matrix& a) {
  if (a.rows() < a.columns()) {
    const Svd other = svd(adjoint(a));
    return {adjoint(other.vh), other.s, adjoint(other.u)};
  }
  const int64_t m = a.rows(), n = a.columns();
  Matrix u = a, v = Matrix::unit(n);
  if (a.is_real()) {
    orthogonalize<Real>(u, v);
  } else {
    orthogonalize<Complex>(u, v);
  }
  std::vector<Real> sizes;
  for (int64_t j = 0; j < n; ++j) {
    Real sum = 0;
    for (int64_t i = 0; i < m; ++i) sum += std::norm(u(i, j));
    sizes.push_back(std::sqrt(sum));
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t x, int64_t y) { return sizes[static_cast<size_t>(x)] > sizes[static_cast<size_t>(y)]; });
  Svd result{Matrix(m, n), {}, Matrix(n, n)};
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = order[static_cast<size_t>(j)];
    const Real size = sizes[static_cast<size_t>(from)];
    result.s.push_back(size);
    for (int64_t i = 0; i < m; ++i) result.u(i, j) = size == 0 ? Complex(0) : u(i, from) / size;
    for (int64_t i = 0; i < n; ++i) result.vh(j, i) = std::conj(v(i, from));
  }
  return result;
}

Matrix exponential(const Matrix& a) {
  int squarings = 0;
  for (Real size = norm(a); size > 0.25L; size /= 2) ++squarings;
  const Matrix x = std::ldexp(1.0L, -squarings) * a;
  Matrix term = Matrix::unit(a.rows()), sum = term;
  for (int k = 1; k < 30; ++k) {
    term = (1.0L / static_cast<Real>(k)) * (term * x);
    sum = sum + term;
  }
  for (int i = 0; i < squarings; ++i) sum = sum * sum;
  return sum;
}

// ---- Arrays of matrices ---------------------------------------------------------------------------------------------

int64_t matrix_count(const Array& x) {
  return std::accumulate(x.shape().begin(), x.shape().end() - 2, int64_t{1}, std::multiplies<>());
}

Matrix matrix_at(const Array& x, int64_t index) {
  Matrix result(x.shape()[x.shape().size() - 2], x.shape().back());
  const int64_t first = index * result.rows() * result.columns();
  for (int64_t i = 0; i < result.rows(); ++i) {
    for (int64_t j = 0; j < result.columns(); ++j) result(i, j) = x.at(first + i * result.columns() + j).complex();
  }
  return result;
}

Real unit_roundoff(Dtype dtype) { return computed_in(part(dtype)) == dtype::FLOAT64 ? 0x1p-53L : 0x1p-24L; }

Real backward_bound(Dtype dtype, int64_t rows, int64_t columns) {
  return 20 * static_cast<Real>(std::max({rows, columns, int64_t{1}})) * unit_roundoff(dtype);
}

// ---- References -----------------------------------------------------------------------------------------------------

namespace {

Shape batch_of(const Array& x) { return {x.shape().begin(), x.shape().end() - 2}; }
Shape joined(Shape shape, std::initializer_list<int64_t> more) {
  shape.insert(shape.end(), more);
  return shape;
}

Result result_of(Dtype dtype, const Shape& shape) {
  Result result;
  result.dtype = dtype;
  result.shape = shape;
  result.elements.resize(static_cast<size_t>(element_count(shape)));
  result.accumulator = computed_in(part(dtype));
  for (Element& e : result.elements) e.open = kSigns;
  return result;
}

Result open_result(Dtype dtype, const Shape& shape) {
  Result result = result_of(dtype, shape);
  for (Element& e : result.elements) e.open = kAny;
  return result;
}

Dtype complex_of(Dtype dtype) {
  return computed_in(part(dtype)) == dtype::FLOAT64 ? dtype::COMPLEX128 : dtype::COMPLEX64;
}

// Elements `first` and on, from a row-major matrix; all with one slack.
void put(Result& result, int64_t first, const Matrix& value, Real slack) {
  for (int64_t i = 0; i < value.rows(); ++i) {
    for (int64_t j = 0; j < value.columns(); ++j) {
      Element& e = result.elements[static_cast<size_t>(first + i * value.columns() + j)];
      e.value = Value::of(value(i, j));
      e.slack = slack;
      if (!std::isfinite(slack)) e.open = kAny;
    }
  }
}

void put_nan(Result& result, int64_t first, int64_t count) {
  for (int64_t i = first; i < first + count; ++i) result.elements[static_cast<size_t>(i)].open = kNotFinite;
}

Matrix row_of(const std::vector<Real>& values) {
  Matrix row(1, static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) row(0, static_cast<int64_t>(i)) = values[i];
  return row;
}

struct Condition {
  explicit Condition(const Matrix& a) : values(svd(a).s) {
    greatest = values.empty() ? 0 : values.front();
    number = values.empty() ? 1 : values.back() > 0 ? values.front() / values.back() : HUGE_VALL;
  }
  std::vector<Real> values;
  Real greatest, number;
};

// A result of the shape of x, from a function of one matrix that also gives the slack.
Result per_matrix(const Array& x, const Shape& matrix, Dtype dtype,
                  const std::function<std::pair<Matrix, Real>(const Matrix&)>& f) {
  Shape shape = batch_of(x);
  shape.insert(shape.end(), matrix.begin(), matrix.end());
  Result result = result_of(dtype, shape);
  const int64_t size = element_count(matrix);
  for (int64_t i = 0; i < matrix_count(x) && size > 0; ++i) {
    const Matrix a = matrix_at(x, i);
    if (!a.is_finite()) {
      put_nan(result, i * size, size);
      continue;
    }
    const auto [value, slack] = f(a);
    put(result, i * size, value, slack);
  }
  return result;
}

int64_t rows_of(const Array& x) { return x.shape()[x.shape().size() - 2]; }
int64_t columns_of(const Array& x) { return x.shape().back(); }
Real bound_of(const Array& x) { return backward_bound(x.dtype(), rows_of(x), columns_of(x)); }

// The triangle of a Hermitian matrix, and its mirror image.
Matrix hermitian(const Matrix& a, bool upper) {
  Matrix result = a;
  for (int64_t i = 0; i < a.rows(); ++i) {
    result(i, i) = a(i, i).real();
    for (int64_t j = 0; j < i; ++j) {
      if (upper) {
        result(i, j) = std::conj(a(j, i));
      } else {
        result(j, i) = std::conj(a(i, j));
      }
    }
  }
  return result;
}

Matrix cholesky(const Matrix& a) {
  Matrix l(a.rows(), a.rows());
  for (int64_t j = 0; j < a.rows(); ++j) {
    Complex sum = a(j, j);
    for (int64_t k = 0; k < j; ++k) sum -= std::norm(l(j, k));
    l(j, j) = std::sqrt(sum.real());
    for (int64_t i = j + 1; i < a.rows(); ++i) {
      Complex next = a(i, j);
      for (int64_t k = 0; k < j; ++k) next -= l(i, k) * std::conj(l(j, k));
      l(i, j) = next / l(j, j);
    }
  }
  return l;
}

}  // namespace

Result reference_cholesky(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const bool upper = integer_or(attributes, "upper", 0) != 0;
  return per_matrix(x, {rows_of(x), rows_of(x)}, x.dtype(), [&](const Matrix& a) {
    const Matrix whole = hermitian(a, upper), l = cholesky(whole);
    return std::pair(upper ? adjoint(l) : l, bound_of(x) * Condition(whole).number * norm(l));
  });
}

Result reference_lu(std::span<const Array> inputs, const Attributes&) {
  const Array& x = inputs[0];
  Result result = open_result(x.dtype(), x.shape());
  result.more = {open_result(dtype::INT64, joined(batch_of(x), {std::min(rows_of(x), columns_of(x))}))};
  return result;
}

Result reference_qr(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const auto mode = attributes.find("mode");
  const bool is_complete = mode != attributes.end() && mode->second.text == "complete";
  const int64_t inner = is_complete ? rows_of(x) : std::min(rows_of(x), columns_of(x));
  Result result = open_result(x.dtype(), joined(batch_of(x), {rows_of(x), inner}));
  result.more = {open_result(x.dtype(), joined(batch_of(x), {inner, columns_of(x)}))};
  return result;
}

Result reference_eigvalsh(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const bool upper = integer_or(attributes, "upper", 0) != 0;
  return per_matrix(x, {rows_of(x)}, part(x.dtype()), [&](const Matrix& a) {
    // Shifted by more than the norm, all values are positive, and are the singular ones.
    const Matrix whole = hermitian(a, upper);
    const Real shift = 1.5L * norm(whole);
    std::vector<Real> values = svd(whole + shift * Matrix::unit(a.rows())).s;
    std::reverse(values.begin(), values.end());
    for (Real& value : values) value -= shift;
    return std::pair(row_of(values), bound_of(x) * norm(whole));
  });
}

Result reference_eigh(std::span<const Array> inputs, const Attributes& attributes) {
  Result result = reference_eigvalsh(inputs, attributes);
  result.more = {open_result(inputs[0].dtype(), inputs[0].shape())};
  return result;
}

Result reference_eigvals(std::span<const Array> inputs, const Attributes&) {
  const Array& x = inputs[0];
  return open_result(complex_of(x.dtype()), joined(batch_of(x), {rows_of(x)}));
}

Result reference_eig(std::span<const Array> inputs, const Attributes& attributes) {
  Result result = reference_eigvals(inputs, attributes);
  result.more = {open_result(complex_of(inputs[0].dtype()), inputs[0].shape())};
  return result;
}

Result reference_svdvals(std::span<const Array> inputs, const Attributes&) {
  const Array& x = inputs[0];
  return per_matrix(x, {std::min(rows_of(x), columns_of(x))}, part(x.dtype()),
                    [&](const Matrix& a) { return std::pair(row_of(svd(a).s), bound_of(x) * norm(a)); });
}

Result reference_svd(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const int64_t m = rows_of(x), n = columns_of(x), k = std::min(m, n);
  const bool is_full = integer_or(attributes, "full_matrices", 1) != 0;
  Result result = open_result(x.dtype(), joined(batch_of(x), {m, is_full ? m : k}));
  result.more = {reference_svdvals(inputs, {}), open_result(x.dtype(), joined(batch_of(x), {is_full ? n : k, n}))};
  return result;
}

namespace {

// The operands of solve and its like, broadcast: `b` has matrices of columns.
struct System {
  explicit System(std::span<const Array> inputs) {
    is_vector = inputs[1].rank() == 1;
    const Array right = is_vector ? inputs[1].expand(1) : inputs[1];
    batch = broadcast(batch_of(inputs[0]), batch_of(right));
    a = inputs[0].broadcast_to(joined(batch, {rows_of(inputs[0]), columns_of(inputs[0])})).copy();
    b = right.broadcast_to(joined(batch, {rows_of(right), columns_of(right)})).copy();
    dtype = promote(inputs[0].dtype(), inputs[1].dtype());
  }
  Shape solution() const {
    return is_vector ? joined(batch, {columns_of(a)}) : joined(batch, {columns_of(a), columns_of(b)});
  }

  Shape batch;
  Array a, b;
  Dtype dtype;
  bool is_vector;
};

Result solution(std::span<const Array> inputs, const std::function<Matrix(const Matrix&)>& read) {
  const System system(inputs);
  Result result = result_of(system.dtype, system.solution());
  const int64_t size = columns_of(system.a) * columns_of(system.b);
  for (int64_t i = 0; i < matrix_count(system.a) && size > 0; ++i) {
    const Matrix a = read(matrix_at(system.a, i)), b = matrix_at(system.b, i);
    if (!a.is_finite() || !b.is_finite()) {
      put_nan(result, i * size, size);
      continue;
    }
    const Matrix x = solve(a, b);
    put(result, i * size, x, backward_bound(system.dtype, a.rows(), a.rows()) * Condition(a).number * norm(x));
  }
  return result;
}

}  // namespace

Result reference_solve(std::span<const Array> inputs, const Attributes&) {
  return solution(inputs, [](const Matrix& a) { return a; });
}

Result reference_triangular_solve(std::span<const Array> inputs, const Attributes& attributes) {
  const bool upper = integer_or(attributes, "upper", 0) != 0, unit = integer_or(attributes, "unit_diagonal", 0) != 0;
  return solution(inputs, [&](const Matrix& a) {
    return each(a, [&](int64_t i, int64_t j) {
      if (i == j) return unit ? Complex(1) : a(i, j);
      return (upper ? i < j : i > j) ? a(i, j) : Complex(0);
    });
  });
}

Result reference_inv(std::span<const Array> inputs, const Attributes&) {
  const Array& x = inputs[0];
  return per_matrix(x, {rows_of(x), rows_of(x)}, x.dtype(), [&](const Matrix& a) {
    const Matrix y = solve(a, Matrix::unit(a.rows()));
    return std::pair(y, bound_of(x) * Condition(a).number * norm(y));
  });
}

namespace {

Matrix single(const Complex& value) {
  Matrix result(1, 1);
  result(0, 0) = value;
  return result;
}

}  // namespace

Result reference_det(std::span<const Array> inputs, const Attributes&) {
  const Array& x = inputs[0];
  return per_matrix(x, {}, x.dtype(), [&](const Matrix& a) {
    // The singular values of the adjugate are the products of all others.
    const std::vector<Real> values = Condition(a).values;
    Real sum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      Real product = 1;
      for (size_t j = 0; j < values.size(); ++j) product *= i == j ? 1 : values[j];
      sum += product;
    }
    return std::pair(single(lu(a).determinant), values.empty() ? 0 : bound_of(x) * values.front() * sum);
  });
}

Result reference_slogdet(std::span<const Array> inputs, const Attributes&) {
  const Array& x = inputs[0];
  const auto slack = [&](const Matrix& a) {
    const Real relative = bound_of(x) * Condition(a).number * static_cast<Real>(a.rows());
    return relative < 0.1L ? relative : HUGE_VALL;
  };
  Result result = per_matrix(x, {}, x.dtype(), [&](const Matrix& a) {
    const Complex determinant = lu(a).determinant;
    return std::pair(single(determinant / std::abs(determinant)), slack(a));
  });
  result.more = {per_matrix(x, {}, part(x.dtype()), [&](const Matrix& a) {
    return std::pair(single(std::log(std::abs(lu(a).determinant))), slack(a));
  })};
  return result;
}

namespace {

// Which singular values count. Tests leave a gap around the limit.
Real limit_of(std::span<const Array> inputs, size_t rtol, const Array& x, int64_t index) {
  if (inputs.size() <= rtol || inputs[rtol].dtype() == 0 || inputs[rtol].shape().size() > batch_of(x).size()) {
    const Dtype real = part(x.dtype());
    const Real epsilon = real == dtype::FLOAT64   ? 0x1p-52L
                         : real == dtype::FLOAT32 ? 0x1p-23L
                         : real == dtype::FLOAT16 ? 0x1p-10L
                                                  : 0x1p-7L;
    return static_cast<Real>(std::max(rows_of(x), columns_of(x))) * epsilon;
  }
  return inputs[rtol].broadcast_to(batch_of(x)).at(index).re;
}

int64_t rank_of(const std::vector<Real>& values, Real limit) {
  return std::count_if(values.begin(), values.end(), [&](Real s) { return s > limit * values.front(); });
}

struct Inverse {
  Matrix value;
  Real condition = 1;
  int64_t rank = 0;
  std::vector<Real> values;
};

Inverse pseudo_inverse(const Matrix& a, Real limit) {
  Inverse result;
  const Svd parts = svd(a);
  result.values = parts.s;
  result.rank = parts.s.empty() ? 0 : rank_of(parts.s, limit);
  Matrix u = parts.u, vh = parts.vh;
  for (int64_t k = 0; k < static_cast<int64_t>(parts.s.size()); ++k) {
    const Real s = parts.s[static_cast<size_t>(k)], factor = k < result.rank ? 1 / s : 0;
    for (int64_t j = 0; j < vh.columns(); ++j) vh(k, j) *= factor;
  }
  if (result.rank > 0) result.condition = parts.s.front() / parts.s[static_cast<size_t>(result.rank - 1)];
  result.value = adjoint(u * vh);
  return result;
}

}  // namespace

Result reference_pinv(std::span<const Array> inputs, const Attributes&) {
  const Array& x = inputs[0];
  int64_t index = 0;
  return per_matrix(x, {columns_of(x), rows_of(x)}, x.dtype(), [&](const Matrix& a) {
    const Inverse inverse = pseudo_inverse(a, limit_of(inputs, 1, x, index++));
    return std::pair(inverse.value, bound_of(x) * inverse.condition * norm(inverse.value));
  });
}

Result reference_matrix_rank(std::span<const Array> inputs, const Attributes&) {
  const Array& x = inputs[0];
  Result result = result_of(dtype::INT64, batch_of(x));
  for (int64_t i = 0; i < matrix_count(x); ++i) {
    const std::vector<Real> values = svd(matrix_at(x, i)).s;
    const int64_t rank = values.empty() ? 0 : rank_of(values, limit_of(inputs, 1, x, i));
    result.elements[static_cast<size_t>(i)].value = Value::of(Integer{rank});
  }
  return result;
}

Result reference_lstsq(std::span<const Array> inputs, const Attributes&) {
  const System system(inputs);
  const int64_t m = rows_of(system.a), n = columns_of(system.a), k = columns_of(system.b), least = std::min(m, n);
  const Dtype real = part(system.dtype);
  Result result = result_of(system.dtype, system.solution());
  Result residuals = result_of(real, system.is_vector ? system.batch : joined(system.batch, {k})),
         ranks = result_of(dtype::INT64, system.batch), values = result_of(real, joined(system.batch, {least}));
  const Real bound = backward_bound(system.dtype, m, n);
  for (int64_t i = 0; i < matrix_count(system.a); ++i) {
    const Matrix a = matrix_at(system.a, i), b = matrix_at(system.b, i);
    const Inverse inverse = pseudo_inverse(a, limit_of(inputs, 2, system.a, i));
    const Matrix x = inverse.value * b, rest = b - a * x;
    const Real size = inverse.values.empty() ? 0 : inverse.values.front();
    const Real distance = size > 0 ? norm(rest) / size : 0;
    if (n * k > 0)
      put(result, i * n * k, x,
          bound * inverse.condition * (norm(x) + norm(b) * norm(inverse.value) + inverse.condition * distance));
    const Real step = bound * (inverse.condition + 1) * (size * norm(x) + norm(b));
    for (int64_t j = 0; j < k; ++j) {
      Real sum = 0;
      for (int64_t row = 0; row < m; ++row) sum += std::norm(rest(row, j));
      put(residuals, i * k + j, single(sum), 2 * std::sqrt(sum) * step + step * step + bound * sum);
    }
    ranks.elements[static_cast<size_t>(i)].value = Value::of(Integer{inverse.rank});
    if (least > 0) put(values, i * least, row_of(inverse.values), bound * size);
  }
  result.more = {residuals, ranks, values};
  return result;
}

Result reference_matrix_norm(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const auto found = attributes.find("ord");
  const std::string order = found == attributes.end() ? "fro" : found->second.text;
  const bool keeps = integer_or(attributes, "keepdims", 0) != 0;
  return per_matrix(x, keeps ? Shape{1, 1} : Shape{}, part(x.dtype()), [&](const Matrix& a) {
    const Real size = norm(a);
    if (a.rows() == 0 || a.columns() == 0) return std::pair(single(0), Real{0});
    if (order == "fro") return std::pair(single(size), bound_of(x) * size);
    if (order == "nuc" || order == "2" || order == "-2") {
      const std::vector<Real> values = svd(a).s;
      const Real sum = std::accumulate(values.begin(), values.end(), Real{0});
      return std::pair(single(order == "nuc" ? sum
                              : order == "2" ? values.front()
                                             : values.back()),
                       bound_of(x) * (order == "nuc" ? sum : size));
    }
    const bool adds_rows = order == "1" || order == "-1";
    const Matrix m = adds_rows ? adjoint(a) : a;
    std::vector<Real> sums;
    for (int64_t i = 0; i < m.rows(); ++i) {
      Real sum = 0;
      for (int64_t j = 0; j < m.columns(); ++j) sum += std::abs(m(i, j));
      sums.push_back(sum);
    }
    const auto [least, most] = std::minmax_element(sums.begin(), sums.end());
    const Real value = order[0] == '-' ? *least : *most;
    return std::pair(single(value), bound_of(x) * value);
  });
}

Result reference_matrix_power(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const int64_t n = integer_or(attributes, "n", 0), count = std::abs(n);
  return per_matrix(x, {rows_of(x), rows_of(x)}, x.dtype(), [&](const Matrix& a) {
    const Matrix base = n < 0 ? solve(a, Matrix::unit(a.rows())) : a;
    const Real condition = n < 0 ? Condition(a).number : 1;
    Matrix power = Matrix::unit(a.rows());
    Real size = 1;
    for (int64_t i = 0; i < count; ++i) {
      power = power * base;
      size *= norm(base);
    }
    return std::pair(power, static_cast<Real>(count) * bound_of(x) * condition * size);
  });
}

Result reference_expm(std::span<const Array> inputs, const Attributes&) {
  const Array& x = inputs[0];
  return per_matrix(x, {rows_of(x), rows_of(x)}, x.dtype(), [&](const Matrix& a) {
    const Matrix y = exponential(a);
    return std::pair(y, bound_of(x) * (1 + norm(a)) * norm(y));
  });
}

}  // namespace compute::oracle
