// SPDX-License-Identifier: Apache-2.0
// Checks known ranges of expressions against their values, and the functions that kernels call for them.
#include "plugins/common/source/expressions/known_ranges.hpp"

#include <cmath>
#include <limits>

#include "tests/unit/generated_kernels.hpp"

namespace compute::common::generated {
namespace {

constexpr compute_dtype kI32 = COMPUTE_DTYPE_INT32, kU32 = COMPUTE_DTYPE_UINT32, kF64 = COMPUTE_DTYPE_FLOAT64;

std::optional<Range> range_of(Expression& e, int32_t node) {
  return known_ranges(*e.view({node}))[static_cast<size_t>(node)];
}

// The last four bits of a word, less 5.
int32_t from_minus_5_to_10(Expression& e, int32_t input, compute_dtype dtype) {
  const int32_t bits = e.call(COMPUTE_PLUGIN_INTRINSIC_BIT_AND, kI32, {e.input(input, kI32), e.constant(15, kI32)});
  const int32_t number = e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, dtype, {bits});
  const int32_t five = dtype == kF32 ? e.constant(5.0f, kF32) : e.constant(5, kI32);
  return e.call(COMPUTE_PLUGIN_INTRINSIC_SUB, dtype, {number, five});
}

TEST(KnownRanges, HaveTheLeastAndGreatestValues) {
  struct Case {
    int32_t intrinsic;
    double (*of)(double, double);
  };
  const Case cases[] = {{COMPUTE_PLUGIN_INTRINSIC_ADD, [](double x, double y) { return x + y; }},
                        {COMPUTE_PLUGIN_INTRINSIC_SUB, [](double x, double y) { return x - y; }},
                        {COMPUTE_PLUGIN_INTRINSIC_MUL, [](double x, double y) { return x * y; }},
                        {COMPUTE_PLUGIN_INTRINSIC_MIN, [](double x, double y) { return std::min(x, y); }},
                        {COMPUTE_PLUGIN_INTRINSIC_MAX, [](double x, double y) { return std::max(x, y); }},
                        {COMPUTE_PLUGIN_INTRINSIC_NEG, [](double x, double) { return -x; }},
                        {COMPUTE_PLUGIN_INTRINSIC_ABS, [](double x, double) { return std::abs(x); }}};
  for (const Case& one : cases) {
    for (const compute_dtype dtype : {kI32, kF32}) {
      double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();
      for (int x = -5; x <= 10; ++x) {
        for (int y = -5; y <= 10; ++y) {
          low = std::min(low, one.of(x, y));
          high = std::max(high, one.of(x, y));
        }
      }
      Expression e;
      std::vector<int32_t> operands = {from_minus_5_to_10(e, 0, dtype)};
      if (one.intrinsic != COMPUTE_PLUGIN_INTRINSIC_NEG && one.intrinsic != COMPUTE_PLUGIN_INTRINSIC_ABS)
        operands.push_back(from_minus_5_to_10(e, 1, dtype));
      const auto range = range_of(e, e.call(one.intrinsic, dtype, operands));
      ASSERT_TRUE(range) << one.intrinsic;
      EXPECT_EQ(range->low, low) << one.intrinsic;
      EXPECT_EQ(range->high, high) << one.intrinsic;
      EXPECT_LE(range->least, 1) << one.intrinsic;
    }
  }
}

TEST(KnownRanges, OfIntegersWrap) {
  Expression e;
  const int32_t x = e.input(0, kU32), one = e.constant(1u, kU32);
  const auto all = range_of(e, x);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->low, 0);
  EXPECT_EQ(all->high, 4294967295.0);
  const auto sum = range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, kU32, {x, one}));
  EXPECT_EQ(sum->low, 0);
  EXPECT_EQ(sum->high, 4294967295.0);
  const auto half = range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_SHR, kU32, {x, one}));
  EXPECT_EQ(half->high, 2147483647.0);
  const auto as_signed = range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, kI32, {x}));
  EXPECT_EQ(as_signed->low, -2147483648.0);
  const auto unknown_shift = range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_SHR, kU32, {x, x}));
  EXPECT_EQ(unknown_shift->high, 4294967295.0);
  const int32_t minus_1 = e.constant(int64_t{-1}, COMPUTE_DTYPE_INT64);
  EXPECT_EQ(range_of(e, minus_1)->low, -1);
  EXPECT_EQ(range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, COMPUTE_DTYPE_UINT64, {minus_1}))->high, 0x1p64);
  // A bound that was rounded is none.
  const int32_t far = e.constant(int64_t{-1} * (int64_t{1} << 53), COMPUTE_DTYPE_INT64);
  const int32_t farther = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_INT64, {far, minus_1});
  EXPECT_EQ(range_of(e, farther)->low, -0x1p63);
}

// Infinities and NaN, and what may become one, are outside of every range.
TEST(KnownRanges, OfFloatsAreFinite) {
  Expression e;
  const int32_t x = e.input(0, kF32), scalar = e.scalar(0, kF32), great = e.constant(0x1.8p127f, kF32);
  const int32_t infinity = e.constant(std::numeric_limits<float>::infinity(), kF32);
  const int32_t nan = e.constant(std::numeric_limits<float>::quiet_NaN(), kF32);
  for (const int32_t node : {x, scalar, infinity, nan}) EXPECT_FALSE(range_of(e, node));
  EXPECT_TRUE(range_of(e, great));
  EXPECT_FALSE(range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, kF32, {great, great})));
  EXPECT_FALSE(range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, kF32, {great, x})));
  const int32_t wide = e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, kF64, {great});
  EXPECT_TRUE(range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, kF64, {wide, wide})));
  const int32_t zero = e.constant(0.0f, kF32), minus_1 = e.constant(-1.0f, kF32);
  for (const int32_t node : {zero, minus_1})
    EXPECT_FALSE(range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_LOG, kF32, {node})));
  EXPECT_FALSE(range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_SQRT, kF32, {minus_1})));
}

// Products may be less than the least normal number, and differences may be anything.
TEST(KnownRanges, KnowHowNearZeroValuesAre) {
  Expression e;
  const int32_t number = from_minus_5_to_10(e, 0, kF32);
  EXPECT_EQ(range_of(e, number)->least, 0);
  const int32_t word = e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, kF32, {e.input(0, kU32)});
  EXPECT_EQ(range_of(e, word)->least, 1);
  const int32_t small = e.constant(0x1p-100f, kF32);
  const int32_t product = e.call(COMPUTE_PLUGIN_INTRINSIC_MUL, kF32, {word, small});
  EXPECT_EQ(range_of(e, product)->least, 0x1p-100f);
  EXPECT_EQ(range_of(e, product)->high, 0x1p-68);
  EXPECT_EQ(range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_MUL, kF32, {product, small}))->least, 0);
  EXPECT_EQ(range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_SQRT, kF32, {product}))->least, 0x1p-50f);
  const int32_t where = e.call(COMPUTE_PLUGIN_INTRINSIC_WHERE, kF32, {e.input(1, COMPUTE_DTYPE_BOOL), word, product});
  EXPECT_EQ(range_of(e, where)->least, 0x1p-100f);
  EXPECT_EQ(range_of(e, where)->high, 0x1p32);
}

// (k + 1) / 2^24 for the upper 24 bits k of a word, or that times `scale`.
int32_t fraction(Expression& e, float scale = 1) {
  const int32_t bits = e.call(COMPUTE_PLUGIN_INTRINSIC_SHR, kU32, {e.input(0, kU32), e.constant(8u, kU32)});
  const int32_t number = e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, kF32, {bits});
  const int32_t unit = e.constant(0x1p-24f * scale, kF32);
  return e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, kF32, {e.call(COMPUTE_PLUGIN_INTRINSIC_MUL, kF32, {number, unit}), unit});
}

TEST(KnownRanges, OfLogarithmsContainThem) {
  Expression e;
  const int32_t x = fraction(e);
  EXPECT_EQ(range_of(e, x)->low, 0x1p-24);
  EXPECT_EQ(range_of(e, x)->high, 1);
  const auto range = range_of(e, e.call(COMPUTE_PLUGIN_INTRINSIC_LOG, kF32, {x}));
  ASSERT_TRUE(range);
  EXPECT_LE(range->low, static_cast<double>(std::log(0x1p-24f)));
  EXPECT_GE(range->low, -16.7);
  EXPECT_EQ(range->high, 0);
  EXPECT_LE(range->least, -static_cast<double>(std::log(1 - 0x1p-24f)));
  EXPECT_GE(range->least, 0x1p-25);
}

std::string map_text(Expression& e, int32_t output, const std::vector<compute_dtype>& inputs, const Dialect& dialect) {
  TestOp op("map");
  for (const compute_dtype dtype : inputs) op.tensor(dtype, {64});
  op.output(kF32, {64}).expression(e.view({output}));
  const Op view = op.view();
  return kernel_source(view, dialect, plan_launches(view, dialect).launches[0]).text;
}

// As in the method of Box and Muller.
TEST_F(GeneratedText, SparesFunctionsOfKnownRangesTheirSpecialCases) {
  Expression e;
  const int32_t log = e.call(COMPUTE_PLUGIN_INTRINSIC_LOG, kF32, {fraction(e)});
  const int32_t product = e.call(COMPUTE_PLUGIN_INTRINSIC_MUL, kF32, {e.constant(-2.0f, kF32), log});
  const int32_t root = e.call(COMPUTE_PLUGIN_INTRINSIC_SQRT, kF32, {product});
  const std::string text = map_text(e, root, {kU32}, gpu());
  EXPECT_NE(text.find(" = log_in_range_f32("), std::string::npos);
  EXPECT_NE(text.find(" = sqrt_in_range_f32("), std::string::npos);
  EXPECT_EQ(map_text(e, root, {kU32}, opencl_gpu()).find("_in_range_"), std::string::npos);
  TestOp op("map");
  op.tensor(kU32, {64}).output(kF32, {64}).expression(e.view({root}));
  expect_compiles(op);
}

// Numbers of any size, subnormal ones, and negative ones.
TEST(KnownRanges, LeaveOtherFunctionsAsTheyAre) {
  for (const int32_t intrinsic : {COMPUTE_PLUGIN_INTRINSIC_LOG, COMPUTE_PLUGIN_INTRINSIC_SQRT}) {
    Expression e;
    const int32_t any = e.call(intrinsic, kF32, {e.input(0, kF32)});
    EXPECT_EQ(map_text(e, any, {kF32}, gpu()).find("_in_range_"), std::string::npos);
    for (const float scale : {0x1p-103f, -1.0f}) {
      Expression scaled;
      const int32_t result = scaled.call(intrinsic, kF32, {fraction(scaled, scale)});
      EXPECT_EQ(map_text(scaled, result, {kU32}, gpu()).find("_in_range_"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace compute::common::generated
