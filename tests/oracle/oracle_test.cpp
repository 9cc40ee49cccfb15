// SPDX-License-Identifier: Apache-2.0
// The oracle tested against values that are known exactly, and the judge against results that are known to be wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "elementwise.hpp"
#include "inputs.hpp"
#include "judge.hpp"
#include "linalg.hpp"
#include "ops.hpp"

namespace compute::oracle {
namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

Array array(Dtype dtype, const Shape& shape, const std::vector<Real>& values) {
  Array x(dtype, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    x.set(static_cast<int64_t>(i),
          is_inexact(dtype) ? Value::of(values[i]) : Value::of(static_cast<Integer>(values[i])));
  }
  return x;
}

Array list(Dtype dtype, const std::vector<Real>& values) {
  return array(dtype, {static_cast<int64_t>(values.size())}, values);
}

Array list(Dtype dtype, const std::vector<Complex>& values) {
  Array x(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) x.set(static_cast<int64_t>(i), Value::of(values[i]));
  return x;
}

Result applied(const char* op, const std::vector<Array>& inputs) { return evaluate(*find_elementwise(op), inputs); }

Element applied(const char* op, Dtype dtype, Real x) {
  return applied(op, {list(dtype, std::vector<Real>{x})}).elements[0];
}

// The reference itself, rounded to the dtype: passes its own judge.
Array rounded(const Result& result) {
  Array x(result.dtype, result.shape);
  for (size_t i = 0; i < result.elements.size(); ++i) x.set(static_cast<int64_t>(i), result.elements[i].value);
  return x;
}

std::vector<Real> reals(const Result& result) {
  std::vector<Real> values;
  for (const Element& e : result.elements)
    values.push_back(is_inexact(result.dtype) ? e.value.re : static_cast<Real>(e.value.integer));
  return values;
}

using Reals = std::vector<Real>;

#define COMPUTE_UNARY(name, ...) #name,
#define COMPUTE_BINARY(name, ...) #name,
#define COMPUTE_TERNARY(name, ...) #name,
#define COMPUTE_OP(...)
constexpr const char* kElementwiseNames[] = {
#include "compute/ops.def"
};
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP

TEST(Oracle, EveryOpOfTheTableHasAReference) {
  for (const char* name : kElementwiseNames) EXPECT_NE(find_elementwise(name), nullptr) << name << " has no oracle";
#define COMPUTE_UNARY(...)
#define COMPUTE_BINARY(...)
#define COMPUTE_TERNARY(...)
#define COMPUTE_OP(name, version, inputs, attributes, dtype_rule, shape_rule, bound, flags, summary, ...) \
  EXPECT_NE(find_reference(#name), nullptr) << #name << " has no oracle";                                 \
  EXPECT_NO_THROW(Bound::parse(bound)) << #name;
#include "compute/ops.def"
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP
  EXPECT_EQ(find_elementwise("no_such_op"), nullptr);
  EXPECT_EQ(find_reference("no_such_op"), nullptr);
}

struct Known {
  const char* op;
  int arity;
  bool complex;
  Real x[6];
  Real value[2];
};

const Known kKnown[] = {
#include "known_values.inc"
};

// Against mpmath: the error of the reference is small compared with half an ULP of float64.
TEST(Oracle, FunctionsAgreeWithMpmath) {
  std::set<std::string> ops;
  for (const Known& known : kKnown) {
    ops.insert(known.op);
    const Dtype dtype = known.complex ? dtype::COMPLEX128 : dtype::FLOAT64;
    std::vector<Array> inputs;
    for (int i = 0; i < known.arity; ++i)
      inputs.push_back(list(dtype, std::vector<Complex>{{known.x[2 * i], known.x[2 * i + 1]}}));
    const Element e = applied(known.op, inputs).elements[0];
    const Real modulus = std::hypot(known.value[0], known.value[1]);
    const bool rounded_already =
        std::string_view("multiply divide reciprocal square").find(known.op) != std::string_view::npos;
    // Exponents of powers round in long double.
    const bool has_powers =
        std::string_view("betainc gammainc gammaincc polygamma").find(known.op) != std::string_view::npos;
    const Real allowed = !known.complex && rounded_already ? 0x1p-53L : has_powers ? 0x1p-57L : 0x1p-59L;
    const Real error =
        std::hypot(e.value.re - known.value[0], e.value.im - known.value[1]) / std::max(modulus, e.scale);
    EXPECT_TRUE(error <= allowed) << known.op << "(" << describe(dtype, Value::of(Complex(known.x[0], known.x[1])))
                                  << "): relative error " << static_cast<double>(error);
  }
  EXPECT_GE(ops.size(), 30u);
}

// The known answers of Random123 (kat_vectors).
TEST(Oracle, PhiloxHasTheKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Dtypes, KnownBitPatterns) {
  const struct {
    Dtype dtype;
    uint16_t bits;
    Real value;
  } kPatterns[] = {
      {dtype::FLOAT16, 0x3c00, 1},
      {dtype::FLOAT16, 0x7bff, 65504},
      {dtype::FLOAT16, 0x0001, 0x1p-24L},
      {dtype::FLOAT16, 0x0400, 0x1p-14L},
      {dtype::FLOAT16, 0x3555, 0x1.554p-2L},
      {dtype::FLOAT16, 0xc000, -2},
      {dtype::FLOAT16, 0x7c00, kInfinity},
      {dtype::FLOAT16, 0x8000, -0.0L},
      {dtype::FLOAT16, 0x03ff, 0x3ffp-24L},
      {dtype::BFLOAT16, 0x3f80, 1},
      {dtype::BFLOAT16, 0x7f7f, 0x1.fep127L},
      {dtype::BFLOAT16, 0x0001, 0x1p-133L},
      {dtype::BFLOAT16, 0x0080, 0x1p-126L},
      {dtype::BFLOAT16, 0x4049, 3.140625L},
      {dtype::BFLOAT16, 0xff80, -kInfinity},
  };
  for (const auto& pattern : kPatterns) {
    const Value value = decode(pattern.dtype, &pattern.bits);
    EXPECT_EQ(value.re, pattern.value);
    EXPECT_EQ(std::signbit(value.re), std::signbit(pattern.value));
    uint16_t bits = 0;
    encode(pattern.dtype, value, &bits);
    EXPECT_EQ(bits, pattern.bits);
  }
}

// Every neighbouring pair: the midpoint goes to the even one, a little more or less to the nearer one.
TEST(Dtypes, HalfTypesRoundToNearestEven) {
  for (Dtype dtype : {Dtype{dtype::FLOAT16}, Dtype{dtype::BFLOAT16}}) {
    const uint16_t infinity = dtype == dtype::FLOAT16 ? 0x7c00 : 0x7f80;
    for (uint16_t bits = 0; bits < infinity; ++bits) {
      const uint16_t next = static_cast<uint16_t>(bits + 1);
      const Real low = decode(dtype, &bits).re;
      const Real high = next == infinity ? std::ldexp(1.0L, format(dtype).emax + 1) : decode(dtype, &next).re;
      const Real middle = (low + high) / 2, little = (high - low) / 1024;
      const auto encoded = [&](Real x) {
        uint16_t result = 0;
        encode(dtype, Value::of(x), &result);
        return result;
      };
      ASSERT_EQ(encoded(low), bits);
      ASSERT_EQ(encoded(-low), bits | 0x8000);
      ASSERT_EQ(encoded(middle - little), bits);
      ASSERT_EQ(encoded(middle + little), next);
      ASSERT_EQ(encoded(middle), bits % 2 == 0 ? bits : next);
    }
  }
}

TEST(Dtypes, RoundingAgreesWithTheHost) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const Real x = std::ldexp(random.uniform(-2, 2), static_cast<int>(random.below(310)) - 160);
    EXPECT_EQ(round_to(format(dtype::FLOAT32), x), static_cast<Real>(static_cast<float>(x)));
    const Real y = std::ldexp(random.uniform(-2, 2), static_cast<int>(random.below(2200)) - 1100);
    EXPECT_EQ(round_to(format(dtype::FLOAT64), y), static_cast<Real>(static_cast<double>(y)));
  }
}

TEST(Dtypes, Promotion) {
  EXPECT_EQ(promote(dtype::INT8, dtype::UINT8), dtype::INT16);
  EXPECT_EQ(promote(dtype::UINT32, dtype::INT8), dtype::INT64);
  EXPECT_EQ(promote(dtype::UINT64, dtype::INT8), 0);
  EXPECT_EQ(promote(dtype::FLOAT32, dtype::INT8), dtype::FLOAT32);
  EXPECT_EQ(promote(dtype::INT64, dtype::FLOAT16), dtype::FLOAT16);
  EXPECT_EQ(promote(dtype::UINT64, dtype::COMPLEX64), dtype::COMPLEX64);
  EXPECT_EQ(promote(dtype::FLOAT64, dtype::COMPLEX64), dtype::COMPLEX128);
  EXPECT_EQ(promote(dtype::FLOAT32, dtype::COMPLEX64), dtype::COMPLEX64);
  EXPECT_EQ(promote(dtype::FLOAT16, dtype::BFLOAT16), dtype::FLOAT32);
  EXPECT_EQ(promote(dtype::BOOL, dtype::INT8), dtype::INT8);
  EXPECT_EQ(promote(dtype::BFLOAT16, dtype::BOOL), dtype::BFLOAT16);
}

TEST(Integers, WrapAndEdges) {
  const Dtype i8 = dtype::INT8;
  EXPECT_EQ(reals(applied("add", {list(i8, Reals{127, -128}), list(i8, Reals{1, -1})})), (Reals{-128, 127}));
  EXPECT_EQ(reals(applied("multiply", {list(dtype::UINT64, Reals{0x1p63L}), list(dtype::UINT64, Reals{3})})),
            (Reals{0x1p63L}));
  EXPECT_EQ(reals(applied("abs", {list(i8, Reals{-128, -3})})), (Reals{-128, 3}));
  EXPECT_EQ(
      reals(applied("floor_divide", {list(i8, Reals{7, -7, 7, -7, 5, -128}), list(i8, Reals{2, 2, -2, -2, 0, -1})})),
      (Reals{3, -4, -4, 3, 0, -128}));
  EXPECT_EQ(reals(applied("remainder", {list(i8, Reals{7, -7, 7, -7, 5, -128}), list(i8, Reals{2, 2, -2, -2, 0, -1})})),
            (Reals{1, 1, -1, -1, 0, 0}));
  EXPECT_EQ(reals(applied("pow", {list(i8, Reals{2, 3, -1, -1, 0, 5, 1}), list(i8, Reals{7, 5, -3, -2, 0, -1, -4})})),
            (Reals{-128, -13, -1, 1, 1, 0, 1}));
  EXPECT_EQ(reals(applied("bitwise_left_shift", {list(i8, Reals{1, 1, 1, 1}), list(i8, Reals{3, 7, 8, -1})})),
            (Reals{8, -128, 0, 0}));
  EXPECT_EQ(reals(applied("bitwise_right_shift", {list(i8, Reals{-9, 9, -9, 9}), list(i8, Reals{1, 1, 8, -1})})),
            (Reals{-5, 4, -1, 0}));
  EXPECT_EQ(reals(applied("negative", {list(dtype::UINT8, Reals{1, 0})})), (Reals{255, 0}));
  EXPECT_EQ(reals(applied("bitwise_invert", {list(dtype::BOOL, Reals{1, 0})})), (Reals{0, 1}));
}

TEST(Floats, SpecialCases) {
  const Dtype f = dtype::FLOAT32;
  const auto pair = [&](const char* op, Real x, Real y) {
    return applied(op, {list(f, Reals{x}), list(f, Reals{y})}).elements[0].value.re;
  };
  EXPECT_EQ(pair("floor_divide", 7, -2), -4);
  EXPECT_TRUE(std::signbit(pair("floor_divide", -1, kInfinity)));
  EXPECT_EQ(pair("floor_divide", -1, kInfinity), 0);
  EXPECT_EQ(pair("floor_divide", kInfinity, -2), -kInfinity);
  EXPECT_TRUE(std::isnan(pair("floor_divide", kInfinity, kInfinity)));
  EXPECT_EQ(pair("floor_divide", 1, 0), kInfinity);
  EXPECT_EQ(pair("floor_divide", 1, 0.1f), 9);
  EXPECT_EQ(pair("remainder", -1, 3), 2);
  EXPECT_EQ(pair("remainder", -1, kInfinity), kInfinity);
  EXPECT_TRUE(std::signbit(pair("remainder", 4, -2)));
  EXPECT_EQ(pair("hypot", kNan, -kInfinity), kInfinity);
  EXPECT_EQ(pair("pow", kNan, 0), 1);
  EXPECT_EQ(pair("pow", -2, 3), -8);
  EXPECT_EQ(pair("nextafter", 1, 2), 1 + 0x1p-23L);
  EXPECT_EQ(pair("nextafter", 1, 0), 1 - 0x1p-24L);
  EXPECT_EQ(pair("nextafter", 0, -1), -0x1p-149L);
  EXPECT_EQ(pair("nextafter", 0x1p-126L, 0), 0x1p-126L - 0x1p-149L);
  EXPECT_EQ(pair("nextafter", largest(format(f)), kInfinity), kInfinity);
  EXPECT_EQ(pair("nextafter", kInfinity, 0), largest(format(f)));
  EXPECT_EQ(pair("logaddexp", -kInfinity, -kInfinity), -kInfinity);
  EXPECT_TRUE(std::isnan(pair("maximum", 1, kNan)));
  EXPECT_TRUE(std::isnan(applied("log", f, -1).value.re));
  EXPECT_EQ(applied("log", f, -0.0L).value.re, -kInfinity);
  EXPECT_EQ(applied("round", f, 2.5L).value.re, 2);
  EXPECT_EQ(applied("sigmoid", f, -kInfinity).value.re, 0);
  EXPECT_EQ(applied("nextafter", {list(dtype::FLOAT16, Reals{1}), list(dtype::FLOAT16, Reals{2})}).elements[0].value.re,
            1 + 0x1p-10L);
}

TEST(Complex, SpecialCases) {
  const auto value = [](const char* op, Complex z) {
    return applied(op, {list(dtype::COMPLEX128, std::vector<Complex>{z})}).elements[0];
  };
  Element e = value("exp", {-kInfinity, kNan});
  EXPECT_EQ(e.value.re, 0);
  EXPECT_EQ(e.value.im, 0);
  EXPECT_EQ(e.open & kSigns, kSigns);
  e = value("sqrt", {-4, -0.0L});
  EXPECT_EQ(e.value.re, 0);
  EXPECT_EQ(e.value.im, -2);
  e = value("log", {-1, -0.0L});
  EXPECT_EQ(e.value.im, -std::acos(-1.0L));
  e = value("log1p", {-1, 0});
  EXPECT_EQ(e.value.re, -kInfinity);
  e = value("abs", {kNan, -kInfinity});
  EXPECT_EQ(e.value.re, kInfinity);
  e = value("tanh", {kInfinity, kNan});
  EXPECT_EQ(e.value.re, 1);
  e = value("cos", {0, kInfinity});
  EXPECT_EQ(e.value.re, kInfinity);
  e = value("cosh", {-kInfinity, 0});
  EXPECT_EQ(e.value.re, kInfinity);
  EXPECT_TRUE(std::signbit(e.value.im));
}

// The C library's own annex G functions in long double agree with the hand-written ones on all special values.
TEST(Complex, SpecialCasesAgreeWithTheCLibrary) {
  using Function = Complex (*)(const Complex&);
  const struct {
    const char* op;
    Function function;
  } kFunctions[] = {
      {"exp", [](const Complex& z) { return std::exp(z); }},   {"cosh", [](const Complex& z) { return std::cosh(z); }},
      {"sinh", [](const Complex& z) { return std::sinh(z); }}, {"tanh", [](const Complex& z) { return std::tanh(z); }},
      {"cos", [](const Complex& z) { return std::cos(z); }},   {"sin", [](const Complex& z) { return std::sin(z); }},
      {"tan", [](const Complex& z) { return std::tan(z); }},   {"asin", [](const Complex& z) { return std::asin(z); }},
      {"atan", [](const Complex& z) { return std::atan(z); }},
  };
  for (const auto& entry : kFunctions) {
    for (const Value& x : special_values(dtype::COMPLEX128)) {
      const Complex z = x.complex();
      const Complex w = entry.function(z);
      Array argument(dtype::COMPLEX128, {1}), result(dtype::COMPLEX128, {1});
      argument.set(0, x);
      result.set(0, Value::of(w));
      const Verdict verdict = judge(result, applied(entry.op, {argument}), {Bound::ULP, 1});
      EXPECT_TRUE(verdict.passed()) << entry.op << describe(dtype::COMPLEX128, x) << ": " << verdict.message;
    }
  }
}

TEST(Ops, Reductions) {
  const Array x = array(dtype::FLOAT32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Array inputs[] = {x};
  EXPECT_EQ(reals(reference_sum(inputs, {})), (Reals{21}));
  EXPECT_EQ(reals(reference_sum(inputs, {{"axes", Shape{0}}})), (Reals{5, 7, 9}));
  EXPECT_EQ(reference_sum(inputs, {{"axes", Shape{-1}}, {"keepdims", int64_t{1}}}).shape, (Shape{2, 1}));
  EXPECT_EQ(reals(reference_prod(inputs, {{"axes", Shape{1}}})), (Reals{6, 120}));
  EXPECT_EQ(reals(reference_mean(inputs, {})), (Reals{3.5L}));
  EXPECT_EQ(reals(reference_max(inputs, {{"axes", Shape{0}}})), (Reals{4, 5, 6}));
  EXPECT_EQ(reals(reference_min(inputs, {{"axes", Shape{1}}})), (Reals{1, 4}));
  EXPECT_EQ(reals(reference_var(inputs, {})), (Reals{35.0L / 12}));
  EXPECT_EQ(reals(reference_var(inputs, {{"correction", std::complex<double>(1)}})), (Reals{3.5L}));
  EXPECT_EQ(reals(reference_std(inputs, {{"axes", Shape{0}}})), (Reals{1.5L, 1.5L, 1.5L}));
  EXPECT_EQ(reals(reference_argmax(inputs, {{"axis", int64_t{1}}})), (Reals{2, 2}));
  EXPECT_EQ(reals(reference_argmin(inputs, {})), (Reals{0}));
  const Array special[] = {list(dtype::FLOAT32, Reals{3, kNan, 5, kNan})};
  EXPECT_EQ(reals(reference_argmax(special, {})), (Reals{1}));
  EXPECT_TRUE(std::isnan(reals(reference_min(special, {}))[0]));
  const Array empty[] = {Array(dtype::INT8, {0})};
  EXPECT_EQ(reference_sum(empty, {}).dtype, dtype::INT64);
  EXPECT_EQ(reals(reference_prod(empty, {})), (Reals{1}));
  EXPECT_EQ(reals(reference_all(empty, {})), (Reals{1}));
  EXPECT_EQ(reals(reference_any(empty, {})), (Reals{0}));
  // 1 + 2^-100, thousands of times over: the compensated sum keeps what a plain sum loses.
  std::vector<Real> values(2001, 1.0L);
  values[0] = 1e20L;
  values[2000] = -1e20L;
  const Array cancelling[] = {list(dtype::FLOAT64, values)};
  EXPECT_EQ(reals(reference_sum(cancelling, {})), (Reals{1999}));
}

TEST(Ops, Matmul) {
  const Array a = array(dtype::INT32, {2, 3}, {1, 2, 3, 4, 5, 6}), b = array(dtype::INT32, {3, 2}, {1, 0, 0, 1, 2, 3});
  const Array v = list(dtype::INT32, Reals{1, 2, 3});
  const auto product = [](const Array& x, const Array& y) {
    const Array inputs[] = {x, y};
    return reference_matmul(inputs, {});
  };
  EXPECT_EQ(reals(product(a, b)), (Reals{7, 11, 16, 23}));
  EXPECT_EQ(reals(product(v, v)), (Reals{14}));
  EXPECT_EQ(product(v, v).shape, Shape{});
  EXPECT_EQ(reals(product(a, v)), (Reals{14, 32}));
  EXPECT_EQ(reals(product(v, b)), (Reals{7, 11}));
  EXPECT_EQ(product(a.reshape({2, 1, 1, 3}), b).shape, (Shape{2, 1, 1, 2}));
  EXPECT_EQ(reals(product(Array(dtype::FLOAT32, {2, 0}), Array(dtype::FLOAT32, {0, 2}))), (Reals{0, 0, 0, 0}));
}

TEST(Ops, Movement) {
  const Array x = array(dtype::INT16, {2, 3}, {1, 2, 3, 4, 5, 6}), y = array(dtype::INT16, {2, 1}, {7, 8});
  const Array both[] = {x, y};
  EXPECT_EQ(reals(reference_concat(both, {{"axis", int64_t{1}}})), (Reals{1, 2, 3, 7, 4, 5, 6, 8}));
  const Array twice[] = {x, x};
  EXPECT_EQ(reference_stack(twice, {{"axis", int64_t{-1}}}).shape, (Shape{2, 3, 2}));
  EXPECT_EQ(reals(reference_stack(twice, {{"axis", int64_t{2}}})), (Reals{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}));
  const Array take[] = {x, list(dtype::INT64, Reals{2, -3})};
  EXPECT_EQ(reals(reference_take(take, {{"axis", int64_t{1}}})), (Reals{3, 1, 6, 4}));
  const Array along[] = {x, array(dtype::INT32, {2, 1}, {-1, 0})};
  EXPECT_EQ(reals(reference_take_along_axis(along, {})), (Reals{3, 4}));
  const Array scatter[] = {x, array(dtype::INT64, {1, 3}, {1, 0, 1}), array(dtype::INT16, {1, 3}, {10, 20, 30})};
  EXPECT_EQ(reals(reference_scatter(scatter, {})), (Reals{1, 20, 3, 10, 5, 30}));
  EXPECT_EQ(reals(reference_scatter(scatter, {{"reduction", std::string("add")}})), (Reals{1, 22, 3, 14, 5, 36}));
  EXPECT_EQ(reals(reference_copy(std::span(&x, 1), {})),
            reals(reference_cast(std::span(&x, 1), {{"dtype", int64_t{dtype::FLOAT64}}})));
  const Array floats[] = {list(dtype::FLOAT32, Reals{kNan, 300, -300, 1.9L, -1.9L, kInfinity})};
  EXPECT_EQ(reals(reference_cast(floats, {{"dtype", int64_t{dtype::INT8}}})), (Reals{0, 127, -128, 1, -1, 127}));
  EXPECT_EQ(reals(reference_cast(floats, {{"dtype", int64_t{dtype::BOOL}}})), (Reals{1, 1, 1, 1, 1, 1}));
  const Array integers[] = {list(dtype::INT32, Reals{300, -1, 16777217})};
  EXPECT_EQ(reals(reference_cast(integers, {{"dtype", int64_t{dtype::UINT8}}})), (Reals{44, 255, 1}));
  EXPECT_EQ(reals(reference_cast(integers, {{"dtype", int64_t{dtype::FLOAT32}}})), (Reals{300, -1, 16777216}));
}

TEST(Ops, Creation) {
  EXPECT_EQ(
      reals(reference_arange(
          {}, {{"start", int64_t{5}}, {"step", int64_t{-2}}, {"size", int64_t{3}}, {"dtype", int64_t{dtype::INT8}}})),
      (Reals{5, 3, 1}));
  EXPECT_EQ(reals(reference_linspace({}, {{"start", std::complex<double>(0)},
                                          {"stop", std::complex<double>(1)},
                                          {"size", int64_t{5}},
                                          {"dtype", int64_t{dtype::FLOAT32}}})),
            (Reals{0, 0.25L, 0.5L, 0.75L, 1}));
  EXPECT_EQ(
      reals(reference_eye(
          {}, {{"rows", int64_t{2}}, {"columns", int64_t{3}}, {"k", int64_t{1}}, {"dtype", int64_t{dtype::INT8}}})),
      (Reals{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(reals(reference_fill({}, {{"shape", Shape{2}}, {"value", int64_t{-1}}, {"dtype", int64_t{dtype::UINT64}}})),
            (Reals{0x1p64L - 1, 0x1p64L - 1}));
}

TEST(Arrays, Views) {
  const Array x = array(dtype::INT8, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto values = [](const Array& view) { return reals(reference_copy(std::span(&view, 1), {})); };
  EXPECT_EQ(values(x.permute({1, 0})), (Reals{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(values(x.slice(1, 2, 2, -2)), (Reals{3, 1, 6, 4}));
  EXPECT_EQ(values(x.slice(0, 1, 1, 1).broadcast_to({2, 2, 3})), (Reals{4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(x.slice(0, 1, 0, 1).size(), 0);
}

// ---- The judge: what it must refuse --------------------------------------------------------------------------------

bool accepts(Dtype dtype, Real exact, Real actual, const Bound& bound, int open = 0, Real scale = 0) {
  Result expected{dtype, {1}, {{Value::of(exact), static_cast<uint8_t>(open), scale}}};
  expected.accumulator = computed_in(dtype);
  expected.terms = 16;
  return judge(list(dtype, Reals{actual}), expected, bound).passed();
}

const Bound kExact{Bound::EXACT, 0};
Bound ulps(Real n) { return {Bound::ULP, n}; }

TEST(Judge, CorrectlyRounded) {
  const Dtype f = dtype::FLOAT32;
  const Real third = 1.0L / 3;
  EXPECT_TRUE(accepts(f, third, static_cast<float>(third), ulps(0)));
  EXPECT_FALSE(accepts(f, third, std::nextafter(static_cast<float>(third), 0.0f), ulps(0)));
  EXPECT_FALSE(accepts(f, third, std::nextafter(static_cast<float>(third), 1.0f), ulps(0)));
  EXPECT_TRUE(accepts(f, 1 + 0x1p-24L, 1, ulps(0)));  // a tie goes to the even neighbour
  EXPECT_FALSE(accepts(f, 1 + 0x1p-24L, 1 + 0x1p-23L, ulps(0)));
  EXPECT_TRUE(accepts(f, 1 + 0x1p-24L + 0x1p-60L, 1 + 0x1p-23L, ulps(0)));
}

TEST(Judge, Ulps) {
  const Dtype f = dtype::FLOAT32;
  EXPECT_TRUE(accepts(f, 1.25L, 1.25L + 0x1p-22L, ulps(2)));
  EXPECT_FALSE(accepts(f, 1.25L, 1.25L + 3 * 0x1p-23L, ulps(2)));
  EXPECT_TRUE(accepts(f, 0x1.4p-140L, 0x1.4p-140L + 0x1p-148L, ulps(2)));  // subnormals: their own distance
  EXPECT_FALSE(accepts(f, 0x1.4p-140L, 0, ulps(2)));                       // and no flushing
  EXPECT_FALSE(accepts(f, 0x1.8p-149L, 0, ulps(1)));
  EXPECT_TRUE(accepts(f, 0x1p-150L, 0, ulps(1)));
  EXPECT_FALSE(accepts(f, 1, kNan, ulps(1000)));
  EXPECT_FALSE(accepts(f, kNan, 1, ulps(1000)));
  EXPECT_TRUE(accepts(f, kNan, -kNan, ulps(0)));
  EXPECT_TRUE(accepts(f, 0x1p128L, kInfinity, ulps(0)));  // rounds to infinity
  EXPECT_TRUE(accepts(f, 1e39L, kInfinity, ulps(1)));
  EXPECT_FALSE(accepts(f, 1e39L, largest(format(f)), ulps(1)));
  EXPECT_TRUE(accepts(f, largest(format(f)), kInfinity, ulps(1)));
  EXPECT_FALSE(accepts(f, 1e38L, kInfinity, ulps(4)));
  EXPECT_FALSE(accepts(f, kInfinity, largest(format(f)), ulps(4)));
  EXPECT_FALSE(accepts(f, kInfinity, -kInfinity, ulps(4)));
}

TEST(Judge, AcceptsWhatFollowsFromFlushedOperands) {
  Array operands[] = {list(dtype::FLOAT32, Reals{0x1p-130L, -3}), list(dtype::FLOAT16, Reals{0x1p-20L})};
  EXPECT_TRUE(flush_subnormals(operands[0]));
  EXPECT_EQ(operands[0].at(0).re, 0);
  EXPECT_EQ(operands[0].at(1).re, -3);
  EXPECT_FALSE(flush_subnormals(operands[1])) << "they are computed in float32";

  Result expected{dtype::FLOAT32, {2}, {{Value::of(2.0L)}, {Value::of(0x1p-127L)}}};
  const auto accepted = [&](Real first, Real second) {
    return judge(list(dtype::FLOAT32, Reals{first, second}), expected, ulps(1)).passed();
  };
  EXPECT_FALSE(accepted(1, 0));
  expected.flushed = {{Value::of(1.0L)}, {Value::of(0.0L)}};
  EXPECT_TRUE(accepted(1, 0));
  EXPECT_TRUE(accepted(2, 0x1p-127L));
  EXPECT_TRUE(accepted(1, 0x1p-149L)) << "a subnormal number counts as zero";
  EXPECT_FALSE(accepted(1.5L, 0));
  EXPECT_FALSE(accepted(1, 1));
}

TEST(Judge, SubnormalsMayBeFlushedWhereItIsSaid) {
  const Dtype f = dtype::FLOAT32;
  EXPECT_TRUE(accepts(f, 0x1.4p-140L, 0, ulps(2), kFlushed));
  EXPECT_TRUE(accepts(f, -0x1.4p-140L, 0, ulps(0), kFlushed));
  EXPECT_TRUE(accepts(f, 0x1p-126L, 0, ulps(2), kFlushed));  // within the bound it is subnormal
  EXPECT_FALSE(accepts(f, 0x1.8p-126L, 0, ulps(2), kFlushed));
  EXPECT_FALSE(accepts(f, 0x1.4p-140L, 0x1p-130L, ulps(2), kFlushed));
  EXPECT_FALSE(accepts(f, 0x1.4p-140L, kNan, ulps(2), kFlushed));
  EXPECT_FALSE(accepts(f, 0.0L, -0.0L, ulps(2), kFlushed));
  EXPECT_FALSE(accepts(dtype::FLOAT16, 0x1p-20L, 0, ulps(2), kFlushed));  // normal in float32
  EXPECT_TRUE(accepts(dtype::BFLOAT16, 0x1p-130L, 0, ulps(2), kFlushed));

  const Array x = list(f, Reals{1, 0x1p-130L}), y = Array(f, {2, 1});
  Result expected = evaluate(*find_elementwise("less"), std::vector<Array>{x, y});
  open_flushed(expected, std::vector<Array>{x, y}, true);
  ASSERT_EQ(expected.elements.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ((expected.elements[i].open & kAny) == kAny, i % 2 == 1) << i;
  Result reduced = expected;
  for (Element& e : reduced.elements) e.open = 0;
  open_flushed(reduced, std::vector<Array>{x, y}, false);
  for (const Element& e : reduced.elements) EXPECT_EQ(e.open, kFlushed);
}

TEST(Judge, ZerosKeepTheirSign) {
  EXPECT_FALSE(accepts(dtype::FLOAT32, 0.0L, -0.0L, ulps(0)));
  EXPECT_FALSE(accepts(dtype::FLOAT32, -0.0L, 0.0L, ulps(4)));
  EXPECT_TRUE(accepts(dtype::FLOAT32, -0.0L, 0.0L, ulps(4), kReSign));
  EXPECT_FALSE(accepts(dtype::FLOAT16, -0.0L, 0.0L, ulps(0)));
}

TEST(Judge, HalfTypesRoundOnceAfterFloat32) {
  const Dtype h = dtype::FLOAT16;
  EXPECT_TRUE(accepts(h, 1 + 0x1p-11L, 1, ulps(0)));
  EXPECT_TRUE(accepts(h, 1 + 0x1p-11L + 0x1p-26L, 1, ulps(0)));  // float32 may have rounded to the tie
  EXPECT_FALSE(accepts(h, 1 + 0x1p-11L + 0x1p-20L, 1, ulps(0)));
  EXPECT_FALSE(accepts(h, 1, 1 + 0x1p-10L, ulps(4)));
  EXPECT_FALSE(accepts(h, 1 + 0x1p-11L + 0x1p-26L, 1, kExact));
  EXPECT_TRUE(accepts(h, 65519, 65504, ulps(0)));
  EXPECT_TRUE(accepts(h, 65520, kInfinity, ulps(0)));
}

TEST(Judge, AddingOps) {
  const Dtype f = dtype::FLOAT32;
  const Bound log2{Bound::LOG2, 0}, n{Bound::TERMS, 0};
  EXPECT_TRUE(accepts(f, 0, 11 * 0x1p-24L, log2, kReSign, 1));  // 16 terms: 12 u
  EXPECT_FALSE(accepts(f, 0, 13 * 0x1p-24L, log2, kReSign, 1));
  EXPECT_TRUE(accepts(f, 0, 15 * 0x1p-24L, n, kReSign, 1));
  EXPECT_FALSE(accepts(f, 0, 17 * 0x1p-24L, n, kReSign, 1));
  EXPECT_FALSE(accepts(f, 0, kNan, n, kReSign, 1));
  EXPECT_TRUE(accepts(dtype::FLOAT16, 1, 1, n, kReSign, 1));
  EXPECT_FALSE(accepts(dtype::FLOAT16, 1, 1 + 0x1p-10L, n, kReSign, 1));
}

TEST(Judge, ComplexByModulus) {
  const Dtype c = dtype::COMPLEX64;
  const auto accepted = [&](Complex exact, Complex actual, const Bound& bound, int open = kSigns) {
    Result expected{c, {1}, {{Value::of(exact), static_cast<uint8_t>(open)}}};
    return judge(list(c, std::vector<Complex>{actual}), expected, bound).passed();
  };
  EXPECT_TRUE(accepted({1, 1e-10L}, {1, -0x1p-22L}, ulps(8)));  // small compared with the modulus
  EXPECT_FALSE(accepted({1, 0}, {1, 9 * 0x1p-23L}, ulps(8)));
  EXPECT_FALSE(accepted({1, 0}, {1, kNan}, ulps(8)));
  EXPECT_TRUE(accepted({kNan, 2}, {kNan, 2}, ulps(8)));
  EXPECT_FALSE(accepted({kNan, 2}, {kNan, 3}, ulps(8)));
  EXPECT_FALSE(accepted({kInfinity, 0}, {-kInfinity, 0}, ulps(8), 0));
  EXPECT_TRUE(accepted({kInfinity, 0}, {-kInfinity, 0}, ulps(8), kReSign));
  EXPECT_TRUE(accepted({kNan, kNan}, {1, kInfinity}, ulps(8), kNotFinite));
  EXPECT_FALSE(accepted({kNan, kNan}, {1, 1}, ulps(8), kNotFinite));
  EXPECT_FALSE(accepted({1, 1e-10L}, {1, 0}, ulps(8), kExactParts));
}

TEST(Judge, ShapesDtypesAndBools) {
  const Result expected = applied("isnan", {list(dtype::FLOAT32, Reals{kNan, 1})});
  Array actual(dtype::BOOL, {2});
  actual.element(0)[0] = std::byte{1};
  EXPECT_TRUE(judge(actual, expected, kExact).passed());
  actual.element(0)[0] = std::byte{2};
  EXPECT_TRUE(judge(actual, expected, kExact).passed()) << "every byte but 0 is true";
  actual.element(0)[0] = std::byte{0};
  EXPECT_FALSE(judge(actual, expected, kExact).passed());
  EXPECT_FALSE(judge(Array(dtype::UINT8, {2}), expected, kExact).passed());
  EXPECT_FALSE(judge(Array(dtype::BOOL, {2, 1}), expected, kExact).passed());
}

// Every reference, on every dtype it takes and all special values, is accepted by its own judge after one rounding.
TEST(Judge, AcceptsTheReferenceItself) {
  for (const char* name : kElementwiseNames) {
    const Elementwise& op = *find_elementwise(name);
    for (const DtypeInfo& entry : kDtypes) {
      if (!takes(op, entry.id)) continue;
      Inputs inputs(7);
      std::vector<Array> operands;
      for (int i = 0; i < op.arity; ++i) {
        const bool condition = op.output == Elementwise::SECOND && i == 0;
        operands.push_back(inputs.operand(name, i, op.arity, condition ? Dtype{dtype::BOOL} : entry.id, {2500}));
      }
      const Result result = evaluate(op, operands);
      const Verdict verdict = judge(rounded(result), result, ulps(is_complex(result.dtype) ? 8 : 0));
      EXPECT_TRUE(verdict.passed()) << name << " " << entry.name << ": " << verdict.message;
      EXPECT_GT(verdict.judged, 1000) << name << " " << entry.name;
    }
  }
}

TEST(Inputs, FixedSeedsGiveFixedNumbers) {
  EXPECT_EQ(Random(42).bits(), 0xbdd732262feb6e95u);
  EXPECT_EQ(Inputs(3).operand("exp", 0, 1, dtype::FLOAT32, {100}).at(99).re,
            Inputs(3).operand("exp", 0, 1, dtype::FLOAT32, {100}).at(99).re);
  EXPECT_EQ(Inputs::exhaustive(dtype::FLOAT16).size(), 65536);
}

// Values that are known in closed form.
TEST(Linalg, KnownValues) {
  Matrix hilbert(4, 4), turn(2, 2);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) hilbert(i, j) = 1 / static_cast<Real>(i + j + 1);
  }
  EXPECT_NEAR(static_cast<double>(lu(hilbert).determinant.real() * 6048000), 1, 1e-14);
  turn(0, 1) = -2;
  turn(1, 0) = 2;
  const Matrix y = exponential(turn);
  EXPECT_NEAR(static_cast<double>(y(0, 0).real()), std::cos(2.0), 1e-15);
  EXPECT_NEAR(static_cast<double>(y(1, 0).real()), std::sin(2.0), 1e-15);
  Matrix x(3, 2);  // of the singular values sqrt(5) and 3
  x(0, 0) = 3;
  x(1, 1) = 1;
  x(2, 1) = Complex(0, 2);
  const Svd parts = svd(x);
  EXPECT_NEAR(static_cast<double>(parts.s[0]), 3, 1e-15);
  EXPECT_NEAR(static_cast<double>(parts.s[1]), std::sqrt(5.0), 1e-15);
  EXPECT_LE(norm(parts.u * diagonal(parts.s) * parts.vh - x), 1e-17L);
  EXPECT_LE(norm(hilbert * solve(hilbert, Matrix::unit(4)) - Matrix::unit(4)), 1e-14L);
}

}  // namespace
}  // namespace compute::oracle
