// SPDX-License-Identifier: Apache-2.0
#include "core/ops/lower.hpp"

#include <limits>
#include <map>
#include <numeric>

#include "core/ops/steps.hpp"
#include "core/ops/temporaries.hpp"
#include "tests/unit/op_caller.hpp"

namespace compute {
namespace {

using Values = std::vector<std::complex<double>>;
using Reals = std::vector<double>;

constexpr compute_dtype kFloat = COMPUTE_DTYPE_FLOAT32;
constexpr compute_dtype kDouble = COMPUTE_DTYPE_FLOAT64;
constexpr compute_dtype kHalf = COMPUTE_DTYPE_FLOAT16;
constexpr compute_dtype kInt = COMPUTE_DTYPE_INT32;
constexpr compute_dtype kLong = COMPUTE_DTYPE_INT64;
constexpr compute_dtype kByte = COMPUTE_DTYPE_UINT8;
constexpr compute_dtype kBool = COMPUTE_DTYPE_BOOL;
constexpr compute_dtype kComplex = COMPUTE_DTYPE_COMPLEX64;
const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

Values range(int64_t count, double start = 0) {
  Values result;
  for (int64_t i = 0; i < count; ++i) result.emplace_back(start + static_cast<double>(i));
  return result;
}

// The same elements in another layout: axes reversed in memory, the first one backwards.
TestTensor relaid(const TestTensor& x) {
  TestTensor y = x;
  const int64_t size = dtype_size(x.dtype);
  int64_t stride = 1;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    y.strides[i] = stride;
    stride *= x.shape[i];
  }
  if (!y.shape.empty()) {
    y.start = (y.shape[0] - 1) * y.strides[0] * size;
    y.strides[0] = -y.strides[0];
  }
  for_each_index(x.shape, [&](const std::vector<int64_t>& index) {
    int64_t from = x.start, to = y.start;
    for (size_t i = 0; i < index.size(); ++i) {
      from += index[i] * x.strides[i] * size;
      to += index[i] * y.strides[i] * size;
    }
    std::memcpy(y.bytes.data() + to, x.bytes.data() + from, static_cast<size_t>(size));
  });
  return y;
}

TestAttributes axes(std::vector<int64_t> list, bool keepdims = false) {
  TestAttributes attributes;
  attributes.ints("axes", std::move(list));
  if (keepdims) attributes.int64("keepdims", 1);
  return attributes;
}

// ---- Elementwise ----------------------------------------------------------------------------------------------------

TEST(Decompose, ElementwiseBroadcasts) {
  const TestTensor x = tensor(kFloat, {2, 1}, {10, 20}), y = tensor(kFloat, {3}, {1, 2, 3});
  EXPECT_EQ(reals(run_op("add", {x, y})), (Reals{11, 12, 13, 21, 22, 23}));
  const std::optional<Lowering> lowering = TestCall("add", {x, y}).lower(0);
  ASSERT_EQ(lowering->steps.size(), 1u);
  EXPECT_EQ(lowering->steps[0].inputs[0].strides, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(lowering->steps[0].inputs[1].strides, (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(lowering->temporaries.empty());
  EXPECT_FALSE(TestCall("add", {x, y}).lower(1));
}

TEST(Decompose, ElementwiseScalarsBecomeScalarNodes) {
  const TestTensor x = tensor(kHalf, {2}, {1, 2}), s = scalar_tensor(kDouble, 0.1, true);
  const TestTensor sum = run_op("add", {x, s});
  EXPECT_EQ(sum.dtype, kHalf);
  // 0.1 is rounded to float16 first, as it would be in a tensor of the dtype that it takes.
  EXPECT_EQ(reals(sum)[0], half_to_float(double_to_half(1 + half_to_float(double_to_half(0.1)))));
  const std::optional<Lowering> lowering = TestCall("add", {x, s}).lower(0);
  ASSERT_EQ(lowering->steps[0].scalars.size(), 1u);
  EXPECT_EQ(lowering->steps[0].scalars[0].source, ScalarSource::kOperand);
  EXPECT_EQ(lowering->steps[0].scalars[0].index, 1);
  EXPECT_EQ(lowering->steps[0].scalars[0].dtype, kHalf);
  EXPECT_EQ(lowering->steps[0].inputs.size(), 1u);
  // Scalars alone.
  EXPECT_EQ(reals(run_op("multiply", {scalar_tensor(kFloat, 3), scalar_tensor(kDouble, 0.5)})), Reals{1.5});
}

TEST(Decompose, ElementwiseConvertsMixedDtypes) {
  const TestTensor small = tensor(COMPUTE_DTYPE_INT8, {2}, {100, -100}), large = tensor(kInt, {2}, {1000, 1});
  EXPECT_EQ(reals(run_op("add", {small, large})), (Reals{1100, -99}));
  const TestTensor condition = tensor(kBool, {2}, {1, 0});
  EXPECT_EQ(reals(run_op("where", {condition, small, large})), (Reals{100, 1}));
}

TEST(Decompose, NothingIsDoneForNoElements) {
  const std::optional<Lowering> lowering =
      TestCall("add", {tensor(kFloat, {0, 3}, {}), tensor(kFloat, {3}, {1, 2, 3})}).lower(0);
  ASSERT_TRUE(lowering);
  EXPECT_TRUE(lowering->steps.empty());
  EXPECT_FALSE(TestCall("add", {tensor(kFloat, {0}, {}), tensor(kFloat, {0}, {})}).lower(1));
}

TEST(Decompose, NextafterStepsInHalfTypes) {
  for (const compute_dtype dtype : {COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16}) {
    const LeafDesc leaves[] = {{dtype}, {dtype}};
    const TypedExpression expression = type_expression(op_schema(OpId::k_nextafter_1).expression, leaves);
    const auto widened = [&](uint16_t b) { return dtype == kHalf ? half_to_float(b) : bfloat16_to_float(b); };
    const uint16_t infinity = dtype == kHalf ? 0x7c00 : 0x7f80;
    const uint16_t targets[] = {0,
                                0x8000,
                                1,
                                0x8001,
                                0x3c00,
                                0xbc00,
                                infinity,
                                static_cast<uint16_t>(infinity | 0x8000),
                                static_cast<uint16_t>(infinity + 1)};
    // Every pattern next to a power of two, and one in 29 of the rest.
    for (uint32_t x = 0; x < 0x10000; ++x) {
      const uint32_t place = x % (dtype == kHalf ? 1024 : 128);
      if (place > 1 && place + 1 < (dtype == kHalf ? 1024u : 128u) && x % 29 != 0) continue;
      for (const uint16_t y : targets) {
        const auto bits = static_cast<uint16_t>(x);
        const float from = widened(bits), to = widened(y);
        uint16_t expected;
        if (std::isnan(from)) {
          expected = bits;
        } else if (std::isnan(to) || from == to) {
          expected = y;
        } else if (from == 0) {
          expected = to > 0 ? 1 : 0x8001;
        } else {
          expected = static_cast<uint16_t>((from < to) == (from > 0) ? bits + 1 : bits - 1);
        }
        ScalarBits inputs[2] = {};
        std::memcpy(inputs[0].bits, &bits, 2);
        std::memcpy(inputs[1].bits, &y, 2);
        const ScalarBits made = LoweringEvaluator::evaluate(expression, inputs, {}, {})[0];
        uint16_t actual;
        std::memcpy(&actual, made.bits, 2);
        ASSERT_EQ(actual, expected) << dtype_name(dtype) << " " << from << " towards " << to;
      }
    }
  }
}

// ---- Reductions -----------------------------------------------------------------------------------------------------

TEST(Decompose, SumWidensAndAccumulates) {
  const TestTensor x = tensor(COMPUTE_DTYPE_INT8, {2, 3}, {100, 100, 100, -1, -2, -3});
  const TestTensor total = run_op("sum", {x});
  EXPECT_EQ(total.dtype, kLong);
  EXPECT_EQ(reals(total), Reals{294});
  EXPECT_EQ(reals(run_op("sum", {x}, axes({0}))), (Reals{99, 98, 97}));
  EXPECT_EQ(reals(run_op("sum", {relaid(x)}, axes({-1}))), (Reals{300, -6}));
  EXPECT_EQ(run_op("sum", {x}, axes({1}, true)).shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(run_op("sum", {tensor(kByte, {2}, {200, 200})}).dtype, COMPUTE_DTYPE_UINT64);
  EXPECT_EQ(reals(run_op("sum", {tensor(kBool, {3}, {1, 0, 1})})), Reals{2});
  EXPECT_EQ(reals(run_op("sum", {x}, axes({}))), (Reals{100, 100, 100, -1, -2, -3}));
  EXPECT_EQ(reals(run_op("sum", {x}, TestAttributes().dtype("dtype", COMPUTE_DTYPE_INT8))), Reals{38});
  EXPECT_EQ(run_op("sum", {x}, TestAttributes().dtype("dtype", kHalf)).dtype, kHalf);
  EXPECT_EQ(values(run_op("sum", {tensor(kComplex, {2}, {{1, 2}, {3, -5}})})), (Values{{4, -3}}));
}

TEST(Decompose, HalfAccumulatesInFloat) {
  // 2048 ones and more are beyond where float16 still counts.
  const TestTensor x = tensor(kHalf, {3000}, Values(3000, 1));
  EXPECT_EQ(reals(run_op("sum", {x})), Reals{3000});
  EXPECT_EQ(reals(run_op("mean", {x})), Reals{1});
  const std::optional<Lowering> lowering = TestCall("sum", {x}).lower(0);
  EXPECT_EQ(lowering->steps[0].attributes[2].integers[0], kFloat);
}

TEST(Decompose, ReductionsWithoutElements) {
  const TestTensor x = tensor(kFloat, {2, 0}, {});
  EXPECT_EQ(reals(run_op("sum", {x}, axes({1}))), (Reals{0, 0}));
  EXPECT_EQ(reals(run_op("prod", {x}, axes({1}))), (Reals{1, 1}));
  EXPECT_EQ(reals(run_op("all", {x}, axes({1}))), (Reals{1, 1}));
  EXPECT_EQ(reals(run_op("any", {x}, axes({1}))), (Reals{0, 0}));
  EXPECT_TRUE(std::isnan(reals(run_op("mean", {x}, axes({1})))[1]));
  EXPECT_TRUE(std::isnan(reals(run_op("std", {x}, axes({1})))[0]));
  EXPECT_EQ(run_op("sum", {x}, axes({0})).shape, (std::vector<int64_t>{0}));
  EXPECT_EQ(run_op("max", {x}, axes({0})).shape, (std::vector<int64_t>{0}));
}

// softmax, logsumexp and the maximum of rows; the second is stored as float64 and the last one rounded.
Row softmax_row(Steps& steps) {
  const StepOperand x = steps.input(0);
  Row row{{x}, {1}, {}};
  row.stages.push_back({"max", kFloat, {"x"}, {"x"}, kFloat});
  row.stages.push_back({"sum", kFloat, {"exp(x - r0)"}, {"x * a", {extent_term(1)}}, kFloat});
  row.stages.push_back({"sum", kFloat, {"where(x == r0, 1, 0) * r1"}, {"r0 + log1p(r1 - 1) + x * 0"}, kFloat});
  row.map = StepExpression{"exp(x - r0) / r1; x - r2"};
  row.outputs = {steps.output(0), steps.output(1)};
  row.stored = {{0, steps.output(2)}, {2, steps.output(3)}};
  return row;
}

TEST(Decompose, ARowIsItsStagesAndItsMap) {
  const TestTensor x = tensor(kFloat, {2, 3}, {1, 2, 4, -1, 0, 0.5});
  TestCall test("exp", {relaid(x)});
  const std::vector<int64_t> whole = {2, 3}, kept = {2, 1};
  const std::vector<int64_t> strides = row_major_strides(whole), kept_strides = row_major_strides(kept);
  const LoweringTarget::Output outputs[] = {
      {kFloat, whole, strides}, {kFloat, whole, strides}, {kHalf, kept, kept_strides}, {kDouble, kept, kept_strides}};
  const LoweringTarget target{outputs, false, true};
  for (const bool one_step : {true, false}) {
    Steps steps(test.call(), target);
    const Row row = softmax_row(steps);
    one_step ? steps.row(row) : steps.row_in_steps(row);
    Lowering lowering = steps.take();
    EXPECT_EQ(lowering.steps.size() == 1, one_step);
    layout_temporaries(lowering);
    std::vector<TestTensor> made;
    for (const auto& output : outputs) {
      made.push_back(empty_tensor(output.dtype, {output.shape.begin(), output.shape.end()}));
    }
    LoweringEvaluator evaluator(&test.schema, test.inputs, made, test.run_time);
    evaluator.run(lowering);
    for (size_t i = 0; i < 2; ++i) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += std::exp(reals(x)[3 * i + k]);
      for (size_t k = 0; k < 3; ++k) {
        const double value = reals(x)[3 * i + k];
        EXPECT_NEAR(reals(made[0])[3 * i + k], std::exp(value) / sum, 1e-6);
        EXPECT_NEAR(reals(made[1])[3 * i + k], value - std::log(sum), 1e-6);
      }
      EXPECT_EQ(reals(made[2])[i], i == 0 ? 4 : 0.5);
      EXPECT_NEAR(reals(made[3])[i], std::log(sum), 1e-6);
    }
  }
}

TEST(Decompose, ExtremesAndTruth) {
  const TestTensor x = tensor(kHalf, {2, 3}, {1, 5, -2, 4, kNan, 0});
  const Reals greatest = reals(run_op("max", {x}, axes({1})));
  EXPECT_EQ(greatest[0], 5);
  EXPECT_TRUE(std::isnan(greatest[1]));
  EXPECT_EQ(reals(run_op("min", {x}, axes({1})))[0], -2);
  EXPECT_EQ(reals(run_op("all", {x}, axes({1}))), (Reals{1, 0}));
  EXPECT_EQ(reals(run_op("any", {tensor(kComplex, {2}, {0, {0, 1}})})), Reals{1});
  EXPECT_EQ(reals(run_op("prod", {tensor(kInt, {3}, {2, 3, 4})})), Reals{24});
}

TEST(Decompose, MomentsInTwoPasses) {
  const TestTensor x = tensor(kFloat, {2, 4}, {1, 2, 3, 4, 10, 10, 10, 14});
  EXPECT_EQ(reals(run_op("mean", {x}, axes({1}))), (Reals{2.5, 11}));
  EXPECT_EQ(reals(run_op("var", {x}, axes({1}))), (Reals{1.25, 3}));
  EXPECT_EQ(reals(run_op("var", {relaid(x)}, axes({1}).float64("correction", 1))),
            (Reals{static_cast<float>(5.0 / 3), 4}));
  EXPECT_EQ(reals(run_op("std", {x}, axes({1}, true).float64("correction", 1)))[1], 2);
  const TestTensor complex_mean = run_op("mean", {tensor(kComplex, {2}, {{1, 2}, {3, 6}})});
  EXPECT_EQ(values(complex_mean), (Values{{2, 4}}));
  const TestTensor complex_variance = run_op("var", {tensor(kComplex, {2}, {{1, 2}, {3, 6}})});
  EXPECT_EQ(complex_variance.dtype, kFloat);
  EXPECT_EQ(reals(complex_variance), Reals{5});
  // Nothing is left to divide by.
  EXPECT_EQ(reals(run_op("var", {tensor(kFloat, {2}, {1, 2})}, TestAttributes().float64("correction", 5))),
            Reals{kInf});
  const TestTensor half = run_op("std", {tensor(kHalf, {2}, {1, 3})});
  EXPECT_EQ(half.dtype, kHalf);
  EXPECT_EQ(reals(half), Reals{1});
}

TEST(Decompose, ExtentsAreScalars) {
  const auto digests = [](int64_t n) {
    std::vector<std::array<uint8_t, 16>> result;
    for (const char* op : {"mean", "var", "std", "argmax"}) {
      const std::vector<TestTensor> inputs{tensor(kFloat, {n, 2}, range(2 * n))};
      for (int32_t i = 0; const std::optional<Lowering> lowering = TestCall(op, inputs).lower(i); ++i) {
        for (const Step& step : lowering->steps) {
          for (const TypedExpression& e : step.expressions) result.push_back(e.digest());
        }
      }
    }
    const auto made = [&](const char* op, const TestAttributes& attributes) {
      result.push_back(TestCall(op, {}, attributes).lower(0)->steps[0].expressions[0].digest());
    };
    made("linspace", TestAttributes().float64("start", 0).float64("stop", 1).int64("size", n).dtype("dtype", kFloat));
    made("eye", TestAttributes().int64("rows", n).int64("columns", n).int64("k", n).dtype("dtype", kFloat));
    made("arange", TestAttributes().int64("size", n).dtype("dtype", kFloat));
    return result;
  };
  EXPECT_EQ(digests(3), digests(17));
}

TEST(Decompose, RunTimeAttributesAreScalars) {
  const std::vector<TestTensor> inputs{tensor(kFloat, {4}, range(4))};
  const std::optional<Lowering> lowering = TestCall("var", inputs, TestAttributes().float64("correction", 1)).lower(2);
  const Step& step = lowering->steps[1];
  ASSERT_EQ(step.scalars.size(), 2u);
  EXPECT_EQ(step.scalars[0].source, ScalarSource::kValue);
  EXPECT_EQ(step.scalars[1].source, ScalarSource::kRunTimeAttribute);
  EXPECT_EQ(step.scalars[1].index, 0);
  EXPECT_EQ(step.scalars[1].dtype, kFloat);
}

TEST(Decompose, ArgReductions) {
  const TestTensor x = tensor(kFloat, {2, 4}, {1, 7, 7, 2, kNan, 1, kNan, 9});
  const auto along = [](int64_t axis) { return TestAttributes().int64("axis", axis); };
  EXPECT_EQ(reals(run_op("argmax", {x}, along(1))), (Reals{1, 0}));
  EXPECT_EQ(reals(run_op("argmin", {x}, along(-1))), (Reals{0, 0}));
  EXPECT_EQ(reals(run_op("argmax", {x}, along(0))), (Reals{1, 0, 1, 1}));
  EXPECT_EQ(reals(run_op("argmax", {x})), Reals{4});
  EXPECT_EQ(reals(run_op("argmax", {relaid(x)})), Reals{4});
  EXPECT_EQ(run_op("argmax", {x}, along(1).int64("keepdims", 1)).shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(run_op("argmax", {x}, TestAttributes().int64("keepdims", 1)).shape, (std::vector<int64_t>{1, 1}));
  const TestTensor cube = tensor(kInt, {2, 3, 4}, [] {
    Values v = range(24);
    v[17] = 99;
    return v;
  }());
  EXPECT_EQ(reals(run_op("argmax", {cube})), Reals{17});
  EXPECT_EQ(reals(run_op("argmax", {relaid(cube)})), Reals{17});
  EXPECT_EQ(reals(run_op("argmin", {tensor(kFloat, {}, {3})})), Reals{0});
  EXPECT_EQ(reals(run_op("argmin", {scalar_tensor(kFloat, 3)})), Reals{0});
  EXPECT_EQ(reals(run_op("argmax", {tensor(kInt, {1, 1}, {3})})), Reals{0});
  const TestTensor unsigned_extremes = tensor(COMPUTE_DTYPE_UINT64, {2}, {1, 1.8e19});
  EXPECT_EQ(reals(run_op("argmax", {unsigned_extremes})), Reals{1});
  // Rows of a wide tensor do not lie evenly: no primitive, but a decomposition.
  TestTensor rows = tensor(kFloat, {2, 3}, range(6));
  rows.shape = {2, 2};
  EXPECT_STREQ(TestCall("argmax", {rows}).lower(0)->steps[0].name, "reduce");
  EXPECT_STREQ(TestCall("argmax", {x}).lower(0)->steps[0].name, "arg_reduce");
}

TEST(Decompose, ReductionOfAScalar) {
  EXPECT_EQ(reals(run_op("sum", {scalar_tensor(kFloat, 2.5)})), Reals{2.5});
  EXPECT_EQ(reals(run_op("var", {scalar_tensor(kFloat, 2.5)})), Reals{0});
}

// ---- Creation -------------------------------------------------------------------------------------------------------

TEST(Decompose, Arange) {
  const auto made = [](compute_dtype dtype) { return TestAttributes().int64("size", 4).dtype("dtype", dtype); };
  EXPECT_EQ(reals(run_op("arange", {}, made(kInt))), (Reals{0, 1, 2, 3}));
  EXPECT_EQ(reals(run_op("arange", {}, made(kFloat).float64("start", 0.5).float64("step", -0.25))),
            (Reals{0.5, 0.25, 0, -0.25}));
  EXPECT_EQ(reals(run_op("arange", {}, made(kHalf).int64("start", 2).float64("step", 0.5))), (Reals{2, 2.5, 3, 3.5}));
  EXPECT_EQ(reals(run_op("arange", {}, made(COMPUTE_DTYPE_INT8).int64("start", 126))), (Reals{126, 127, -128, -127}));
  // Beyond what float64 holds.
  const int64_t large = (int64_t{1} << 62) + 1;
  const TestTensor exact = run_op("arange", {}, made(kLong).int64("start", large).int64("step", 3));
  int64_t last;
  std::memcpy(&last, exact.bytes.data() + 24, 8);
  EXPECT_EQ(last, large + 9);
  EXPECT_EQ(values(run_op("arange", {}, made(kComplex).complex128("step", 1, 2)))[3], (std::complex<double>{3, 6}));
  EXPECT_EQ(run_op("arange", {}, TestAttributes().int64("size", 0).dtype("dtype", kInt)).count(), 0);
}

TEST(Decompose, CreationWithoutFloat64) {
  for (const char* op : {"arange", "linspace"}) {
    TestAttributes attributes;
    attributes.int64("size", 5).dtype("dtype", kFloat).float64("start", 1);
    if (std::string_view(op) == "linspace") attributes.float64("stop", 2);
    const TestCall test(op, {}, attributes);
    const std::vector<int64_t> shape{5}, strides{1};
    const LoweringTarget::Output output{kFloat, shape, strides};
    const std::optional<Lowering> lowering = lower(test.call(), infer(test.call()), {{&output, 1}, false, false}, 0);
    for (const compute_plugin_node& node : lowering->steps[0].expressions[0].nodes()) EXPECT_NE(node.dtype, kDouble);
  }
}

TEST(Decompose, Linspace) {
  const auto made = [](double start, double stop, int64_t size, compute_dtype dtype = kDouble) {
    return TestAttributes().float64("start", start).float64("stop", stop).int64("size", size).dtype("dtype", dtype);
  };
  EXPECT_EQ(reals(run_op("linspace", {}, made(0, 1, 5))), (Reals{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(reals(run_op("linspace", {}, made(0, 1, 4).int64("endpoint", 0))), (Reals{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(reals(run_op("linspace", {}, made(3, 8, 1))), Reals{3});
  EXPECT_EQ(reals(run_op("linspace", {}, made(3, 8, 1).int64("endpoint", 0))), Reals{3});
  EXPECT_EQ(reals(run_op("linspace", {}, made(-1e308, 1e308, 3))), (Reals{-1e308, 0, 1e308}));
  const Reals whole = reals(run_op("linspace", {}, made(0, 100, 101)));
  for (size_t i = 0; i <= 100; ++i) EXPECT_EQ(whole[i], static_cast<double>(i));
  for (const double stop : {0.1, 1.0 / 3, 1e300, -7.77}) {
    const Reals ends = reals(run_op("linspace", {}, made(0.7, stop, 37)));
    EXPECT_EQ(ends.front(), 0.7);
    EXPECT_EQ(ends.back(), stop);
  }
  EXPECT_EQ(reals(run_op("linspace", {}, made(0, 0.1, 3, kHalf)))[2], half_to_float(double_to_half(0.1)));
  TestAttributes complex_line;
  complex_line.complex128("start", 0, 1).complex128("stop", 4, -1).int64("size", 3).dtype("dtype", kComplex);
  EXPECT_EQ(values(run_op("linspace", {}, complex_line)), (Values{{0, 1}, {2, 0}, {4, -1}}));
}

TEST(Decompose, EyeAndFill) {
  const auto eye = [](int64_t k, compute_dtype dtype) {
    return TestAttributes().int64("rows", 2).int64("columns", 3).int64("k", k).dtype("dtype", dtype);
  };
  EXPECT_EQ(reals(run_op("eye", {}, eye(0, kFloat))), (Reals{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(reals(run_op("eye", {}, eye(1, kBool))), (Reals{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(reals(run_op("eye", {}, eye(-1, kHalf))), (Reals{0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(reals(run_op("eye", {}, eye(std::numeric_limits<int64_t>::min(), kInt))), Reals(6, 0));
  const auto fill = [](compute_dtype dtype) { return TestAttributes().ints("shape", {2, 2}).dtype("dtype", dtype); };
  EXPECT_EQ(reals(run_op("fill", {}, fill(kHalf).float64("value", 1.5))), Reals(4, 1.5));
  EXPECT_EQ(reals(run_op("fill", {}, fill(kInt))), Reals(4, 0));
  EXPECT_EQ(reals(run_op("fill", {}, fill(kBool).int64("value", 7))), Reals(4, 1));
  EXPECT_EQ(run_op("fill", {}, TestAttributes().ints("shape", {}).dtype("dtype", kInt)).count(), 1);
}

// ---- Movement -------------------------------------------------------------------------------------------------------

TEST(Decompose, CopyAndCast) {
  const TestTensor x = tensor(kFloat, {2, 2}, {1.5, -2.5, kNan, 300});
  EXPECT_EQ(reals(run_op("copy", {relaid(x)}))[1], -2.5);
  const auto cast = [](compute_dtype dtype) { return TestAttributes().dtype("dtype", dtype); };
  EXPECT_EQ(reals(run_op("cast", {x}, cast(kByte))), (Reals{1, 0, 0, 255}));
  EXPECT_EQ(reals(run_op("cast", {x}, cast(kBool))), (Reals{1, 1, 1, 1}));
  EXPECT_EQ(reals(run_op("cast", {scalar_tensor(kDouble, 2.7)}, cast(kInt))), Reals{2});
  EXPECT_EQ(values(run_op("cast", {x}, cast(kComplex)))[1], (std::complex<double>{-2.5, 0}));
}

TEST(Decompose, Join) {
  const TestTensor a = tensor(kInt, {1, 2}, {1, 2}), b = tensor(kInt, {2, 2}, {3, 4, 5, 6}),
                   none = tensor(kInt, {0, 2}, {});
  EXPECT_EQ(reals(run_op("concat", {a, none, relaid(b)})), (Reals{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(reals(run_op("concat", {b, b}, TestAttributes().int64("axis", -1))), (Reals{3, 4, 3, 4, 5, 6, 5, 6}));
  EXPECT_EQ(run_op("concat", {a, tensor(kLong, {1, 2}, {7, 8})}).dtype, kLong);
  EXPECT_EQ(reals(run_op("stack", {b, b}, TestAttributes().int64("axis", 2))), (Reals{3, 3, 4, 4, 5, 5, 6, 6}));
  EXPECT_EQ(run_op("stack", {b, b}, TestAttributes().int64("axis", -3)).shape, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(reals(run_op("stack", {scalar_tensor(kFloat, 1), tensor(kFloat, {}, {2}), scalar_tensor(kLong, 3, true)})),
            (Reals{1, 2, 3}));
  EXPECT_EQ(reals(run_op("concat", {none, none})), Reals{});
}

TEST(Decompose, Take) {
  const TestTensor x = tensor(kFloat, {2, 3}, range(6)), two = tensor(kLong, {2}, {2, -3});
  const auto along = [](int64_t axis) { return TestAttributes().int64("axis", axis); };
  EXPECT_EQ(reals(run_op("take", {x, two}, along(1))), (Reals{2, 0, 5, 3}));
  EXPECT_EQ(reals(run_op("take", {relaid(x), tensor(kByte, {3}, {1, 0, 1})})), (Reals{3, 4, 5, 0, 1, 2, 3, 4, 5}));
  const TestTensor matrix = tensor(kInt, {2, 2}, {0, 1, -1, 0});
  const TestTensor taken = run_op("take", {x, relaid(matrix)}, along(-1));
  EXPECT_EQ(taken.shape, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(reals(taken), (Reals{0, 1, 2, 0, 3, 4, 5, 3}));
  EXPECT_EQ(reals(run_op("take", {x, matrix}, along(0))), (Reals{0, 1, 2, 3, 4, 5, 3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(reals(run_op("take", {x, tensor(kLong, {}, {1})}, along(0))), (Reals{3, 4, 5}));
  EXPECT_EQ(reals(run_op("take", {x, scalar_tensor(kLong, -1)}, along(1))), (Reals{2, 5}));
  EXPECT_EQ(run_op("take", {x, tensor(kLong, {0}, {})}, along(1)).shape, (std::vector<int64_t>{2, 0}));
}

TEST(Decompose, IndicesOutOfRangeAreFaults) {
  // A uint64 beyond int64 must not come around as a negative index.
  TestCall test("take", {tensor(kFloat, {3}, range(3)), tensor(COMPUTE_DTYPE_UINT64, {2}, {1, 1.8446744073709550e19})});
  std::vector<TestTensor> outputs{empty_tensor(kFloat, {2})};
  LoweringEvaluator evaluator(&test.schema, test.inputs, outputs, {});
  evaluator.run(*test.lower(0));
  EXPECT_EQ(evaluator.faults, 1);
}

TEST(Decompose, TakeAlongAxis) {
  const TestTensor x = tensor(kFloat, {2, 3}, range(6));
  EXPECT_EQ(reals(run_op("take_along_axis", {x, tensor(kLong, {2, 2}, {2, 0, -1, 1})})), (Reals{2, 0, 5, 4}));
  EXPECT_EQ(reals(run_op("take_along_axis", {x, tensor(kInt, {1, 3}, {1, 0, 1})}, TestAttributes().int64("axis", 0))),
            (Reals{3, 1, 5}));
  // Both sides repeat outside of the axis.
  EXPECT_EQ(reals(run_op("take_along_axis", {relaid(x), tensor(kInt, {1, 1}, {1})})), (Reals{1, 4}));
  EXPECT_EQ(reals(run_op("take_along_axis", {tensor(kFloat, {1, 3}, range(3)), tensor(kInt, {2, 1}, {1, 2})})),
            (Reals{1, 2}));
}

TEST(Decompose, Scatter) {
  const TestTensor x = tensor(kFloat, {2, 3}, range(6)), indices = tensor(kLong, {2, 1}, {2, -3}),
                   updates = tensor(kFloat, {2, 1}, {10, 20});
  const auto attributes = [](const char* reduction) {
    return TestAttributes().int64("axis", 1).string("reduction", reduction);
  };
  EXPECT_EQ(reals(run_op("scatter", {x, indices, updates}, attributes("set"))), (Reals{0, 1, 10, 20, 4, 5}));
  EXPECT_EQ(reals(run_op("scatter", {x, indices, updates}, attributes("add"))), (Reals{0, 1, 12, 23, 4, 5}));
  EXPECT_EQ(reals(run_op("scatter", {x, indices, updates}, attributes("min"))), (Reals{0, 1, 2, 3, 4, 5}));
  // Indices may span a part of x; a number is given to all.
  const TestTensor part = tensor(COMPUTE_DTYPE_INT16, {1, 2}, {1, 0});
  EXPECT_EQ(reals(run_op("scatter", {x, part, scalar_tensor(kLong, 9, true)})), (Reals{0, 9, 2, 9, 4, 5}));
  EXPECT_EQ(reals(run_op("scatter", {x, tensor(kLong, {0, 3}, {}), tensor(kFloat, {0, 3}, {})})), reals(x));
  const TestCall test("scatter", {x, indices, updates}, attributes("set").int64("deterministic", 1));
  ASSERT_EQ(test.lower(0)->steps.size(), 1u);
  EXPECT_EQ(test.lower(0)->steps[0].inputs.size(), 3u);
  EXPECT_TRUE(test.lower(0)->steps[0].deterministic);
  ASSERT_EQ(test.lower(1)->steps.size(), 2u);
  EXPECT_TRUE(test.lower(1)->steps[1].deterministic);
  EXPECT_FALSE(test.lower(2));
  ASSERT_EQ(test.lower(0, true)->steps.size(), 1u);
  EXPECT_EQ(test.lower(0, true)->steps[0].inputs.size(), 2u);
  EXPECT_FALSE(test.lower(1, true));
  EXPECT_TRUE(test.schema.in_place());
}

TEST(Decompose, ScatterOfManyUpdatesWithoutOrder) {
  // Eleven updates of each of four elements, and two of the last; none of the fifth.
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::complex<double>> places, numbers;
  for (int i = 0; i < 44; ++i) {
    places.push_back(i % 4);
    numbers.push_back(i % 4 == 0 ? i : std::ldexp(i % 3 - 1, i % 4 == 1 ? -149 : 127 - i % 8));
  }
  numbers[2] = kInf;   // of element 2
  numbers[3] = -kInf;  // and 3, where the next is the other one
  numbers[7] = kInf;
  places.insert(places.end(), {5, -1});
  numbers.insert(numbers.end(), {-0.0, kNan});
  const TestTensor x = tensor(kFloat, {6}, {0.5, 0, 0, 0, -0.0, 1}), indices = tensor(kLong, {46}, places),
                   updates = tensor(kFloat, {46}, numbers);
  const auto run = [&](const char* reduction) {
    return reals(run_op("scatter", {x, indices, updates}, TestAttributes().string("reduction", reduction)));
  };
  double first = 0.5, second = 0;
  for (size_t i = 0; i < 44; i += 4) first += numbers[i].real();
  for (size_t i = 1; i < 44; i += 4) second += numbers[i].real();
  const Reals sums = run("add");
  EXPECT_EQ(Reals(sums.begin(), sums.begin() + 3), (Reals{first, second, kInf}));
  EXPECT_TRUE(std::isnan(sums[3]));
  EXPECT_TRUE(std::signbit(sums[4]));
  EXPECT_TRUE(std::isnan(sums[5]));
  const Reals set = run("set");
  EXPECT_EQ(Reals(set.begin(), set.begin() + 5),
            (Reals{numbers[40].real(), numbers[41].real(), numbers[42].real(), numbers[43].real(), 0}));
  const TestCall test("scatter", {x, indices, updates});
  const Inference inference = infer(test.call());
  const std::vector<int64_t> strides{1};
  const LoweringTarget::Output output{kFloat, x.shape, strides};
  const std::optional<Lowering> lowering = lower(test.call(), inference, {{&output, 1}, false, true, true, true}, 0);
  for (const Step& step : lowering->steps) EXPECT_FALSE(step.deterministic);
}

TEST(Decompose, Matmul) {
  const TestTensor a = tensor(kFloat, {2, 3}, range(6)), b = tensor(kFloat, {3, 2}, range(6, 1));
  EXPECT_EQ(reals(run_op("matmul", {a, b})), (Reals{13, 16, 40, 52}));
  EXPECT_EQ(reals(run_op("matmul", {relaid(a), relaid(b)})), (Reals{13, 16, 40, 52}));
  const TestTensor v = tensor(kFloat, {3}, {1, 2, 3});
  EXPECT_EQ(reals(run_op("matmul", {a, v})), (Reals{8, 26}));
  EXPECT_EQ(reals(run_op("matmul", {v, b})), (Reals{22, 28}));
  const TestTensor dot = run_op("matmul", {v, v});
  EXPECT_EQ(dot.shape, std::vector<int64_t>{});
  EXPECT_EQ(reals(dot), Reals{14});
  const TestTensor batch =
      run_op("matmul", {tensor(kInt, {2, 1, 1, 2}, range(4)), tensor(COMPUTE_DTYPE_INT16, {3, 2, 1}, range(6))});
  EXPECT_EQ(batch.shape, (std::vector<int64_t>{2, 3, 1, 1}));
  EXPECT_EQ(batch.dtype, kInt);
  EXPECT_EQ(reals(batch), (Reals{1, 3, 5, 3, 13, 23}));
  EXPECT_EQ(reals(run_op("matmul", {tensor(kFloat, {2, 0}, {}), tensor(kFloat, {0, 1}, {})})), (Reals{0, 0}));
  EXPECT_EQ(run_op("matmul", {tensor(kFloat, {0, 3}, {}), b}).shape, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(values(run_op("matmul", {tensor(kComplex, {1, 1}, {{0, 1}}), tensor(kComplex, {1, 1}, {{0, 1}})})),
            (Values{-1}));
  const std::optional<Lowering> product = TestCall("matmul", {a, b}).lower(0);
  EXPECT_STREQ(product->steps[0].name, "contraction");
  ASSERT_EQ(product->steps[0].attributes.size(), 1u);  // every attribute is given
  EXPECT_STREQ(product->steps[0].attributes[0].name, "scaled");
  EXPECT_EQ(product->steps[0].attributes[0].integers, std::vector<int64_t>{0});
  EXPECT_STREQ(TestCall("matmul", {a, b}).lower(1)->steps[0].name, "reduce");
  EXPECT_FALSE(TestCall("matmul", {a, b}).lower(2));
  // Repeated operands are converted before they are repeated.
  const TestTensor small = tensor(COMPUTE_DTYPE_INT8, {2, 2}, range(4));
  const std::optional<Lowering> mixed = TestCall("matmul", {small, tensor(kInt, {5, 2, 2}, range(20))}).lower(0);
  EXPECT_EQ(mixed->temporaries[0].size_bytes, 16);
}

// ---- The form of lowerings ------------------------------------------------------------------------------------------

TEST(Decompose, CompositesAreOfferedFirst) {
  const std::vector<TestTensor> inputs{tensor(kFloat, {4, 2}, range(8))};
  const std::optional<Lowering> first = TestCall("var", inputs, axes({0}).float64("correction", 1)).lower(0);
  ASSERT_TRUE(first->is_composite);
  ASSERT_EQ(first->steps.size(), 1u);
  const Step& step = first->steps[0];
  EXPECT_STREQ(step.name, "var");
  ASSERT_EQ(step.attributes.size(), 1u);
  EXPECT_STREQ(step.attributes[0].name, "axes");
  EXPECT_EQ(step.attributes[0].integers, std::vector<int64_t>{0});
  ASSERT_EQ(step.scalars.size(), 1u);
  EXPECT_EQ(step.scalars[0].dtype, kDouble);
  EXPECT_EQ(step.scalars[0].source, ScalarSource::kRunTimeAttribute);
  // Then the row, then its steps.
  EXPECT_STREQ(TestCall("var", inputs).lower(1)->steps.front().name, "row");
  EXPECT_STREQ(TestCall("var", inputs).lower(2)->steps.front().name, "reduce");
  EXPECT_FALSE(TestCall("var", inputs).lower(3));
  // Not if an operand is not a tensor, or is empty.
  EXPECT_FALSE(TestCall("var", {scalar_tensor(kFloat, 1)}).lower(0)->is_composite);
  EXPECT_FALSE(TestCall("var", {tensor(kFloat, {1, 0}, {})}, axes({1})).lower(0)->is_composite);
  EXPECT_FALSE(
      TestCall("scatter", {inputs[0], tensor(kInt, {1, 1}, {0}), tensor(kFloat, {1, 1}, {0})}).lower(0)->is_composite);
}

TEST(Decompose, TemporariesShareMemory) {
  Lowering lowering;
  const int64_t sizes[] = {100, 300, 50, 256};
  for (const int64_t size : sizes) lowering.temporaries.push_back({kByte, size, 0});
  // 0 lives in steps 0…1, 1 in 1…2, 2 in 2…3, 3 in 3.
  const std::vector<std::vector<int32_t>> named{{0}, {0, 1}, {1, 2}, {2, 3}};
  for (const auto& list : named) {
    Step step;
    for (const int32_t i : list) {
      StepOperand operand;
      operand.kind = ValueKind::kTemporary;
      operand.index = i;
      step.inputs.push_back(operand);
    }
    lowering.steps.push_back(step);
  }
  layout_temporaries(lowering);
  const auto& t = lowering.temporaries;
  for (const Temporary& x : t) EXPECT_EQ(x.offset_bytes % 256, 0);
  EXPECT_EQ(lowering.temporary_bytes, 768);
  EXPECT_EQ(t[1].offset_bytes, 0);
  EXPECT_EQ(t[0].offset_bytes, 512);
  EXPECT_EQ(t[3].offset_bytes, 0);
  EXPECT_TRUE(t[2].offset_bytes == 512);
  lowering.temporaries.clear();
  lowering.steps.clear();
  layout_temporaries(lowering);
  EXPECT_EQ(lowering.temporary_bytes, 0);
}

// Operands of ops that do not take two-by-two matrices alone.
std::vector<TestTensor> special_inputs(const std::string& op) {
  const auto all = [](std::initializer_list<std::pair<compute_dtype, std::vector<int64_t>>> list) {
    std::vector<TestTensor> inputs;
    for (const auto& [dtype, shape] : list) inputs.push_back(empty_tensor(dtype, shape));
    return inputs;
  };
  const std::vector<int64_t> heads{1, 2, 2, 2}, rows{1, 2, 2}, matrix{2, 2}, vector{2}, image{1, 2, 4}, pooled{1, 2, 2};
  const std::map<std::string, std::vector<TestTensor>> inputs = {
      {"affine", all({{kFloat, matrix}, {kFloat, matrix}, {kFloat, vector}})},
      {"attention", all({{kFloat, heads}, {kFloat, heads}, {kFloat, heads}, {kBool, matrix}})},
      {"attention_grad", all({{kFloat, heads},
                              {kFloat, heads},
                              {kFloat, heads},
                              {kFloat, heads},
                              {kFloat, heads},
                              {kFloat, rows},
                              {kBool, matrix}})},
      {"average_pool", all({{kFloat, image}})},
      {"average_pool_grad", all({{kFloat, {1, 2, 1}}})},
      {"batch_norm", all({{kFloat, matrix}, {kFloat, vector}, {kFloat, vector}})},
      {"batch_norm_grad",
       all({{kFloat, matrix}, {kFloat, matrix}, {kFloat, vector}, {kFloat, vector}, {kFloat, vector}})},
      {"batch_norm_inference",
       all({{kFloat, matrix}, {kFloat, vector}, {kFloat, vector}, {kFloat, vector}, {kFloat, vector}})},
      {"convolution", all({{kFloat, image}, {kFloat, {2, 2, 2}}, {kFloat, vector}})},
      {"convolution_grad_input", all({{kFloat, {1, 2, 1}}, {kFloat, {2, 2, 2}}})},
      {"convolution_grad_weight", all({{kFloat, {1, 2, 3}}, {kFloat, image}})},
      {"convolution_transpose", all({{kFloat, image}, {kFloat, {2, 2, 2}}, {kFloat, vector}})},
      {"cross_entropy", all({{kFloat, matrix}, {kLong, vector}})},
      {"cross_entropy_grad", all({{kFloat, vector}, {kFloat, matrix}, {kLong, vector}, {kFloat, vector}})},
      {"cross_entropy_soft_grad", all({{kFloat, vector}, {kFloat, matrix}, {kFloat, matrix}, {kFloat, vector}})},
      {"einsum", all({{kFloat, matrix}, {kFloat, matrix}})},
      {"gemm", all({{kFloat, matrix}, {kFloat, matrix}, {kFloat, matrix}, {kFloat, vector}})},
      {"group_norm", all({{kFloat, image}, {kFloat, vector}, {kFloat, vector}})},
      {"group_norm_grad",
       all({{kFloat, image}, {kFloat, image}, {kFloat, {1, 2}}, {kFloat, {1, 2}}, {kFloat, vector}})},
      {"layer_norm", all({{kFloat, matrix}, {kFloat, vector}, {kFloat, vector}})},
      {"layer_norm_grad",
       all({{kFloat, matrix}, {kFloat, matrix}, {kFloat, vector}, {kFloat, vector}, {kFloat, vector}})},
      {"max_pool", all({{kFloat, image}})},
      {"max_pool_grad", all({{kFloat, pooled}, {kFloat, image}, {kFloat, pooled}})},
      {"one_hot", all({{kLong, vector}})},
      {"pad", all({{kFloat, vector}})},
      {"rms_norm", all({{kFloat, matrix}, {kFloat, vector}})},
      {"rms_norm_grad", all({{kFloat, matrix}, {kFloat, matrix}, {kFloat, vector}, {kFloat, vector}})},
      {"rotary_embedding", all({{kFloat, matrix}, {kLong, vector}})},
      {"scatter_nd", all({{kFloat, matrix}, {kLong, matrix}, {kFloat, vector}})},
      {"searchsorted", all({{kFloat, vector}, {kFloat, matrix}, {kLong, vector}})},
      {"segment_reduce", all({{kFloat, matrix}, {kLong, vector}})},
      {"tensordot", all({{kFloat, {2, 2, 2}}, {kFloat, {2, 2, 2}}})},
  };
  const auto found = inputs.find(op);
  return found == inputs.end() ? std::vector<TestTensor>() : found->second;
}

TEST(Decompose, EveryLastAlternativeIsOfRequiredPrimitives) {
  const std::vector<std::string> required{"map", "copy", "reduce", "gather", "scatter"};
  for (const OpSchema* schema : op_schemas()) {
    std::vector<TestTensor> inputs;
    for (size_t i = 0; i < schema->inputs.size(); ++i) {
      const bool indices = schema->inputs[i] == "indices";
      const bool condition = schema->result == RowResult::kSecond && i == 0;
      compute_dtype dtype = indices ? kLong : condition ? kBool : kFloat;
      if (schema->is_elementwise && !condition && !in_class(kFloat, schema->input_class)) {
        dtype = in_class(kBool, schema->input_class) && schema->input_class == DtypeClass::kBool ? kBool
                : schema->input_class == DtypeClass::kComplex                                    ? kComplex
                                                                                                 : kInt;
      }
      inputs.push_back(tensor(dtype, {2, 2}, {0, 1, 1, 0}));
    }
    TestAttributes attributes;
    for (const AttributeSchema& attribute : schema->attributes) {
      if (!attribute.required) continue;
      const char* name = attribute.name.c_str();
      const bool is_integer = schema->name == "random_bits" || schema->name == "random_integers";
      if (attribute.kind == AttributeKind::kDtype) {
        attributes.dtype(name, schema->name == "random_permutation" ? kLong
                               : is_integer                         ? compute_dtype{COMPUTE_DTYPE_UINT32}
                                                                    : kFloat);
      }
      if (attribute.kind == AttributeKind::kNumber) attributes.float64(name, 1);
      if (attribute.kind == AttributeKind::kString) attributes.string(name, "ij,jk->ki");
      if (attribute.kind == AttributeKind::kInt64)
        attribute.is_list ? attributes.ints(name, {2}) : attributes.int64(name, 2);
    }
    if (std::vector<TestTensor> special = special_inputs(schema->name); !special.empty()) inputs = std::move(special);
    SCOPED_TRACE(schema->name);
    const TestCall test(schema->name, inputs, attributes);
    int32_t count = 0;
    std::optional<Lowering> last;
    while (std::optional<Lowering> next = test.lower(count)) {
      last = std::move(next);
      ++count;
    }
    ASSERT_GT(count, 0) << schema->name;
    for (const Step& step : last->steps) {
      EXPECT_TRUE(std::find(required.begin(), required.end(), step.name) != required.end())
          << schema->name << ": " << step.name;
      if (std::string_view(step.name) != "reduce") continue;
      const compute_plugin_expression& after = step.expressions.at(1).plugin_view();
      for (int32_t i = 0; i < after.node_count; ++i)
        EXPECT_NE(after.nodes[i].kind, int32_t{COMPUTE_PLUGIN_NODE_INDEX}) << schema->name;
    }
  }
}

// ---- Networks -------------------------------------------------------------------------------------------------------

TEST(Decompose, AffineIsOneProductWithAnEpilogue) {
  const TestTensor x = tensor(kHalf, {2, 1, 2}, {1, 2, 3, -4}), weight = tensor(kHalf, {2, 2}, {1, 0, 2, -1}),
                   bias = tensor(kHalf, {2}, {0.5, 1});
  EXPECT_EQ(reals(run_op("affine", {x, weight, bias})), (Reals{5.5, -1, -4.5, 5}));
  const auto relu = [] { return TestAttributes().string("activation", "relu").int64("transpose_weight", 1); };
  EXPECT_EQ(reals(run_op("affine", {x, weight, bias}, relu())), (Reals{1.5, 1, 3.5, 11}));
  EXPECT_EQ(reals(run_op("affine", {relaid(x), relaid(weight)}, relu())), (Reals{1, 0, 3, 10}));
  EXPECT_EQ(
      reals(run_op("affine", {tensor(kFloat, {1, 0}, {}), tensor(kFloat, {0, 2}, {}), tensor(kFloat, {2}, {-1, 2})},
                   TestAttributes().string("activation", "relu"))),
      (Reals{0, 2}));
  const TestCall test("affine", {x, weight, bias}, relu());
  const std::optional<Lowering> lowering = test.lower(1);
  ASSERT_EQ(lowering->steps.size(), 1u);
  EXPECT_EQ(lowering->steps[0].inputs.size(), 4u);
  EXPECT_EQ(lowering->steps[0].outputs[0].shape, (std::vector<int64_t>{2, 2}));
  ASSERT_EQ(lowering->steps[0].expressions.size(), 1u);
  EXPECT_TRUE(lowering->temporaries.empty());
  EXPECT_EQ(error_of([&] {
              TestCall("affine", {x, weight}, TestAttributes().string("activation", "abs")).infer();
            }),
            "affine: activation is \"abs\", not one of none, relu, gelu, gelu_tanh, silu, sigmoid, tanh");
  EXPECT_EQ(error_of([&] {
              TestCall("affine", {x, bias}).infer();
            }),
            "affine: weight has shape [2]; expected two axes");
}

TEST(Decompose, GradientsOfAttentionHoldTwoMatricesOfScores) {
  const TestTensor q = empty_tensor(kFloat, {1, 2, 64, 4}), rows = empty_tensor(kFloat, {1, 2, 64});
  const std::optional<Lowering> lowering = TestCall("attention_grad", {q, q, q, q, q, rows}).lower(1);
  const int64_t matrix = 2 * 64 * 64 * 4;
  EXPECT_GE(lowering->temporary_bytes, 2 * matrix);
  EXPECT_LT(lowering->temporary_bytes, 3 * matrix);
}

// ---- User expressions -----------------------------------------------------------------------------------------------

TEST(Decompose, MapOfAnExpression) {
  constexpr std::string_view kInputs[] = {"a", "b"}, kScalars[] = {"s"};
  const ExpressionTemplate expression = parse("a * s + b; index(1) + convert(b, int64)", kInputs, kScalars);
  std::vector<TestTensor> operands{tensor(kFloat, {2, 1}, {1, 2}), tensor(kFloat, {2}, {10, 20}),
                                   scalar_tensor(kDouble, 3, true)};
  std::vector<OperandDesc> descs;
  for (const TestTensor& x : operands) descs.push_back(x.desc());
  const MapCall call{expression, descs};
  const Inference inference = infer(call);
  const std::vector<OutputDesc>& made = inference.outputs;
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].dtype, kFloat);
  EXPECT_EQ(made[1].dtype, kLong);
  std::vector<TestTensor> outputs{empty_tensor(kFloat, {2, 2}), empty_tensor(kLong, {2, 2})};
  const LoweringTarget::Output targets[] = {{kFloat, outputs[0].shape, outputs[0].strides},
                                            {kLong, outputs[1].shape, outputs[1].strides}};
  const Lowering lowering = lower(call, inference, {targets});
  LoweringEvaluator(nullptr, operands, outputs, {}).run(lowering);
  EXPECT_EQ(reals(outputs[0]), (Reals{13, 23, 16, 26}));
  EXPECT_EQ(reals(outputs[1]), (Reals{10, 21, 10, 21}));
}

TEST(Decompose, MapWithoutInputs) {
  const ExpressionTemplate expression = parse("index(0) * 10 + index(1)", {});
  const std::vector<int64_t> shape{2, 3};
  const compute_dtype wanted[] = {kInt};
  MapCall call{expression, {}, wanted, shape};
  EXPECT_EQ(infer(call).outputs[0].shape, shape);
  EXPECT_EQ(infer(call).outputs[0].dtype, kInt);
  call.wanted_shape = {};
  EXPECT_EQ(error_of([&] { infer(call); }), "expression: index(1) is outside the index space of shape []");
}

}  // namespace
}  // namespace compute
