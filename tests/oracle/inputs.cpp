// SPDX-License-Identifier: Apache-2.0
#include "inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace compute::oracle {

namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
constexpr Real kPi = std::numbers::pi_v<Real>;
constexpr Real kLn2 = std::numbers::ln2_v<Real>;

Real after(Format f, Real x, int ulps) { return x + static_cast<Real>(ulps) * ulp(f, x); }

// Where an op is used, and where it changes its behaviour. Limits of exponentials are in units of the exponent's range:
// the generator multiplies them by ln 2 and the dtype's least or greatest exponent.
struct Range {
  std::string_view op;
  Real low[2], high[2];  // of the first and of the other operands
  enum Kind { PLAIN, EXPONENT_E } kind = PLAIN;
};

constexpr Range kRanges[] = {
    {"acos", {-1, 0}, {1, 0}},
    {"acosh", {1, 0}, {40, 0}},
    {"asin", {-1, 0}, {1, 0}},
    {"asinh", {-20, 0}, {20, 0}},
    {"atan", {-10, 0}, {10, 0}},
    {"atan2", {-3, -3}, {3, 3}},
    {"atanh", {-1, 0}, {1, 0}},
    {"cbrt", {-100, 0}, {100, 0}},
    {"clip", {-4, -2}, {4, 3}},
    {"cos", {-20, 0}, {20, 0}},
    {"cosh", {-1, 0}, {1, 0}, Range::EXPONENT_E},
    {"betainc", {0, 0}, {40, 40}},
    {"digamma", {-12, 0}, {24, 0}},
    {"erf", {-6, 0}, {6, 0}},
    {"erfc", {-6, 0}, {12, 0}},
    {"erfcinv", {0, 0}, {2, 0}},
    {"erfinv", {-1, 0}, {1, 0}},
    {"exp", {-1, 0}, {1, 0}, Range::EXPONENT_E},
    {"expm1", {-1, 0}, {1, 0}, Range::EXPONENT_E},
    {"fmod", {-1000, -20}, {1000, 20}},
    {"floor_divide", {-1000, -20}, {1000, 20}},
    {"gammainc", {0, 0}, {40, 60}},
    {"gammaincc", {0, 0}, {40, 60}},
    {"gelu", {-14, 0}, {14, 0}},
    {"gelu_tanh", {-11, 0}, {11, 0}},
    {"hypot", {-10, -10}, {10, 10}},
    {"i0", {-80, 0}, {80, 0}},
    {"i0e", {-40, 0}, {40, 0}},
    {"i1", {-80, 0}, {80, 0}},
    {"i1e", {-40, 0}, {40, 0}},
    {"j0", {-40, 0}, {40, 0}},
    {"j1", {-40, 0}, {40, 0}},
    {"lgamma", {-12, 0}, {24, 0}},
    {"log", {0, 0}, {10, 0}},
    {"log10", {0, 0}, {1000, 0}},
    {"log1p", {-1, 0}, {4, 0}},
    {"log2", {0, 0}, {40, 0}},
    {"log_sigmoid", {-1, 0}, {1, 0}, Range::EXPONENT_E},
    {"logaddexp", {-20, -20}, {20, 20}},
    {"logit", {0, 0}, {1, 0}},
    {"mish", {-1, 0}, {1, 0}, Range::EXPONENT_E},
    {"polygamma", {0, 0}, {20, 30}},
    {"pow", {0, -12}, {6, 12}},
    {"remainder", {-1000, -20}, {1000, 20}},
    {"rsqrt", {0, 0}, {100, 0}},
    {"sigmoid", {-1, 0}, {1, 0}, Range::EXPONENT_E},
    {"silu", {-1, 0}, {1, 0}, Range::EXPONENT_E},
    {"sinc", {-20, 0}, {20, 0}},
    {"sin", {-20, 0}, {20, 0}},
    {"sinh", {-1, 0}, {1, 0}, Range::EXPONENT_E},
    {"softplus", {-1, 0}, {1, 0}, Range::EXPONENT_E},
    {"sqrt", {0, 0}, {100, 0}},
    {"tan", {-20, 0}, {20, 0}},
    {"tanh", {-12, 0}, {12, 0}},
    {"xlogy", {-5, 0}, {5, 10}},
    {"y0", {0, 0}, {40, 0}},
    {"y1", {0, 0}, {40, 0}},
};

Range range_of(std::string_view op) {
  for (const Range& range : kRanges) {
    if (range.op == op) return range;
  }
  return {op, {-8, -8}, {8, 8}};
}

// Arguments at which a function's result overflows, vanishes, or leaves its domain, and their neighbours.
std::vector<Real> edges_of(std::string_view op, Format f) {
  std::vector<Real> centres;
  const Range range = range_of(op);
  if (range.kind == Range::EXPONENT_E) {
    centres = {kLn2 * (f.emax + 1), kLn2 * f.emin, kLn2 * (f.emin - f.precision), -kLn2 * (f.emax + 1), kLn2 / 2,
               -kLn2 / 2,           kLn2};
  } else if (op == "sin" || op == "cos" || op == "tan") {
    centres = {kPi / 4,   kPi / 2, kPi,           3 * kPi / 2, 2 * kPi, 11 * kPi, 100 * kPi,
               710 * kPi, 1e5L,    105414357.85L, 0x1p40L,     1e22L,   0x1p120L};
  } else if (op == "pow") {
    centres = {2, 3, -3, 1.0L / 3, 127, 128, -126, -149, 63, 1023, 1024, -1074};
  } else if (op == "tanh" || op == "erf") {
    centres = {4, 6, 9, 20, 0.625L, 0.84375L, 1.25L, 2.857L};
  } else if (op == "digamma" || op == "lgamma") {
    centres = {1,  2,     3,  8,     1.4616321449683623413L, -0.5040830082644554092L, -1.5734984731623904588L,
               -2, -7.5L, -8, -1e-3L};
  } else if (op == "erfinv") {
    centres = {0.9888910034617577L, 0.99999958423581L, 0.5L, 0.9999L};
  } else if (op == "erfcinv") {
    centres = {0.5L, 1, 1.5L, 2, 1e-5L};
  } else if (op == "gammainc" || op == "gammaincc" || op == "betainc") {
    centres = {0.75L, 3, 10, 20, 200};
  } else if (op == "i0" || op == "i0e" || op == "i1" || op == "i1e") {
    centres = {8, kLn2 * (f.emax + 1), kLn2 * (f.emax + 4), -8};
  } else if (op == "j0" || op == "j1" || op == "y0" || op == "y1") {
    centres = {
        5,    2.4048255576957727686L, 3.8317059702075123156L, 0.89357696627916752158L, 2.1971413260310170351L, 1000,
        1e15L};
  } else if (op == "polygamma") {
    centres = {4, 10, 20, 21, 40};
  } else if (op == "acosh" || op == "asinh") {
    centres = {1, 2, 0x1p28L, 0x1p14L};
  } else if (op.starts_with("log")) {
    centres = {1, 0.7071L, 1.4142L, -0.5L, 10, 100, 1000, 1024};
  } else if (op == "round" || op == "floor" || op == "ceil" || op == "trunc") {
    const Real large = std::ldexp(1.0L, f.precision - 1);
    centres = {large, large / 2, 1.5L, 2.5L, 3.5L, 0.5L, large - 0.5L, large / 2 + 0.5L};
  }
  std::vector<Real> edges;
  for (Real centre : centres) {
    for (int step : {-1, 0, 1}) edges.push_back(after(f, centre, step));
  }
  return edges;
}

std::vector<Real> real_specials(Format f) {
  const Real tiny = smallest_subnormal(f), normal = smallest_normal(f), huge = largest(f);
  const Real epsilon = std::ldexp(1.0L, 1 - f.precision);
  const Real integral = std::ldexp(1.0L, f.precision);
  return {0.0L,
          -0.0L,
          kInfinity,
          -kInfinity,
          kNan,
          -kNan,
          tiny,
          -tiny,
          normal - tiny,
          -(normal - tiny),
          normal,
          -normal,
          huge,
          -huge,
          1,
          -1,
          1 + epsilon,
          1 - epsilon / 2,
          -1 - epsilon,
          0.5L,
          -0.5L,
          1.5L,
          -1.5L,
          2.5L,
          -2.5L,
          2,
          -2,
          3,
          -3,
          integral,
          integral - 1,
          -integral,
          integral / 2 - 0.5L,  // no integer, unlike all that are larger
          -(integral / 2 - 0.5L),
          std::sqrt(huge),
          std::sqrt(normal)};
}

std::vector<Value> specials_of(std::string_view op, Dtype dtype) {
  std::vector<Value> values = special_values(dtype);
  if (is_float(dtype)) {
    const Format f = format(dtype);
    for (Real edge : edges_of(op, f)) {
      if (std::fabs(edge) <= largest(f)) values.push_back(Value::of(round_to(f, edge)));
    }
  }
  return values;
}

Value random_integer(Random& random, std::string_view op, int index, Dtype dtype) {
  const bool small_second = index > 0 && (op.find("shift") != std::string_view::npos || op == "pow");
  const bool small = small_second || random.below(2) == 0;
  if (!small) return Value::of(wrap(dtype, static_cast<Bits>(random.bits())));
  const int64_t limit = op == "pow" && index > 0                     ? 24
                        : op.find("shift") != std::string_view::npos ? width(dtype) + 3
                                                                     : 12;
  const auto x = static_cast<Integer>(random.below(static_cast<uint64_t>(2 * limit))) - limit;
  return Value::of(wrap(dtype, static_cast<Bits>(category(dtype) == Category::UNSIGNED && x < 0 ? -x : x)));
}

Real random_binade(Random& random, Format f) {
  const int exponents = f.emax - f.emin + f.precision;
  const int exponent = f.emin - f.precision + 1 + static_cast<int>(random.below(static_cast<uint64_t>(exponents)));
  const Real x = std::ldexp(1 + random.unit(), exponent);
  return round_to(f, random.below(2) ? std::min(x, largest(f)) : -std::min(x, largest(f)));
}

// Complex exponentials stay clear of the zone where e^x overflows and e^x cos(y) does not, and bases and exponents of
// pow stay where their product is small.
Real random_real(Random& random, std::string_view op, int index, Dtype dtype) {
  const Format f = format(dtype);
  const bool complex = is_complex(dtype);
  if (random.below(2) == 0 && !(complex && op == "pow")) return random_binade(random, f);
  const Range range = range_of(op);
  Real low = range.low[index > 0], high = range.high[index > 0];
  if (op == "betainc" && index == 2) high = 1;
  if (range.kind == Range::EXPONENT_E) {
    low *= -kLn2 * (f.emin - f.precision - 2);
    high *= kLn2 * (f.emax + 1);
    if (complex || random.below(2)) {
      low = -5;
      high = 5;
    }
  }
  if (complex && op == "pow") {
    low = -3;
    high = 3;
  }
  const Real x = random.uniform(low, high);
  return round_to(f, op == "polygamma" && index == 0 ? std::nearbyint(x) : x);
}

}  // namespace

uint64_t Random::bits() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::vector<Value> special_values(Dtype dtype) {
  std::vector<Value> values;
  if (is_bool(dtype)) return {Value::of(false), Value::of(true)};
  if (is_integer(dtype)) {
    const Integer low = integer_min(dtype), high = integer_max(dtype);
    for (Integer x : {low, low + 1, high, high - 1, high / 2, Integer{0}, Integer{1}, Integer{2}, Integer{3},
                      Integer{7}, Integer{8}, Integer{100}}) {
      values.push_back(Value::of(x));
    }
    if (low < 0) {
      for (Integer x : {-1, -2, -3, -7, -8, -100}) values.push_back(Value::of(x));
    }
    return values;
  }
  const Format f = format(dtype);
  if (is_float(dtype)) {
    for (Real x : real_specials(f)) values.push_back(Value::of(x));
    return values;
  }
  const Real parts[] = {
      0.0L, -0.0L, 1, -1, 0.5L, -2, kInfinity, -kInfinity, kNan, smallest_subnormal(f), smallest_normal(f), largest(f)};
  for (Real re : parts) {
    for (Real im : parts) values.push_back(Value::of(Complex(re, im)));
  }
  return values;
}

Value Inputs::random_value(std::string_view op, int index, Dtype dtype) {
  if (is_bool(dtype)) return Value::of(random_.below(2) == 0);
  if (is_integer(dtype)) return random_integer(random_, op, index, dtype);
  const Real re = random_real(random_, op, index, dtype);
  if (!is_complex(dtype)) return Value::of(re);
  // Mostly parts of like size, else one of them hides the other.
  if (random_.below(4) == 0) return Value::of(Complex(re, random_real(random_, op, index, dtype)));
  const Real im = re * random_.uniform(-2, 2);
  return Value::of(Complex(re, std::isfinite(round_to(format(dtype), im)) ? im : re));
}

int64_t Inputs::combinations(std::string_view op, int arity, Dtype dtype) {
  const auto count = static_cast<int64_t>(specials_of(op, dtype).size());
  int64_t all = 1;
  for (int i = 0; i < arity; ++i) all *= count;
  return all;
}

Array Inputs::operand(std::string_view op, int index, int arity, Dtype dtype, const Shape& shape) {
  Array x(dtype, shape);
  const std::vector<Value> specials = specials_of(op, dtype);
  const auto count = static_cast<int64_t>(specials.size());
  const int64_t all = combinations(op, arity, dtype);
  int64_t period = 1;
  for (int i = 0; i < index; ++i) period *= count;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (all <= x.size() && i < all) {
      x.set(i, specials[static_cast<size_t>(i / period % count)]);
    } else if (random_.below(3) == 0) {
      x.set(i, specials[random_.below(static_cast<uint64_t>(count))]);
    } else {
      x.set(i, random_value(op, index, dtype));
    }
  }
  return x;
}

Array Inputs::uniform(Dtype dtype, const Shape& shape, Real low, Real high) {
  Array x(dtype, shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (is_inexact(dtype)) {
      const Real re = random_.uniform(low, high);
      x.set(i, Value::of(Complex(re, is_complex(dtype) ? random_.uniform(low, high) : 0)));
    } else {
      const Real least = std::max(low, static_cast<Real>(integer_min(dtype)));
      const Real most = std::min(high, static_cast<Real>(integer_max(dtype)));
      x.set(i, Value::of(static_cast<Integer>(std::floor(random_.uniform(least, most + 1)))));
    }
  }
  return x;
}

Array Inputs::with_specials(Dtype dtype, const Shape& shape, Real low, Real high) {
  Array x = uniform(dtype, shape, low, high);
  const std::vector<Value> specials = special_values(dtype);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (random_.below(5) == 0) x.set(i, specials[random_.below(specials.size())]);
  }
  return x;
}

Array Inputs::indices(Dtype dtype, const Shape& shape, int64_t extent, bool negative) {
  Array x(dtype, shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto index = static_cast<Integer>(random_.below(static_cast<uint64_t>(extent)));
    x.set(i, Value::of(negative && random_.below(2) ? index - extent : index));
  }
  return x;
}

Array Inputs::exhaustive(Dtype dtype) {
  const int64_t count = int64_t{1} << (8 * info(dtype).size_bytes);
  Array x(dtype, {count});
  for (int64_t i = 0; i < count; ++i) {
    const auto low = static_cast<std::byte>(i & 0xff), high = static_cast<std::byte>(i >> 8);
    x.element(i)[0] = low;
    if (info(dtype).size_bytes == 2) x.element(i)[1] = high;
    // Other patterns of NaN are as good, and signalling ones would only test how they are loaded.
    if (is_float(dtype) && std::isnan(x.at(i).re)) x.set(i, Value::of(std::copysign(kNan, x.at(i).re)));
  }
  return x;
}

}  // namespace compute::oracle
