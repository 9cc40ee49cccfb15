// SPDX-License-Identifier: Apache-2.0
#include "special.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace compute::oracle {

namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
constexpr Real kPi = std::numbers::pi_v<Real>;
constexpr Real kExact = 1e-22L;

Element element(Real value, Real scale = 0) { return {Value::of(value), kReSign, scale}; }

// ---- Modified Bessel functions ----

// exp(-x) I_order(x) for x from 0 on.
Real scaled_i(int order, Real x) {
  if (std::isinf(x)) return 0;
  if (x <= 60) {
    Real term = order == 0 ? 1 : x / 2, sum = 0;
    for (int k = 1; term > kExact * sum; ++k) {
      sum += term;
      term *= x / 2 / static_cast<Real>(k) * (x / 2 / static_cast<Real>(k + order));
    }
    return sum * std::exp(-x);
  }
  Real term = 1, sum = 0;
  for (int k = 1; std::fabs(term) > kExact; ++k) {
    sum += term;
    term *= -static_cast<Real>(4 * order - (2 * k - 1) * (2 * k - 1)) / (8 * static_cast<Real>(k) * x);
  }
  return sum / std::sqrt(2 * kPi * x);
}

// ---- Bessel functions ----

struct Pair {
  Real j, y;
};

Pair bessel_near(int order, Real given) {
  constexpr Wide kEuler = 0.5772156649015328606L + static_cast<Wide>(6.5120900824024310422e-21L);
  constexpr Wide kWidePi = 3.14159265358979323851L + static_cast<Wide>(-5.01655761266833202e-20L);
  const Wide x = given, q = x * x / 4;
  // Harmonic numbers of k and of k + order.
  const Wide first = order == 0 ? Wide{1} : x / 2;
  Wide term = first, sum = 0, weighted = 0, h = 0, h_next = order;
  for (int k = 1; (term < 0 ? -term : term) > first * 1e-36L; ++k) {
    sum += term;
    weighted += term * (h + h_next);
    term *= -q / (Wide{1} * k * (k + order));
    h += Wide{1} / k;
    h_next += Wide{1} / (k + order);
  }
  const Wide logarithm = wide_log(given / 2) + kEuler;
  const Wide y = (2 * logarithm * sum - weighted - (order == 0 ? Wide{0} : 2 / x)) / kWidePi;
  return {static_cast<Real>(sum), static_cast<Real>(y)};
}

Pair bessel_far(int order, Real x) {
  Real p = 0, q = 0, term = 1;
  for (int k = 0; k < 60 && std::fabs(term) > kExact; ++k) {
    (k % 2 == 0 ? p : q) += k % 4 < 2 ? term : -term;
    const Real odd = static_cast<Real>(2 * k + 1);
    term *= (static_cast<Real>(4 * order) - odd * odd) / (8 * static_cast<Real>(k + 1) * x);
  }
  const Real sine = std::sin(x), cosine = std::cos(x), root = 1 / std::sqrt(kPi * x);
  const Real c = order == 0 ? cosine + sine : sine - cosine, s = order == 0 ? sine - cosine : -(sine + cosine);
  return {root * (p * c - q * s), root * (p * s + q * c)};
}

// Of x above 0.
Pair bessel(int order, Real x) {
  if (std::isinf(x)) return {0, 0};
  return x < 25 ? bessel_near(order, x) : bessel_far(order, x);
}

Real modulus(Real x) { return std::sqrt(2 / (kPi * x)); }

Element bessel_j(int order, Real x) {
  const Real a = std::fabs(x);
  if (std::isnan(x)) return element(kNan);
  if (a == 0) return element(order == 0 ? 1 : 0);
  const Real value = bessel(order, a).j;
  const Real scale = order == 0 ? std::min(1.0L, modulus(a)) : a < 1 ? 0 : modulus(a);
  return element(order == 1 && x < 0 ? -value : value, scale);
}

Element bessel_y(int order, Real x) {
  if (!(x >= 0)) return element(kNan);
  if (x == 0) return element(-kInfinity);
  return element(bessel(order, x).y, std::min(1.0L, modulus(x)));
}

// ---- Incomplete gamma function ----

// P by its power series, or the complement by Lentz's continued fraction, in units of y^x exp(-y) / gamma(x).
Real lower_series(Real x, Real y) {
  Real term = 1 / x, sum = term;
  for (Real k = 1; term > kExact * sum; k += 1) sum += term *= y / (x + k);
  return sum;
}

Real upper_fraction(Real x, Real y) {
  Real b = y + 1 - x, c = kInfinity, d = 1 / b, product = d;
  for (Real k = 1; k < 1e6L; k += 1) {
    const Real a = -k * (k - x);
    b += 2;
    d = 1 / (a * d + b);
    c = b + a / c;
    product *= c * d;
    if (std::fabs(c * d - 1) < 1e-19L) break;
  }
  return product;
}

Element incomplete_gamma(const Operands& o, bool complement) {
  const Real x = o.r(0), y = o.r(1);
  const auto both = [&](Real lower, Real upper, Real scale = 0) {
    const Real value = complement ? upper : lower;
    return element(value, std::max(scale, complement && y < 3 ? 1.0L : 0.0L));
  };
  if (!(x >= 0 && y >= 0)) return element(kNan);
  if (x == 0) return y > 0 ? both(1, 0) : element(kNan);
  if (std::isinf(y)) return std::isinf(x) ? element(kNan) : both(1, 0);
  if (y == 0 || std::isinf(x)) return both(0, 1);
  if (x > 1e5L) {
    if (std::fabs(y - x) > 100 * std::sqrt(x) + 0.01L * x) return y < x ? both(0, 1) : both(1, 0);
    Element any = element(0.5L);
    any.open = kAny;
    return any;
  }
  const Real unit = std::exp(x * std::log(y) - y - std::lgamma(x));
  if (y < x + 1) {
    const Real lower = unit * lower_series(x, y);
    return both(lower, 1 - lower, unit);
  }
  const Real upper = unit * upper_fraction(x, y);
  return both(1 - upper, upper, unit);
}

// ---- Incomplete beta function ----

// Lentz's continued fraction, for z below the mean.
Real beta_fraction(Real a, Real b, Real z) {
  Real c = 1, d = 1 / (1 - (a + b) * z / (a + 1)), product = d;
  for (Real m = 1; m < 1e6L; m += 1) {
    Real factor = m * (b - m) * z / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / (1 + factor * d);
    c = 1 + factor / c;
    product *= c * d;
    factor = -(a + m) * (a + b + m) * z / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / (1 + factor * d);
    c = 1 + factor / c;
    product *= c * d;
    if (std::fabs(c * d - 1) < 1e-19L) break;
  }
  return product;
}

}  // namespace

// By the series of atanh: log(m) = 2 atanh((m - 1) / (m + 1)).
Wide wide_log(Real x) {
  constexpr Wide kLog2 = 0.693147180559945309417232L + static_cast<Wide>(-1.145835272679873281e-20L);
  int exponent = 0;
  const Wide m = std::frexp(x, &exponent);
  const Wide t = (m - 1) / (m + 1);
  Wide sum = 0, power = t;
  for (int k = 1; k < 80; k += 2, power *= t * t) sum += power / k;
  return 2 * sum + exponent * kLog2;
}

Element real_i0(const Operands& o) {
  const Real a = std::fabs(o.r(0));
  return element(std::isinf(a) ? a : scaled_i(0, a) * std::exp(a));
}

Element real_i0e(const Operands& o) { return element(scaled_i(0, std::fabs(o.r(0)))); }

Element real_i1(const Operands& o) {
  const Real a = std::fabs(o.r(0));
  return element(std::copysign(std::isinf(a) ? a : scaled_i(1, a) * std::exp(a), o.r(0)));
}

Element real_i1e(const Operands& o) { return element(std::copysign(scaled_i(1, std::fabs(o.r(0))), o.r(0))); }

Element real_j0(const Operands& o) { return bessel_j(0, o.r(0)); }
Element real_j1(const Operands& o) { return bessel_j(1, o.r(0)); }
Element real_y0(const Operands& o) { return bessel_y(0, o.r(0)); }
Element real_y1(const Operands& o) { return bessel_y(1, o.r(0)); }

// By Newton's method for log(erfc), from above, and near the middle for erf.
Element real_erfcinv(const Operands& o) {
  const Real x = o.r(0);
  if (!(x >= 0 && x <= 2)) return element(kNan);
  if (x == 0 || x == 2) return element(x == 0 ? kInfinity : -kInfinity);
  const Real q = std::min(x, 2 - x), half_root = std::sqrt(kPi) / 2;
  Real y = q < 0.5L ? std::sqrt(-std::log(q)) : 0;
  for (int i = 0; i < 200; ++i) {
    const Real slope = half_root * std::exp(y * y);
    const Real step =
        q < 0.5L ? slope * std::erfc(y) * (std::log(std::erfc(y)) - std::log(q)) : slope * ((1 - q) - std::erf(y));
    y += step;
    if (std::fabs(step) <= 1e-19L * y) break;
  }
  return element(x < 1 ? y : -y);
}

// Sums Hurwitz' zeta function, and the rest by the formula of Euler and Maclaurin.
Element polygamma(Real order, Real x) {
  if (!(order > 0 && order < 1e6L && order == std::floor(order) && x >= 0)) return element(kNan);
  const Real sign = std::fmod(order, 2.0L) == 0 ? -1 : 1;
  if (x == 0 || std::isinf(x)) return element(sign * (x == 0 ? kInfinity : 0));
  const Real s = order + 1, enough = std::max(40.0L, 2 * s);
  Real sum = 0, w = x, k = 0, part = 1;
  for (; w < enough && part * w > 1e-24L * std::min(x, 1.0L); w = x + ++k)
    sum += part = std::exp(-s * std::log1p(k / x));
  if (w >= enough) {
    constexpr Real kBernoulli[] = {1.0L / 6, -1.0L / 30, 1.0L / 42, -1.0L / 30, 5.0L / 66, -691.0L / 2730, 7.0L / 6};
    Real rest = w / order + 0.5L, term = s / w / 2;
    for (int j = 1; j <= 7; ++j) {
      rest += kBernoulli[j - 1] * term;
      const auto twice = static_cast<Real>(2 * j);
      term *= (s + twice - 1) / w * ((s + twice) / w) / ((twice + 1) * (twice + 2));
    }
    sum += std::exp(-s * std::log1p(k / x)) * rest;
  }
  const Real value = std::exp(std::lgamma(s) - s * std::log(x)) * sum;
  const Real growth = order > 20 ? std::max(std::lgamma(s), s * std::fabs(std::log(x))) : 1;
  return element(sign * value, std::isfinite(value) ? value * growth : 0);
}

Element real_gammainc(const Operands& o) { return incomplete_gamma(o, false); }
Element real_gammaincc(const Operands& o) { return incomplete_gamma(o, true); }

Element real_betainc(const Operands& o) {
  const Real a = o.r(0), b = o.r(1), z = o.r(2);
  if (!(a >= 0 && b >= 0 && z >= 0 && z <= 1)) return element(kNan);
  const bool all_at_0 = a == 0 || std::isinf(b), all_at_1 = b == 0 || std::isinf(a);
  if (all_at_0 && all_at_1) return element(kNan);
  if (all_at_0) return element(z > 0 ? 1 : 0);
  if (all_at_1) return element(z < 1 ? 0 : 1);
  if (z == 0 || z == 1) return element(z);
  if (std::max(a, b) > 1e5L) {
    Element any = element(0.5L);
    any.open = kAny;
    return any;
  }
  const Real unit =
      std::exp(a * std::log(z) + b * std::log1p(-z) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b));
  const bool below = z < (a + 1) / (a + b + 2);
  const Real tail = below ? unit * beta_fraction(a, b, z) / a : unit * beta_fraction(b, a, 1 - z) / b;
  return element(below ? tail : 1 - tail, std::max(unit / (1 - z), std::min(a, b) < 10 ? 1.0L : 0.0L));
}

}  // namespace compute::oracle
