// SPDX-License-Identifier: Apache-2.0
#include "complex_functions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace compute::oracle {

namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
constexpr Real kPi = std::numbers::pi_v<Real>;

bool finite(const Complex& z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }
bool any_nan(const Complex& z) { return std::isnan(z.real()) || std::isnan(z.imag()); }
bool any_inf(const Complex& z) { return std::isinf(z.real()) || std::isinf(z.imag()); }
bool zero(const Complex& z) { return z.real() == 0 && z.imag() == 0; }

// The tables of special cases state the signs of zeros. For finite arguments that are not zero they state none, so
// there the sign of a part that happens to be zero is open.
Element element(const Complex& argument, const Complex& value, int open = 0) {
  if (finite(argument) && !zero(argument)) open |= kSigns;
  return {Value::of(value), static_cast<uint8_t>(open)};
}

// Of a function f with g(z) = -i f(iz): the parts and what is open about them change places.
Complex times_i(const Complex& z) { return {-z.imag(), z.real()}; }
Element times_minus_i(const Element& e) {
  int open = e.open & ~(kSigns | kAny);
  if (e.open & kReSign) open |= kImSign;
  if (e.open & kImSign) open |= kReSign;
  if (e.open & kAnyRe) open |= kAnyIm;
  if (e.open & kAnyIm) open |= kAnyRe;
  return {Value::of(Complex(e.value.im, -e.value.re)), static_cast<uint8_t>(open)};
}

Element exp_of(const Complex& z) {
  const Real x = z.real(), y = z.imag();
  if (y == 0) return element(z, {std::exp(x), y});
  if (x == -kInfinity && !std::isfinite(y)) return element(z, {0, 0}, kSigns);
  if (x == kInfinity && !std::isfinite(y)) return element(z, {kInfinity, kNan}, kReSign);
  if (std::isnan(x) || !std::isfinite(y)) return element(z, {kNan, kNan});
  return element(z, {std::exp(x) * std::cos(y), std::exp(x) * std::sin(y)});
}

Element cosh_of(const Complex& z) {
  const Real x = z.real(), y = z.imag();
  // The tables state the first quadrant; the rest follows from cosh being even and symmetric under conjugation, which
  // determines the sign of the imaginary zero: sign of x times sign of y.
  const Real imaginary_zero = std::copysign(0.0L, x) * std::copysign(1.0L, y);
  if (y == 0) {
    if (std::isnan(x)) return element(z, {kNan, 0}, kImSign);
    return element(z, {std::cosh(x), imaginary_zero});
  }
  if (x == 0 && !std::isfinite(y)) return element(z, {kNan, 0}, kImSign);
  if (std::isinf(x) && !std::isfinite(y)) return element(z, {kInfinity, kNan}, kReSign);
  if (std::isnan(x) || !std::isfinite(y)) return element(z, {kNan, kNan});
  return element(z, {std::cosh(x) * std::cos(y), std::sinh(x) * std::sin(y)});
}

Element sinh_of(const Complex& z) {
  const Real x = z.real(), y = z.imag();
  if (y == 0) return element(z, {std::sinh(x), y});
  if (x == 0 && !std::isfinite(y)) return element(z, {0, kNan}, kReSign);
  if (std::isinf(x) && !std::isfinite(y)) return element(z, {kInfinity, kNan}, kReSign);
  if (std::isnan(x) || !std::isfinite(y)) return element(z, {kNan, kNan});
  return element(z, {std::sinh(x) * std::cos(y), std::cosh(x) * std::sin(y)});
}

Element tanh_of(const Complex& z) {
  const Real x = z.real(), y = z.imag();
  if (y == 0) return element(z, {std::tanh(x), y});
  // At infinity C keeps the sign of sin(2y) in the imaginary zero and the standard writes +0: the sign is open.
  if (std::isinf(x)) return element(z, {std::copysign(1.0L, x), 0}, kImSign);
  if (x == 0 && !std::isfinite(y)) return element(z, {x, kNan}, kReSign);
  if (std::isnan(x) || !std::isfinite(y)) return element(z, {kNan, kNan});
  // tanh(x + iy) = (sinh(2x) / 2 + i sin(y) cos(y)) / (sinh(x)^2 + cos(y)^2); far out the quotient's limit, before the
  // squares leave the range.
  if (std::fabs(x) > 2000) {
    return element(z, {std::copysign(1.0L, x), 4 * std::sin(y) * std::cos(y) * std::exp(-2 * std::fabs(x))});
  }
  const Real s = std::sinh(x), c = std::cos(y);
  const Real divisor = s * s + c * c;
  return element(z, {s * std::cosh(x) / divisor, std::sin(y) * c / divisor});
}

// The inverse functions use the C library in long double, with annex G's special cases. Cases that the tables leave
// open are marked: "unspecified" signs, and zero with NaN, where C99 and C17 differ.
Element asinh_of(const Complex& z) {
  const bool open_sign = std::isnan(z.real()) && std::isinf(z.imag());
  return element(z, std::asinh(z), open_sign ? kReSign : 0);
}

Element atanh_of(const Complex& z) {
  const bool open_sign = std::isnan(z.real()) && std::isinf(z.imag());
  return element(z, std::atanh(z), open_sign ? kReSign : 0);
}

Element log_of(const Complex& z) { return element(z, std::log(z)); }

Element scaled_log(const Complex& z, Real factor) {
  const Element e = log_of(z);
  return element(z, {e.value.re * factor, e.value.im * factor}, e.open);
}

// Whether a value of this modulus rounds to an infinity in a format of `dtype`, or nearly.
bool near_overflow(Dtype dtype, Real modulus) { return !(modulus <= largest(format(dtype)) / 4); }

// Products of infinities and NaN, and those whose partial products leave the range: the standard lets the four real
// operations decide, or C's annex G, or another scheme.
Element product(Dtype dtype, const Complex& x, const Complex& y) {
  if (any_nan(x) || any_nan(y) || any_inf(x) || any_inf(y)) return {Value::of(x * y), kNotFinite};
  const Real greatest =
      std::max(std::fabs(x.real()), std::fabs(x.imag())) * std::max(std::fabs(y.real()), std::fabs(y.imag()));
  const Complex value(x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real());
  return {Value::of(value), static_cast<uint8_t>(near_overflow(dtype, greatest) ? kAny : kSigns)};
}

// Quotients: as products, and a zero divisor gives no finite number. A finite number by an infinite one is zero in C
// and NaN by the textbook's formula: open.
Element quotient(Dtype dtype, const Complex& x, const Complex& y) {
  if (any_nan(x) || any_nan(y))
    return {Value::of(Complex(kNan, kNan)), static_cast<uint8_t>(any_inf(y) ? kAny : kNotFinite)};
  if (any_inf(y)) return {Value::of(Complex(0, 0)), kAny};
  if (any_inf(x) || zero(y)) return {Value::of(Complex(kInfinity, kNan)), kNotFinite};
  const Real a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
  const Real divisor = c * c + d * d;
  const Complex value((a * c + b * d) / divisor, (b * c - a * d) / divisor);
  const bool open = near_overflow(dtype, std::hypot(value.real(), value.imag()));
  return {Value::of(value), static_cast<uint8_t>(open ? kAny : kSigns)};
}

}  // namespace

// By part, real special cases in each.
Element complex_add(const Operands& o) {
  return {Value::of(Complex(o.d(0) + o.d(1), static_cast<double>(o.x[0].im) + static_cast<double>(o.x[1].im))),
          kExactParts};
}
Element complex_subtract(const Operands& o) {
  return {Value::of(Complex(o.d(0) - o.d(1), static_cast<double>(o.x[0].im) - static_cast<double>(o.x[1].im))),
          kExactParts};
}

Element complex_multiply(const Operands& o) { return product(o.dtype, o.c(0), o.c(1)); }
Element complex_square(const Operands& o) { return product(o.dtype, o.c(0), o.c(0)); }
Element complex_divide(const Operands& o) { return quotient(o.dtype, o.c(0), o.c(1)); }
Element complex_reciprocal(const Operands& o) { return quotient(o.dtype, 1, o.c(0)); }

// hypot's special cases: an infinite part wins over NaN.
Element complex_abs(const Operands& o) { return {Value::of(std::hypot(o.r(0), o.x[0].im))}; }

// x / |x|, 0 for 0; the quotient of infinities is open, NaN in either part gives NaN in both.
Element complex_sign(const Operands& o) {
  const Complex z = o.c(0);
  if (zero(z)) return {Value::of(Complex(0, 0)), kSigns};
  if (any_nan(z)) return {Value::of(Complex(kNan, kNan)), static_cast<uint8_t>(any_inf(z) ? kAny : 0)};
  if (any_inf(z)) return {Value::of(Complex(kNan, kNan)), kAny};
  return {Value::of(z / std::hypot(z.real(), z.imag())), kSigns};
}

Element complex_exp(const Operands& o) { return exp_of(o.c(0)); }

// The table of expm1 is exp's minus 1, except for zeros of the imaginary part.
Element complex_expm1(const Operands& o) {
  const Complex z = o.c(0);
  const Real x = z.real(), y = z.imag();
  if (y == 0) return element(z, {x == 0 ? 0 : std::expm1(x), y});  // for zeros the standard has +0
  if (x == -kInfinity && !std::isfinite(y)) return element(z, {-1, 0}, kSigns);
  if (!finite(z)) {
    Element e = exp_of(z);
    e.value.re -= 1;
    return e;
  }
  const Real s = std::sin(y / 2);
  return element(z, {std::expm1(x) * std::cos(y) - 2 * s * s, std::exp(x) * std::sin(y)});
}

Element complex_log(const Operands& o) { return log_of(o.c(0)); }
// "As if implemented as log(x) / log(10)", likewise 2.
Element complex_log10(const Operands& o) { return scaled_log(o.c(0), 1 / std::numbers::ln10_v<Real>); }
Element complex_log2(const Operands& o) { return scaled_log(o.c(0), 1 / std::numbers::ln2_v<Real>); }

// The table of log1p is the table of log for 1 + x.
Element complex_log1p(const Operands& o) {
  const Complex z = o.c(0);
  const Real x = z.real(), y = z.imag();
  if (!finite(z)) return element(z, std::log(Complex(1 + x, y)));
  if (x == -1 && y == 0) return element(z, {-kInfinity, y});
  if (zero(z)) return element(z, z, kReSign);  // the table states nothing about 0
  // Around |1 + z| = 1, by |1 + z|^2 - 1: what cancels there the modulus of the result does not show, for the angle
  // dominates. Elsewhere 1 + x is exact enough, around z = -1 exact.
  const Real excess = x * (2 + x) + y * y;
  const Real re = std::fabs(excess) < 0.5L ? std::log1p(excess) / 2 : std::log(std::hypot(1 + x, y));
  return element(z, {re, std::atan2(y, 1 + x)});
}

Element complex_sqrt(const Operands& o) {
  const Complex z = o.c(0);
  const bool open_sign = z.real() == -kInfinity && std::isnan(z.imag());
  return element(z, std::sqrt(z), open_sign ? kImSign : 0);
}

Element complex_cosh(const Operands& o) { return cosh_of(o.c(0)); }
Element complex_sinh(const Operands& o) { return sinh_of(o.c(0)); }
Element complex_tanh(const Operands& o) { return tanh_of(o.c(0)); }

// "As if implemented as" the hyperbolic functions of ix.
Element complex_cos(const Operands& o) { return cosh_of(times_i(o.c(0))); }
Element complex_sin(const Operands& o) { return times_minus_i(sinh_of(times_i(o.c(0)))); }
Element complex_tan(const Operands& o) { return times_minus_i(tanh_of(times_i(o.c(0)))); }
Element complex_asin(const Operands& o) { return times_minus_i(asinh_of(times_i(o.c(0)))); }
Element complex_atan(const Operands& o) { return times_minus_i(atanh_of(times_i(o.c(0)))); }

Element complex_asinh(const Operands& o) { return asinh_of(o.c(0)); }
Element complex_atanh(const Operands& o) { return atanh_of(o.c(0)); }

Element complex_acos(const Operands& o) {
  const Complex z = o.c(0);
  const bool open_sign = std::isinf(z.real()) && std::isnan(z.imag());
  return element(z, std::acos(z), open_sign ? kImSign : 0);
}

// acosh(0 + NaN i) is NaN + NaN i in C99 and NaN ± i pi/2 since C17: the imaginary part is open.
Element complex_acosh(const Operands& o) {
  const Complex z = o.c(0);
  if (z.real() == 0 && std::isnan(z.imag())) return element(z, {kNan, kPi / 2}, kAnyIm);
  return element(z, std::acosh(z));
}

// exp(y * log(x)): the bound follows from the exponential, whose relative error is the absolute error of y log(x).
// The standard leaves all special cases to the implementation; here 0 ** 0 is 1, and other powers of 0 are not
// judged.
Element complex_pow(const Operands& o) {
  const Complex x = o.c(0), y = o.c(1);
  if (!finite(x) || !finite(y)) return {Value::of(Complex(kNan, kNan)), kAny};
  if (zero(y)) return {Value::of(Complex(1, 0)), kSigns};
  if (zero(x)) return {Value::of(Complex(0, 0)), kAny};
  const Complex exponent = y * std::log(x);
  const Real modulus = std::hypot(exponent.real(), exponent.imag());
  const Format f = format(o.dtype);
  const Real limit = static_cast<Real>(f.emax - 4) * std::numbers::ln2_v<Real>;
  if (!(modulus < limit)) return {Value::of(Complex(kNan, kNan)), kAny};
  const Complex value = std::exp(exponent);
  return {Value::of(value), kSigns, std::max<Real>(1, modulus) * std::hypot(value.real(), value.imag())};
}

}  // namespace compute::oracle
