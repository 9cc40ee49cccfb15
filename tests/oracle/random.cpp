// SPDX-License-Identifier: Apache-2.0
// References of random numbers: Philox 4x32-10, and the distributions in long double.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "normal.hpp"
#include "tracked.hpp"

namespace compute::oracle {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

Real log_tail(Real z) {
  if (z < 100) return std::log(std::erfc(z / std::sqrt(2.0L)) / 2);
  const Real y = 1 / (z * z);
  return -z * z / 2 - std::log(z * 2.50662827463100050241576528481104525L) + std::log1p(-y * (1 - y * (3 - 15 * y)));
}

namespace {

int64_t integer(const Attributes& attributes, const char* name, int64_t fallback) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return fallback;
  return found->second.integers.empty() ? static_cast<int64_t>(found->second.numbers.at(0).real())
                                        : found->second.integers.at(0);
}

Real real(const Attributes& attributes, const char* name, Real fallback) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return fallback;
  return found->second.numbers.empty() ? static_cast<Real>(found->second.integers.at(0))
                                       : static_cast<Real>(found->second.numbers.at(0).real());
}

// Word w of a call.
class Words {
 public:
  explicit Words(const Attributes& attributes)
      : seed_(static_cast<uint64_t>(integer(attributes, "seed", 0))),
        offset_(static_cast<uint64_t>(integer(attributes, "offset", 0))) {}
  uint32_t operator()(int64_t word) {
    const uint64_t block = offset_ + static_cast<uint64_t>(word / 4);
    if (!has_block_ || block != block_) {
      words_ = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
                      {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
      block_ = block;
      has_block_ = true;
    }
    return words_[static_cast<size_t>(word % 4)];
  }
  uint64_t pair(int64_t element) {
    const uint64_t low = (*this)(2 * element);
    return low | static_cast<uint64_t>((*this)(2 * element + 1)) << 32;
  }

 private:
  uint64_t seed_, offset_, block_ = 0;
  bool has_block_ = false;
  std::array<uint32_t, 4> words_{};
};

// k * 2^-24, of float64 k * 2^-53, in [0, 1) for element p.
Real fraction(Words& words, Dtype dtype, int64_t p) {
  if (dtype != dtype::FLOAT64) return std::ldexp(static_cast<Real>(words(p) >> 8), -24);
  const uint64_t high = words(2 * p), low = words(2 * p + 1);
  return std::ldexp(static_cast<Real>(high << 21 | low >> 11), -53);
}

// (k + 1/2) * 2^-bits in (0, 1).
Real open_fraction(Words& words, bool is_double, int64_t p) {
  if (!is_double) return std::ldexp(static_cast<Real>(words(p) >> 9) + 0.5L, -23);
  const uint64_t high = words(2 * p), low = words(2 * p + 1);
  return std::ldexp(static_cast<Real>(high << 20 | low >> 12) + 0.5L, -52);
}

// The z >= 0 whose tail has the logarithm of a probability, in [low, high], by bisection.
Real at_log_tail(Real log_probability, Real low, Real high) {
  for (int i = 0; i < 200 && low < high; ++i) {
    const Real middle = low + (high - low) / 2;
    (log_tail(middle) > log_probability ? low : high) = middle;
  }
  return low;
}

// The number between the limits below which the fraction v of the probability lies.
Real truncated_deviate(Real v, Real lower, Real upper) {
  if (upper < 0) return -truncated_deviate(1 - v, -upper, -lower);
  if (lower > 1) {  // relative to the tail from `lower` on
    const Real ratio = std::isinf(upper) ? 0 : std::exp(log_tail(upper) - log_tail(lower));
    return at_log_tail(log_tail(lower) + std::log1p(-v * (1 - ratio)), lower, std::min(upper, lower + 200));
  }
  const Real root = std::sqrt(2.0L), below = std::erfc(-lower / root) / 2, above = std::erfc(upper / root) / 2;
  const Real inside = 1 - std::erfc(-lower / root) / 2 - above;
  const Real left = below + v * inside, right = above + (1 - v) * inside;
  const Real z = at_log_tail(std::log(std::min(left, right)), 0, 200);
  return std::min(std::max(left < right ? -z : z, lower), upper);
}

Result empty_result(const Attributes& attributes) {
  Result result;
  result.dtype = static_cast<Dtype>(integer_or(attributes, "dtype", dtype::FLOAT32));
  result.shape = attributes.find("shape")->second.integers;
  result.accumulator = computed_in(result.dtype);
  return result;
}

int64_t count_of(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

}  // namespace

Result reference_random_bits(std::span<const Array>, const Attributes& attributes) {
  Result result = empty_result(attributes);
  Words words(attributes);
  for (int64_t p = 0; p < count_of(result.shape); ++p) {
    const uint64_t bits = result.dtype == dtype::UINT32 ? words(p) : words.pair(p);
    result.elements.push_back({Value::of(Integer{bits})});
  }
  return result;
}

Result reference_random_permutation(std::span<const Array>, const Attributes& attributes) {
  Words words(attributes);
  const int64_t size = integer(attributes, "size", 0);
  std::vector<std::pair<uint64_t, int64_t>> keys;
  for (int64_t p = 0; p < size; ++p) keys.emplace_back(words.pair(p), p);
  std::sort(keys.begin(), keys.end());
  Result result;
  result.dtype = static_cast<Dtype>(integer(attributes, "dtype", 0));
  result.shape = {size};
  for (const auto& [key, position] : keys) result.elements.push_back({Value::of(Integer{position})});
  return result;
}

Result reference_random_integers(std::span<const Array>, const Attributes& attributes) {
  Result result = empty_result(attributes);
  Words words(attributes);
  const int64_t minimum = integer(attributes, "minimum", 0), maximum = integer(attributes, "maximum", 0);
  const uint64_t range = static_cast<uint64_t>(maximum) - static_cast<uint64_t>(minimum);
  for (int64_t p = 0; p < count_of(result.shape); ++p) {
    const auto high = static_cast<uint64_t>((Bits{words.pair(p)} * range) >> 64);
    const uint64_t value = static_cast<uint64_t>(minimum) + high;
    result.elements.push_back({Value::of(wrap(result.dtype, Bits{value}))});
  }
  return result;
}

// Halves are rounded down. Where the exact number is next to one of them, it may be either.
Result reference_random_uniform(std::span<const Array>, const Attributes& attributes) {
  Result result = empty_result(attributes);
  Words words(attributes);
  const Format f = format(result.dtype), computed = format(computed_in(result.dtype));
  const Real minimum = round_to(f, real(attributes, "minimum", 0)),
             maximum = round_to(f, real(attributes, "maximum", 1));
  const Real scale = std::max(std::fabs(minimum), std::fabs(maximum)), error = 2 * ulp(computed, scale);
  for (int64_t p = 0; p < count_of(result.shape); ++p) {
    Element& e = result.elements.emplace_back();
    Real exact = minimum + fraction(words, result.dtype, p) * (maximum - minimum);
    if (is_half(result.dtype)) {
      const auto down = [&](Real x) {
        const Real nearest = round_to(f, x);
        return nearest > x ? nearest - ulp(f, x) : nearest;
      };
      if (minimum != 0 || maximum != 1)
        e.slack = std::max(down(exact + error) - down(exact), down(exact) - down(exact - error));
      exact = down(exact);
    }
    e.value = Value::of(exact);
    e.scale = minimum == 0 && maximum == 1 ? 0 : scale;
  }
  return result;
}

Result reference_random_normal(std::span<const Array>, const Attributes& attributes) {
  Result result = empty_result(attributes);
  Words words(attributes);
  const Real mean = real(attributes, "mean", 0), deviation = real(attributes, "deviation", 1);
  const bool is_double = result.dtype == dtype::FLOAT64;
  const Dtype drawn = is_double ? Dtype{dtype::FLOAT64} : Dtype{dtype::FLOAT32};
  for (int64_t p = 0; p < count_of(result.shape); ++p) {
    const int64_t first = p / 2 * 2;
    const Real u = fraction(words, drawn, first) + std::ldexp(1.0L, is_double ? -53 : -24);
    const Real turn = 4 * fraction(words, drawn, first + 1), whole = std::nearbyint(turn);
    const Real angle = (turn - whole) * 1.57079632679489661923132169163975144L;
    const Real c = std::cos(angle), s = std::sin(angle);
    const Real cosines[] = {c, -s, -c, s}, sines[] = {s, c, -s, -c};
    const auto quarter = static_cast<size_t>(static_cast<int>(whole) & 3);
    const Real z = std::sqrt(-2 * std::log(u)) * (p % 2 == 0 ? cosines[quarter] : sines[quarter]);
    Element& e = result.elements.emplace_back();
    e.value = Value::of(mean + deviation * z);
    if (mean != 0) e.scale = std::fabs(mean) + std::fabs(deviation * z);
    e.open = kSigns;
  }
  return result;
}

Result reference_random_truncated_normal(std::span<const Array>, const Attributes& attributes) {
  Result result = empty_result(attributes);
  Words words(attributes);
  const Real mean = real(attributes, "mean", 0), deviation = real(attributes, "deviation", 1);
  const Real lower = real(attributes, "lower", -2), upper = real(attributes, "upper", 2);
  const bool is_double = result.dtype == dtype::FLOAT64;
  const auto deviate = [&](Real v) { return truncated_deviate(std::min(std::max(v, 0.0L), 1.0L), lower, upper); };
  // The probabilities err by a few units, relative to 1 near the mean and to themselves in a tail. Divided by the
  // density, that is the error of the number.
  const Real unit = std::ldexp(1.0L, is_double ? -53 : -24), density = 0.39894228040143267793994605993438187L;
  const auto error = [&](Real z) {
    const Real square = z * z / 2;
    return std::fabs(z) < 2.1L ? 5 * unit * std::exp(square) / density
                               : 40 * unit * std::exp(log_tail(std::fabs(z)) + square) / density;
  };
  for (int64_t p = 0; p < count_of(result.shape); ++p) {
    const Real v = open_fraction(words, is_double, p), z = deviate(v);
    Element& e = result.elements.emplace_back();
    e.value = Value::of(mean + deviation * z);
    e.scale = std::fabs(mean) + std::fabs(deviation * z);
    e.slack = std::fabs(deviation) * error(z);
    e.open = kSigns;
  }
  return result;
}

// Decisions between numbers that rounding can change are left open.
Result reference_random_categorical(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  Words words(attributes);
  const int64_t samples = integer(attributes, "samples", 0), classes = x.shape().back();
  Result result;
  result.dtype = dtype::INT64;
  result.shape.assign(x.shape().begin(), x.shape().end() - 1);
  if (samples > 0) result.shape.push_back(samples);
  for (int64_t p = 0; p < count_of(result.shape); ++p) {
    const int64_t row = samples > 0 ? p / samples : p;
    int64_t best = 0;
    Real first = 0, second = 0;
    for (int64_t k = 0; k < classes; ++k) {
      const Real u = open_fraction(words, false, p * classes + k);
      const Real value = x.at(row * classes + k).re - std::log(-std::log(u));
      if (k == 0 || value > first || (std::isnan(value) && !std::isnan(first))) {
        second = k == 0 ? value : first;
        if (k == 0) second = -std::numeric_limits<Real>::infinity();
        first = value;
        best = k;
      } else {
        second = std::max(second, value);
      }
    }
    Element& e = result.elements.emplace_back();
    e.value = Value::of(Integer{best});
    if (first - second < 1e-5L * (1 + std::fabs(first))) e.open = kAny;
  }
  return result;
}

namespace {

struct Attempt {
  Real value = 0, error = 0;
  bool accepted = false, close = false;
};

// Attempt `number` for the element whose blocks begin at word `first`.
Attempt attempt_gamma(Words& words, bool is_double, Real alpha, int64_t first) {
  const Real unit = std::ldexp(1.0L, is_double ? -53 : -24);
  const auto word = [&](int64_t i) { return static_cast<Real>(words(first + i)); };
  const Real radius =
      fraction(words, is_double ? Dtype{dtype::FLOAT64} : Dtype{dtype::FLOAT32}, is_double ? first / 2 : first) + unit;
  const Real turn = is_double ? std::ldexp(word(2), -32) : fraction(words, dtype::FLOAT32, first + 1);
  const Real chance = is_double ? std::ldexp(word(3) + 0.5L, -32) : open_fraction(words, false, first + 2);
  const Real normal = std::sqrt(-2 * std::log(radius)) * std::cos(6.28318530717958647692528676655900577L * turn);
  const Real depth = (alpha < 1 ? alpha + 1 : alpha) - 1 / 3.0L, slope = 1 / std::sqrt(9 * depth);
  const Real base = 1 + slope * normal, cube = base > 0 ? base * base * base : 1;
  const Real limit = normal * normal / 2 + depth * (1 - cube + std::log(cube));
  const Real margin = limit - std::log(chance), error = 64 * unit * (1 + std::fabs(slope * normal));
  Attempt result;
  result.value = depth * cube;
  result.error = depth * 3 * base * base * error;
  result.accepted = base > 0 && margin > 0;
  // The gradient of `limit` by cube is depth (1 / cube - 1).
  const Real spread =
      depth * (1 + std::fabs(1 / cube - 1) * 3 * base * base) * error + 64 * unit * (2 + normal * normal);
  result.close =
      std::fabs(base) < error || (base > 0 && std::fabs(margin) < spread + 64 * unit * std::fabs(margin - limit));
  return result;
}

}  // namespace

Result reference_random_gamma(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  Words words(attributes);
  const bool is_double = x.dtype() == dtype::FLOAT64;
  const Real unit = std::ldexp(1.0L, is_double ? -53 : -24);
  Result result;
  result.dtype = x.dtype();
  result.shape = x.shape();
  for (int64_t p = 0; p < x.size(); ++p) {
    const Real alpha = x.at(p).re;
    Element& e = result.elements.emplace_back();
    e.open = kSigns | kFlushed;
    if (std::isnan(alpha) || alpha < 0) {
      e.value = Value::of(std::numeric_limits<Real>::quiet_NaN());
      continue;
    }
    Attempt drawn;
    bool close = false;
    for (int64_t i = 0; i < 8 && !drawn.accepted; ++i) {
      drawn = attempt_gamma(words, is_double, alpha, 4 * (9 * p + i));
      close = close || drawn.close;
    }
    Real boost = 1, boost_error = 0;
    if (alpha < 1) {
      const Real exponent =
          std::log(open_fraction(words, is_double, is_double ? 2 * (9 * p + 8) : 4 * (9 * p + 8))) / alpha;
      boost = std::exp(exponent);
      boost_error = std::isfinite(exponent) ? boost * std::fabs(exponent) * 4 * unit : 0;
    }
    e.value = Value::of(drawn.value * boost);
    e.slack = drawn.error * boost + drawn.value * boost_error;
    if (close || std::isinf(alpha)) e.open = kAny;
  }
  return result;
}

namespace {

// A distribution of counts: what the transformed rejection needs for means from 10 on, and what inversion needs.
struct Counts {
  Real mean = 0, limit = 0;  // of the count, which is at most `limit`
  Real base = 0, slope = 0, centre = 0, ratio = 0, scale = 0;
  Real size = 0, odds = 0, first = 0;  // binomial; the probability of 0
  bool binomial = false;

  Real logarithm(Real k) const {
    if (!binomial) return k * std::log(mean) - mean - std::lgamma(k + 1);
    const Real p = mean / limit;
    return std::lgamma(limit + 1) - std::lgamma(k + 1) - std::lgamma(limit - k + 1) + k * std::log(p) +
           (limit - k) * std::log1p(-p);
  }
  Real next(Real k) const { return binomial ? (size - (k - 1)) * odds / k : mean / k; }
};

struct Drawn {
  Real value = 0;
  bool close = false;  // another rounding may decide otherwise
};

Drawn by_inversion(Words& words, bool is_double, const Counts& law, int64_t block) {
  const Real level = open_fraction(words, is_double, is_double ? 2 * block : 4 * block);
  const Real allowed = std::ldexp(256.0L, is_double ? -53 : -24);
  Drawn drawn;
  Real part = law.first, sum = part;
  for (int k = 1; k <= 48; ++k) {
    drawn.close = drawn.close || std::fabs(level - sum) < allowed;
    if (level > sum) drawn.value += 1;
    part *= std::max(law.next(static_cast<Real>(k)), 0.0L);
    sum += part;
    if (level < sum - allowed && k > 12) break;
  }
  drawn.value = std::min(drawn.value, law.limit);
  drawn.close = drawn.close && level < 1 - allowed;
  // Behind the last count that can be told apart, roundings decide.
  if (level >= 1 - allowed) drawn.close = true;
  return drawn;
}

Drawn by_rejection(Words& words, bool is_double, const Counts& law, int64_t block) {
  const Real unit = std::ldexp(1.0L, is_double ? -53 : -24);
  const Real most = law.binomial ? law.logarithm(std::floor((law.limit + 1) * (law.mean / law.limit))) : 0;
  Drawn drawn;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const int64_t word = 4 * (block + attempt / 2) + 2 * (attempt % 2);
    const auto uniform = [&](int64_t at) {
      return is_double ? std::ldexp(static_cast<Real>(words(at)) + 0.5L, -32) : open_fraction(words, false, at);
    };
    const Real u = uniform(word) - 0.5L, v = uniform(word + 1), left = 0.5L - std::fabs(u);
    const Real reach = (2 * law.slope / left + law.base) * u, raw = reach + law.centre, k = std::floor(raw);
    const Real near = 64 * unit * (1 + std::fabs(reach) * (1 + 1 / left) + law.centre);
    drawn.close = drawn.close || std::fabs(raw - std::nearbyint(raw)) < near || std::fabs(left - 0.07L) < 8 * unit ||
                  std::fabs(left - 0.013L) < 8 * unit;
    if (k < 0 || k > law.limit) continue;
    drawn.value = k;
    if (left >= 0.07L) {
      drawn.close = drawn.close || std::fabs(v - law.ratio) < 64 * unit;
      if (v <= law.ratio) return drawn;
    } else {
      drawn.close = drawn.close || std::fabs(v - left) < 64 * unit;
      if (left < 0.013L && v > left) continue;
    }
    const Real level = std::log(v * law.scale / (law.slope / (left * left) + law.base));
    const Real margin = law.logarithm(k) - most - level;
    const Real away = std::fabs(k - law.mean) * (law.binomial ? 2 : 1);
    drawn.close = drawn.close || std::fabs(margin) < 256 * unit * (16 + std::fabs(level) + away + std::log(law.mean));
    if (margin >= 0) return drawn;
  }
  drawn.value = std::floor(law.mean);
  return drawn;
}

template <class Law>
Result counts(std::span<const Array> inputs, const Attributes& attributes, Law law_of) {
  const Array& x = inputs[0];
  Words words(attributes);
  Result result;
  result.dtype = x.dtype();
  result.shape = x.shape();
  for (int64_t p = 0; p < x.size(); ++p) {
    Element& e = result.elements.emplace_back();
    e.open = kSigns | kFlushed;
    Counts law;
    Real known = 0;
    const bool is_known = law_of(x.at(p).re, inputs[inputs.size() - 1].at(p).re, law, known);
    if (is_known) {
      e.value = Value::of(known);
      continue;
    }
    const bool is_double = x.dtype() == dtype::FLOAT64, is_turned = known != 0;
    const Drawn drawn =
        law.mean < 10 ? by_inversion(words, is_double, law, 9 * p + 8) : by_rejection(words, is_double, law, 9 * p);
    e.value = Value::of(is_turned ? law.size - drawn.value : drawn.value);
    if (drawn.close || law.mean > 1e6L || std::fabs(law.mean - 10) < 1e-3L) e.open = kAny;
  }
  return result;
}

}  // namespace

Result reference_random_poisson(std::span<const Array> inputs, const Attributes& attributes) {
  return counts(inputs, attributes, [](Real rate, Real, Counts& law, Real& known) {
    if (!(rate >= 0) || std::isinf(rate)) {
      known = rate > 0 ? rate : std::numeric_limits<Real>::quiet_NaN();
      return true;
    }
    law.mean = rate;
    law.limit = std::numeric_limits<Real>::infinity();
    law.first = std::exp(-rate);
    law.base = 0.931L + 2.53L * std::sqrt(rate);
    law.slope = 0.02483L * law.base - 0.059L;
    law.centre = rate + 0.43L;
    law.ratio = 0.9277L - 3.6224L / (law.base - 2);
    law.scale = 1.1239L + 1.1328L / (law.base - 3.4L);
    return false;
  });
}

Result reference_random_binomial(std::span<const Array> inputs, const Attributes& attributes) {
  return counts(inputs, attributes, [](Real size, Real p, Counts& law, Real& known) {
    if (!(size >= 0) || std::isinf(size) || size != std::floor(size) || !(p >= 0 && p <= 1)) {
      known = std::numeric_limits<Real>::quiet_NaN();
      return true;
    }
    known = p > 0.5L ? 1 : 0;  // whether failures are counted
    p = std::min(p, 1 - p);
    law.binomial = true;
    law.size = law.limit = size;
    law.mean = size * p;
    law.odds = p / (1 - p);
    law.first = std::exp(size * std::log1p(-p));
    const Real spread = std::sqrt(law.mean * (1 - p));
    law.base = 1.15L + 2.53L * spread;
    law.slope = 0.0248L * law.base - 0.0873L + 0.01L * p;
    law.centre = law.mean + 0.5L;
    law.ratio = 0.92L - 4.2L / law.base;
    law.scale = (2.83L + 5.1L / law.base) * spread;
    return false;
  });
}

Result reference_random_bernoulli(std::span<const Array>, const Attributes& attributes) {
  Result result = empty_result(attributes);
  Words words(attributes);
  const auto p = static_cast<float>(real(attributes, "p", 0.5L));
  for (int64_t i = 0; i < count_of(result.shape); ++i) {
    const bool one = fraction(words, dtype::FLOAT32, i) < p;
    result.elements.push_back({is_inexact(result.dtype) ? Value::of(one ? 1.0L : 0.0L) : Value::of(Integer{one})});
  }
  return result;
}

Result reference_dropout(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  Words words(attributes);
  const Real given = real(attributes, "p", 0.5L);
  const auto p = static_cast<float>(given);
  const Real kept = 1 - given;
  Result result;
  result.dtype = x.dtype();
  result.shape = x.shape();
  for (int64_t i = 0; i < x.size(); ++i) {
    const bool dropped = fraction(words, dtype::FLOAT32, i) < p;
    Element& e = result.elements.emplace_back();
    e.value = Value::of(dropped ? 0 : x.at(i).re / kept);
    if (!dropped) e.open = kFlushed;
  }
  return result;
}

// ---- Movement -------------------------------------------------------------------------------------------------------

namespace {

Result like(const Array& x, Shape shape) {
  Result result;
  result.dtype = x.dtype();
  result.shape = std::move(shape);
  return result;
}

Result triangle(const Array& x, const Attributes& attributes, bool lower) {
  const int64_t k = integer(attributes, "k", 0);
  Result result = like(x, x.shape());
  int64_t position = 0;
  for_each_index(x.shape(), [&](const Shape& i) {
    const int64_t diagonal = i.back() - i[i.size() - 2];
    const bool kept = lower ? diagonal <= k : diagonal >= k;
    result.elements.push_back({kept ? x.at(position) : Value{}});
    ++position;
  });
  return result;
}

}  // namespace

Result reference_pad(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const Shape begin = attributes.find("pads_begin")->second.integers,
              end = attributes.find("pads_end")->second.integers;
  Shape shape = x.shape();
  for (size_t i = 0; i < shape.size(); ++i) shape[i] += begin[i] + end[i];
  Result result = like(x, shape);
  const Field places(x.shape());
  const std::complex<double> value = number_or(attributes, "value", 0);
  const auto whole = attributes.find("value");
  Value padding = is_inexact(x.dtype()) ? Value::of(Complex(value.real(), value.imag()))
                                        : Value::of(static_cast<Integer>(value.real()));
  if (whole != attributes.end() && !whole->second.integers.empty()) {
    padding = is_inexact(x.dtype()) ? Value::of(static_cast<Real>(whole->second.integers[0]))
                                    : Value::of(Integer{whole->second.integers[0]});
  }
  for_each_index(shape, [&](Shape i) {
    bool inside = true;
    for (size_t axis = 0; axis < i.size(); ++axis) {
      i[axis] -= begin[axis];
      inside = inside && i[axis] >= 0 && i[axis] < x.shape()[axis];
    }
    result.elements.push_back({inside ? x.at(static_cast<int64_t>(places.place(i))) : padding});
  });
  return result;
}

Result reference_one_hot(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const size_t axis = axis_of(attributes, "axis", -1, x.shape().size() + 1);
  Result result;
  result.dtype = static_cast<Dtype>(integer_or(attributes, "dtype", dtype::FLOAT32));
  result.shape = x.shape();
  result.shape.insert(result.shape.begin() + static_cast<std::ptrdiff_t>(axis), integer_or(attributes, "depth", 0));
  const Field places(x.shape());
  for_each_index(result.shape, [&](Shape i) {
    const int64_t at = i[axis];
    i.erase(i.begin() + static_cast<std::ptrdiff_t>(axis));
    const bool one = x.at(static_cast<int64_t>(places.place(i))).integer == at;
    result.elements.push_back({is_inexact(result.dtype) ? Value::of(one ? 1.0L : 0.0L) : Value::of(Integer{one})});
  });
  return result;
}

Result reference_tril(std::span<const Array> inputs, const Attributes& attributes) {
  return triangle(inputs[0], attributes, true);
}
Result reference_triu(std::span<const Array> inputs, const Attributes& attributes) {
  return triangle(inputs[0], attributes, false);
}

}  // namespace compute::oracle
