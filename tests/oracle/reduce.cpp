// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "ops.hpp"

namespace compute::oracle {

namespace {

constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

// A sum whose error does not grow with the number of terms (Neumaier): the lost parts are added at the end.
class Sum {
 public:
  void add(Real x) {
    const Real t = sum_ + x;
    if (std::isfinite(t)) lost_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - t) + x : (x - t) + sum_;
    sum_ = t;
  }
  Real value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  Real sum_ = 0;
  Real lost_ = 0;
};

// The input seen as [results, points]: the kept axes in order, then the reduced ones in order.
struct Reduction {
  std::vector<Value> values;
  Shape shape;  // of the result
  int64_t results = 1;
  int64_t points = 1;

  const Value& at(int64_t result, int64_t point) const { return values[static_cast<size_t>(result * points + point)]; }
};

Reduction reduction(const Array& x, const Attributes& attributes) {
  std::vector<bool> reduced(x.shape().size(), true);
  if (const auto axes = attributes.find("axes"); axes != attributes.end()) {
    reduced.assign(x.shape().size(), false);
    for (int64_t axis : axes->second.integers)
      reduced.at(static_cast<size_t>(axis < 0 ? axis + x.rank() : axis)) = true;
  }
  Reduction r;
  std::vector<int> kept, gone;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t extent = x.shape()[static_cast<size_t>(axis)];
    if (reduced[static_cast<size_t>(axis)]) {
      gone.push_back(axis);
      r.points *= extent;
      if (integer_or(attributes, "keepdims", 0)) r.shape.push_back(1);
    } else {
      kept.push_back(axis);
      r.results *= extent;
      r.shape.push_back(extent);
    }
  }
  kept.insert(kept.end(), gone.begin(), gone.end());
  r.values = x.permute(kept).values();
  return r;
}

Result prepare(const Reduction& r, Dtype dtype, Dtype accumulator) {
  Result result;
  result.dtype = dtype;
  result.shape = r.shape;
  result.terms = r.points;
  result.accumulator = accumulator;
  result.elements.resize(static_cast<size_t>(r.results));
  return result;
}

// Integers and bool widen to 64 bits unless the attribute says otherwise.
Dtype widened(const Array& x, const Attributes& attributes) {
  const auto stated = static_cast<Dtype>(integer_or(attributes, "dtype", 0));
  if (stated != 0) return stated;
  switch (category(x.dtype())) {
    case Category::BOOL:
    case Category::SIGNED:
      return dtype::INT64;
    case Category::UNSIGNED:
      return dtype::UINT64;
    default:
      return x.dtype();
  }
}

bool truthy(Dtype dtype, const Value& v) { return is_inexact(dtype) ? v.re != 0 || v.im != 0 : v.integer != 0; }

// Sums that may leave the accumulator's range on the way are not judged; roundings of partial sums need some room.
uint8_t open_overflow(Dtype accumulator, Real scale) {
  return scale > largest(format(accumulator)) * 0.999L && std::isfinite(scale) ? kAny : 0;
}

// The sums of |x| and of the parts' moduli. Parts are added apart from each other: where one has an infinity or NaN,
// the other is judged by its own terms.
struct Moduli {
  Sum whole, re, im;

  void add(const Value& v) {
    whole.add(std::hypot(v.re, v.im));
    re.add(std::fabs(v.re));
    im.add(std::fabs(v.im));
  }
  Real value() const {
    if (std::isfinite(whole.value())) return whole.value();
    const Real a = re.value(), b = im.value();
    return std::isfinite(a) ? a : std::isfinite(b) ? b : whole.value();
  }
};

struct Moments {
  Complex mean;
  Real modulus;  // the mean of |x|
};

Moments moments(const Reduction& r, int64_t result) {
  Sum re, im;
  Moduli modulus;
  for (int64_t i = 0; i < r.points; ++i) {
    const Value v = r.at(result, i);
    re.add(v.re);
    im.add(v.im);
    modulus.add(v);
  }
  const auto n = static_cast<Real>(r.points);
  if (r.points == 0) return {Complex(kNan, kNan), 0};
  return {Complex(re.value() / n, im.value() / n), modulus.value() / n};
}

// A row of bound "log2", with the accumulator's u.
Real mean_error(const Result& result, Real modulus) {
  const Real bound = std::log2(static_cast<Real>(std::max<int64_t>(result.terms, 1))) + 8;
  return bound * std::ldexp(1.0L, -format(result.accumulator).precision) * modulus;
}

Result variance(const Array& x, const Attributes& attributes, bool root) {
  const Reduction r = reduction(x, attributes);
  Result result = prepare(r, part(x.dtype()), computed_in(part(x.dtype())));
  const Real divisor = static_cast<Real>(r.points) - static_cast<Real>(number_or(attributes, "correction", 0).real());
  for (int64_t i = 0; i < r.results; ++i) {
    const Moments m = moments(r, i);
    Sum squares;
    for (int64_t j = 0; j < r.points; ++j) {
      const Value v = r.at(i, j);
      const Real re = v.re - m.mean.real(), im = v.im - m.mean.imag();
      squares.add(re * re + (is_complex(x.dtype()) ? im * im : 0));
    }
    Element& e = result.elements[static_cast<size_t>(i)];
    const Real var = r.points == 0 ? kNan : divisor > 0 ? squares.value() / divisor : kNan;
    if (r.points > 0 && divisor <= 0) e.open = kAny;
    // Two passes add the square of the mean's error to the rounding of the terms. A square that is subnormal is rounded
    // to a multiple of the least subnormal number.
    const Real error = mean_error(result, m.modulus);
    const Real lost = smallest_subnormal(format(result.accumulator)) / (is_complex(x.dtype()) ? 1 : 2);
    const Real slack = divisor > 0 ? (error * error + lost) * static_cast<Real>(r.points) / divisor : 0;
    e.open |=
        open_overflow(result.accumulator, std::max(var, m.modulus) * static_cast<Real>(std::max<int64_t>(r.points, 1)));
    if (!root) {
      e.value = Value::of(var);
      e.scale = var;
      e.slack = slack;
    } else {
      // sqrt(var + e) - sqrt(var) <= e / (2 sqrt(var)), and <= sqrt(e) where var is small.
      e.value = Value::of(std::sqrt(var));
      e.scale = std::sqrt(var);
      e.slack = var > slack ? slack / std::sqrt(var) : std::sqrt(slack);
    }
  }
  return result;
}

Result extreme(const Array& x, const Attributes& attributes, bool greatest) {
  const Reduction r = reduction(x, attributes);
  Result result = prepare(r, x.dtype(), x.dtype());
  if (r.points == 0 && r.results > 0) throw std::invalid_argument("min and max of no element");
  for (int64_t i = 0; i < r.results; ++i) {
    Value best = r.at(i, 0);
    for (int64_t j = 1; j < r.points; ++j) {
      const Value v = r.at(i, j);
      if (is_float(x.dtype())) {
        if (std::isnan(best.re)) break;
        if (std::isnan(v.re) || (greatest ? v.re > best.re : v.re < best.re)) best = v;
      } else if (greatest ? v.integer > best.integer : v.integer < best.integer) {
        best = v;
      }
    }
    result.elements[static_cast<size_t>(i)] = {best, kReSign};
  }
  return result;
}

Result arg_extreme(const Array& x, const Attributes& attributes, bool greatest) {
  Attributes axes;
  if (attributes.contains("axis")) axes["axes"] = Shape{integer_or(attributes, "axis", 0)};
  if (attributes.contains("keepdims")) axes["keepdims"] = attributes.find("keepdims")->second;
  const Reduction r = reduction(x, axes);
  Result result = prepare(r, dtype::INT64, dtype::INT64);
  if (r.points == 0 && r.results > 0) throw std::invalid_argument("argmin and argmax of no element");
  for (int64_t i = 0; i < r.results; ++i) {
    int64_t best = 0;
    for (int64_t j = 1; j < r.points; ++j) {
      const Value &v = r.at(i, j), &b = r.at(i, best);
      if (is_float(x.dtype()) && std::isnan(b.re)) break;
      const bool better = is_float(x.dtype()) ? std::isnan(v.re) || (greatest ? v.re > b.re : v.re < b.re)
                                              : (greatest ? v.integer > b.integer : v.integer < b.integer);
      if (better) best = j;
    }
    result.elements[static_cast<size_t>(i)] = {Value::of(static_cast<Integer>(best))};
  }
  return result;
}

}  // namespace

Result reference_sum(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const Reduction r = reduction(x, attributes);
  const Dtype dtype = widened(x, attributes);
  Result result = prepare(r, dtype, computed_in(dtype));
  for (int64_t i = 0; i < r.results; ++i) {
    Element& e = result.elements[static_cast<size_t>(i)];
    Sum re, im;
    Moduli modulus;
    Bits integer = 0;
    for (int64_t j = 0; j < r.points; ++j) {
      const Value v = convert(x.dtype(), is_half(dtype) ? x.dtype() : dtype, r.at(i, j));
      integer += static_cast<Bits>(v.integer);
      re.add(v.re);
      im.add(v.im);
      modulus.add(v);
    }
    if (!is_inexact(dtype)) {
      e.value = Value::of(wrap(dtype, integer));
      continue;
    }
    e.value = Value::of(Complex(re.value(), im.value()));
    e.scale = modulus.value();
    e.open = static_cast<uint8_t>(kSigns | open_overflow(result.accumulator, e.scale));
  }
  return result;
}

Result reference_prod(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const Reduction r = reduction(x, attributes);
  const Dtype dtype = widened(x, attributes);
  Result result = prepare(r, dtype, computed_in(dtype));
  if (is_complex(dtype)) result.roundings = 4;  // the bound of the intrinsic mul
  for (int64_t i = 0; i < r.results; ++i) {
    Element& e = result.elements[static_cast<size_t>(i)];
    Bits integer = 1;
    Complex product = 1;
    // Partial products in any order lie between the product of the factors below 1 and the product of those above.
    Real above = 1, below = 1;
    bool special = false;
    for (int64_t j = 0; j < r.points; ++j) {
      const Value v = convert(x.dtype(), is_half(dtype) ? x.dtype() : dtype, r.at(i, j));
      integer *= static_cast<Bits>(v.integer);
      if (!is_inexact(dtype)) continue;
      const Complex factor = v.complex();
      product = is_complex(dtype) ? Complex(product.real() * v.re - product.imag() * v.im,
                                            product.real() * v.im + product.imag() * v.re)
                                  : Complex(product.real() * v.re, 0);
      const Real modulus = std::hypot(factor.real(), factor.imag());
      special = special || !std::isfinite(modulus);
      if (modulus > 1 && std::isfinite(modulus)) above *= modulus;
      if (modulus < 1 && modulus > 0) below *= modulus;
    }
    if (!is_inexact(dtype)) {
      e.value = Value::of(wrap(dtype, integer));
      continue;
    }
    e.value = Value::of(product);
    e.scale = std::hypot(product.real(), product.imag());
    const Format f = format(result.accumulator);
    const bool leaves_range = above > largest(f) / 2 || below < smallest_normal(f);
    const bool complex_special = is_complex(dtype) && special;
    e.open = static_cast<uint8_t>(kSigns | (leaves_range ? kAny : complex_special ? kNotFinite : 0));
  }
  return result;
}

Result reference_mean(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const Reduction r = reduction(x, attributes);
  Result result = prepare(r, x.dtype(), computed_in(x.dtype()));
  for (int64_t i = 0; i < r.results; ++i) {
    const Moments m = moments(r, i);
    Element& e = result.elements[static_cast<size_t>(i)];
    e.value = Value::of(m.mean);
    if (!is_complex(x.dtype())) e.value.im = 0;
    // For the mean of no complex numbers, a NaN in the real part alone is accepted too.
    if (r.points == 0) e.open = kAnyIm;
    e.scale = m.modulus;
    const Real total = m.modulus * static_cast<Real>(std::max<int64_t>(r.points, 1));
    e.open |= static_cast<uint8_t>(kSigns | open_overflow(result.accumulator, total));
  }
  return result;
}

Result reference_var(std::span<const Array> inputs, const Attributes& attributes) {
  return variance(inputs[0], attributes, false);
}
Result reference_std(std::span<const Array> inputs, const Attributes& attributes) {
  return variance(inputs[0], attributes, true);
}
Result reference_max(std::span<const Array> inputs, const Attributes& attributes) {
  return extreme(inputs[0], attributes, true);
}
Result reference_min(std::span<const Array> inputs, const Attributes& attributes) {
  return extreme(inputs[0], attributes, false);
}

Result reference_argmax(std::span<const Array> inputs, const Attributes& attributes) {
  return arg_extreme(inputs[0], attributes, true);
}
Result reference_argmin(std::span<const Array> inputs, const Attributes& attributes) {
  return arg_extreme(inputs[0], attributes, false);
}

Result reference_all(std::span<const Array> inputs, const Attributes& attributes) {
  const Reduction r = reduction(inputs[0], attributes);
  Result result = prepare(r, dtype::BOOL, dtype::BOOL);
  for (int64_t i = 0; i < r.results; ++i) {
    bool all = true;
    for (int64_t j = 0; j < r.points; ++j) all = all && truthy(inputs[0].dtype(), r.at(i, j));
    result.elements[static_cast<size_t>(i)] = {Value::of(all)};
  }
  return result;
}

Result reference_any(std::span<const Array> inputs, const Attributes& attributes) {
  const Reduction r = reduction(inputs[0], attributes);
  Result result = prepare(r, dtype::BOOL, dtype::BOOL);
  for (int64_t i = 0; i < r.results; ++i) {
    bool any = false;
    for (int64_t j = 0; j < r.points; ++j) any = any || truthy(inputs[0].dtype(), r.at(i, j));
    result.elements[static_cast<size_t>(i)] = {Value::of(any)};
  }
  return result;
}

namespace {

template <class Combine>
Result combined_bits(std::span<const Array> inputs, const Attributes& attributes, Integer first, Combine combine) {
  const Reduction r = reduction(inputs[0], attributes);
  const Dtype dtype = inputs[0].dtype();
  Result result = prepare(r, dtype, dtype);
  for (int64_t i = 0; i < r.results; ++i) {
    auto bits = static_cast<Bits>(first);
    for (int64_t j = 0; j < r.points; ++j) bits = combine(bits, static_cast<Bits>(r.at(i, j).integer));
    result.elements[static_cast<size_t>(i)] = {Value::of(wrap(dtype, bits))};
  }
  return result;
}

}  // namespace

Result reference_reduce_and(std::span<const Array> inputs, const Attributes& attributes) {
  return combined_bits(inputs, attributes, -1, [](Bits a, Bits b) { return a & b; });
}

Result reference_reduce_or(std::span<const Array> inputs, const Attributes& attributes) {
  return combined_bits(inputs, attributes, 0, [](Bits a, Bits b) { return a | b; });
}

Result reference_reduce_xor(std::span<const Array> inputs, const Attributes& attributes) {
  return combined_bits(inputs, attributes, 0, [](Bits a, Bits b) { return a ^ b; });
}

}  // namespace compute::oracle
