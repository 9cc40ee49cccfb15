// SPDX-License-Identifier: Apache-2.0
#include "judge.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace compute::oracle {

namespace {

struct Context {
  Dtype dtype;
  Format format;
  Format computed;     // the format of the dtype computed in: float32's for float16 and bfloat16
  Format accumulator;  // adding ops
  Bound bound;
  Real terms;
  Real roundings;

  bool adding() const { return bound.kind == Bound::TERMS || bound.kind == Bound::LOG2; }
  // A bound of 0 ULP is a correctly rounded result, except that half types round once more after float32.
  bool correctly_rounded() const {
    return bound.kind == Bound::EXACT || (bound.kind == Bound::ULP && bound.ulp == 0 && !is_half(dtype));
  }
};

struct Outcome {
  bool passed = true;
  Real error = 0;
  Real allowed = 0;
};

// An infinity counts as the number after the largest one, as it does in rounding, and is right for all beyond.
Real distance(Format f, Real exact, Real actual) {
  if (!std::isinf(actual)) return std::fabs(actual - exact);
  const Real limit = std::ldexp(1.0L, f.emax + 1);
  return std::max(0.0L, limit - (actual > 0 ? exact : -exact));
}

bool same_sign_of_zero(Real exact, Real actual, bool open) {
  return open || exact != 0 || actual != 0 || std::signbit(exact) == std::signbit(actual);
}

// The error allowed to a value of modulus `exact`, which must be finite.
Real allowance(const Context& c, const Element& e, Real exact) {
  const Real rounding = ulp(c.format, exact) / 2;
  const Real unit = ulp(c.computed, std::max(std::fabs(exact), c.adding() ? 0 : e.scale));
  const Real extra = e.slack + (e.open & kOneUlp ? unit : 0);
  if (c.adding()) {
    const Real count = c.bound.kind == Bound::TERMS ? c.terms : std::log2(std::max<Real>(c.terms, 1)) + 8;
    const Real u = std::ldexp(1.0L, -c.accumulator.precision) * c.roundings;
    return count * u * e.scale + extra + rounding;
  }
  if (is_half(c.dtype)) return std::max<Real>(c.bound.ulp, 0.5L) * unit + extra + rounding;
  return std::max<Real>(c.bound.ulp, 0.5L) * unit + extra;
}

Outcome within(Real error, Real allowed) { return {!!(error <= allowed), error, allowed}; }

// One part that is not finite in the reference, or the rounded value itself.
Outcome special(Real exact, Real actual, bool sign_open) {
  if (std::isnan(exact)) return {std::isnan(actual)};
  if (std::isinf(exact)) return {std::isinf(actual) && (sign_open || std::signbit(exact) == std::signbit(actual))};
  return {actual == exact && same_sign_of_zero(exact, actual, sign_open)};
}

// Whether zero is acceptable for `exact`, which is subnormal or could be within the bound.
bool flushed_to(const Context& c, const Element& e, Real exact, Real actual) {
  return (e.open & kFlushed) && actual == 0 && exact != 0 &&
         std::fabs(exact) - allowance(c, e, exact) < smallest_normal(c.computed);
}

Outcome judge_part(const Context& c, const Element& e, Real exact, Real actual, bool sign_open, bool rounded) {
  if (!std::isfinite(exact)) return special(exact, actual, sign_open);
  if (std::isnan(actual)) return {false};
  if (flushed_to(c, e, exact, actual)) return {};
  if (rounded && !(e.open & kOneUlp)) {
    Outcome o = special(round_to(c.format, exact), actual, sign_open);
    o.error = distance(c.format, exact, actual);
    o.allowed = ulp(c.format, exact) / 2;
    return o;
  }
  if (!same_sign_of_zero(exact, actual, sign_open)) return {false};
  return within(distance(c.format, exact, actual), allowance(c, e, exact));
}

Outcome judge_complex(const Context& c, const Element& e, const Value& actual) {
  const Value& exact = e.value;
  const bool re_open = e.open & kReSign, im_open = e.open & kImSign;
  const bool rounded = (e.open & kExactParts) || c.bound.kind == Bound::EXACT;
  const bool all_finite =
      std::isfinite(exact.re) && std::isfinite(exact.im) && !std::isnan(actual.re) && !std::isnan(actual.im);
  if (rounded || !all_finite || (e.open & kAny)) {
    const Outcome re = e.open & kAnyRe ? Outcome{} : judge_part(c, e, exact.re, actual.re, re_open, rounded);
    const Outcome im = e.open & kAnyIm ? Outcome{} : judge_part(c, e, exact.im, actual.im, im_open, rounded);
    return !re.passed || (im.passed && re.error > im.error) ? re : im;
  }
  if (!same_sign_of_zero(exact.re, actual.re, re_open) || !same_sign_of_zero(exact.im, actual.im, im_open))
    return {false};
  const Real modulus = std::hypot(exact.re, exact.im);
  const auto error_of = [&](Real x, Real y) { return flushed_to(c, e, x, y) ? 0 : distance(c.format, x, y); };
  const Real error = std::hypot(error_of(exact.re, actual.re), error_of(exact.im, actual.im));
  return within(error, allowance(c, e, modulus));
}

Outcome judge_element(const Context& c, const Element& e, const Value& actual) {
  if (!is_inexact(c.dtype)) return {(e.open & kAny) == kAny || actual.integer == e.value.integer};
  if (e.open & kNotFinite) return {!std::isfinite(actual.re) || (is_complex(c.dtype) && !std::isfinite(actual.im))};
  if ((e.open & kAny) == kAny) return {};
  if (is_complex(c.dtype)) return judge_complex(c, e, actual);
  return judge_part(c, e, e.value.re, actual.re, e.open & kReSign, c.correctly_rounded() || (e.open & kExactParts));
}

Value flushed(Value value) {
  const Real normal = smallest_normal(format(dtype::FLOAT32));
  if (std::fabs(value.re) < normal) value.re = std::copysign(Real{0}, value.re);
  if (std::fabs(value.im) < normal) value.im = std::copysign(Real{0}, value.im);
  return value;
}

std::string number(Real x) {
  char text[80];
  std::snprintf(text, sizeof text, "%.17Lg (%La)", x, x);
  return text;
}

std::string position_text(int64_t position, const Shape& shape) {
  Shape indices(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    indices[i] = position % shape[i];
    position /= shape[i];
  }
  return describe(indices);
}

std::string failure_text(const Context& c, const Element& e, const Value& actual, const Outcome& o) {
  std::string text = "got " + describe(c.dtype, actual) + ", expected " + describe(c.dtype, e.value);
  if (e.open & kNotFinite) return text + " or another value that is not finite";
  if (o.allowed > 0) {
    const Real unit = ulp(c.format, is_complex(c.dtype) ? std::hypot(e.value.re, e.value.im) : e.value.re);
    char numbers[120];
    std::snprintf(numbers, sizeof numbers, ": error %.4Lg, allowed %.4Lg (%.4Lg and %.4Lg ULP)", o.error, o.allowed,
                  o.error / unit, o.allowed / unit);
    text += numbers;
  }
  return text;
}

}  // namespace

Bound Bound::parse(std::string_view text) {
  if (text == "exact") return {EXACT, 0};
  if (text == "n") return {TERMS, 0};
  if (text == "log2") return {LOG2, 0};
  if (text == "backward") return {TERMS, 0};  // the references state all that is allowed
  if (text.starts_with("ulp:")) {
    const std::string digits(text.substr(4));
    char* end = nullptr;
    const Real ulp = std::strtold(digits.c_str(), &end);
    if (end != digits.c_str() && *end == '\0' && ulp >= 0) return {ULP, ulp};
  }
  throw std::invalid_argument("no such bound: " + std::string(text));
}

std::string describe(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string describe(Dtype dtype, const Value& value) {
  if (is_complex(dtype)) return "(" + number(value.re) + ", " + number(value.im) + ")";
  if (is_float(dtype)) return number(value.re);
  if (value.integer < 0) return std::to_string(static_cast<int64_t>(value.integer));
  return std::to_string(static_cast<uint64_t>(value.integer));
}

void open_flushed(Result& expected, std::span<const Array> operands, bool is_elementwise) {
  for (Element& e : expected.elements) e.open |= kFlushed;
  if (!is_elementwise) return;
  for (const Array& x : operands) {
    if (!is_inexact(x.dtype()) || computed_in(part(x.dtype())) != dtype::FLOAT32) continue;
    const Real normal = smallest_normal(format(dtype::FLOAT32));
    const auto is_subnormal = [&](Real value) { return value != 0 && std::fabs(value) < normal; };
    const size_t skipped = expected.shape.size() - x.shape().size();
    for (size_t i = 0; i < expected.elements.size(); ++i) {
      int64_t position = 0, rest = static_cast<int64_t>(i), step = 1;
      for (size_t axis = expected.shape.size(); axis-- > 0;) {
        const int64_t index = rest % expected.shape[axis];
        rest /= expected.shape[axis];
        if (axis < skipped) continue;
        const int64_t extent = x.shape()[axis - skipped];
        position += extent == 1 ? 0 : index * step;
        step *= extent;
      }
      const Value value = x.at(position);
      if (is_subnormal(value.re) || is_subnormal(value.im)) expected.elements[i].open |= kAny;
    }
  }
}

bool flush_subnormals(Array& array) {
  if (!is_inexact(array.dtype()) || computed_in(part(array.dtype())) != dtype::FLOAT32) return false;
  bool had_any = false;
  for (int64_t i = 0; i < array.size(); ++i) {
    const Value value = array.at(i), zeroed = flushed(value);
    if (value.re == zeroed.re && value.im == zeroed.im) continue;
    array.set(i, zeroed);
    had_any = true;
  }
  return had_any;
}

Verdict judge(const Array& actual, const Result& expected, const Bound& bound) {
  Verdict verdict;
  const auto refuse = [&](std::string message) {
    verdict.failures = std::max<int64_t>(1, actual.size());
    verdict.message = std::move(message);
    return verdict;
  };
  if (actual.dtype() != expected.dtype) {
    return refuse(std::string("dtype ") + info(actual.dtype()).name + ", expected " + info(expected.dtype).name);
  }
  if (actual.shape() != expected.shape) {
    return refuse("shape " + describe(actual.shape()) + ", expected " + describe(expected.shape));
  }
  const bool inexact = is_inexact(expected.dtype);
  const Context context{expected.dtype,
                        inexact ? format(expected.dtype) : Format{},
                        inexact ? format(computed_in(part(expected.dtype))) : Format{},
                        is_inexact(expected.accumulator) ? format(expected.accumulator) : Format{},
                        bound,
                        static_cast<Real>(expected.terms),
                        expected.roundings};
  const bool may_flush = inexact && computed_in(part(expected.dtype)) == dtype::FLOAT32;
  bool all_zero = true;
  for (int64_t i = 0; i < actual.size(); ++i) {
    const Element& e = expected.elements[static_cast<size_t>(i)];
    const Value value = actual.at(i);
    all_zero = all_zero && value.integer == 0 && value.re == 0 && value.im == 0;
    Outcome o = judge_element(context, e, value);
    if (!o.passed && !expected.flushed.empty()) {
      const Outcome other =
          judge_element(context, expected.flushed[static_cast<size_t>(i)], may_flush ? flushed(value) : value);
      if (other.passed) o = other;
    }
    if ((e.open & kAny) != kAny) ++verdict.judged;
    if (o.allowed > 0 && o.error / o.allowed > verdict.worst) verdict.worst = o.error / o.allowed;
    if (o.passed) continue;
    if (verdict.failures++ == 0) {
      verdict.first = i;
      verdict.message = "element " + position_text(i, actual.shape()) + ": " + failure_text(context, e, value, o);
    }
  }
  if (verdict.failures > 0 && all_zero) verdict.message += "; the whole result is zero";
  if (verdict.failures > 1)
    verdict.message += "; " + std::to_string(verdict.failures) + " elements of " + std::to_string(actual.size());
  return verdict;
}

}  // namespace compute::oracle
