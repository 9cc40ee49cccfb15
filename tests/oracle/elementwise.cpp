// SPDX-License-Identifier: Apache-2.0
// One row per elementwise op: its value in wider arithmetic, written from the op's meaning alone.
//
// Integers compute exactly in 128 bits and wrap once. Floats compute in long double, except what has to be correctly
// rounded: sums, products, quotients, square roots and remainders of float32 and narrower dtypes come out right when
// float64 computes them and they are rounded once more (53 >= 2 * 24 + 2), and float64's own are rounded by the host.
#include "elementwise.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include "complex_functions.hpp"
#include "ops.hpp"
#include "special.hpp"

namespace compute::oracle {

namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

Element real(Real x, int open = 0) { return {Value::of(x), static_cast<uint8_t>(open)}; }
Element truth(bool x) { return {Value::of(x)}; }
Element integer(const Operands& o, Integer x) { return {Value::of(wrap(o.dtype, static_cast<Bits>(x)))}; }
Element complex_parts(const Complex& z) { return {Value::of(z), kExactParts}; }

Element same(const Operands& o) { return {o.x[0], kExactParts}; }
Element no(const Operands&) { return truth(false); }
Element yes(const Operands&) { return truth(true); }

bool unordered(const Operands& o) { return std::isnan(o.r(0)) || std::isnan(o.r(1)); }

// Rounding to an integer keeps the argument's sign in IEEE 754; the standard states it for arguments that are zero
// only.
Element rounded(const Operands& o, Real x) { return real(x, o.r(0) != 0 ? kReSign : 0); }

Integer integer_floor_divide(Integer x, Integer y) {
  if (y == 0) return 0;
  const Integer q = x / y;
  return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}

// A negative exponent gives 0 unless the base is 1 or -1; powers wrap.
Element integer_pow(const Operands& o) {
  const Integer x = o.i(0);
  Integer y = o.i(1);
  if (y < 0) return integer(o, x == 1 || (x == -1 && y % 2 == 0) ? 1 : x == -1 ? -1 : 0);
  Bits power = 1;
  for (Bits base = static_cast<Bits>(x); y > 0; y /= 2, base *= base) {
    if (y % 2 == 1) power *= base;
  }
  return integer(o, static_cast<Integer>(power));
}

bool shifts_out(const Operands& o) { return o.i(1) < 0 || o.i(1) >= width(o.dtype); }

Element integer_left_shift(const Operands& o) {
  return integer(o, shifts_out(o) ? 0 : static_cast<Integer>(static_cast<Bits>(o.i(0)) << o.i(1)));
}

Element integer_right_shift(const Operands& o) {
  return integer(o, shifts_out(o) ? (o.i(0) < 0 ? -1 : 0) : o.i(0) >> o.i(1));
}

Element integer_squared_difference(const Operands& o) {
  const Bits difference = static_cast<Bits>(o.i(0) - o.i(1));
  return integer(o, static_cast<Integer>(difference * difference));
}

// The floor of the exact quotient, a zero with the quotient's sign; with infinities the quotient. Beyond 2^precision,
// where the quotient is not an exact integer of the dtype, computing it through the remainder rounds twice: one more
// ULP.
Element real_floor_divide(const Operands& o) {
  const Real x = o.r(0), y = o.r(1);
  if (unordered(o)) return real(kNan);
  if (std::isinf(x) || std::isinf(y) || y == 0) return real(x / y);
  const Real m = std::fmod(x, y);
  Real q = std::nearbyint((x - m) / y);
  if (m != 0 && (m < 0) != (y < 0)) q -= 1;
  if (q == 0) return real(std::copysign(0.0L, x / y));
  return real(q, std::fabs(q) >= std::ldexp(1.0L, format(computed_in(o.dtype)).precision) ? kOneUlp : 0);
}

// Python's %: the exact remainder with the divisor's sign.
Element real_remainder(const Operands& o) {
  const double x = o.d(0), y = o.d(1);
  if (unordered(o) || std::isinf(x) || y == 0) return real(kNan);
  const double m = std::fmod(x, y);
  if (m == 0) return real(std::copysign(0.0, y));
  return real((m < 0) != (y < 0) ? m + y : m);
}

// -0 may count as less than +0 or as equal to it: the sign of a zero is open where both are there.
Element real_extreme(Real x, Real y, bool greatest) {
  if (std::isnan(x) || std::isnan(y)) return real(kNan);
  return real(greatest ? std::max(x, y) : std::min(x, y), x == 0 && y == 0 ? kReSign : 0);
}

Element real_clip(const Operands& o) {
  const Element low = real_extreme(o.r(0), o.r(1), true);
  const Element e = real_extreme(low.value.re, o.r(2), false);
  return real(e.value.re, low.open | e.open);
}

Element real_nextafter(const Operands& o) {
  const Real x = o.r(0), y = o.r(1);
  if (unordered(o)) return real(kNan);
  if (x == y) return real(y);
  const Format f = format(o.dtype);
  if (x == 0) return real(std::copysign(smallest_subnormal(f), y));
  const bool away = (y > x) == (x > 0);
  if (std::isinf(x)) return real(std::copysign(largest(f), x));
  // Towards zero from a power of two the next number is half an ULP away, unless that is among the subnormals.
  const Real unit = ulp(f, x);
  const bool at_binade = std::fabs(x) == std::ldexp(1.0L, std::ilogb(x)) && std::fabs(x) > smallest_normal(f);
  const Real magnitude = std::fabs(x) + (away ? unit : at_binade ? -unit / 2 : -unit);
  return real(std::copysign(magnitude > largest(f) ? kInfinity : magnitude, x), kReSign);
}

Element real_sign(const Operands& o) {
  if (std::isnan(o.r(0))) return real(kNan);
  return real(o.r(0) > 0 ? 1 : o.r(0) < 0 ? -1 : 0, kReSign);
}

Element real_relu(const Operands& o) {
  if (std::isnan(o.r(0))) return real(kNan);
  return real(o.r(0) > 0 ? o.r(0) : 0, kReSign);
}

Element real_leaky_relu(const Operands& o) {  // the two lines meet at 0
  return real(o.d(0) < 0 ? o.d(0) * o.d(1) : o.d(0), o.d(0) == 0 ? kReSign : 0);
}

Element real_log(Real x, Real logarithm) { return real(x < 0 ? kNan : x == 0 ? -kInfinity : logarithm); }

// The bound is relative to the operands where they cancel.
Element real_logaddexp(const Operands& o) {
  const Real x = o.r(0), y = o.r(1);
  if (unordered(o)) return real(kNan);
  if (x == y) return {Value::of(x + std::numbers::ln2_v<Real>), kReSign, std::fabs(x)};
  const Real greater = std::max(x, y);
  // max + log1p(0), which turns -0 into +0.
  if (std::isinf(x) || std::isinf(y)) return {Value::of(greater), static_cast<uint8_t>(greater == 0 ? kReSign : 0)};
  return {Value::of(greater + std::log1p(std::exp(-std::fabs(x - y)))), kReSign, std::max(std::fabs(x), std::fabs(y))};
}

Element real_sigmoid(const Operands& o) {
  const Real x = o.r(0), e = std::exp(-std::fabs(x));
  return real(x < 0 ? e / (1 + e) : 1 / (1 + e));
}

// Where an error of the argument grows in the function, the bound is relative to x times the derivative.
Element conditioned(Real x, Real value, Real derivative) {
  const Real scale = std::fabs(x * derivative);
  return {Value::of(value), kReSign, std::isfinite(scale) ? scale : 0};
}

Real softplus(Real x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::fabs(x))); }

// The limit of x times a function that goes to 0 at -inf faster than x grows.
Element real_silu(const Operands& o) {
  const Real x = o.r(0);
  if (std::isinf(x)) return real(std::max(x, 0.0L), kReSign);
  return real(x / (1 + std::exp(-x)), kReSign);
}

Element real_mish(const Operands& o) {
  const Real x = o.r(0);
  if (std::isnan(x)) return real(kNan);
  if (std::isinf(x)) return real(std::max(x, 0.0L), kReSign);
  return real(x * std::tanh(softplus(x)), kReSign);
}

Element real_gelu(const Operands& o) {
  const Real x = o.r(0);
  if (std::isinf(x)) return real(std::max(x, 0.0L), kReSign);
  const Real distribution = 0.5L * std::erfc(-x / std::numbers::sqrt2_v<Real>);
  const Real density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi_v<Real> / std::numbers::sqrt2_v<Real>;
  return conditioned(x, x * distribution, distribution + x * density);
}

Element real_gelu_tanh(const Operands& o) {
  const Real x = o.r(0);
  if (std::isinf(x)) return real(std::max(x, 0.0L), kReSign);
  const Real twice = 2 * std::numbers::sqrt2_v<Real> * std::numbers::inv_sqrtpi_v<Real>;
  // 0.5 (1 + tanh(u)) is the logistic function of 2 u.
  const Real factor = 1 / (1 + std::exp(-twice * (x + 0.044715L * x * x * x)));
  return conditioned(x, x * factor, factor + x * factor * (1 - factor) * twice * (1 + 0.134145L * x * x));
}

Element real_softplus(const Operands& o) { return real(std::isnan(o.r(0)) ? kNan : softplus(o.r(0))); }
Element real_log_sigmoid(const Operands& o) { return real(std::isnan(o.r(0)) ? kNan : -softplus(-o.r(0)), kReSign); }

Element real_elu(Real x, Real alpha, Real scale = 1) {
  return real(scale * (x < 0 ? alpha * std::expm1(x) : x), kReSign);
}

Element real_selu(const Operands& o) { return real_elu(o.r(0), 1.6732632423543772848L, 1.0507009873554804934L); }

Element real_softsign(const Operands& o) {
  const Real x = o.r(0);
  return real(std::isinf(x) ? std::copysign(1.0L, x) : x / (1 + std::fabs(x)));
}

Real hard_sigmoid(Real x) { return std::isnan(x) ? kNan : std::min(std::max(x + 3, 0.0L), 6.0L) / 6; }

Element real_hard_swish(const Operands& o) {
  const Real x = o.r(0);
  return real(x < -3 ? 0 : x * hard_sigmoid(x), kReSign);
}

// ---- Special functions ----

constexpr Real kPi = std::numbers::pi_v<Real>;

// By Halley's method; from 1/2 on with the complement, which is exact there.
Element real_erfinv(const Operands& o) {
  const Real x = o.r(0), a = std::fabs(x);
  if (!(a <= 1)) return real(kNan);
  if (a == 0) return real(x);
  if (a == 1) return real(std::copysign(kInfinity, x));
  Real y = a < 0.5L ? a : std::sqrt(-std::log(1 - a));
  for (int i = 0; i < 100; ++i) {
    const Real miss = a < 0.5L ? std::erf(y) - a : (1 - a) - std::erfc(y);
    const Real newton = miss * std::exp(y * y) * std::sqrt(kPi) / 2, step = newton / (1 + y * newton);
    y -= step;
    if (std::fabs(step) <= 1e-19L * y) break;
  }
  return real(std::copysign(y, x));
}

// For x above 0, upwards to where the asymptotic series is exact enough.
Real digamma_above(Real given) {
  if (std::isinf(given)) return given;
  Wide x = given, less = 0;
  for (; x < 40; x += 1) less += 1 / x;
  const Wide u = 1 / (x * x);
  const Wide tail =
      Wide{1} / 12 - u * (Wide{1} / 120 - u * (Wide{1} / 252 - u * (Wide{1} / 240 - u * (Wide{1} / 132))));
  return static_cast<Real>(wide_log(static_cast<Real>(x)) - 1 / (2 * x) - u * tail - less);
}

// pi / tan(pi x)
Real pi_cotangent(Real x) {
  const Real f = x - std::nearbyint(x), a = std::fabs(f);
  return std::copysign(a > 0.25L ? kPi * std::tan(kPi * (0.5L - a)) : kPi / std::tan(kPi * a), f);
}

// Near the root and below 0, terms cancel.
Element digamma(Real x) {
  if (std::isnan(x) || (x < 0 && (std::isinf(x) || x == std::nearbyint(x)))) return real(kNan);
  if (x >= 0) return {Value::of(digamma_above(x)), kReSign, x >= 1 && x <= 2 ? 1.0L : 0.0L};
  const Real above = digamma_above(1 - x), turned = pi_cotangent(x);
  return {Value::of(above - turned), kReSign, std::max(std::fabs(above), std::fabs(turned))};
}

Element real_digamma(const Operands& o) { return digamma(o.r(0)); }

Element real_polygamma(const Operands& o) { return o.r(0) == 0 ? digamma(o.r(1)) : polygamma(o.r(0), o.r(1)); }

Element real_lgamma(const Operands& o) {
  const Real x = o.r(0), value = std::lgamma(x);
  if (!(x < 0) || !std::isfinite(value)) return real(value, kReSign);
  return {Value::of(value), kReSign, std::max(1.0L, std::lgamma(-x))};
}

Element real_logit(const Operands& o) {
  const Real x = o.r(0);
  if (!(x >= 0 && x <= 1)) return real(kNan);
  return real(x < 0.25L ? std::log(x) - std::log1p(-x) : std::log1p((2 * x - 1) / (1 - x)), kReSign);
}

Element real_sinc(const Operands& o) {
  const Real x = o.r(0);
  if (std::isnan(x)) return real(kNan);
  if (x == 0) return real(1);
  if (std::isinf(x)) return real(0, kReSign);
  const Real turn = std::remainder(std::fabs(x), 2.0L), a = std::fabs(turn);
  return real(std::copysign(std::sin(kPi * (a > 0.5L ? 1 - a : a)), turn) / (kPi * std::fabs(x)), kReSign);
}

Element real_xlogy(const Operands& o) {
  const Real x = o.r(0), y = o.r(1);
  if (unordered(o)) return real(kNan);
  if (x == 0) return real(0, kReSign);
  return real(x * (y < 0 ? kNan : y == 0 ? -kInfinity : std::log(y)), kReSign);
}

Element real_heaviside(const Operands& o) {
  const Real x = o.r(0);
  return real(std::isnan(x) ? kNan : x < 0 ? 0 : x > 0 ? 1 : o.r(1));
}

// An infinite logit that is right costs nothing.
Element real_binary_cross_entropy(const Operands& o) {
  const Real x = o.r(0), y = o.r(1);
  if (unordered(o)) return real(kNan);
  const Real miss = (x > 0 ? 1.0L : x < 0 ? 0.0L : 0.5L) - y;
  const Real linear = std::isinf(x) && miss == 0 ? 0 : x * miss, rest = std::log1p(std::exp(-std::fabs(x)));
  return {Value::of(linear + rest), kReSign, std::isfinite(linear) ? std::fabs(linear) : 0};
}

Element complex_not_a_number(const Operands& o) { return truth(std::isnan(o.r(0)) || std::isnan(o.x[0].im)); }
Element complex_infinite(const Operands& o) { return truth(std::isinf(o.r(0)) || std::isinf(o.x[0].im)); }
Element complex_finite(const Operands& o) { return truth(std::isfinite(o.r(0)) && std::isfinite(o.x[0].im)); }

bool complex_equal(const Operands& o) { return o.r(0) == o.r(1) && o.x[0].im == o.x[1].im; }

// A bool's bitwise functions are the logical ones: wrapping to one bit makes them so.
constexpr auto kNone = nullptr;
using enum Elementwise::Output;

#define I(expression) [](const Operands& o) -> Element { return integer(o, expression); }
#define R(expression) [](const Operands& o) -> Element { return real(expression); }
#define T(expression) [](const Operands& o) -> Element { return truth(expression); }
#define C(expression) [](const Operands& o) -> Element { return complex_parts(expression); }
#define ROUND(function) [](const Operands& o) -> Element { return rounded(o, function(o.r(0))); }

const Elementwise kRows[] = {
    {"abs", 1, PART, I(o.i(0) < 0 ? -o.i(0) : o.i(0)), R(std::fabs(o.r(0))), complex_abs},
    {"acos", 1, SAME, kNone, R(std::acos(o.r(0))), complex_acos},
    {"acosh", 1, SAME, kNone, R(std::acosh(o.r(0))), complex_acosh},
    {"add", 2, SAME, I(o.i(0) + o.i(1)), R(o.d(0) + o.d(1)), complex_add},
    {"asin", 1, SAME, kNone, R(std::asin(o.r(0))), complex_asin},
    {"asinh", 1, SAME, kNone, R(std::asinh(o.r(0))), complex_asinh},
    {"atan", 1, SAME, kNone, R(std::atan(o.r(0))), complex_atan},
    {"atan2", 2, SAME, kNone, R(std::atan2(o.r(0), o.r(1))), kNone},
    {"atanh", 1, SAME, kNone, R(std::atanh(o.r(0))), complex_atanh},
    {"betainc", 3, SAME, kNone, real_betainc, kNone},
    {"binary_cross_entropy_with_logits", 2, SAME, kNone, real_binary_cross_entropy, kNone},
    {"bitwise_and", 2, SAME, I(o.i(0) & o.i(1)), kNone, kNone},
    {"bitwise_invert", 1, SAME, I(~o.i(0)), kNone, kNone},
    {"bitwise_left_shift", 2, SAME, integer_left_shift, kNone, kNone},
    {"bitwise_or", 2, SAME, I(o.i(0) | o.i(1)), kNone, kNone},
    {"bitwise_right_shift", 2, SAME, integer_right_shift, kNone, kNone},
    {"bitwise_xor", 2, SAME, I(o.i(0) ^ o.i(1)), kNone, kNone},
    {"cbrt", 1, SAME, kNone, R(std::cbrt(o.r(0))), kNone},
    {"ceil", 1, SAME, same, ROUND(std::ceil), kNone},
    {"clip", 3, SAME, I(std::min(std::max(o.i(0), o.i(1)), o.i(2))), real_clip, kNone},
    {"conj", 1, SAME, same, same, C(std::conj(o.c(0)))},
    {"copysign", 2, SAME, kNone, R(std::copysign(o.r(0), o.r(1))), kNone},
    {"cos", 1, SAME, kNone, R(std::cos(o.r(0))), complex_cos},
    {"cosh", 1, SAME, kNone, R(std::cosh(o.r(0))), complex_cosh},
    {"deg2rad", 1, SAME, kNone, R(o.r(0) * (kPi / 180)), kNone},
    {"digamma", 1, SAME, kNone, real_digamma, kNone},
    {"divide", 2, SAME, kNone, R(o.d(0) / o.d(1)), complex_divide},
    {"elu", 2, SAME, kNone, [](const Operands& o) { return real_elu(o.r(0), o.r(1)); }, kNone},
    {"equal", 2, BOOL, T(o.i(0) == o.i(1)), T(o.r(0) == o.r(1)), T(complex_equal(o))},
    {"erf", 1, SAME, kNone, R(std::erf(o.r(0))), kNone},
    {"erfc", 1, SAME, kNone, R(std::erfc(o.r(0))), kNone},
    {"erfcinv", 1, SAME, kNone, real_erfcinv, kNone},
    {"erfinv", 1, SAME, kNone, real_erfinv, kNone},
    {"exp", 1, SAME, kNone, R(std::exp(o.r(0))), complex_exp},
    {"expm1", 1, SAME, kNone, R(std::expm1(o.r(0))), complex_expm1},
    {"floor", 1, SAME, same, ROUND(std::floor), kNone},
    {"floor_divide", 2, SAME, I(integer_floor_divide(o.i(0), o.i(1))), real_floor_divide, kNone},
    {"fmod", 2, SAME, kNone, R(std::fmod(o.d(0), o.d(1))), kNone},
    {"gammainc", 2, SAME, kNone, real_gammainc, kNone},
    {"gammaincc", 2, SAME, kNone, real_gammaincc, kNone},
    {"gelu", 1, SAME, kNone, real_gelu, kNone},
    {"gelu_tanh", 1, SAME, kNone, real_gelu_tanh, kNone},
    {"greater", 2, BOOL, T(o.i(0) > o.i(1)), T(o.r(0) > o.r(1)), kNone},
    {"greater_equal", 2, BOOL, T(o.i(0) >= o.i(1)), T(o.r(0) >= o.r(1)), kNone},
    {"hard_sigmoid", 1, SAME, kNone, R(hard_sigmoid(o.r(0))), kNone},
    {"hard_swish", 1, SAME, kNone, real_hard_swish, kNone},
    {"heaviside", 2, SAME, I(o.i(0) < 0 ? 0 : o.i(0) > 0 ? 1 : o.i(1)), real_heaviside, kNone},
    {"hypot", 2, SAME, kNone, R(std::hypot(o.r(0), o.r(1))), kNone},
    {"i0", 1, SAME, kNone, real_i0, kNone},
    {"i0e", 1, SAME, kNone, real_i0e, kNone},
    {"i1", 1, SAME, kNone, real_i1, kNone},
    {"i1e", 1, SAME, kNone, real_i1e, kNone},
    {"imag", 1, PART, kNone, kNone, [](const Operands& o) { return real(o.x[0].im, kExactParts); }},
    {"isfinite", 1, BOOL, yes, T(std::isfinite(o.r(0))), complex_finite},
    {"isinf", 1, BOOL, no, T(std::isinf(o.r(0))), complex_infinite},
    {"isnan", 1, BOOL, no, T(std::isnan(o.r(0))), complex_not_a_number},
    {"j0", 1, SAME, kNone, real_j0, kNone},
    {"j1", 1, SAME, kNone, real_j1, kNone},
    {"leaky_relu", 2, SAME, kNone, real_leaky_relu, kNone},
    {"less", 2, BOOL, T(o.i(0) < o.i(1)), T(o.r(0) < o.r(1)), kNone},
    {"less_equal", 2, BOOL, T(o.i(0) <= o.i(1)), T(o.r(0) <= o.r(1)), kNone},
    {"lgamma", 1, SAME, kNone, real_lgamma, kNone},
    {"log", 1, SAME, kNone, [](const Operands& o) { return real_log(o.r(0), std::log(o.r(0))); }, complex_log},
    {"log10", 1, SAME, kNone, [](const Operands& o) { return real_log(o.r(0), std::log10(o.r(0))); }, complex_log10},
    {"log1p", 1, SAME, kNone, R(std::log1p(o.r(0))), complex_log1p},
    {"log2", 1, SAME, kNone, [](const Operands& o) { return real_log(o.r(0), std::log2(o.r(0))); }, complex_log2},
    {"log_sigmoid", 1, SAME, kNone, real_log_sigmoid, kNone},
    {"logaddexp", 2, SAME, kNone, real_logaddexp, kNone},
    {"logical_and", 2, BOOL, T(o.i(0) && o.i(1)), kNone, kNone},
    {"logical_not", 1, BOOL, T(!o.i(0)), kNone, kNone},
    {"logical_or", 2, BOOL, T(o.i(0) || o.i(1)), kNone, kNone},
    {"logical_xor", 2, BOOL, T(o.i(0) != o.i(1)), kNone, kNone},
    {"logit", 1, SAME, kNone, real_logit, kNone},
    {"maximum", 2, SAME, I(std::max(o.i(0), o.i(1))),
     [](const Operands& o) { return real_extreme(o.r(0), o.r(1), true); }, kNone},
    {"minimum", 2, SAME, I(std::min(o.i(0), o.i(1))),
     [](const Operands& o) { return real_extreme(o.r(0), o.r(1), false); }, kNone},
    {"mish", 1, SAME, kNone, real_mish, kNone},
    {"multiply", 2, SAME, I(static_cast<Integer>(static_cast<Bits>(o.i(0)) * static_cast<Bits>(o.i(1)))),
     R(o.d(0) * o.d(1)), complex_multiply},
    {"negative", 1, SAME, I(-o.i(0)), R(-o.r(0)), C(-o.c(0))},
    {"nextafter", 2, SAME, kNone, real_nextafter, kNone},
    {"not_equal", 2, BOOL, T(o.i(0) != o.i(1)), T(o.r(0) != o.r(1)), T(!complex_equal(o))},
    {"polygamma", 2, SAME, kNone, real_polygamma, kNone},
    {"positive", 1, SAME, same, same, same},
    {"pow", 2, SAME, integer_pow, R(std::pow(o.r(0), o.r(1))), complex_pow},
    {"rad2deg", 1, SAME, kNone, R(o.r(0) * (180 / kPi)), kNone},
    {"real", 1, PART, kNone, kNone, [](const Operands& o) { return real(o.r(0), kExactParts); }},
    {"reciprocal", 1, SAME, kNone, R(1 / o.d(0)), complex_reciprocal},
    {"relu", 1, SAME, I(std::max<Integer>(o.i(0), 0)), real_relu, kNone},
    {"remainder", 2, SAME, I(o.i(0) - integer_floor_divide(o.i(0), o.i(1)) * o.i(1) - (o.i(1) == 0 ? o.i(0) : 0)),
     real_remainder, kNone},
    {"round", 1, SAME, same, ROUND(std::nearbyint),
     [](const Operands& o) {
       Element e = complex_parts({std::nearbyint(o.r(0)), std::nearbyint(o.x[0].im)});
       e.open |= kSigns;
       return e;
     }},
    {"rsqrt", 1, SAME, kNone, R(1 / std::sqrt(o.r(0))), kNone},
    {"selu", 1, SAME, kNone, real_selu, kNone},
    {"sigmoid", 1, SAME, kNone, real_sigmoid, kNone},
    {"sign", 1, SAME, I((o.i(0) > 0) - (o.i(0) < 0)), real_sign, complex_sign},
    {"signbit", 1, BOOL, kNone, T(std::signbit(o.r(0))), kNone},
    {"silu", 1, SAME, kNone, real_silu, kNone},
    {"sin", 1, SAME, kNone, R(std::sin(o.r(0))), complex_sin},
    {"sinc", 1, SAME, kNone, real_sinc, kNone},
    {"sinh", 1, SAME, kNone, R(std::sinh(o.r(0))), complex_sinh},
    {"softplus", 1, SAME, kNone, real_softplus, kNone},
    {"softsign", 1, SAME, kNone, real_softsign, kNone},
    {"sqrt", 1, SAME, kNone, R(std::sqrt(o.d(0))), complex_sqrt},
    {"square", 1, SAME, I(static_cast<Integer>(static_cast<Bits>(o.i(0)) * static_cast<Bits>(o.i(0)))),
     R(o.d(0) * o.d(0)), complex_square},
    {"squared_difference", 2, SAME, integer_squared_difference, R((o.r(0) - o.r(1)) * (o.r(0) - o.r(1))), kNone},
    {"subtract", 2, SAME, I(o.i(0) - o.i(1)), R(o.d(0) - o.d(1)), complex_subtract},
    {"tan", 1, SAME, kNone, R(std::tan(o.r(0))), complex_tan},
    {"tanh", 1, SAME, kNone, R(std::tanh(o.r(0))), complex_tanh},
    {"trunc", 1, SAME, same, ROUND(std::trunc), kNone},
    {"where", 3, SECOND, kNone, kNone, kNone},
    {"xlogy", 2, SAME, kNone, real_xlogy, kNone},
    {"y0", 1, SAME, kNone, real_y0, kNone},
    {"y1", 1, SAME, kNone, real_y1, kNone},
};

#undef I
#undef R
#undef T
#undef C
#undef ROUND

// Ops that take bool; integer-only ops refuse it. Copy-like ops and comparisons take everything.
constexpr std::string_view kTakesBool[] = {"bitwise_and", "bitwise_invert", "bitwise_or", "bitwise_xor", "equal",
                                           "logical_and", "logical_not",    "logical_or", "logical_xor", "not_equal"};

bool named(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_where(const Elementwise& op) { return op.output == SECOND; }

}  // namespace

const Elementwise* find_elementwise(std::string_view name) {
  for (const Elementwise& row : kRows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

bool takes(const Elementwise& op, Dtype dtype) {
  if (is_where(op)) return true;
  switch (category(dtype)) {
    case Category::BOOL:
      return named(kTakesBool, op.name);
    case Category::SIGNED:
    case Category::UNSIGNED:
      return op.integer && !std::string_view(op.name).starts_with("logical");
    case Category::FLOAT:
      return op.real;
    case Category::COMPLEX:
      return op.complex;
  }
  return false;
}

Result evaluate(const Elementwise& op, std::span<const Array> inputs) {
  if (static_cast<int>(inputs.size()) != op.arity) throw std::invalid_argument(std::string(op.name) + ": wrong arity");
  const size_t first = is_where(op) ? 1 : 0;
  Dtype promoted = inputs[first].dtype();
  Result result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    result.shape = broadcast(result.shape, inputs[i].shape());
    if (i >= first && promoted != 0) promoted = promote(promoted, inputs[i].dtype());
  }
  // Functions of floats compute integers in float32.
  if (promoted != 0 && !is_inexact(promoted) && !is_where(op) && op.integer == nullptr && op.real != nullptr)
    promoted = dtype::FLOAT32;
  if (promoted == 0 || !takes(op, promoted) || (is_where(op) && !is_bool(inputs[0].dtype()))) {
    throw std::invalid_argument(std::string(op.name) + ": dtypes that it does not take");
  }
  result.dtype = op.output == Elementwise::BOOL   ? static_cast<Dtype>(dtype::BOOL)
                 : op.output == Elementwise::PART ? part(promoted)
                                                  : promoted;
  const ElementFunction function = is_complex(promoted) ? op.complex : is_float(promoted) ? op.real : op.integer;
  std::array<Array, 3> views;
  for (size_t i = 0; i < inputs.size(); ++i) views[i] = inputs[i].broadcast_to(result.shape);
  result.elements.resize(static_cast<size_t>(element_count(result.shape)));
  for (size_t position = 0; position < result.elements.size(); ++position) {
    Value x[3];
    for (size_t i = 0; i < inputs.size(); ++i) {
      x[i] = views[i].at(static_cast<int64_t>(position));
      if (i >= first && !is_inexact(inputs[i].dtype())) x[i] = convert(inputs[i].dtype(), computed_in(promoted), x[i]);
    }
    if (is_where(op)) {
      result.elements[position] = {x[0].integer ? x[1] : x[2], kExactParts};
    } else {
      result.elements[position] = function({promoted, x});
    }
  }
  return result;
}

}  // namespace compute::oracle
