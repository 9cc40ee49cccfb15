// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <stdexcept>

#include <numbers>
#include <numeric>

#include "numbers.hpp"
#include "tracked.hpp"

namespace compute::oracle {

namespace {

// Slopes are less than 1.2. Below 0 the relative errors of gelu and gelu_tanh grow with the square and the cube of z.
Tracked activated(const std::string& activation, const Tracked& z) {
  const Real v = z.value, twice = 2 * std::numbers::sqrt2_v<Real> * std::numbers::inv_sqrtpi_v<Real>;
  Real y = v, growth = 0;
  if (activation == "relu") y = v < 0 ? 0 : v;
  if (activation == "gelu") {
    y = std::isinf(v) ? std::max(v, 0.0L) : 0.5L * v * std::erfc(-v / std::numbers::sqrt2_v<Real>);
    growth = 16 * (1 + v * v);
  }
  if (activation == "gelu_tanh") {
    y = std::isinf(v) ? std::max(v, 0.0L) : v / (1 + std::exp(-twice * (v + 0.044715L * v * v * v)));
    growth = 16 * (1 + std::fabs(v * v * v));
  }
  if (activation == "silu") y = std::isinf(v) ? std::max(v, 0.0L) : v / (1 + std::exp(-v));
  if (activation == "sigmoid") y = 1 / (1 + std::exp(-v));
  if (activation == "tanh") y = std::tanh(v);
  if (activation == "silu" || activation == "sigmoid" || activation == "tanh") growth = 16;
  Tracked result;
  result.value = y;
  result.error = 1.2L * z.error + growth * std::fabs(y);
  return result;
}

}  // namespace

// activation(x weight + bias): n roundings of the sum, then the activation's.
Result reference_affine(std::span<const Array> inputs, const Attributes& attributes) {
  const Field x(inputs[0]), weight(inputs[1]);
  const Field bias = is_given(inputs, 2) ? Field(inputs[2]) : Field();
  const bool transposed = integer_or(attributes, "transpose_weight", 0) != 0;
  const auto found = attributes.find("activation");
  const std::string activation = found == attributes.end() ? "none" : found->second.text;
  const int64_t k = x.shape.back(), n = weight.shape[transposed ? 0 : 1];
  Shape shape = x.shape;
  shape.back() = n;
  Field y(shape);
  for_each_index(shape, [&](const Shape& index) {
    Shape from = index;
    Real total = is_given(inputs, 2) ? bias[{index.back()}].value : 0, moduli = std::fabs(total);
    for (int64_t i = 0; i < k; ++i) {
      from.back() = i;
      const Real term = x[from].value * weight[transposed ? Shape{index.back(), i} : Shape{i, index.back()}].value;
      total += term;
      moduli += std::fabs(term);
    }
    Tracked z;
    z.value = total;
    z.error = static_cast<Real>(k + 1) * moduli;
    y[index] = activated(activation, z);
  });
  Result result = tracked_result(inputs[0].dtype(), y, computed_in(inputs[0].dtype()));
  result.terms = 8;  // tracked_result counts in eighths
  return result;
}

// activation(alpha a b + beta c + bias), for inputs c, a, b, bias.
Result reference_gemm(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& c = inputs[0];
  const auto factor = [&](const Array& x) {
    Shape shape(c.shape().begin(), c.shape().end() - 2);
    shape.insert(shape.end(), x.shape().end() - 2, x.shape().end());
    return Field(x.broadcast_to(shape).copy());
  };
  const Field a = factor(inputs[1]), b = factor(inputs[2]), addend(c);
  const Field bias = is_given(inputs, 3) ? Field(inputs[3]) : Field();
  const auto number = [&](const char* name) { return static_cast<Real>(number_or(attributes, name, 1).real()); };
  const Real alpha = number("alpha"), beta = number("beta");
  const auto found = attributes.find("activation");
  const std::string activation = found == attributes.end() ? "none" : found->second.text;
  const int64_t k = a.shape.back();
  Field y(c.shape());
  for_each_index(y.shape, [&](const Shape& index) {
    Shape left = index, right = index;
    Real total = 0, moduli = 0;
    const auto add = [&](Real term) {
      total += term;
      moduli += std::fabs(term);
    };
    for (int64_t i = 0; i < k; ++i) {
      left.back() = i;
      right[right.size() - 2] = i;
      add(alpha * a[left].value * b[right].value);
    }
    if (beta != 0) add(beta * addend[index].value);
    if (is_given(inputs, 3)) add(bias[{index.back()}].value);
    Tracked z;
    z.value = total;
    z.error = static_cast<Real>(k + 3) * moduli;
    y[index] = activated(activation, z);
  });
  Result result = tracked_result(c.dtype(), y, computed_in(c.dtype()));
  result.terms = 8;  // tracked_result counts in eighths
  return result;
}

namespace {

// The sum of the products of k numbers from x[i] and from y[j] on.
void add_products(Element& e, const Numbers& x, size_t i, const Numbers& y, size_t j, size_t k, Dtype dtype) {
  if (!is_inexact(dtype)) {
    uint64_t sum = 0;
    for (size_t l = 0; l < k; ++l) sum += x.integers[i + l] * y.integers[j + l];
    e.value = Value::of(wrap(dtype, sum));
    return;
  }
  Real re = 0, im = 0;
  for (size_t l = 0; l < k; ++l) {
    if (is_complex(dtype)) {
      re += x.re[i + l] * y.re[j + l] - x.im[i + l] * y.im[j + l];
      im += x.re[i + l] * y.im[j + l] + x.im[i + l] * y.re[j + l];
      e.scale += x.moduli[i + l] * y.moduli[j + l];
    } else {
      const Real term = x.re[i + l] * y.re[j + l];
      re += term;
      e.scale += std::fabs(term);
    }
  }
  e.value = Value::of(Complex(re, im));
}

}  // namespace

// The array API standard's matmul: a vector on the left gains a leading axis, one on the right a trailing one, and both
// lose it in the result; the axes before the last two broadcast.
Result reference_matmul(std::span<const Array> inputs, const Attributes&) {
  Array a = inputs[0], b = inputs[1];
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (a.rank() == 0 || b.rank() == 0) throw std::invalid_argument("matmul: rank 0");
  if (row) a = a.expand(0);
  if (column) b = b.expand(1);
  const auto last = [](const Array& x, int back) { return x.shape()[static_cast<size_t>(x.rank() - back)]; };
  const int64_t m = last(a, 2), k = last(a, 1), n = last(b, 1);
  if (k != last(b, 2)) throw std::invalid_argument("matmul: inner extents differ");
  const Shape batch =
      broadcast(Shape(a.shape().begin(), a.shape().end() - 2), Shape(b.shape().begin(), b.shape().end() - 2));
  Shape full_a = batch, full_b = batch;
  full_a.insert(full_a.end(), {m, k});
  full_b.insert(full_b.end(), {k, n});
  a = a.broadcast_to(full_a);
  b = b.broadcast_to(full_b);
  std::vector<int> axes(full_b.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  b = b.permute(axes);  // rows of k numbers

  Result result;
  result.dtype = promote(a.dtype(), b.dtype());
  if (result.dtype == 0) throw std::invalid_argument("matmul: dtypes without a common one");
  result.accumulator = computed_in(result.dtype);
  result.terms = k;
  if (is_complex(result.dtype)) result.roundings = 4;  // the bound of the intrinsic mul
  result.shape = batch;
  if (!row) result.shape.push_back(m);
  if (!column) result.shape.push_back(n);
  result.elements.resize(static_cast<size_t>(element_count(result.shape)));
  std::vector<Value> left = a.values(), right = b.values();
  if (is_inexact(result.dtype)) {
    for (auto [values, from] : {std::pair(&left, a.dtype()), std::pair(&right, b.dtype())}) {
      for (Value& x : *values) {
        if (!is_inexact(from)) x = convert(from, result.dtype, x);
      }
    }
  }
  const Numbers x(left, result.dtype), y(right, result.dtype);
  const auto depth = static_cast<size_t>(k);
  for (size_t i = 0; i < result.elements.size(); ++i) {
    const size_t row = i / static_cast<size_t>(n), matrix = row / static_cast<size_t>(m);
    const size_t column = matrix * static_cast<size_t>(n) + i % static_cast<size_t>(n);
    Element& e = result.elements[i];
    add_products(e, x, row * depth, y, column * depth, depth, result.dtype);
    if (!is_inexact(result.dtype)) continue;
    const bool leaves_range = std::isfinite(e.scale) && e.scale > largest(format(result.accumulator)) / 2;
    const bool complex_special = is_complex(result.dtype) && !std::isfinite(e.scale);
    e.open = static_cast<uint8_t>(kSigns | (complex_special ? kNotFinite : leaves_range ? kAny : 0));
  }
  return result;
}

}  // namespace compute::oracle
