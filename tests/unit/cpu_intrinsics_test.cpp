// SPDX-License-Identifier: Apache-2.0
// Every block function of every instruction set that this CPU has, against wider arithmetic or exact integers.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "compute/plugin.h"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/block_kernels.hpp"

namespace compute::cpu {
namespace {

using Real = long double;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The dtype ids are those of plugin.h; float16 and bfloat16 are tested as conversions.
template <typename T>
constexpr int kDtype = 0;
template <>
constexpr int kDtype<int8_t> = COMPUTE_DTYPE_INT8;
template <>
constexpr int kDtype<int16_t> = COMPUTE_DTYPE_INT16;
template <>
constexpr int kDtype<int32_t> = COMPUTE_DTYPE_INT32;
template <>
constexpr int kDtype<int64_t> = COMPUTE_DTYPE_INT64;
template <>
constexpr int kDtype<uint8_t> = COMPUTE_DTYPE_UINT8;
template <>
constexpr int kDtype<uint16_t> = COMPUTE_DTYPE_UINT16;
template <>
constexpr int kDtype<uint32_t> = COMPUTE_DTYPE_UINT32;
template <>
constexpr int kDtype<uint64_t> = COMPUTE_DTYPE_UINT64;
template <>
constexpr int kDtype<float> = COMPUTE_DTYPE_FLOAT32;
template <>
constexpr int kDtype<double> = COMPUTE_DTYPE_FLOAT64;
template <>
constexpr int kDtype<std::complex<float>> = COMPUTE_DTYPE_COMPLEX64;
template <>
constexpr int kDtype<std::complex<double>> = COMPUTE_DTYPE_COMPLEX128;

// The distance in units of the reference's last place in T; infinite where the kind of number differs.
template <typename T>
double ulps(T got, Real reference) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(reference) || std::isnan(got)) return std::isnan(reference) && std::isnan(got) ? 0 : kInf;
  const T rounded = static_cast<T>(reference);
  if (got == rounded && got == 0 && reference == 0 && std::signbit(got) != std::signbit(reference)) return kInf;
  if (got == rounded && std::isinf(got)) return 0;
  if (std::isinf(reference)) return kInf;
  const Real beyond =
      std::ldexp(Real(1), Limits::max_exponent);  // an overflow is judged as the number after the greatest
  const Real value = std::isinf(got) ? std::copysign(beyond, Real(got)) : Real(got);
  const int exponent =
      reference == 0 ? Limits::min_exponent : std::max(std::ilogb(reference) + 1, Limits::min_exponent);
  return static_cast<double>(std::fabs(value - reference) /
                             std::ldexp(Real(1), std::min(exponent, Limits::max_exponent) - Limits::digits));
}

template <typename T>
std::vector<T> special_floats() {
  using L = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           1,
                           2,
                           3,
                           0.5,
                           0.75,
                           1.5,
                           7,
                           10,
                           88,
                           100,
                           709,
                           745,
                           1e5,
                           1e6,
                           1e9,
                           1e10,
                           1e20,
                           L::infinity(),
                           L::quiet_NaN(),
                           L::denorm_min(),
                           L::min(),
                           L::max(),
                           L::epsilon(),
                           T(3.14159265358979),
                           T(1.57079632679490),
                           T(0.3),
                           T(1e-5),
                           T(1e-30)};
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) {
    values.push_back(-values[i]);
    values.push_back(std::nextafter(values[i], T(0)));
    values.push_back(std::nextafter(values[i], L::infinity()));
  }
  return values;
}

// All binades and signs; float32 evenly over its bit patterns.
template <typename T>
std::vector<T> many_floats(int64_t count) {
  std::vector<T> values = special_floats<T>();
  if constexpr (sizeof(T) == 4) {
    const uint64_t step = (uint64_t(1) << 32) / static_cast<uint64_t>(count) | 1;
    for (uint64_t bits = 0; bits >> 32 == 0; bits += step)
      values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  } else {
    std::mt19937_64 random(20240607);
    for (int64_t i = 0; i < count; ++i) {
      const double significand = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
      const int exponent = i % 4 == 0 ? static_cast<int>(random() % 2098) - 1074 : static_cast<int>(random() % 44) - 30;
      values.push_back(static_cast<T>(std::ldexp(random() % 2 ? significand : -significand, exponent)));
    }
  }
  return values;
}

template <typename T>
std::vector<T> many_integers() {
  std::vector<T> values;
  using L = std::numeric_limits<T>;
  for (int i = -3; i <= 12; ++i) {
    values.push_back(static_cast<T>(i));
    values.push_back(static_cast<T>(static_cast<uint64_t>(L::max()) + static_cast<uint64_t>(i)));  // wraps
    values.push_back(static_cast<T>(static_cast<uint64_t>(L::min()) + static_cast<uint64_t>(i)));
  }
  for (int i : {15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255}) values.push_back(static_cast<T>(i));
  std::mt19937_64 random(7);
  for (int i = 0; i < 60; ++i) values.push_back(static_cast<T>(random() >> (random() % 64)));
  return values;
}

// All pairs.
template <typename T>
void pairs(const std::vector<T>& values, std::vector<T>* x, std::vector<T>* y) {
  for (const T& a : values) {
    for (const T& b : values) {
      x->push_back(a);
      y->push_back(b);
    }
  }
}

class CpuIntrinsics : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Isa* isa = select_isa(GetParam());
    ASSERT_NE(isa, nullptr);
    table_ = isa->blocks;
    if (std::string(isa->name) != GetParam()) GTEST_SKIP() << "this CPU lacks " << GetParam();
  }

  template <typename R, typename T>
  std::vector<R> call(int id, const std::vector<T>& x) {
    std::vector<R> out(x.size() + 1);
    const void* operands[] = {x.data()};
    const int64_t steps[] = {1};
    table_->calls[id][kDtype<T>](operands, steps, out.data(), static_cast<int64_t>(x.size()));
    out.pop_back();
    return out;
  }
  template <typename R, typename T>
  std::vector<R> call(int id, const std::vector<T>& x, const std::vector<T>& y) {
    std::vector<R> out(x.size() + 1);
    const void* operands[] = {x.data(), y.data()};
    const int64_t steps[] = {1, 1};
    table_->calls[id][kDtype<T>](operands, steps, out.data(), static_cast<int64_t>(x.size()));
    out.pop_back();
    return out;
  }
  template <typename D, typename S>
  std::vector<D> convert(int from, int to, const std::vector<S>& x) {
    std::vector<D> out(x.size());
    const void* operands[] = {x.data()};
    const int64_t steps[] = {1};
    table_->converts[from][to](operands, steps, out.data(), static_cast<int64_t>(x.size()));
    return out;
  }

  template <typename T, typename F>
  void check_unary(const char* name, int id, double bound, F reference) {
    const std::vector<T> x = many_floats<T>(200000);
    const std::vector<T> got = call<T>(id, x);
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(got[i], reference(static_cast<Real>(x[i])));
      if (!(error <= worst)) {
        worst = error;
        where = i;
      }
    }
    EXPECT_TRUE(worst <= bound) << name << (sizeof(T) == 4 ? " float32" : " float64") << ": " << worst << " ULP at "
                                << testing::PrintToString(x[where]) << ", got " << testing::PrintToString(got[where]);
  }
  template <typename F>
  void check_unary(const char* name, int id, double bound, F reference) {
    check_unary<float>(name, id, bound, reference);
    check_unary<double>(name, id, bound, reference);
  }
  template <typename T, typename F>
  void check_binary(const char* name, int id, double bound, F reference) {
    std::vector<T> x, y;
    pairs(special_floats<T>(), &x, &y);
    std::mt19937_64 random(3);
    const std::vector<T> many = many_floats<T>(20000);
    for (int i = 0; i < 40000; ++i) {
      x.push_back(many[random() % many.size()]);
      y.push_back(many[random() % many.size()]);
      x.push_back(static_cast<T>(std::ldexp(static_cast<double>(random() >> 12), -50)));
      y.push_back(static_cast<T>(std::ldexp(static_cast<double>(random() >> 12), -49)));
    }
    const std::vector<T> got = call<T>(id, x, y);
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(got[i], static_cast<Real>(reference(x[i], y[i])));
      ASSERT_TRUE(error <= bound) << name << (sizeof(T) == 4 ? " float32" : " float64") << ": " << error << " ULP at "
                                  << testing::PrintToString(x[i]) << ", " << testing::PrintToString(y[i]) << ", got "
                                  << testing::PrintToString(got[i]);
    }
  }
  template <typename T>
  void check_integers();
  template <typename T>
  void check_booleans();
  template <typename S>
  void check_conversions();

  const BlockKernels* table_ = nullptr;
};

TEST_P(CpuIntrinsics, FloatFunctions) {
  check_unary("floor", COMPUTE_PLUGIN_INTRINSIC_FLOOR, 0, [](Real x) { return std::floor(x); });
  check_unary("ceil", COMPUTE_PLUGIN_INTRINSIC_CEIL, 0, [](Real x) { return std::ceil(x); });
  check_unary("trunc", COMPUTE_PLUGIN_INTRINSIC_TRUNC, 0, [](Real x) { return std::trunc(x); });
  check_unary("round", COMPUTE_PLUGIN_INTRINSIC_ROUND, 0, [](Real x) { return std::nearbyint(x); });
  check_unary("neg", COMPUTE_PLUGIN_INTRINSIC_NEG, 0, [](Real x) { return -x; });
  check_unary("abs", COMPUTE_PLUGIN_INTRINSIC_ABS, 0, [](Real x) { return std::fabs(x); });
  check_unary("sign", COMPUTE_PLUGIN_INTRINSIC_SIGN, 0, [](Real x) -> Real {
    return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;
  });
  check_unary("sqrt", COMPUTE_PLUGIN_INTRINSIC_SQRT, 0.5, [](Real x) { return std::sqrt(x); });
  check_unary("rsqrt", COMPUTE_PLUGIN_INTRINSIC_RSQRT, 2, [](Real x) { return 1 / std::sqrt(x); });
  check_unary("cbrt", COMPUTE_PLUGIN_INTRINSIC_CBRT, 2, [](Real x) { return std::cbrt(x); });
}

// float64 next to the squares of the middles between two numbers, (k + 1/2)^2 in units of the last place: k^2 + k + c
// is a multiple of a large power of 2 for a small c. Newton's method finds such k, since 2 k + 1 is odd.
TEST_P(CpuIntrinsics, RootsNextToTheMiddleOfTwoNumbers) {
  std::vector<double> x;
  for (int c = -400; c <= 400; c += 2) {
    for (const uint64_t start : {0, 1}) {
      uint64_t k = start, inverse = 1;
      for (int i = 0; i < 6; ++i) {
        for (int j = 0; j < 6; ++j) inverse *= 2 - (2 * k + 1) * inverse;
        k -= (k * k + k + static_cast<uint64_t>(c)) * inverse;
      }
      for (const int bits : {52, 53}) {
        const uint64_t root = k % (uint64_t(1) << bits) + (bits == 52 ? uint64_t(1) << 52 : 0);
        const Real middle = std::ldexp(static_cast<Real>(root) + 0.5L, -52);
        if (middle >= 1 && (bits == 53 || middle * middle < 2)) {
          x.push_back(static_cast<double>(middle * middle));
          x.push_back(std::ldexp(x.back(), 200));
        }
      }
    }
  }
  ASSERT_GT(x.size(), 1000u);
  const std::vector<double> got = call<double>(COMPUTE_PLUGIN_INTRINSIC_SQRT, x);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], std::sqrt(x[i])) << testing::PrintToString(x[i]);
}

TEST_P(CpuIntrinsics, Exponentials) {
  check_unary("exp", COMPUTE_PLUGIN_INTRINSIC_EXP, 1, [](Real x) { return std::exp(x); });
  check_unary("exp2", COMPUTE_PLUGIN_INTRINSIC_EXP2, 2, [](Real x) { return std::exp2(x); });
  check_unary("expm1", COMPUTE_PLUGIN_INTRINSIC_EXPM1, 2, [](Real x) { return std::expm1(x); });
  check_unary("log", COMPUTE_PLUGIN_INTRINSIC_LOG, 2, [](Real x) { return std::log(x); });
  check_unary("log1p", COMPUTE_PLUGIN_INTRINSIC_LOG1P, 2, [](Real x) { return std::log1p(x); });
  check_unary("log2", COMPUTE_PLUGIN_INTRINSIC_LOG2, 2, [](Real x) { return std::log2(x); });
  check_unary("log10", COMPUTE_PLUGIN_INTRINSIC_LOG10, 2, [](Real x) { return std::log10(x); });
  check_unary("erf", COMPUTE_PLUGIN_INTRINSIC_ERF, 4, [](Real x) { return std::erf(x); });
  check_unary("erfc", COMPUTE_PLUGIN_INTRINSIC_ERFC, 8, [](Real x) { return std::erfc(x); });
}

Real inverse_erf(Real x) {
  const Real a = std::fabs(x);
  if (!(a <= 1)) return std::numeric_limits<Real>::quiet_NaN();
  if (a == 0 || a == 1) return a == 0 ? x : std::copysign(std::numeric_limits<Real>::infinity(), x);
  Real y = a < 0.5L ? a : std::sqrt(-std::log(1 - a));
  for (int i = 0; i < 40; ++i) {
    const Real miss = a < 0.5L ? std::erf(y) - a : (1 - a) - std::erfc(y);
    const Real newton = miss * std::exp(y * y) * 0.886226925452758013649L, step = newton / (1 + y * newton);
    y -= step;
    if (std::fabs(step) <= 1e-19L * y) break;
  }
  return std::copysign(y, x);
}

Real digamma(Real x) {
  const Real pi = std::acos(Real{-1});
  if (x < 0) return digamma(1 - x) - pi / std::tan(pi * (x - std::nearbyint(x)));
  Real less = 0;
  for (; x < 40; x += 1) less += 1 / x;
  const Real u = 1 / (x * x);
  return std::log(x) - 0.5L / x - u * (1 / 12.0L - u * (1 / 120.0L - u * (1 / 252.0L - u / 240))) - less;
}

TEST_P(CpuIntrinsics, SpecialFunctions) {
  check_unary("erfinv", COMPUTE_PLUGIN_INTRINSIC_ERFINV, 4, inverse_erf);
  std::mt19937_64 random(17);
  std::vector<double> x;
  for (int i = 0; i < 60000; ++i) x.push_back(std::ldexp(static_cast<double>(random() >> 11), -53) * 36 - 12);
  for (int i = -12; i < 24; ++i) {
    for (int k = 2; k < 40; k += 3) {
      x.push_back(i + std::ldexp(1.0, -k));
      x.push_back(i - std::ldexp(1.0, -k));
    }
  }
  const Real unit = std::numeric_limits<double>::epsilon();
  const auto gammas = call<double>(COMPUTE_PLUGIN_INTRINSIC_LGAMMA, x);
  const auto digammas = call<double>(COMPUTE_PLUGIN_INTRINSIC_DIGAMMA, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const Real a = x[i], gamma = std::lgamma(a), slope = digamma(a);
    const Real gamma_scale = std::max(std::fabs(gamma), a < 0 ? std::max(1.0L, std::lgamma(-a)) : 0.0L);
    ASSERT_TRUE(std::fabs(gammas[i] - gamma) <= 8 * unit * gamma_scale) << x[i] << ", got " << gammas[i];
    const Real scale = std::max(std::fabs(slope), a < 0 ? std::fabs(digamma(1 - a)) : a >= 1 && a <= 2 ? 1.0L : 0.0L);
    ASSERT_TRUE(std::fabs(digammas[i] - slope) <= 8 * unit * scale) << x[i] << ", got " << digammas[i];
  }
}

TEST_P(CpuIntrinsics, Trigonometry) {
  check_unary("sin", COMPUTE_PLUGIN_INTRINSIC_SIN, 2, [](Real x) { return std::sin(x); });
  check_unary("cos", COMPUTE_PLUGIN_INTRINSIC_COS, 2, [](Real x) { return std::cos(x); });
  check_unary("tan", COMPUTE_PLUGIN_INTRINSIC_TAN, 4, [](Real x) { return std::tan(x); });
  check_unary("asin", COMPUTE_PLUGIN_INTRINSIC_ASIN, 4, [](Real x) { return std::asin(x); });
  check_unary("acos", COMPUTE_PLUGIN_INTRINSIC_ACOS, 4, [](Real x) { return std::acos(x); });
  check_unary("atan", COMPUTE_PLUGIN_INTRINSIC_ATAN, 4, [](Real x) { return std::atan(x); });
  check_unary("sinh", COMPUTE_PLUGIN_INTRINSIC_SINH, 4, [](Real x) { return std::sinh(x); });
  check_unary("cosh", COMPUTE_PLUGIN_INTRINSIC_COSH, 4, [](Real x) { return std::cosh(x); });
  check_unary("tanh", COMPUTE_PLUGIN_INTRINSIC_TANH, 4, [](Real x) { return std::tanh(x); });
  check_unary("asinh", COMPUTE_PLUGIN_INTRINSIC_ASINH, 4, [](Real x) { return std::asinh(x); });
  check_unary("acosh", COMPUTE_PLUGIN_INTRINSIC_ACOSH, 4, [](Real x) { return std::acosh(x); });
  check_unary("atanh", COMPUTE_PLUGIN_INTRINSIC_ATANH, 4, [](Real x) { return std::atanh(x); });
}

// An element's result does not depend on its neighbours, because work can be cut anywhere.
TEST_P(CpuIntrinsics, ElementsDoNotDependOnTheirNeighbours) {
  constexpr int kFunctions[] = {
      COMPUTE_PLUGIN_INTRINSIC_EXP,   COMPUTE_PLUGIN_INTRINSIC_EXP2,  COMPUTE_PLUGIN_INTRINSIC_EXPM1,
      COMPUTE_PLUGIN_INTRINSIC_LOG,   COMPUTE_PLUGIN_INTRINSIC_LOG1P, COMPUTE_PLUGIN_INTRINSIC_LOG2,
      COMPUTE_PLUGIN_INTRINSIC_LOG10, COMPUTE_PLUGIN_INTRINSIC_ERF,   COMPUTE_PLUGIN_INTRINSIC_ERFC,
      COMPUTE_PLUGIN_INTRINSIC_SIN,   COMPUTE_PLUGIN_INTRINSIC_COS,   COMPUTE_PLUGIN_INTRINSIC_TAN,
      COMPUTE_PLUGIN_INTRINSIC_SINH,  COMPUTE_PLUGIN_INTRINSIC_COSH,  COMPUTE_PLUGIN_INTRINSIC_TANH,
      COMPUTE_PLUGIN_INTRINSIC_ASIN,  COMPUTE_PLUGIN_INTRINSIC_ACOS,  COMPUTE_PLUGIN_INTRINSIC_ATAN,
      COMPUTE_PLUGIN_INTRINSIC_CBRT,  COMPUTE_PLUGIN_INTRINSIC_ERFINV};
  const auto check = [&]<typename T>(T) {
    std::mt19937_64 random(23);
    std::vector<T> x(4000);
    for (T& value : x) {  // mostly small ones, and a few of every size among them
      const double fraction = std::ldexp(static_cast<double>(random() >> 11), -52) - 1;
      value = static_cast<T>(random() % 20 == 0 ? std::ldexp(fraction, static_cast<int>(random() % 60)) : 3 * fraction);
    }
    for (const int id : kFunctions) {
      const std::vector<T> together = call<T>(id, x);
      for (size_t i = 0; i < x.size(); ++i) {
        const T alone = call<T>(id, std::vector<T>{x[i]})[0];
        ASSERT_TRUE(std::memcmp(&alone, &together[i], sizeof alone) == 0 ||
                    (alone != alone && together[i] != together[i]))
            << "intrinsic " << id << " at " << testing::PrintToString(x[i]) << ": " << testing::PrintToString(alone)
            << " alone, " << testing::PrintToString(together[i]) << " beside others";
      }
    }
  };
  check(float{});
  check(double{});
}

// Exponents and bases with special paths, next to other ones and alone.
TEST_P(CpuIntrinsics, PowersDoNotDependOnTheirNeighbours) {
  const auto check = [&]<typename T>(T) {
    constexpr T kExponents[] = {2, 3, -1, T(0.5), T(1.75), -2, 2, 2};
    std::mt19937_64 random(29);
    std::vector<T> x(999), y(999);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<T>(std::ldexp(static_cast<double>(random() >> 11), -51) - 2);
      y[i] = kExponents[i < 400 ? random() % 8 : i % 8];
      if (i % 5 == 0 || i / 100 == 6) x[i] = 2;
    }
    const std::vector<T> together = call<T>(COMPUTE_PLUGIN_INTRINSIC_POW, x, y);
    for (size_t i = 0; i < x.size(); ++i) {
      const T alone = call<T>(COMPUTE_PLUGIN_INTRINSIC_POW, std::vector<T>{x[i]}, std::vector<T>{y[i]})[0];
      ASSERT_TRUE(alone == together[i] || (alone != alone && together[i] != together[i]))
          << x[i] << " to the power " << y[i] << ": " << alone << " alone, " << together[i] << " beside others";
      if (y[i] == 2) {
        ASSERT_EQ(alone, x[i] * x[i]);
      }
    }
  };
  check(float{});
  check(double{});
}

template <typename T>
T python_mod(T x, T y) {
  if (y == 0) return static_cast<T>(kNan);
  const T m = std::fmod(x, y);
  if (std::isnan(m)) return m;
  if (m == 0) return std::copysign(T(0), y);
  return (m < 0) != (y < 0) ? m + y : m;
}
template <typename T>
T floor_divide(T x, T y) {
  if (y == 0 || std::isinf(x) || std::isinf(y)) return x / y;
  const T quotient = x / y, m = std::fmod(x, y);
  if (std::fabs(quotient) > std::ldexp(T(1), std::numeric_limits<T>::digits)) return quotient;
  Real q = std::nearbyint((Real(x) - m) / y);
  if (m != 0 && (m < 0) != (y < 0)) q -= 1;
  return q == 0 ? std::copysign(T(0), quotient) : static_cast<T>(q);
}

TEST_P(CpuIntrinsics, FloatPairs) {
  const auto both = [&](const char* name, int id, double bound, auto reference) {
    check_binary<float>(name, id, bound, reference);
    check_binary<double>(name, id, bound, reference);
  };
  both("add", COMPUTE_PLUGIN_INTRINSIC_ADD, 0, [](auto x, auto y) { return x + y; });
  both("sub", COMPUTE_PLUGIN_INTRINSIC_SUB, 0, [](auto x, auto y) { return x - y; });
  both("mul", COMPUTE_PLUGIN_INTRINSIC_MUL, 0, [](auto x, auto y) { return x * y; });
  both("div", COMPUTE_PLUGIN_INTRINSIC_DIV, 0, [](auto x, auto y) { return x / y; });
  both("floor_div", COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV, 0, [](auto x, auto y) { return floor_divide(x, y); });
  both("mod", COMPUTE_PLUGIN_INTRINSIC_MOD, 0, [](auto x, auto y) { return python_mod(x, y); });
  both("copysign", COMPUTE_PLUGIN_INTRINSIC_COPYSIGN, 0, [](auto x, auto y) { return std::copysign(x, y); });
  both("nextafter", COMPUTE_PLUGIN_INTRINSIC_NEXTAFTER, 0, [](auto x, auto y) { return std::nextafter(x, y); });
  both("pow", COMPUTE_PLUGIN_INTRINSIC_POW, 4, [](auto x, auto y) { return std::pow(Real(x), Real(y)); });
  both("atan2", COMPUTE_PLUGIN_INTRINSIC_ATAN2, 4, [](auto x, auto y) { return std::atan2(Real(x), Real(y)); });
  both("hypot", COMPUTE_PLUGIN_INTRINSIC_HYPOT, 4, [](auto x, auto y) { return std::hypot(Real(x), Real(y)); });
}

TEST_P(CpuIntrinsics, Extremes) {
  std::vector<double> x, y;
  pairs(special_floats<double>(), &x, &y);
  const auto least = call<double>(COMPUTE_PLUGIN_INTRINSIC_MIN, x, y),
             greatest = call<double>(COMPUTE_PLUGIN_INTRINSIC_MAX, x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) || std::isnan(y[i])) {
      EXPECT_TRUE(std::isnan(least[i]) && std::isnan(greatest[i])) << x[i] << ", " << y[i];
    } else {
      EXPECT_EQ(least[i], std::min(x[i], y[i]));
      EXPECT_EQ(greatest[i], std::max(x[i], y[i]));
    }
  }
}

TEST_P(CpuIntrinsics, LogAddExp) {
  std::vector<double> x, y;
  pairs(special_floats<double>(), &x, &y);
  const auto got = call<double>(COMPUTE_PLUGIN_INTRINSIC_LOGADDEXP, x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    const Real a = x[i], b = y[i];
    Real reference = std::isnan(a) || std::isnan(b) ? Real(kNan)
                     : a == b                       ? a + std::log(2.0L)
                                                    : std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
    if (std::isfinite(reference)) {
      const Real unit =
          std::max({std::fabs(a), std::fabs(b), std::fabs(reference)}) * std::numeric_limits<double>::epsilon();
      const bool near = std::fabs(got[i] - reference) <= 8 * unit;
      EXPECT_TRUE(near || got[i] == static_cast<double>(reference)) << x[i] << ", " << y[i];
    } else {
      EXPECT_EQ(ulps(got[i], reference), 0) << x[i] << ", " << y[i];
    }
  }
}

template <typename T>
void CpuIntrinsics::check_booleans() {
  std::vector<T> x, y;
  if constexpr (std::is_floating_point_v<T>)
    pairs(special_floats<T>(), &x, &y);
  else
    pairs(many_integers<T>(), &x, &y);
  const auto compare = [&](int id, auto reference) {
    const std::vector<uint8_t> got = call<uint8_t>(id, x, y);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(got[i], reference(x[i], y[i]) ? 1 : 0)
          << id << " dtype " << kDtype<T> << ": " << +x[i] << ", " << +y[i];
  };
  compare(COMPUTE_PLUGIN_INTRINSIC_EQ, [](T a, T b) { return a == b; });
  compare(COMPUTE_PLUGIN_INTRINSIC_NE, [](T a, T b) { return a != b; });
  compare(COMPUTE_PLUGIN_INTRINSIC_LT, [](T a, T b) { return a < b; });
  compare(COMPUTE_PLUGIN_INTRINSIC_LE, [](T a, T b) { return a <= b; });
  compare(COMPUTE_PLUGIN_INTRINSIC_GT, [](T a, T b) { return a > b; });
  compare(COMPUTE_PLUGIN_INTRINSIC_GE, [](T a, T b) { return a >= b; });
  const auto test = [&](int id, auto reference) {
    const std::vector<uint8_t> got = call<uint8_t>(id, x);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], reference(x[i]) ? 1 : 0) << id << ": " << +x[i];
  };
  if constexpr (std::is_floating_point_v<T>) {
    test(COMPUTE_PLUGIN_INTRINSIC_ISNAN, [](T a) { return std::isnan(a); });
    test(COMPUTE_PLUGIN_INTRINSIC_ISINF, [](T a) { return std::isinf(a); });
    test(COMPUTE_PLUGIN_INTRINSIC_ISFINITE, [](T a) { return std::isfinite(a); });
    test(COMPUTE_PLUGIN_INTRINSIC_SIGNBIT, [](T a) { return std::signbit(a); });
  } else {
    test(COMPUTE_PLUGIN_INTRINSIC_ISNAN, [](T) { return false; });
    test(COMPUTE_PLUGIN_INTRINSIC_ISINF, [](T) { return false; });
    test(COMPUTE_PLUGIN_INTRINSIC_ISFINITE, [](T) { return true; });
  }
  // where, by every third truth
  std::vector<uint8_t> condition(x.size());
  for (size_t i = 0; i < x.size(); ++i) condition[i] = i % 3 == 0;
  std::vector<T> chosen(x.size());
  const void* operands[] = {condition.data(), x.data(), y.data()};
  const int64_t steps[] = {1, 1, 1};
  table_->calls[COMPUTE_PLUGIN_INTRINSIC_WHERE][kDtype<T>](operands, steps, chosen.data(),
                                                           static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(std::memcmp(&chosen[i], condition[i] ? &x[i] : &y[i], sizeof(T)), 0);
}

TEST_P(CpuIntrinsics, Comparisons) {
  check_booleans<int8_t>();
  check_booleans<int16_t>();
  check_booleans<int32_t>();
  check_booleans<int64_t>();
  check_booleans<uint8_t>();
  check_booleans<uint16_t>();
  check_booleans<uint32_t>();
  check_booleans<uint64_t>();
  check_booleans<float>();
  check_booleans<double>();
}

template <typename T>
void CpuIntrinsics::check_integers() {
  __extension__ using Wide = __int128;
  constexpr int kBits = static_cast<int>(sizeof(T)) * 8;
  std::vector<T> x, y;
  pairs(many_integers<T>(), &x, &y);
  const auto binary = [&](int id, auto reference) {
    const std::vector<T> got = call<T>(id, x, y);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(+got[i], +static_cast<T>(reference(Wide(x[i]), Wide(y[i]))))
          << id << " dtype " << kDtype<T> << ": " << +x[i] << ", " << +y[i];
  };
  binary(COMPUTE_PLUGIN_INTRINSIC_ADD, [](Wide a, Wide b) { return a + b; });
  binary(COMPUTE_PLUGIN_INTRINSIC_SUB, [](Wide a, Wide b) { return a - b; });
  binary(COMPUTE_PLUGIN_INTRINSIC_MUL,
         [](Wide a, Wide b) { return T(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); });
  const auto floor_div = [](Wide a, Wide b) -> Wide {
    if (b == 0) return 0;
    const Wide q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
  };
  binary(COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV, floor_div);
  binary(COMPUTE_PLUGIN_INTRINSIC_MOD, [&](Wide a, Wide b) { return b == 0 ? Wide(0) : a - floor_div(a, b) * b; });
  binary(COMPUTE_PLUGIN_INTRINSIC_MIN, [](Wide a, Wide b) { return a < b ? a : b; });
  binary(COMPUTE_PLUGIN_INTRINSIC_MAX, [](Wide a, Wide b) { return a > b ? a : b; });
  binary(COMPUTE_PLUGIN_INTRINSIC_BIT_AND, [](Wide a, Wide b) { return a & b; });
  binary(COMPUTE_PLUGIN_INTRINSIC_BIT_OR, [](Wide a, Wide b) { return a | b; });
  binary(COMPUTE_PLUGIN_INTRINSIC_BIT_XOR, [](Wide a, Wide b) { return a ^ b; });
  binary(COMPUTE_PLUGIN_INTRINSIC_SHL,
         [](Wide a, Wide b) { return b < 0 || b >= kBits ? Wide(0) : Wide(T(static_cast<uint64_t>(a) << b)); });
  binary(COMPUTE_PLUGIN_INTRINSIC_SHR,
         [](Wide a, Wide b) { return b < 0 || b >= kBits ? Wide(a < 0 ? -1 : 0) : a >> b; });
  binary(COMPUTE_PLUGIN_INTRINSIC_MUL_HIGH, [](Wide a, Wide b) -> Wide {
    if constexpr (std::is_same_v<T, uint64_t>) {
      __extension__ using Unsigned = unsigned __int128;
      return static_cast<Wide>((static_cast<Unsigned>(a) * static_cast<Unsigned>(b)) >> 64);
    }
    return (a * b) >> kBits;
  });
  binary(COMPUTE_PLUGIN_INTRINSIC_POW, [](Wide a, Wide b) -> Wide {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    uint64_t result = 1;
    for (uint64_t base = static_cast<uint64_t>(a), e = static_cast<uint64_t>(b); e > 0; e /= 2, base *= base)
      if (e % 2 == 1) result *= base;
    return static_cast<Wide>(static_cast<T>(result));
  });
  const auto unary = [&](int id, auto reference) {
    const std::vector<T> got = call<T>(id, x);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(+got[i], +static_cast<T>(reference(Wide(x[i])))) << id << ": " << +x[i];
  };
  unary(COMPUTE_PLUGIN_INTRINSIC_NEG, [](Wide a) { return -a; });
  unary(COMPUTE_PLUGIN_INTRINSIC_ABS, [](Wide a) { return a < 0 ? -a : a; });
  unary(COMPUTE_PLUGIN_INTRINSIC_SIGN, [](Wide a) { return a < 0 ? -1 : a > 0 ? 1 : 0; });
  unary(COMPUTE_PLUGIN_INTRINSIC_BIT_NOT, [](Wide a) { return ~a; });
  unary(COMPUTE_PLUGIN_INTRINSIC_FLOOR, [](Wide a) { return a; });
  unary(COMPUTE_PLUGIN_INTRINSIC_ROUND, [](Wide a) { return a; });
}

TEST_P(CpuIntrinsics, Integers) {
  check_integers<int8_t>();
  check_integers<int16_t>();
  check_integers<int32_t>();
  check_integers<int64_t>();
  check_integers<uint8_t>();
  check_integers<uint16_t>();
  check_integers<uint32_t>();
  check_integers<uint64_t>();
}

TEST_P(CpuIntrinsics, Bools) {
  const std::vector<uint8_t> x = {0, 0, 1, 1}, y = {0, 1, 0, 1};
  const auto call_bool = [&](int id) {
    std::vector<uint8_t> out(4);
    const void* operands[] = {x.data(), y.data()};
    const int64_t steps[] = {1, 1};
    table_->calls[id][COMPUTE_DTYPE_BOOL](operands, steps, out.data(), 4);
    return out;
  };
  EXPECT_EQ(call_bool(COMPUTE_PLUGIN_INTRINSIC_BIT_AND), (std::vector<uint8_t>{0, 0, 0, 1}));
  EXPECT_EQ(call_bool(COMPUTE_PLUGIN_INTRINSIC_BIT_OR), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(call_bool(COMPUTE_PLUGIN_INTRINSIC_BIT_XOR), (std::vector<uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ(call_bool(COMPUTE_PLUGIN_INTRINSIC_BIT_NOT), (std::vector<uint8_t>{1, 1, 0, 0}));
  EXPECT_EQ(call_bool(COMPUTE_PLUGIN_INTRINSIC_EQ), (std::vector<uint8_t>{1, 0, 0, 1}));
  EXPECT_EQ(call_bool(COMPUTE_PLUGIN_INTRINSIC_NE), (std::vector<uint8_t>{0, 1, 1, 0}));
}

template <typename D, typename S>
D saturated(S x) {
  if constexpr (std::is_floating_point_v<S> && !std::is_floating_point_v<D>) {
    if (std::isnan(x)) return 0;
    const Real whole = std::trunc(Real(x));
    if (whole <= Real(std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
    if (whole >= Real(std::numeric_limits<D>::max())) return std::numeric_limits<D>::max();
    return static_cast<D>(whole);
  } else {
    return static_cast<D>(x);
  }
}

template <typename S>
void CpuIntrinsics::check_conversions() {
  std::vector<S> x;
  if constexpr (std::is_floating_point_v<S>)
    x = many_floats<S>(20000);
  else
    x = many_integers<S>();
  const auto to = [&]<typename D>(D) {
    const std::vector<D> got = convert<D>(kDtype<S>, kDtype<D>, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const D expected = saturated<D>(x[i]);
      ASSERT_TRUE(got[i] == expected || (got[i] != got[i] && expected != expected))
          << kDtype<S> << " to " << kDtype<D> << ": " << +x[i] << ", got " << +got[i];
    }
  };
  to(int8_t{});
  to(int16_t{});
  to(int32_t{});
  to(int64_t{});
  to(uint8_t{});
  to(uint16_t{});
  to(uint32_t{});
  to(uint64_t{});
  to(float{});
  to(double{});
  const std::vector<uint8_t> truth = convert<uint8_t>(kDtype<S>, COMPUTE_DTYPE_BOOL, x);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(truth[i], x[i] != 0);
  const auto pair = convert<std::complex<double>>(kDtype<S>, COMPUTE_DTYPE_COMPLEX128, x);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(pair[i].real() == static_cast<double>(x[i]) || x[i] != x[i]);
    ASSERT_EQ(pair[i].imag(), 0);
  }
}

TEST_P(CpuIntrinsics, Conversions) {
  check_conversions<int8_t>();
  check_conversions<int16_t>();
  check_conversions<int32_t>();
  check_conversions<int64_t>();
  check_conversions<uint8_t>();
  check_conversions<uint16_t>();
  check_conversions<uint32_t>();
  check_conversions<uint64_t>();
  check_conversions<float>();
  check_conversions<double>();
}

// A narrow float's value from its fields, and the nearest one to any number by search among all.
struct Narrow {
  int dtype, exponent_bits, fraction_bits;

  Real value(uint16_t bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1, exponent = (bits & 0x7fff) >> fraction_bits;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const Real sign = bits & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) return fraction ? std::copysign(Real(kNan), sign) : sign * Real(kInf);
    if (exponent == 0) return sign * std::ldexp(Real(fraction), 1 - bias - fraction_bits);
    return sign * std::ldexp(Real(fraction + (1 << fraction_bits)), exponent - bias - fraction_bits);
  }
  uint16_t nearest(Real x) const {
    if (std::isnan(x)) return 0x7fff;
    const int top = ((1 << exponent_bits) - 1) << fraction_bits;  // infinity, whose magnitude counts as the next number
    const Real magnitude = std::fabs(x);
    int low = 0, high = top;  // greatest number not above
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if ((middle == top ? std::ldexp(Real(1), 1 << (exponent_bits - 1)) : value(static_cast<uint16_t>(middle))) <=
          magnitude)
        low = middle;
      else
        high = middle - 1;
    }
    if (low < top) {
      const Real below = value(static_cast<uint16_t>(low));
      const Real above =
          low + 1 == top ? std::ldexp(Real(1), 1 << (exponent_bits - 1)) : value(static_cast<uint16_t>(low + 1));
      const Real middle = (below + above) / 2;
      if (magnitude > middle || (magnitude == middle && low % 2 == 1)) ++low;
    }
    return static_cast<uint16_t>(low | (std::signbit(x) ? 0x8000 : 0));
  }
};

TEST_P(CpuIntrinsics, NarrowFloats) {
  std::vector<uint16_t> all(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  for (const Narrow& narrow : {Narrow{COMPUTE_DTYPE_FLOAT16, 5, 10}, Narrow{COMPUTE_DTYPE_BFLOAT16, 8, 7}}) {
    const auto single = convert<float>(narrow.dtype, COMPUTE_DTYPE_FLOAT32, all);
    const auto wide = convert<double>(narrow.dtype, COMPUTE_DTYPE_FLOAT64, all);
    const auto integer = convert<int32_t>(narrow.dtype, COMPUTE_DTYPE_INT32, all);
    const auto truth = convert<uint8_t>(narrow.dtype, COMPUTE_DTYPE_BOOL, all);
    for (int i = 0; i < 65536; ++i) {
      const Real value = narrow.value(all[i]);
      ASSERT_EQ(ulps(single[i], value), 0) << i;
      ASSERT_EQ(ulps(wide[i], value), 0) << i;
      ASSERT_EQ(integer[i], saturated<int32_t>(static_cast<double>(value))) << i;
      ASSERT_EQ(truth[i], value != 0) << i;
    }
    const auto check = [&](int from, const auto& x) {
      const auto got = convert<uint16_t>(from, narrow.dtype, x);
      for (size_t i = 0; i < x.size(); ++i) {
        const Real value = static_cast<Real>(x[i]);
        if (std::isnan(value)) {
          ASSERT_TRUE(std::isnan(narrow.value(got[i])));
        } else {
          ASSERT_EQ(got[i], narrow.nearest(value))
              << from << " to " << narrow.dtype << ": " << static_cast<double>(value);
        }
      }
    };
    // every number, its neighbours' middles, and next to those
    std::vector<float> singles = many_floats<float>(50000);
    std::vector<double> doubles = many_floats<double>(50000);
    for (int i = 0; i < 0x7f80; ++i) {
      const double middle =
          static_cast<double>((narrow.value(all[i]) + narrow.value(static_cast<uint16_t>(i + 1))) / 2);
      for (const double x : {middle, std::nextafter(middle, kInf), std::nextafter(middle, 0.0)}) doubles.push_back(x);
      const float rounded = static_cast<float>(middle);
      for (const float x : {rounded, std::nextafter(rounded, 1e38f), std::nextafter(rounded, 0.0f)})
        singles.push_back(x);
    }
    check(COMPUTE_DTYPE_FLOAT32, singles);
    check(COMPUTE_DTYPE_FLOAT64, doubles);
    std::vector<int64_t> integers = many_integers<int64_t>();
    for (int shift = 0; shift < 62; ++shift) {
      for (const int64_t odd : {0x101, 0x1001, 0x103, 0x1003})
        for (const int64_t off : {-1, 0, 1}) integers.push_back((odd << shift) + off);
    }
    check(COMPUTE_DTYPE_INT64, integers);
    check(COMPUTE_DTYPE_UINT64, many_integers<uint64_t>());
    check(COMPUTE_DTYPE_INT32, many_integers<int32_t>());
    check(COMPUTE_DTYPE_UINT8, many_integers<uint8_t>());
  }
}

TEST_P(CpuIntrinsics, ComplexArithmetic) {
  const auto check = [&]<typename T>(T) {
    using C = std::complex<T>;
    std::vector<C> x, y;
    std::mt19937_64 random(11);
    const auto number = [&](int range) {
      const Real value =
          std::ldexp(Real(static_cast<int64_t>(random())), static_cast<int>(random() % range) - range / 2 - 63);
      return static_cast<T>(value);
    };
    const int limit = sizeof(T) == 4 ? 240 : 2000;
    for (int i = 0; i < 20001; ++i) {
      const int range = i % 2 ? 8 : limit / 4;
      x.emplace_back(number(range), number(range));
      y.emplace_back(number(i % 4 < 2 ? range : limit), number(range));
    }
    const auto judge = [&](const char* name, const std::vector<C>& got, double bound, auto reference) {
      for (size_t i = 0; i < x.size(); ++i) {
        const std::complex<Real> r = reference(std::complex<Real>(x[i]), std::complex<Real>(y[i]));
        const Real modulus = std::abs(r);
        if (modulus > std::numeric_limits<T>::max() / 2 || modulus < std::numeric_limits<T>::min() * 16) continue;
        const Real error = std::abs(std::complex<Real>(got[i]) - r);
        const Real unit = std::ldexp(Real(1), std::ilogb(modulus) + 1 - std::numeric_limits<T>::digits);
        ASSERT_TRUE(error <= bound * unit) << name << ": " << x[i] << ", " << y[i] << " gives " << got[i] << ", error "
                                           << static_cast<double>(error / unit);
      }
    };
    judge("add", call<C>(COMPUTE_PLUGIN_INTRINSIC_ADD, x, y), 2, [](auto a, auto b) { return a + b; });
    judge("sub", call<C>(COMPUTE_PLUGIN_INTRINSIC_SUB, x, y), 2, [](auto a, auto b) { return a - b; });
    judge("mul", call<C>(COMPUTE_PLUGIN_INTRINSIC_MUL, x, y), 4, [](auto a, auto b) { return a * b; });
    judge("div", call<C>(COMPUTE_PLUGIN_INTRINSIC_DIV, x, y), 8, [](auto a, auto b) { return a / b; });
    const auto modulus = call<T>(COMPUTE_PLUGIN_INTRINSIC_ABS, x), angle = call<T>(COMPUTE_PLUGIN_INTRINSIC_ARG, x);
    const auto re = call<T>(COMPUTE_PLUGIN_INTRINSIC_REAL, x), im = call<T>(COMPUTE_PLUGIN_INTRINSIC_IMAG, x);
    const auto conjugate = call<C>(COMPUTE_PLUGIN_INTRINSIC_CONJ, x);
    const auto equal = call<uint8_t>(COMPUTE_PLUGIN_INTRINSIC_EQ, x, x);
    std::vector<C> made(x.size());
    const void* parts[] = {re.data(), im.data()};
    const int64_t steps[] = {1, 1};
    table_->calls[COMPUTE_PLUGIN_INTRINSIC_COMPLEX][kDtype<T>](parts, steps, made.data(),
                                                               static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(ulps(modulus[i], std::hypot(Real(x[i].real()), Real(x[i].imag()))), 3);
      ASSERT_LE(ulps(angle[i], std::atan2(Real(x[i].imag()), Real(x[i].real()))), 4);
      ASSERT_EQ(C(re[i], im[i]), x[i]);
      ASSERT_EQ(made[i], x[i]);
      ASSERT_EQ(conjugate[i], std::conj(x[i]));
      ASSERT_EQ(equal[i], 1);
    }
    const auto unary = [&](const char* name, int id, double bound, auto reference) {
      for (C& z : x)
        z = {std::ldexp(z.real(), -std::ilogb(z.real())) / 4, std::ldexp(z.imag(), -std::ilogb(z.imag())) / 4};
      judge(name, call<C>(id, x), bound, [&](auto a, auto) { return reference(a); });
    };
    unary("sqrt", COMPUTE_PLUGIN_INTRINSIC_SQRT, 4, [](auto z) { return std::sqrt(z); });
    unary("exp", COMPUTE_PLUGIN_INTRINSIC_EXP, 4, [](auto z) { return std::exp(z); });
    unary("expm1", COMPUTE_PLUGIN_INTRINSIC_EXPM1, 8, [](auto z) { return std::exp(z) - Real(1); });
    unary("log", COMPUTE_PLUGIN_INTRINSIC_LOG, 4, [](auto z) { return std::log(z); });
    unary("log1p", COMPUTE_PLUGIN_INTRINSIC_LOG1P, 8, [](auto z) { return std::log(Real(1) + z); });
    unary("log2", COMPUTE_PLUGIN_INTRINSIC_LOG2, 4, [](auto z) { return std::log(z) / std::log(Real(2)); });
    unary("log10", COMPUTE_PLUGIN_INTRINSIC_LOG10, 4, [](auto z) { return std::log(z) / std::log(Real(10)); });
    unary("sin", COMPUTE_PLUGIN_INTRINSIC_SIN, 4, [](auto z) { return std::sin(z); });
    unary("cos", COMPUTE_PLUGIN_INTRINSIC_COS, 4, [](auto z) { return std::cos(z); });
    unary("tan", COMPUTE_PLUGIN_INTRINSIC_TAN, 8, [](auto z) { return std::tan(z); });
    unary("asin", COMPUTE_PLUGIN_INTRINSIC_ASIN, 8, [](auto z) { return std::asin(z); });
    unary("acos", COMPUTE_PLUGIN_INTRINSIC_ACOS, 8, [](auto z) { return std::acos(z); });
    unary("atan", COMPUTE_PLUGIN_INTRINSIC_ATAN, 8, [](auto z) { return std::atan(z); });
    unary("sinh", COMPUTE_PLUGIN_INTRINSIC_SINH, 8, [](auto z) { return std::sinh(z); });
    unary("cosh", COMPUTE_PLUGIN_INTRINSIC_COSH, 8, [](auto z) { return std::cosh(z); });
    unary("tanh", COMPUTE_PLUGIN_INTRINSIC_TANH, 8, [](auto z) { return std::tanh(z); });
    unary("asinh", COMPUTE_PLUGIN_INTRINSIC_ASINH, 8, [](auto z) { return std::asinh(z); });
    unary("acosh", COMPUTE_PLUGIN_INTRINSIC_ACOSH, 8, [](auto z) { return std::acosh(z); });
    unary("atanh", COMPUTE_PLUGIN_INTRINSIC_ATANH, 8, [](auto z) { return std::atanh(z); });
    unary("sign", COMPUTE_PLUGIN_INTRINSIC_SIGN, 4, [](auto z) { return z / std::abs(z); });
  };
  check(float{});
  check(double{});
}

// Parts at the ends of the range, where a quotient may be near 1 and its intermediate products are not, and annex G's
// special cases, which the C library's quotients follow.
TEST_P(CpuIntrinsics, ComplexQuotients) {
  const auto check = [&]<typename T>(T) {
    using C = std::complex<T>;
    using Limits = std::numeric_limits<T>;
    const T parts[] = {0,
                       -T(0),
                       1,
                       -3,
                       Limits::denorm_min(),
                       3 * Limits::min(),
                       Limits::max() / 3,
                       -Limits::max(),
                       T(1e-30),
                       T(1e33),
                       Limits::infinity(),
                       -Limits::infinity(),
                       Limits::quiet_NaN()};
    std::vector<C> x, y;
    for (T a : parts) {
      for (T b : parts) {
        for (T c : parts) {
          for (T d : parts) {
            x.emplace_back(a, b);
            y.emplace_back(c, d);
          }
        }
      }
    }
    const std::vector<C> got = call<C>(COMPUTE_PLUGIN_INTRINSIC_DIV, x, y);
    for (size_t i = 0; i < x.size(); ++i) {
      const auto r = std::complex<Real>(x[i]) / std::complex<Real>(y[i]);
      const Real modulus = std::abs(r), lost = std::abs(std::complex<Real>(got[i]) - r);
      if (std::isinf(r.real()) || std::isinf(r.imag())) {
        ASSERT_TRUE(std::isinf(got[i].real()) || std::isinf(got[i].imag())) << x[i] << " / " << y[i] << ": " << got[i];
      } else if (std::isnan(modulus)) {
        ASSERT_TRUE(std::isnan(std::abs(got[i]))) << x[i] << " / " << y[i] << ": " << got[i];
      } else if (modulus < Limits::max() / 2) {
        const int exponent =
            modulus == 0 ? Limits::min_exponent : std::max(std::ilogb(modulus) + 1, Limits::min_exponent);
        ASSERT_TRUE(lost <= 8 * std::ldexp(Real(1), exponent - Limits::digits))
            << x[i] << " / " << y[i] << ": " << got[i] << ", not " << C(r);
      }
    }
  };
  check(float{});
  check(double{});
}

// Quotients about 2^precision, of which the nearest number is often the integer above.
TEST_P(CpuIntrinsics, FloorOfLargeQuotients) {
  const auto check = [&]<typename T>(T) {
    constexpr int kDigits = std::numeric_limits<T>::digits;
    std::vector<T> x, y;
    std::mt19937_64 random(12);
    for (int i = 0; i < 20001; ++i) {
      y.push_back(static_cast<T>(random() >> (64 - kDigits) | 1) * (i % 2 ? T(1) : T(-0x1p-30)));
      const Real whole = static_cast<Real>(random() >> (64 - kDigits + i % 3)) + 1;
      x.push_back(static_cast<T>(whole * Real(y.back())));
      if (i % 5) x.back() = std::nextafter(x.back(), T(0));
    }
    const std::vector<T> got = call<T>(COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV, x, y);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], floor_divide(x[i], y[i])) << x[i] << " // " << y[i];
  };
  check(float{});
  check(double{});
}

TEST_P(CpuIntrinsics, ScalarsTailsAndInPlace) {
  std::mt19937 random(5);
  std::vector<float> x(300), y(300);
  for (float& v : x) v = static_cast<float>(random() % 1000);
  for (float& v : y) v = static_cast<float>(random() % 1000);
  alignas(64) float splat[kSplatBytes / 4];
  for (float& v : splat) v = 42;
  for (int64_t n = 0; n < 150; ++n) {
    for (int form = 0; form < 4; ++form) {  // operands: vectors, one scalar, in place
      std::vector<float> a(x.begin(), x.begin() + n), out(n + 1, -1);
      const void* operands[] = {form == 1 ? splat : a.data(), form == 2 ? splat : y.data()};
      const int64_t steps[] = {form != 1, form != 2};
      float* to = form == 3 ? a.data() : out.data();
      table_->calls[COMPUTE_PLUGIN_INTRINSIC_SUB][COMPUTE_DTYPE_FLOAT32](operands, steps, to, n);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(to[i], (form == 1 ? 42 : x[i]) - (form == 2 ? 42 : y[i]));
      EXPECT_EQ(out[n], -1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, CpuIntrinsics, testing::Values("baseline", "avx2", "avx512"),
                         [](const auto& param) { return std::string(param.param); });

TEST(IsaChoice, Names) {
  EXPECT_NE(select_isa(nullptr), nullptr);
  EXPECT_STREQ(select_isa("baseline")->name, "baseline");
  EXPECT_EQ(select_isa("sse2"), select_isa("baseline"));
  EXPECT_EQ(select_isa("AVX2"), nullptr);
  EXPECT_EQ(select_isa(""), nullptr);
}

TEST(BlockKernels, HasEveryFunction) {
  const BlockKernels& table = *select_isa(nullptr)->blocks;
  enum : unsigned {
    kBool = 1,
    kInteger = 2,
    kFloat = 4,
    kComplex = 8,
    kReal = kInteger | kFloat,
    kNumeric = kReal | kComplex,
    kBits = kBool | kInteger,
    kInexact = kFloat | kComplex,
    kAny = kBool | kNumeric
  };
  constexpr unsigned ANY = kAny, BOOL = kBool, INTEGER = kInteger, BITS = kBits, REAL = kReal, FLOAT = kFloat,
                     COMPLEX = kComplex, INEXACT = kInexact, NUMERIC = kNumeric;
  (void)BOOL;
  const auto check = [&](int id, const char* name, unsigned operands) {
    if (id == COMPUTE_PLUGIN_INTRINSIC_CONVERT || id == COMPUTE_PLUGIN_INTRINSIC_BITCAST) return;
    for (int dtype = 1; dtype < kDtypeLimit; ++dtype) {
      if (dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16) continue;
      const unsigned category = dtype == COMPUTE_DTYPE_BOOL       ? kBool
                                : dtype < COMPUTE_DTYPE_FLOAT16   ? kInteger
                                : dtype < COMPUTE_DTYPE_COMPLEX64 ? kFloat
                                                                  : kComplex;
      EXPECT_EQ(table.calls[id][dtype] != nullptr, (operands & category) != 0) << name << " dtype " << dtype;
    }
  };
#define COMPUTE_INTRINSIC(id, name, arity, operands, ...) check(id, #name, operands);
#include "compute/intrinsics.def"
#undef COMPUTE_INTRINSIC
  for (int from = 1; from < kDtypeLimit; ++from) {
    for (int to = 1; to < kDtypeLimit; ++to) {
      const bool refused = from >= COMPUTE_DTYPE_COMPLEX64 && to < COMPUTE_DTYPE_COMPLEX64 && to != COMPUTE_DTYPE_BOOL;
      EXPECT_EQ(table.converts[from][to] == nullptr, refused) << from << " to " << to;
    }
  }
}

// The column `commutes` of intrinsics.def.
TEST(BlockKernels, CommuteWhereTheirRowsSay) {
  const BlockKernels& table = *select_isa(nullptr)->blocks;
  const float numbers[] = {-7, -2.5f, -1, -0.25f, 0.5f, 1, 2, 3, 5.5f};
  const int32_t integers[] = {-70000, -7, -2, -1, 1, 2, 3, 31, 1 << 20};
  static_assert(std::size(numbers) == std::size(integers));
  int looked_at = 0;
  const auto check = [&](int id, const char* name, bool commutes) {
    const bool floats = table.calls[id][kDtype_float32] != nullptr;
    const BlockFunction function = table.calls[id][floats ? kDtype_float32 : kDtype_int32];
    ASSERT_NE(function, nullptr) << name;
    bool same = true;
    for (size_t i = 0; i < std::size(numbers); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const void* x = floats ? static_cast<const void*>(numbers + i) : integers + i;
        const void* y = floats ? static_cast<const void*>(numbers + j) : integers + j;
        const void* there[] = {x, y};
        const void* back[] = {y, x};
        const int64_t steps[] = {1, 1};
        char results[2][8] = {};
        function(there, steps, results[0], 1);
        function(back, steps, results[1], 1);
        same = same && std::memcmp(results[0], results[1], sizeof results[0]) == 0;
      }
    }
    EXPECT_EQ(same, commutes) << name;
    ++looked_at;
  };
  constexpr bool YES = true, NO = false;
#define COMPUTE_INTRINSIC(id, name, arity, operands, result, ulp, commutes, ...) \
  if (arity == 2) check(id, #name, commutes);
#include "compute/intrinsics.def"
#undef COMPUTE_INTRINSIC
  EXPECT_GE(looked_at, 20);
}

}  // namespace
}  // namespace compute::cpu
