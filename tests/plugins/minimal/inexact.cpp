// SPDX-License-Identifier: Apache-2.0
// The same for real and complex numbers. Sums, products, quotients and square roots of real numbers are those of the
// type itself and so correctly rounded; everything else is computed in the next wider type and rounded to the result,
// which keeps every bound with room to spare.
#include <limits>

#include "listing.hpp"

namespace minimal {
namespace {

// The type in which functions of T are computed.
template <class T>
struct Wide;
template <>
struct Wide<float> {
  using Type = double;
};
template <>
struct Wide<double> {
  using Type = long double;
};
template <class P>
struct Wide<std::complex<P>> {
  using Type = std::complex<typename Wide<P>::Type>;
};

template <class T, class W>
T narrow(W x) {
  return static_cast<T>(x);
}
template <Complex T, class W>
T narrow(std::complex<W> x) {
  using Part = typename T::value_type;
  return {static_cast<Part>(x.real()), static_cast<Part>(x.imag())};
}

template <class T, class F>
Function wide_unary(F) {
  using W = typename Wide<T>::Type;
  return [](const Value& x, const Value&, const Value&) { return Value::of(narrow<T>(F{}(W(x.as<T>())))); };
}
template <class T, class F>
Function wide_binary(F) {
  using W = typename Wide<T>::Type;
  return [](const Value& x, const Value& y, const Value&) {
    return Value::of(narrow<T>(F{}(W(x.as<T>()), W(y.as<T>()))));
  };
}

// ---- Functions that real and complex numbers share ------------------------------------------------------------------

template <class T>
Function find_inexact(int32_t intrinsic) {
  using W = typename Wide<T>::Type;
  switch (intrinsic) {
    case COMPUTE_PLUGIN_INTRINSIC_ADD:
      return binary<T>([](T x, T y) { return x + y; });
    case COMPUTE_PLUGIN_INTRINSIC_SUB:
      return binary<T>([](T x, T y) { return x - y; });
    case COMPUTE_PLUGIN_INTRINSIC_NEG:
      return unary<T>([](T x) { return -x; });
    case COMPUTE_PLUGIN_INTRINSIC_EXP:
      return wide_unary<T>([](W x) { return std::exp(x); });
    case COMPUTE_PLUGIN_INTRINSIC_LOG:
      return wide_unary<T>([](W x) { return std::log(x); });
    case COMPUTE_PLUGIN_INTRINSIC_LOG10:
      return wide_unary<T>([](W x) { return std::log10(x); });
    case COMPUTE_PLUGIN_INTRINSIC_LOG2:
      if constexpr (Complex<T>) {
        return wide_unary<T>([](W x) { return std::log(x) / std::log(typename W::value_type{2}); });
      } else {
        return wide_unary<T>([](W x) { return std::log2(x); });
      }
    case COMPUTE_PLUGIN_INTRINSIC_SIN:
      return wide_unary<T>([](W x) { return std::sin(x); });
    case COMPUTE_PLUGIN_INTRINSIC_COS:
      return wide_unary<T>([](W x) { return std::cos(x); });
    case COMPUTE_PLUGIN_INTRINSIC_TAN:
      return wide_unary<T>([](W x) { return std::tan(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ASIN:
      return wide_unary<T>([](W x) { return std::asin(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ACOS:
      return wide_unary<T>([](W x) { return std::acos(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ATAN:
      return wide_unary<T>([](W x) { return std::atan(x); });
    case COMPUTE_PLUGIN_INTRINSIC_SINH:
      return wide_unary<T>([](W x) { return std::sinh(x); });
    case COMPUTE_PLUGIN_INTRINSIC_COSH:
      return wide_unary<T>([](W x) { return std::cosh(x); });
    case COMPUTE_PLUGIN_INTRINSIC_TANH:
      return wide_unary<T>([](W x) { return std::tanh(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ASINH:
      return wide_unary<T>([](W x) { return std::asinh(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ACOSH:
      return wide_unary<T>([](W x) { return std::acosh(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ATANH:
      return wide_unary<T>([](W x) { return std::atanh(x); });
    default:
      return find_comparison<T>(intrinsic);
  }
}

// ---- Real numbers ---------------------------------------------------------------------------------------------------

template <Real T>
T lesser(T x, T y) {
  return std::isnan(x) ? x : std::isnan(y) || y < x ? y : x;
}
template <Real T>
T greater(T x, T y) {
  return std::isnan(x) ? x : std::isnan(y) || y > x ? y : x;
}

// fmod is exact, its sign is then made that of y.
template <Real T>
T modulo(T x, T y) {
  const T rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(T{0}, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}
template <Real T>
T floor_divide(T x, T y) {
  if (y == 0 || std::isinf(x) || std::isinf(y)) return x / y;
  using W = typename Wide<T>::Type;
  const T rest = std::fmod(x, y);
  W quotient = (W(x) - W(rest)) / W(y);  // nearly an integer
  if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;
  return quotient == 0 ? std::copysign(T{0}, x / y) : static_cast<T>(std::nearbyint(quotient));
}

// By Halley's method.
template <class W>
W erfinv(W x) {
  const W a = std::fabs(x);
  if (!(a <= 1)) return std::numeric_limits<W>::quiet_NaN();
  if (a == 0 || a == 1) return a == 0 ? x : std::copysign(std::numeric_limits<W>::infinity(), x);
  const W half_root_pi = std::sqrt(std::acos(W{-1})) / 2;
  W y = a < W{0.5} ? a : std::sqrt(-std::log(1 - a));
  for (int i = 0; i < 40; ++i) {
    const W miss = a < W{0.5} ? std::erf(y) - a : (1 - a) - std::erfc(y);
    const W newton = miss * std::exp(y * y) * half_root_pi;
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

template <class W>
W digamma(W x) {
  const W pi = std::acos(W{-1}), f = x - std::nearbyint(x);
  if (x < 0 && !(f != 0)) return std::numeric_limits<W>::quiet_NaN();
  if (x < 0) return digamma(1 - x) - pi / std::tan(pi * f);
  W less = 0;
  for (; x < 40; x += 1) less += 1 / x;
  const W u = 1 / (x * x);
  return std::log(x) - W{0.5} / x - u * (1 / W{12} - u * (1 / W{120} - u * (1 / W{252} - u / W{240}))) - less;
}

}  // namespace

template <Real T>
Function find_real(int32_t intrinsic) {
  using W = typename Wide<T>::Type;
  switch (intrinsic) {
    case COMPUTE_PLUGIN_INTRINSIC_MUL:
      return binary<T>([](T x, T y) { return x * y; });
    case COMPUTE_PLUGIN_INTRINSIC_DIV:
      return binary<T>([](T x, T y) { return x / y; });
    case COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV:
      return binary<T>([](T x, T y) { return floor_divide(x, y); });
    case COMPUTE_PLUGIN_INTRINSIC_MOD:
      return binary<T>([](T x, T y) { return modulo(x, y); });
    case COMPUTE_PLUGIN_INTRINSIC_POW:
      return wide_binary<T>([](W x, W y) { return std::pow(x, y); });
    case COMPUTE_PLUGIN_INTRINSIC_ABS:
      return unary<T>([](T x) { return std::fabs(x); });
    case COMPUTE_PLUGIN_INTRINSIC_SIGN:
      return unary<T>([](T x) { return std::isnan(x) ? x : T((x > 0) - (x < 0)); });
    case COMPUTE_PLUGIN_INTRINSIC_MIN:
      return binary<T>([](T x, T y) { return lesser(x, y); });
    case COMPUTE_PLUGIN_INTRINSIC_MAX:
      return binary<T>([](T x, T y) { return greater(x, y); });
    case COMPUTE_PLUGIN_INTRINSIC_FLOOR:
      return unary<T>([](T x) { return std::floor(x); });
    case COMPUTE_PLUGIN_INTRINSIC_CEIL:
      return unary<T>([](T x) { return std::ceil(x); });
    case COMPUTE_PLUGIN_INTRINSIC_TRUNC:
      return unary<T>([](T x) { return std::trunc(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ROUND:
      return unary<T>([](T x) { return std::nearbyint(x); });
    case COMPUTE_PLUGIN_INTRINSIC_SQRT:
      return unary<T>([](T x) { return std::sqrt(x); });
    case COMPUTE_PLUGIN_INTRINSIC_RSQRT:
      return wide_unary<T>([](W x) { return 1 / std::sqrt(x); });
    case COMPUTE_PLUGIN_INTRINSIC_CBRT:
      return wide_unary<T>([](W x) { return std::cbrt(x); });
    case COMPUTE_PLUGIN_INTRINSIC_EXP2:
      return wide_unary<T>([](W x) { return std::exp2(x); });
    case COMPUTE_PLUGIN_INTRINSIC_EXPM1:
      return wide_unary<T>([](W x) { return std::expm1(x); });
    case COMPUTE_PLUGIN_INTRINSIC_LOG1P:
      return wide_unary<T>([](W x) { return std::log1p(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ATAN2:
      return wide_binary<T>([](W x, W y) { return std::atan2(x, y); });
    case COMPUTE_PLUGIN_INTRINSIC_HYPOT:
      return wide_binary<T>([](W x, W y) { return std::hypot(x, y); });
    case COMPUTE_PLUGIN_INTRINSIC_ERF:
      return wide_unary<T>([](W x) { return std::erf(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ERFC:
      return wide_unary<T>([](W x) { return std::erfc(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ERFINV:
      return wide_unary<T>([](W x) { return erfinv(x); });
    case COMPUTE_PLUGIN_INTRINSIC_DIGAMMA:
      return wide_unary<T>([](W x) { return digamma(x); });
    case COMPUTE_PLUGIN_INTRINSIC_LGAMMA:
      return wide_unary<T>([](W x) { return std::lgamma(x); });
    case COMPUTE_PLUGIN_INTRINSIC_COPYSIGN:
      return binary<T>([](T x, T y) { return std::copysign(x, y); });
    case COMPUTE_PLUGIN_INTRINSIC_NEXTAFTER:
      return binary<T>([](T x, T y) { return std::nextafter(x, y); });
    case COMPUTE_PLUGIN_INTRINSIC_SIGNBIT:
      return unary<T>([](T x) { return std::signbit(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ISNAN:
      return unary<T>([](T x) { return std::isnan(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ISINF:
      return unary<T>([](T x) { return std::isinf(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ISFINITE:
      return unary<T>([](T x) { return std::isfinite(x); });
    case COMPUTE_PLUGIN_INTRINSIC_CONJ:
      return unary<T>([](T x) { return x; });
    case COMPUTE_PLUGIN_INTRINSIC_COMPLEX:
      return binary<T>([](T x, T y) { return std::complex<T>(x, y); });
    case COMPUTE_PLUGIN_INTRINSIC_LOGADDEXP:
      return wide_binary<T>([](W x, W y) {
        const W top = x > y || std::isnan(x) ? x : y;
        return x == y ? x + std::log(W{2}) : top + std::log1p(std::exp(-std::fabs(x - y)));
      });
    default:
      return find_inexact<T>(intrinsic);
  }
}

template Function find_real<float>(int32_t);
template Function find_real<double>(int32_t);

// ---- Complex numbers ------------------------------------------------------------------------------------------------

namespace {

template <class W>
std::complex<W> power(std::complex<W> x, std::complex<W> y) {
  if (x == W{0} && y == W{0}) return W{1};
  return std::exp(y * std::log(x));
}

// Near 0, and near the other zeros along the imaginary axis, where exp(z) - 1 cancels.
template <class W>
std::complex<W> expm1(std::complex<W> z) {
  if (!(std::fabs(z.real()) < 1 && std::isfinite(z.imag()))) return std::exp(z) - W{1};
  const W half_sine = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half_sine * half_sine,
          std::exp(z.real()) * std::sin(z.imag())};
}

// Near 0, where 1 + z drops most of z: |1 + z|^2 - 1 is x (2 + x) + y^2.
template <class W>
std::complex<W> log1p(std::complex<W> z) {
  if (z == W{0}) return z;  // with its signs
  if (!(std::abs(z) < W{0.5})) return std::log(W{1} + z);
  const W x = z.real(), y = z.imag();
  return {std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x)};
}

}  // namespace

template <Complex T>
Function find_complex(int32_t intrinsic) {
  using W = typename Wide<T>::Type;
  using Part = typename T::value_type;
  switch (intrinsic) {
    case COMPUTE_PLUGIN_INTRINSIC_MUL:
      return wide_binary<T>([](W x, W y) { return x * y; });
    case COMPUTE_PLUGIN_INTRINSIC_DIV:
      return wide_binary<T>([](W x, W y) { return x / y; });
    case COMPUTE_PLUGIN_INTRINSIC_POW:
      return wide_binary<T>([](W x, W y) { return power(x, y); });
    case COMPUTE_PLUGIN_INTRINSIC_ABS:
      return unary<T>([](T x) { return static_cast<Part>(std::abs(W(x))); });
    case COMPUTE_PLUGIN_INTRINSIC_ARG:
      return unary<T>([](T x) { return static_cast<Part>(std::arg(W(x))); });
    case COMPUTE_PLUGIN_INTRINSIC_SIGN:
      return wide_unary<T>([](W x) { return x == W{} ? W{} : x / std::abs(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ROUND:
      return unary<T>([](T x) { return T(std::nearbyint(x.real()), std::nearbyint(x.imag())); });
    case COMPUTE_PLUGIN_INTRINSIC_SQRT:
      return wide_unary<T>([](W x) { return std::sqrt(x); });
    case COMPUTE_PLUGIN_INTRINSIC_EXPM1:
      return wide_unary<T>([](W x) { return expm1(x); });
    case COMPUTE_PLUGIN_INTRINSIC_LOG1P:
      return wide_unary<T>([](W x) { return log1p(x); });
    case COMPUTE_PLUGIN_INTRINSIC_ISNAN:
      return unary<T>([](T x) { return std::isnan(x.real()) || std::isnan(x.imag()); });
    case COMPUTE_PLUGIN_INTRINSIC_ISINF:
      return unary<T>([](T x) { return std::isinf(x.real()) || std::isinf(x.imag()); });
    case COMPUTE_PLUGIN_INTRINSIC_ISFINITE:
      return unary<T>([](T x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); });
    case COMPUTE_PLUGIN_INTRINSIC_REAL:
      return unary<T>([](T x) { return x.real(); });
    case COMPUTE_PLUGIN_INTRINSIC_IMAG:
      return unary<T>([](T x) { return x.imag(); });
    case COMPUTE_PLUGIN_INTRINSIC_CONJ:
      return unary<T>([](T x) { return std::conj(x); });
    default:
      return find_inexact<T>(intrinsic);
  }
}

template Function find_complex<std::complex<float>>(int32_t);
template Function find_complex<std::complex<double>>(int32_t);

}  // namespace minimal
