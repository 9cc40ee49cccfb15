// SPDX-License-Identifier: Apache-2.0
// Random numbers: the same bits from the same seed on every device, in every layout; and movement ops of whole arrays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "registry.hpp"
#include "tests/oracle/normal.hpp"

namespace compute::conformance {

namespace {

using Numbers = std::complex<double>;

class Case {
 public:
  Case(const Session& session, const std::string& op, Dtype dtype)
      : session(session), op(op), dtype(dtype), inputs(seed_of(op + oracle::info(dtype).name)) {}

  bool full() const { return session.level() == Level::FULL; }
  Attributes attributes(const Shape& shape) const {
    Attributes list = {{"shape", shape}, {"dtype", int64_t{dtype}}, {"seed", int64_t{42}}};
    if (op == "random_integers") list["maximum"] = int64_t{100};
    return list;
  }
  void run(const Attributes& given, const std::vector<Operand>& operands, const std::string& what) {
    const Stream stream = session.stream();
    session.expect(op, given, operands, bound_of(op, dtype), what, stream);
  }
  void run_into(const Attributes& given, const std::vector<Operand>& operands, Layout layout) {
    session.expect_into(op, given, operands, bound_of(op, dtype), "", layout);
  }

  const Session& session;
  const std::string op;
  const Dtype dtype;
  oracle::Inputs inputs;
};

// Of truncated normal numbers: around the mean, in tails, beyond where the probability of a tail is a number.
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::pair<double, double> kLimits[] = {{-2, 2},
                                                 {0, kInfinity},
                                                 {-kInfinity, -0.5},
                                                 {-kInfinity, kInfinity},
                                                 {-1, 9},
                                                 {6, 8},
                                                 {5, 7},
                                                 {-7, -5},
                                                 {3, 1e30},
                                                 {-kInfinity, -8},
                                                 {9.5, kInfinity},
                                                 {12, 12.5},
                                                 {20, 21},
                                                 {-41, -40},
                                                 {300, 301},
                                                 {1, 1.0625},
                                                 {1000, kInfinity},
                                                 {-1e30, 1e30}};

void test_draw(Case& c) {
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 64, 1001}) c.run(c.attributes({n}), {}, std::to_string(n) + " elements");
  Attributes other = c.attributes({6, 7});
  other["seed"] = int64_t{0x123456789abcdef};
  other["offset"] = int64_t{0xfffffffe};  // the counter carries into its second word
  if (c.op == "random_integers") {
    // All numbers of the dtype, but for the greatest if the maximum would not be an int64.
    const auto greatest = static_cast<int64_t>(std::min<oracle::Integer>(oracle::integer_max(c.dtype), INT64_MAX));
    other["minimum"] = static_cast<int64_t>(oracle::integer_min(c.dtype));
    other["maximum"] = greatest == INT64_MAX ? greatest : greatest + 1;
    c.run(other, {}, "all numbers");
    other["minimum"] = int64_t{-5};
    other["maximum"] = int64_t{120};
  }
  if (c.op == "random_uniform") {
    for (const auto& [minimum, maximum] : {std::pair(1.0, 2.0), std::pair(100.0, 101.0), std::pair(-0.7, 1e-6)}) {
      other["minimum"] = Numbers(minimum);
      other["maximum"] = Numbers(maximum);
      c.run(other, {}, "from " + std::to_string(minimum));
    }
    other["minimum"] = Numbers(-3);
    other["maximum"] = Numbers(5);
  }
  if (c.op == "random_normal") {
    other["mean"] = Numbers(2);
    other["deviation"] = Numbers(0.5);
  }
  if (c.op == "random_truncated_normal") {
    other["mean"] = Numbers(2);
    other["deviation"] = Numbers(0.5);
    other["lower"] = Numbers(-1);
    other["upper"] = Numbers(2.5);
    c.run(other, {}, "limits on both sides");
    for (const auto& [lower, upper] : kLimits) {
      c.run({{"shape", Shape{40}}, {"dtype", int64_t{c.dtype}}, {"lower", Numbers(lower)}, {"upper", Numbers(upper)}},
            {}, "from " + std::to_string(lower) + " to " + std::to_string(upper));
    }
    other["upper"] = Numbers(kInfinity);
    other["lower"] = Numbers(0.5);
  }
  if (c.op == "random_bernoulli") other["p"] = Numbers(0.125);
  c.run(other, {}, "other parameters");
  for (Layout layout : {Layout::TRANSPOSED, Layout::NEGATIVE}) c.run_into(other, {}, layout);
  if (!c.full()) return;
  c.run(c.attributes({0, 3}), {}, "empty");
  c.run(c.attributes({}), {}, "one");
  for (Layout layout : {Layout::STEPPED, Layout::OFFSET, Layout::PERMUTED}) c.run_into(other, {}, layout);
  // The reference of this one alone takes a microsecond for each element and more.
  const int64_t many = c.op == "random_truncated_normal" ? 1 << 16 : 1 << 20;
  c.run(c.attributes({many}), {}, "many elements");
}

void test_permutation(Case& c) {
  const auto check = [&](int64_t size, int64_t seed) {
    c.run({{"size", size}, {"dtype", int64_t{c.dtype}}, {"seed", seed}, {"offset", int64_t{0xfffffffe}}}, {},
          std::to_string(size) + " elements");
  };
  for (const int64_t size : {1, 2, 3, 100, 1001}) check(size, 42);
  c.run_into({{"size", int64_t{37}}, {"dtype", int64_t{c.dtype}}}, {}, Layout::NEGATIVE);
  if (!c.full()) return;
  check(0, 1);
  check(1 << 18, int64_t{0x123456789abcdef});
}

void test_categorical(Case& c) {
  const auto logits = [&](const Shape& shape, Layout layout) {
    return c.session.upload(c.inputs.uniform(c.dtype, shape, -3, 2), layout);
  };
  for (Layout layout : {Layout::CONTIGUOUS, Layout::NEGATIVE, Layout::TRANSPOSED}) {
    c.run({{"seed", int64_t{7}}}, {logits({9, 13}, layout)}, name(layout));
    c.run({{"samples", int64_t{5}}, {"offset", int64_t{1000}}}, {logits({3, 2, 13}, layout)}, name(layout));
  }
  c.run({{"samples", int64_t{70}}}, {logits({4}, Layout::CONTIGUOUS)}, "one row");
  c.run_into({}, {logits({5, 6, 7}, Layout::CONTIGUOUS)}, Layout::TRANSPOSED);
  Array impossible = c.inputs.uniform(c.dtype, {20, 3}, -1, 1);
  for (int64_t i = 0; i < 20; ++i)
    impossible.set(3 * i + i % 3, oracle::Value::of(-std::numeric_limits<Real>::infinity()));
  c.run({}, {c.session.upload(impossible)}, "impossible classes");
  if (!c.full()) return;
  for (const Shape& shape : {Shape{1, 1}, Shape{0, 3}, Shape{300, 1}, Shape{2, 1000}})
    c.run({{"seed", int64_t{3}}}, {logits(shape, Layout::CONTIGUOUS)}, "other shapes");
  c.run_into({{"samples", int64_t{4}}}, {logits({5, 6, 7}, Layout::PERMUTED)}, Layout::NEGATIVE);
}

void test_gamma(Case& c) {
  for (Layout layout : {Layout::CONTIGUOUS, Layout::NEGATIVE, Layout::TRANSPOSED}) {
    c.run({{"seed", int64_t{7}}}, {c.session.upload(c.inputs.uniform(c.dtype, {9, 13}, 1, 8), layout)}, name(layout));
    c.run({{"offset", int64_t{0xfffffff0}}}, {c.session.upload(c.inputs.uniform(c.dtype, {77}, 0.25L, 1.25L), layout)},
          name(layout));
  }
  Array edges(c.dtype, {6});
  const Real values[] = {0, -1, std::numeric_limits<Real>::quiet_NaN(), 1, 1000, 0.5L};
  for (int64_t i = 0; i < 6; ++i) edges.set(i, oracle::Value::of(values[i]));
  c.run({}, {c.session.upload(edges)}, "edges");
  c.run_into({}, {c.session.upload(c.inputs.uniform(c.dtype, {5, 6, 7}, 0.5L, 3))}, Layout::TRANSPOSED);
  if (!c.full()) return;
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{20011}})
    c.run({{"seed", int64_t{5}}}, {c.session.upload(c.inputs.uniform(c.dtype, shape, 0.5L, 20))}, "other shapes");
  c.run_into({}, {c.session.upload(c.inputs.uniform(c.dtype, {5, 6, 7}, 0.5L, 3), Layout::PERMUTED)}, Layout::NEGATIVE);
}

// Rates on both sides of 10, where the method changes.
void test_poisson(Case& c) {
  for (Layout layout : {Layout::CONTIGUOUS, Layout::TRANSPOSED}) {
    c.run({{"seed", int64_t{7}}}, {c.session.upload(c.inputs.uniform(c.dtype, {9, 13}, 0, 9.5L), layout)},
          name(layout));
    c.run({{"offset", int64_t{0xfffffff0}}}, {c.session.upload(c.inputs.uniform(c.dtype, {77}, 10.5L, 300), layout)},
          name(layout));
  }
  Array edges(c.dtype, {7});
  const Real values[] = {0,    -1, std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity(), 1000,
                         0.5L, 9};
  for (int64_t i = 0; i < 7; ++i) edges.set(i, oracle::Value::of(values[i]));
  c.run({}, {c.session.upload(edges)}, "edges");
  c.run_into({}, {c.session.upload(c.inputs.uniform(c.dtype, {5, 6, 7}, 0, 30))}, Layout::TRANSPOSED);
  if (!c.full()) return;
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{20011}})
    c.run({{"seed", int64_t{5}}}, {c.session.upload(c.inputs.uniform(c.dtype, shape, 0, 40))}, "other shapes");
}

void test_binomial(Case& c) {
  const auto whole = [&](const Shape& shape, Real high) {
    Array sizes = c.inputs.uniform(c.dtype, shape, 0, high);
    for (int64_t i = 0; i < sizes.size(); ++i) sizes.set(i, oracle::Value::of(std::nearbyint(sizes.at(i).re)));
    return sizes;
  };
  for (Layout layout : {Layout::CONTIGUOUS, Layout::TRANSPOSED}) {
    for (const Real high : {12.0L, 240.0L}) {
      c.run({{"seed", int64_t{7}}, {"offset", int64_t{0xfffffff0}}},
            {c.session.upload(whole({9, 13}, high), layout),
             c.session.upload(c.inputs.uniform(c.dtype, {9, 13}, 0, 1), layout)},
            name(layout));
    }
  }
  const Real nan = std::numeric_limits<Real>::quiet_NaN(), infinity = std::numeric_limits<Real>::infinity();
  const Real values[][2] = {{0, 0.5L}, {-1, 0.5L}, {1.5L, 0.5L}, {nan, 0.5L}, {infinity, 0.5L},
                            {5, nan},  {5, -0.5L}, {5, 1.5L},    {5, 0},      {5, 1},
                            {200, 0},  {200, 1},   {1000, 0.5L}, {1, 0.25L}};
  Array sizes(c.dtype, {14}), chances(c.dtype, {14});
  for (int64_t i = 0; i < 14; ++i) {
    sizes.set(i, oracle::Value::of(values[i][0]));
    chances.set(i, oracle::Value::of(values[i][1]));
  }
  c.run({}, {c.session.upload(sizes), c.session.upload(chances)}, "edges");
  if (!c.full()) return;
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{20011}})
    c.run({}, {c.session.upload(whole(shape, 60)), c.session.upload(c.inputs.uniform(c.dtype, shape, 0, 1))},
          "other shapes");
}

void test_dropout(Case& c) {
  for (Layout layout : {Layout::CONTIGUOUS, Layout::NEGATIVE, Layout::TRANSPOSED}) {
    const Operand x = c.session.upload(c.inputs.uniform(c.dtype, {9, 13}, -2, 2), layout);
    c.run({{"seed", int64_t{7}}}, {x}, name(layout));
    c.run({{"p", Numbers(0)}}, {x}, "p 0");
    c.run({{"p", Numbers(1)}}, {x}, "p 1");
    // 1 - p has few digits of a p that is a float32.
    if (c.session.supports(dtype::FLOAT64, COMPUTE_DTYPE_LEVEL_ARITHMETIC))
      c.run({{"p", Numbers(0.999)}}, {x}, "p 0.999");
    c.run({{"p", Numbers(0.2)}, {"offset", int64_t{1000}}}, {x}, name(layout));
  }
}

// ---- Movement -------------------------------------------------------------------------------------------------------

std::vector<Layout> layouts_of(const Case& c) {
  if (!c.full()) return {Layout::CONTIGUOUS};
  return {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::NEGATIVE, Layout::OFFSET, Layout::PERMUTED};
}

void test_pad(Case& c) {
  for (Layout layout : layouts_of(c)) {
    const Operand x = c.session.upload(c.inputs.uniform(c.dtype, {3, 4, 5}, 0, 3), layout);
    Attributes given = {{"pads_begin", Shape{1, 0, 2}}, {"pads_end", Shape{0, 3, 1}}};
    c.run(given, {x}, name(layout));
    if (oracle::is_bool(c.dtype)) continue;
    given["value"] = Numbers(3);
    c.run(given, {x}, name(layout));
  }
  c.run({{"pads_begin", Shape{2}}, {"pads_end", Shape{1}}}, {c.session.upload(Array(c.dtype, {0}))}, "empty");
}

void test_one_hot(Case& c) {
  for (const int64_t axis : {-1, 0, 1}) {
    const Operand x = c.session.upload(c.inputs.uniform(c.dtype, {4, 5}, 0, 8));
    for (Dtype to : {Dtype{dtype::FLOAT32}, Dtype{dtype::INT32}, Dtype{dtype::BOOL}}) {
      if (!c.full() && axis != -1 && to != dtype::FLOAT32) continue;
      if (c.session.supports(to, COMPUTE_DTYPE_LEVEL_ARITHMETIC))
        c.run({{"depth", int64_t{6}}, {"axis", axis}, {"dtype", int64_t{to}}}, {x}, "axis " + std::to_string(axis));
    }
  }
}

void test_triangle(Case& c) {
  for (Layout layout : layouts_of(c)) {
    const Operand x = c.session.upload(c.inputs.uniform(c.dtype, {2, 6, 5}, 1, 3), layout);
    for (const int64_t k : {0, 2, -3}) c.run({{"k", k}}, {x}, name(layout));
  }
}

// Moments of numbers that do not depend on the device.
void has_moments(const Session& session) {
  const int64_t n = session.level() == Level::FULL ? 1 << 20 : 1 << 14;
  const Stream stream = session.stream();
  for (const char* op : {"random_uniform", "random_normal"}) {
    const Array x = session.download(
        session.run(op, {{"shape", Shape{n}}, {"dtype", int64_t{dtype::FLOAT32}}, {"seed", int64_t{3}}}, {}, stream));
    Real mean = 0, square = 0;
    for (int64_t i = 0; i < n; ++i) {
      mean += x.at(i).re;
      square += x.at(i).re * x.at(i).re;
    }
    mean /= static_cast<Real>(n);
    const bool normal = std::string_view(op) == "random_normal";
    const Real variance = square / static_cast<Real>(n) - mean * mean, error = 5 / std::sqrt(static_cast<Real>(n));
    EXPECT_NEAR(static_cast<double>(mean), normal ? 0 : 0.5, static_cast<double>(error)) << op;
    EXPECT_NEAR(static_cast<double>(variance), normal ? 1 : 1 / 12.0, static_cast<double>(2 * error)) << op;
  }
}

// ---- Ends and distributions -----------------------------------------------------------------------------------------

Attributes between(const std::string& op, Dtype dtype, int64_t n, double low, double high) {
  Attributes attributes = {{"shape", Shape{n}}, {"dtype", int64_t{dtype}}, {"seed", int64_t{17}}};
  if (op == "random_normal") return attributes;
  attributes[op == "random_uniform" ? "minimum" : "lower"] = Numbers(low);
  attributes[op == "random_uniform" ? "maximum" : "upper"] = Numbers(high);
  return attributes;
}

// The distance of the sample's distribution from the uniform one on [0, 1], times sqrt(n), by Kolmogorov and Smirnov: a
// chance of 1e-6 to be 2.7 or more.
Real distance_from_uniform(std::vector<Real> sample) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<Real>(sample.size());
  Real greatest = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    const auto below = static_cast<Real>(i);
    greatest = std::max({greatest, sample[i] - below / n, (below + 1) / n - sample[i]});
  }
  return greatest * std::sqrt(n);
}

// The part of the probability between two limits that is below z.
Real part_below(Real z, Real lower, Real upper) {
  if (lower + upper < 0) return 1 - part_below(-z, -upper, -lower);
  if (lower > 1) {  // relative to the tail from `lower` on
    const Real tail = oracle::log_tail(lower);
    return std::expm1(oracle::log_tail(z) - tail) / std::expm1(oracle::log_tail(std::min(upper, 1e40L)) - tail);
  }
  const auto above = [](Real x) { return std::erfc(x / std::sqrt(2.0L)) / 2; };
  return (above(lower) - above(z)) / (above(lower) - above(upper));
}

// Every number is between the ends, as numbers of the dtype, and the maximum of uniform numbers is none of them. Those
// of float32 and float64 have the distribution.
void stays_between(const Session& session, const std::string& op, Dtype dtype) {
  const bool is_uniform = op == "random_uniform", is_half = oracle::is_half(dtype);
  const int64_t n = session.level() == Level::FULL ? 1 << 17 : 1 << 12;
  const oracle::Format format = oracle::format(dtype);
  const Stream stream = session.stream();
  std::vector<std::pair<double, double>> ends(std::begin(kLimits), std::end(kLimits));
  if (op == "random_normal") ends = {{-kInfinity, kInfinity}};
  if (is_uniform)
    ends = {{0, 1}, {1, 2}, {100, 101}, {-2, -1}, {-1, 1}, {0.1, 0.3}, {-3e4, 3e4}, {0, 1e-6}, {-5e-7, 3e-7}};
  for (const auto& [low, high] : ends) {
    const Array x = session.download(session.run(op, between(op, dtype, n, low, high), {}, stream));
    const Real least = oracle::round_to(format, low), greatest = oracle::round_to(format, high);
    std::vector<Real> parts;
    for (int64_t i = 0; i < n; ++i) {
      const Real value = x.at(i).re;
      ASSERT_TRUE(std::isfinite(value) && value >= least && (is_uniform ? value < greatest : value <= greatest))
          << static_cast<double>(value) << " in [" << low << ", " << high << "]";
      parts.push_back(is_uniform ? (value - least) / (greatest - least) : part_below(value, least, greatest));
    }
    // Where numbers of the dtype are far apart, the distribution is one of steps.
    if (is_half || (!is_uniform && std::max(low, -high) >= 100)) continue;
    EXPECT_LT(static_cast<double>(distance_from_uniform(parts)), 2.7) << "[" << low << ", " << high << "]";
    if (is_uniform) continue;
    // The numbers of the farthest 1/16, by themselves.
    std::vector<Real> tail;
    const bool is_above = low + high >= 0;
    for (const Real part : parts) {
      const Real beyond = is_above ? 1 - part : part;
      if (beyond < 1 / 16.0L) tail.push_back(beyond * 16);
    }
    EXPECT_LT(static_cast<double>(distance_from_uniform(tail)), 2.7) << "the end of [" << low << ", " << high << "]";
  }
  if (!is_half || !is_uniform) return;
  // Each of the numbers from 1 to 2 occurs as often as the others: the sum of squares, five standard deviations.
  const Array x = session.download(session.run(op, between(op, dtype, n, 1, 2), {}, stream));
  std::vector<Real> seen(size_t{1} << (format.precision - 1));
  const auto count = static_cast<Real>(seen.size()), expected = static_cast<Real>(n) / count;
  for (int64_t i = 0; i < n; ++i) seen[static_cast<size_t>((x.at(i).re - 1) * count)] += 1;
  Real squares = 0;
  for (const Real times : seen) squares += (times - expected) * (times - expected) / expected;
  EXPECT_NEAR(static_cast<double>(squares), static_cast<double>(count), static_cast<double>(5 * std::sqrt(2 * count)));
}

// Of a count, by chi-square: classes of at least eight expected draws, against the probabilities.
void follows(const Session& session, const std::string& op, const std::vector<Real>& parameters, int64_t n,
             const std::function<Real(Real)>& logarithm) {
  std::vector<Operand> inputs;
  for (const Real parameter : parameters) {
    Array x(dtype::FLOAT32, {n});
    for (int64_t i = 0; i < n; ++i) x.set(i, oracle::Value::of(parameter));
    inputs.push_back(session.upload(x));
  }
  const Array drawn = session.download(session.run(op, {{"seed", int64_t{13}}}, inputs, session.stream()));
  std::map<int64_t, int64_t> seen;
  for (int64_t i = 0; i < n; ++i) ++seen[static_cast<int64_t>(drawn.at(i).re)];
  Real statistic = 0, expected = 0, all = 0;
  int64_t counted = 0, classes = 0;
  for (int64_t k = 0; k <= seen.rbegin()->first || all < 1 - 1e-9L; ++k) {
    const Real probability = std::exp(logarithm(static_cast<Real>(k)));
    expected += probability * static_cast<Real>(n);
    all += probability;
    if (seen.contains(k)) counted += seen[k];
    if (k > 10'000'000) break;
    const Real rest = (1 - all) * static_cast<Real>(n);
    if (expected < 8 || rest < 8) continue;
    statistic += (static_cast<Real>(counted) - expected) * (static_cast<Real>(counted) - expected) / expected;
    expected = 0;
    counted = 0;
    ++classes;
  }
  if (expected > 0) {
    statistic += (static_cast<Real>(counted) - expected) * (static_cast<Real>(counted) - expected) / expected;
    ++classes;
  }
  const auto freedom = static_cast<Real>(std::max<int64_t>(classes - 1, 1));
  EXPECT_LT(static_cast<double>(statistic), static_cast<double>(freedom + 5 * std::sqrt(2 * freedom) + 12))
      << op << " of " << static_cast<double>(parameters[0]) << ": " << classes << " classes";
}

void counts_follow_their_distributions(const Session& session) {
  const int64_t n = session.level() == Level::FULL ? 1 << 18 : 1 << 14;
  for (const Real rate : {0.01L, 1.0L, 9.75L, 10.0L, 60.0L, 5000.0L})
    follows(session, "random_poisson", {rate}, n,
            [&](Real k) { return k * std::log(rate) - rate - std::lgamma(k + 1); });
  const Real laws[][2] = {{1, 0.5L},
                          {20, 0.25L},
                          {20, 0.75L},
                          {20, 0.5L},
                          {1000, 0.5L},
                          {1000, 0.96875L},
                          {1048576, 0.0000019073486328125L},
                          {65536, 0.125L}};
  for (const auto& [size, p] : laws) {
    follows(session, "random_binomial", {size, p}, n, [&](Real k) {
      return k > size ? -std::numeric_limits<Real>::infinity()
                      : std::lgamma(size + 1) - std::lgamma(k + 1) - std::lgamma(size - k + 1) + k * std::log(p) +
                            (size - k) * std::log1p(-p);
    });
  }
}

// Five standard errors around the moments of the gamma distribution and the frequencies of classes.
void has_frequencies(const Session& session) {
  const int64_t n = session.level() == Level::FULL ? 1 << 18 : 1 << 14;
  const auto count = static_cast<Real>(n);
  const Stream stream = session.stream();
  for (const Real alpha : {0.5L, 1.0L, 4.5L}) {
    Array shape(dtype::FLOAT32, {n});
    for (int64_t i = 0; i < n; ++i) shape.set(i, oracle::Value::of(alpha));
    const Array x = session.download(
        session.run("random_gamma", {{"seed", int64_t{11}}}, std::vector<Operand>{session.upload(shape)}, stream));
    Real mean = 0, square = 0;
    for (int64_t i = 0; i < n; ++i) {
      mean += x.at(i).re / count;
      square += (x.at(i).re - alpha) * (x.at(i).re - alpha) / count;
    }
    // The fourth central moment is 3 alpha^2 + 6 alpha.
    EXPECT_NEAR(static_cast<double>(mean), static_cast<double>(alpha),
                static_cast<double>(5 * std::sqrt(alpha / count)));
    EXPECT_NEAR(static_cast<double>(square), static_cast<double>(alpha),
                static_cast<double>(5 * std::sqrt((2 * alpha * alpha + 6 * alpha) / count)));
  }
  const Real weights[] = {0.1L, 0.2L, 0.3L, 0.4L};
  Array logits(dtype::FLOAT32, {4});
  for (int64_t k = 0; k < 4; ++k) logits.set(k, oracle::Value::of(std::log(weights[k])));
  const Array chosen = session.download(session.run("random_categorical", {{"samples", n}, {"seed", int64_t{12}}},
                                                    std::vector<Operand>{session.upload(logits)}, stream));
  Real seen[4] = {};
  for (int64_t i = 0; i < n; ++i) seen[static_cast<size_t>(chosen.at(i).integer)] += 1 / count;
  for (size_t k = 0; k < 4; ++k) {
    const Real error = 5 * std::sqrt(weights[k] * (1 - weights[k]) / count);
    EXPECT_NEAR(static_cast<double>(seen[k]), static_cast<double>(weights[k]), static_cast<double>(error)) << k;
  }
}

// What separates two numbers of the dtype, in steps from one to the next.
int64_t steps_between(Dtype dtype, const Array& a, const Array& b, int64_t i) {
  const auto ordered = [&](const Array& array) {
    int64_t bits = 0;
    if (dtype == dtype::FLOAT64) {
      std::memcpy(&bits, array.element(i), sizeof bits);
      return bits < 0 ? std::numeric_limits<int64_t>::min() - bits : bits;
    }
    int32_t word = 0;
    std::memcpy(&word, array.element(i), sizeof word);
    bits = word;
    return bits < 0 ? std::numeric_limits<int32_t>::min() - bits : bits;
  };
  const int64_t difference = ordered(a) - ordered(b);
  return difference < 0 ? -difference : difference;
}

Attributes draw_attributes(const std::string& op, Dtype dtype, int64_t n) {
  if (op == "random_permutation") return {{"size", n}, {"dtype", int64_t{dtype}}, {"seed", int64_t{0x123456789}}};
  Attributes attributes = {{"shape", Shape{n}}, {"dtype", int64_t{dtype}}, {"seed", int64_t{0x123456789}}};
  if (op == "random_integers") attributes["maximum"] = int64_t{1000003};
  if (op == "random_uniform" && oracle::is_half(dtype)) {
    attributes["minimum"] = Numbers(-0.3);
    attributes["maximum"] = Numbers(7);
  }
  return attributes;
}

// Draws n elements on a device: adjacent ones, or every second one from the end.
void draw_on(compute_device* device, const std::string& op, Dtype dtype, int64_t n, bool is_strided, Tensor& out) {
  const compute_op* handle = nullptr;
  check(compute_op_find(op.c_str(), 0, &handle));
  Tensor base;
  check(compute_tensor_empty(device, dtype, 1, std::vector<int64_t>{2 * n}.data(), base.out()));
  const int64_t start = is_strided ? -1 : 0, stop = is_strided ? INT64_MIN : n, step = is_strided ? -2 : 1;
  check(compute_tensor_slice(base, 1, &start, &stop, &step, out.out()));
  const Attributes attributes = draw_attributes(op, dtype, n);
  const AttributeList list(attributes);
  compute_tensor* output = out;
  check(compute_op_run(handle, nullptr, list.data(), list.size(), nullptr, 0, &output, 1));
}

// Whether `cpu` is there, and draws such numbers.
bool draws(compute_device* cpu, const std::string& op, Dtype dtype) {
  try {
    Tensor one;
    draw_on(cpu, op, dtype, 1, false, one);
    return true;
  } catch (const Unsupported&) {
    return false;
  }
}

// The device draws what `cpu` draws, for few elements and for many. `cpu` itself, and a device that has no `cpu` beside
// it, is compared with its own work in another layout.
void same_as_cpu(const Session& session, const std::string& op, Dtype dtype) {
  Device cpu;
  check(compute_device_open("cpu", cpu.out()));
  const bool by_itself = cpu.get() == session.device() || !draws(cpu, op, dtype);
  compute_device* const device = by_itself ? session.device() : cpu.get();
  const int64_t most = int64_t{1} << (session.level() == Level::FULL ? 22 : 12);
  for (int64_t n = 1; n <= most; n *= 2) {
    const Attributes attributes = draw_attributes(op, dtype, n);
    Tensor other;
    draw_on(device, op, dtype, n, by_itself, other);
    const Stream stream = session.stream();
    const Array ours = session.download(session.run(op, attributes, {}, stream)), theirs = session.download(other);
    const int64_t allowed = op == "random_normal" ? 4 : 0;
    for (int64_t i = 0; i < n; ++i) {
      if (allowed == 0 ? std::memcmp(ours.element(i), theirs.element(i), oracle::info(dtype).size_bytes) == 0
                       : steps_between(dtype, ours, theirs, i) <= allowed) {
        continue;
      }
      FAIL() << op << " of " << n << " elements differs from that of cpu at " << i;
    }
  }
}

struct Row {
  const char* op;
  void (*body)(Case&);
  bool (*takes)(Dtype);
};

constexpr Row kRows[] = {
    {"dropout", test_dropout, oracle::is_float},
    {"one_hot", test_one_hot, oracle::is_integer},
    {"pad", test_pad, [](Dtype) { return true; }},
    {"random_bernoulli", test_draw, [](Dtype) { return true; }},
    {"random_bits", test_draw, [](Dtype dtype) { return dtype == dtype::UINT32 || dtype == dtype::UINT64; }},
    {"random_categorical", test_categorical, oracle::is_float},
    {"random_binomial", test_binomial, oracle::is_float},
    {"random_gamma", test_gamma, oracle::is_float},
    {"random_poisson", test_poisson, oracle::is_float},
    {"random_integers", test_draw, oracle::is_integer},
    {"random_normal", test_draw, oracle::is_float},
    {"random_permutation", test_permutation,
     [](Dtype dtype) { return dtype == dtype::INT32 || dtype == dtype::INT64; }},
    {"random_truncated_normal", test_draw, oracle::is_float},
    {"random_uniform", test_draw, oracle::is_float},
    {"tril", test_triangle, [](Dtype) { return true; }},
    {"triu", test_triangle, [](Dtype) { return true; }},
};

// Of tests of one op in some dtypes.
Level level_of(Dtype dtype) {
  const std::vector<Dtype> quick = tested_dtypes(Level::QUICK);
  const bool is_quick = dtype == dtype::UINT32 || std::find(quick.begin(), quick.end(), dtype) != quick.end();
  return is_quick ? Level::QUICK : Level::FULL;
}

}  // namespace

void add_random_tests(Registry& registry) {
  for (const Row& row : kRows) {
    for (const oracle::DtypeInfo& info : oracle::kDtypes) {
      const std::vector<Dtype> tested = tested_dtypes(registry.level());
      const bool is_tested = std::find(tested.begin(), tested.end(), info.id) != tested.end() ||
                             (std::string_view(row.op) == "random_bits" && info.id == dtype::UINT32);
      if (!is_tested || !row.takes(info.id)) continue;
      const bool smoke = info.id == dtype::FLOAT32 || info.id == dtype::UINT32 ||
                         (info.id == dtype::INT32 && !row.takes(dtype::FLOAT32));
      Test test{"random", std::string(row.op) + "_" + info.name, nullptr, smoke ? Level::SMOKE : Level::QUICK, row.op,
                {info.id}};
      const std::string_view op = row.op;
      const bool is_drawn = op.starts_with("random_") || op == "dropout";
      if (is_drawn) test.dtypes.push_back(dtype::UINT32);
      if (is_drawn && (op == "random_integers" || info.id == dtype::FLOAT64)) test.dtypes.push_back(dtype::UINT64);
      if (op == "random_permutation") {  // sorts positions by their random keys
        test.dtypes.insert(test.dtypes.end(), {dtype::INT32, dtype::INT64, dtype::UINT64});
        test.needs = COMPUTE_DTYPE_LEVEL_STORAGE | COMPUTE_DTYPE_LEVEL_CONVERT | COMPUTE_DTYPE_LEVEL_ARITHMETIC;
      }
      test.body = [row, dtype = info.id](const Session& session) {
        Case c(session, row.op, dtype);
        row.body(c);
      };
      registry.add(std::move(test));
    }
  }
  for (const auto& [op, dtype] : {std::pair<const char*, Dtype>{"random_bernoulli", dtype::BOOL},
                                  {"random_bits", dtype::UINT32},
                                  {"random_bits", dtype::UINT64},
                                  {"random_integers", dtype::INT32},
                                  {"random_normal", dtype::FLOAT32},
                                  {"random_normal", dtype::FLOAT64},
                                  {"random_permutation", dtype::INT64},
                                  {"random_uniform", dtype::FLOAT16},
                                  {"random_uniform", dtype::BFLOAT16},
                                  {"random_uniform", dtype::FLOAT32},
                                  {"random_uniform", dtype::FLOAT64}}) {
    Test same{"random", std::string(op) + "_is_the_same_on_cpu_" + oracle::info(dtype).name,
              nullptr,  level_of(dtype),
              op,       {dtype, dtype::UINT32}};
    if (std::string_view(op) == "random_integers" || dtype == dtype::FLOAT64) same.dtypes.push_back(dtype::UINT64);
    if (std::string_view(op) == "random_permutation") {  // sorts positions by their random keys
      same.dtypes.insert(same.dtypes.end(), {dtype::INT32, dtype::UINT64});
      same.needs = COMPUTE_DTYPE_LEVEL_STORAGE | COMPUTE_DTYPE_LEVEL_CONVERT | COMPUTE_DTYPE_LEVEL_ARITHMETIC;
    }
    same.body = [op = std::string(op), dtype = dtype](const Session& session) { same_as_cpu(session, op, dtype); };
    registry.add(std::move(same));
  }
  for (const char* op : {"random_normal", "random_uniform", "random_truncated_normal"}) {
    for (const Dtype dtype : {dtype::FLOAT16, dtype::BFLOAT16, dtype::FLOAT32, dtype::FLOAT64}) {
      Test test{"random", std::string(op) + "_stays_between_its_ends_" + oracle::info(dtype).name,
                nullptr,  level_of(dtype),
                op,       {dtype, dtype::UINT32}};
      if (dtype == dtype::FLOAT64) test.dtypes.push_back(dtype::UINT64);
      test.body = [op = std::string(op), dtype](const Session& session) { stays_between(session, op, dtype); };
      registry.add(std::move(test));
    }
  }
  registry.add({"random", "has_moments", has_moments, Level::QUICK, "random_normal", {dtype::FLOAT32}});
  Test frequencies{"random",     "has_frequencies", has_frequencies,
                   Level::QUICK, "random_gamma",    {dtype::FLOAT32, dtype::INT64}};
  frequencies.needs = COMPUTE_DTYPE_LEVEL_STORAGE | COMPUTE_DTYPE_LEVEL_CONVERT | COMPUTE_DTYPE_LEVEL_ARITHMETIC;
  registry.add(std::move(frequencies));
  Test counts{"random",
              "counts_follow_their_distributions",
              counts_follow_their_distributions,
              Level::QUICK,
              "random_poisson",
              {dtype::FLOAT32}};
  counts.needs = COMPUTE_DTYPE_LEVEL_STORAGE | COMPUTE_DTYPE_LEVEL_ARITHMETIC;
  registry.add(std::move(counts));
}

}  // namespace compute::conformance
