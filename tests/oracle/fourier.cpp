// SPDX-License-Identifier: Apache-2.0
// Fourier transforms in long double: the sums themselves for primes, and for other lengths the transforms of the parts
// with every p-th element, where p is the least prime factor.
#include <cmath>
#include <numbers>

#include "ops.hpp"

namespace compute::oracle {

namespace {

// What is known of one element on its way through the axes.
struct Point {
  Complex value;
  Real squares = 0;  // of the moduli of the elements that it is made of
};

Complex times(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

class Line {
 public:
  Line(int64_t n, int sign) : n_(n) {
    for (int64_t k = 0; k < n; ++k) {
      // Within an eighth of a turn, where the argument's rounding matters least.
      const int64_t quarter = (8 * k + n) / (2 * n);
      const Real angle = std::numbers::pi_v<Real> / 2 * static_cast<Real>(4 * k - quarter * n) / static_cast<Real>(n);
      const Real c = std::cos(angle), s = std::sin(angle);
      const Complex turned[] = {{c, s}, {-s, c}, {-c, -s}, {s, -c}};
      const Complex root = turned[quarter % 4];
      roots_.push_back({root.real(), sign * root.imag()});
    }
  }

  std::vector<Complex> operator()(const std::vector<Complex>& x) const {
    std::vector<Complex> y(x.size());
    transform(x.data(), 1, n_, y.data());
    return y;
  }

 private:
  void transform(const Complex* x, int64_t step, int64_t n, Complex* y) const {
    if (n == 1) {
      *y = *x;
      return;
    }
    int64_t p = 2;
    while (n % p != 0) p = p * p < n ? p + 1 : n;
    const int64_t m = n / p;
    std::vector<Complex> parts(static_cast<size_t>(n));
    for (int64_t r = 0; r < p; ++r) transform(x + r * step, step * p, m, parts.data() + r * m);
    for (int64_t k = 0; k < n; ++k) {
      Complex sum = 0;
      for (int64_t r = 0; r < p; ++r)
        sum += times(parts[static_cast<size_t>(r * m + k % m)], roots_[static_cast<size_t>(r * k % n * step)]);
      y[k] = sum;
    }
  }

  int64_t n_;
  std::vector<Complex> roots_;
};

struct Points {
  Shape shape;
  std::vector<Point> list;

  // Calls f(line, first, step) for each line of points along an axis of n elements.
  template <class F>
  static void each_line(const Shape& shape, size_t axis, const F& f) {
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < shape.size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) f(o, i, inner);
    }
  }

  // Takes each line of n points along `axis`, whose values `expand` gives, to the first `kept` of its transform.
  template <class Expand>
  void transform(size_t axis, int64_t n, int64_t kept, int sign, const Expand& expand) {
    const int64_t given = shape[axis];
    const Line line(n, sign);
    Points to{shape, {}};
    to.shape[axis] = kept;
    to.list.resize(static_cast<size_t>(element_count(to.shape)));
    each_line(shape, axis, [&](int64_t o, int64_t i, int64_t inner) {
      std::vector<Point> x;
      for (int64_t k = 0; k < given; ++k) x.push_back(list[static_cast<size_t>((o * given + k) * inner + i)]);
      x = expand(std::move(x));
      std::vector<Complex> values;
      Real squares = 0;
      for (const Point& point : x) {
        values.push_back(point.value);
        squares += point.squares;
      }
      const std::vector<Complex> y = line(values);
      for (int64_t k = 0; k < kept; ++k)
        to.list[static_cast<size_t>((o * kept + k) * inner + i)] = {y[static_cast<size_t>(k)], squares};
    });
    *this = std::move(to);
  }
  void transform(size_t axis, int sign) {
    transform(axis, shape[axis], shape[axis], sign, [](std::vector<Point> x) { return x; });
  }
};

std::vector<size_t> axes_of(const Array& x, const Attributes& attributes) {
  std::vector<size_t> axes;
  if (const auto found = attributes.find("axes"); found != attributes.end()) {
    for (const int64_t axis : found->second.integers)
      axes.push_back(static_cast<size_t>(axis < 0 ? axis + x.rank() : axis));
  } else {
    for (int i = 0; i < x.rank(); ++i) axes.push_back(static_cast<size_t>(i));
  }
  return axes;
}

Points points_of(const Array& x) {
  Points points{x.shape(), {}};
  for (const Value& value : x.values())
    points.list.push_back({value.complex(), value.re * value.re + value.im * value.im});
  return points;
}

// `whole` is the shape of the transform before rfft leaves elements out.
Result result_of(const Points& points, Dtype dtype, const Attributes& attributes, const std::vector<size_t>& axes,
                 const Shape& whole, bool is_inverse) {
  Result result;
  result.dtype = dtype;
  result.shape = points.shape;
  result.accumulator = part(dtype);
  result.terms = 1;
  result.roundings = 2;  // as a convolution with a chirp, a transform takes three of twice the length
  for (const size_t axis : axes) result.terms *= whole[axis];
  const auto found = attributes.find("norm");
  const std::string norm = found == attributes.end() ? "backward" : found->second.text;
  const Real divisor = norm == "ortho"                     ? std::sqrt(static_cast<Real>(result.terms))
                       : (norm == "forward") != is_inverse ? static_cast<Real>(result.terms)
                                                           : 1;
  for (const Point& point : points.list) {
    Element& e = result.elements.emplace_back();
    e.value = Value::of(point.value / divisor);
    if (!is_complex(dtype)) e.value.im = 0;
    e.scale = std::sqrt(point.squares) / divisor;
    e.open = kSigns | kFlushed;
    if (!std::isfinite(e.scale)) {
      e.open = kNotFinite;
      e.scale = 0;
    }
  }
  return result;
}

Dtype complex_of(Dtype x) { return part(x) == dtype::FLOAT64 ? dtype::COMPLEX128 : dtype::COMPLEX64; }

}  // namespace

Result reference_fft(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const bool is_inverse = integer_or(attributes, "inverse", 0) != 0;
  const std::vector<size_t> axes = axes_of(x, attributes);
  Points points = points_of(x);
  for (const size_t axis : axes) points.transform(axis, is_inverse ? 1 : -1);
  return result_of(points, complex_of(x.dtype()), attributes, axes, x.shape(), is_inverse);
}

Result reference_rfft(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const std::vector<size_t> axes = axes_of(x, attributes);
  Points points = points_of(x);
  const int64_t n = x.shape()[axes.back()];
  points.transform(axes.back(), n, n / 2 + 1, -1, [](std::vector<Point> line) { return line; });
  for (size_t i = 0; i + 1 < axes.size(); ++i) points.transform(axes[i], -1);
  return result_of(points, complex_of(x.dtype()), attributes, axes, x.shape(), false);
}

Result reference_irfft(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const std::vector<size_t> axes = axes_of(x, attributes);
  Points points = points_of(x);
  for (size_t i = 0; i + 1 < axes.size(); ++i) points.transform(axes[i], 1);
  const int64_t n = integer_or(attributes, "size", 2 * (x.shape()[axes.back()] - 1));
  points.transform(axes.back(), n, n, 1, [n](std::vector<Point> line) {
    for (int64_t k = 0; k < n; ++k) {
      if (k > n / 2) {
        const Point& other = line[static_cast<size_t>(n - k)];
        line.push_back({std::conj(other.value), other.squares});
      } else if (2 * k % n == 0) {
        Point& point = line[static_cast<size_t>(k)];
        point.value = point.value.real();
      }
    }
    return line;
  });
  return result_of(points, part(x.dtype()), attributes, axes, points.shape, true);
}

}  // namespace compute::oracle
