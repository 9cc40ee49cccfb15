// SPDX-License-Identifier: Apache-2.0
// The form of lowerings: their steps, scalars and temporaries. The conformance suite judges the values: on the plugin
// `minimal`, with rows and without, and on the devices that run the other primitives.
#include "core/ops/lower.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "core/ops/composition.hpp"
#include "core/ops/temporaries.hpp"
#include "tests/unit/op_caller.hpp"

namespace compute {
namespace {

constexpr compute_dtype kFloat = COMPUTE_DTYPE_FLOAT32;
constexpr compute_dtype kDouble = COMPUTE_DTYPE_FLOAT64;
constexpr compute_dtype kHalf = COMPUTE_DTYPE_FLOAT16;
constexpr compute_dtype kInt = COMPUTE_DTYPE_INT32;
constexpr compute_dtype kLong = COMPUTE_DTYPE_INT64;
constexpr compute_dtype kByte = COMPUTE_DTYPE_UINT8;
constexpr compute_dtype kBool = COMPUTE_DTYPE_BOOL;
constexpr compute_dtype kComplex = COMPUTE_DTYPE_COMPLEX64;

TestAttributes axes(std::vector<int64_t> list) { return TestAttributes().ints("axes", std::move(list)); }

// ---- Elementwise ----------------------------------------------------------------------------------------------------

TEST(Decompose, ElementwiseBroadcasts) {
  const TestTensor x = like(kFloat, {2, 1}), y = like(kFloat, {3});
  const std::optional<Lowering> lowering = TestCall("add", {x, y}).lower(0);
  ASSERT_EQ(lowering->steps.size(), 1u);
  EXPECT_EQ(lowering->steps[0].inputs[0].strides, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(lowering->steps[0].inputs[1].strides, (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(lowering->temporaries.empty());
  EXPECT_FALSE(TestCall("add", {x, y}).lower(1));
}

TEST(Decompose, ElementwiseScalarsBecomeScalarNodes) {
  const std::optional<Lowering> lowering = TestCall("add", {like(kHalf, {2}), scalar_like(kDouble, true)}).lower(0);
  ASSERT_EQ(lowering->steps[0].scalars.size(), 1u);
  EXPECT_EQ(lowering->steps[0].scalars[0].source, ScalarSource::kOperand);
  EXPECT_EQ(lowering->steps[0].scalars[0].index, 1);
  EXPECT_EQ(lowering->steps[0].scalars[0].dtype, kHalf);
  EXPECT_EQ(lowering->steps[0].inputs.size(), 1u);
}

TEST(Decompose, StepsHaveThePrecisionOfTheOp) {
  const TestTensor x = like(kFloat, {4, 4});
  const auto precision = [&](const char* op, std::vector<TestTensor> operands, const char* text) {
    const std::optional<Lowering> lowering =
        TestCall(op, std::move(operands), TestAttributes().string("precision", text)).lower(0);
    for (const Step& step : lowering->steps) {
      EXPECT_EQ(step.precision, lowering->steps[0].precision);
      for (const StepAttribute& attribute : step.attributes) EXPECT_STRNE(attribute.name, "precision");
    }
    return lowering->steps[0].precision;
  };
  EXPECT_EQ(TestCall("matmul", {x, x}).lower(0)->steps[0].precision, Precision::kDefault);
  EXPECT_EQ(precision("matmul", {x, x}, "highest"), Precision::kHighest);
  EXPECT_EQ(precision("affine", {x, x}, "tf32"), Precision::kTf32);
  EXPECT_EQ(precision("gemm", {x, x, x}, "bf16"), Precision::kBf16);
  const TestTensor image = like(kFloat, {1, 1, 4, 4}), weight = like(kFloat, {1, 1, 3, 3});
  EXPECT_EQ(precision("convolution", {image, weight}, "bf16"), Precision::kBf16);
  EXPECT_EQ(precision("attention", {image, image, image}, "tf32"), Precision::kTf32);
}

TEST(Decompose, ElementwiseConvertsKindsInItsOneStep) {
  const std::optional<Lowering> lowering = TestCall("multiply", {like(kBool, {2}), like(kHalf, {2})}).lower(0);
  ASSERT_EQ(lowering->steps.size(), 1u);
  EXPECT_TRUE(lowering->temporaries.empty());
  EXPECT_EQ(lowering->steps[0].inputs[0].dtype, kBool);
  EXPECT_EQ(lowering->steps[0].outputs[0].dtype, kHalf);
}

// Plugins do not see an op as a whole whose operands mix kinds.
TEST(Decompose, MixedKindsAreConvertedBySteps) {
  const std::optional<Lowering> concat = TestCall("concat", {like(kInt, {2}), like(kFloat, {3})}).lower(0);
  EXPECT_FALSE(concat->is_composite);
  EXPECT_EQ(concat->steps.size(), 2u);
  EXPECT_TRUE(TestCall("concat", {like(kDouble, {2}), like(kFloat, {3})}).lower(0)->is_composite);
  const std::optional<Lowering> product = TestCall("matmul", {like(kInt, {2, 3}), like(kFloat, {3, 4})}).lower(0);
  ASSERT_EQ(product->steps.size(), 2u);
  EXPECT_EQ(product->steps[1].inputs[0].dtype, kFloat);
}

TEST(Decompose, NothingIsDoneForNoElements) {
  const std::optional<Lowering> lowering = TestCall("add", {like(kFloat, {0, 3}), like(kFloat, {3})}).lower(0);
  ASSERT_TRUE(lowering);
  EXPECT_TRUE(lowering->steps.empty());
  EXPECT_FALSE(TestCall("add", {like(kFloat, {0}), like(kFloat, {0})}).lower(1));
}

// ---- Reductions -----------------------------------------------------------------------------------------------------

TEST(Decompose, HalfAccumulatesInFloat) {
  const std::optional<Lowering> lowering = TestCall("sum", {like(kHalf, {3000})}).lower(0);
  EXPECT_EQ(lowering->steps[0].attributes[2].integers[0], kFloat);
}

TEST(Decompose, ExtentsAreScalars) {
  const auto digests = [](int64_t n) {
    std::vector<std::array<uint8_t, 16>> result;
    for (const char* op : {"mean", "var", "std", "argmax"}) {
      const std::vector<TestTensor> inputs{like(kFloat, {n, 2})};
      for (int32_t i = 0; const std::optional<Lowering> lowering = TestCall(op, inputs).lower(i); ++i) {
        for (const Step& step : lowering->steps) {
          for (const TypedExpression& e : step.expressions) result.push_back(e.digest());
        }
      }
    }
    const auto made = [&](const char* op, const TestAttributes& attributes, int32_t alternative = 0) {
      result.push_back(TestCall(op, {}, attributes).lower(alternative)->steps[0].expressions[0].digest());
    };
    made("linspace", TestAttributes().float64("start", 0).float64("stop", 1).int64("size", n).dtype("dtype", kFloat),
         1);
    made("eye", TestAttributes().int64("rows", n).int64("columns", n).int64("k", n).dtype("dtype", kFloat));
    made("arange", TestAttributes().int64("size", n).dtype("dtype", kFloat));
    return result;
  };
  EXPECT_EQ(digests(3), digests(17));
}

TEST(Decompose, RunTimeAttributesAreScalars) {
  const std::vector<TestTensor> inputs{like(kFloat, {4})};
  const std::optional<Lowering> lowering = TestCall("var", inputs, TestAttributes().float64("correction", 1)).lower(2);
  const Step& step = lowering->steps[1];
  ASSERT_EQ(step.scalars.size(), 2u);
  EXPECT_EQ(step.scalars[0].source, ScalarSource::kValue);
  EXPECT_EQ(step.scalars[1].source, ScalarSource::kRunTimeAttribute);
  EXPECT_EQ(step.scalars[1].index, 0);
  EXPECT_EQ(step.scalars[1].dtype, kFloat);
}

TEST(Decompose, ArgReductionsNeedEvenRows) {
  EXPECT_STREQ(TestCall("argmax", {like(kFloat, {2, 4})}).lower(0)->steps[0].name, "arg_reduce");
  // Rows of a wide tensor do not lie evenly: no primitive, but a decomposition.
  TestTensor rows = like(kFloat, {2, 3});
  rows.shape = {2, 2};
  EXPECT_STREQ(TestCall("argmax", {rows}).lower(0)->steps[0].name, "reduce");
}

// ---- Creation -------------------------------------------------------------------------------------------------------

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

// A device may lack int32: then the places of elements are in int64.
TEST(Decompose, ResizeHasTwoDtypesOfPlaces) {
  const auto dtypes = [](const char* op, const char* extents, const char* mode, int32_t alternative) {
    const TestCall test(op, {like(kFloat, {2, 5})},
                        TestAttributes().ints("axes", {1}).ints(extents, {7}).string("mode", mode));
    const std::optional<Lowering> lowering = test.lower(alternative);
    std::vector<compute_dtype> found;
    for (const Temporary& temporary : lowering->temporaries) found.push_back(temporary.dtype);
    return found;
  };
  const auto has = [](const std::vector<compute_dtype>& list, compute_dtype dtype) {
    return std::find(list.begin(), list.end(), dtype) != list.end();
  };
  for (const auto& [op, extents] : {std::pair("resize", "sizes"), std::pair("resize_grad", "shape")}) {
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      SCOPED_TRACE(std::string(op) + " " + mode);
      // Alternative 0 is the op itself.
      EXPECT_TRUE(has(dtypes(op, extents, mode, 1), kInt));
      EXPECT_FALSE(has(dtypes(op, extents, mode, 1), kLong));
      EXPECT_TRUE(has(dtypes(op, extents, mode, 2), kLong));
      EXPECT_FALSE(has(dtypes(op, extents, mode, 2), kInt));
    }
  }
}

// ---- Movement -------------------------------------------------------------------------------------------------------

TEST(Decompose, Scatter) {
  const TestTensor x = like(kFloat, {2, 3}), indices = like(kLong, {2, 1}), updates = like(kFloat, {2, 1});
  const TestCall test("scatter", {x, indices, updates}, TestAttributes().int64("axis", 1).int64("deterministic", 1));
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
  const TestTensor x = like(kFloat, {6}), indices = like(kLong, {46}), updates = like(kFloat, {46});
  const TestCall test("scatter", {x, indices, updates});
  const Inference inference = infer(test.call());
  const std::vector<int64_t> strides{1};
  const LoweringTarget::Output output{kFloat, x.shape, strides};
  const std::optional<Lowering> lowering = lower(test.call(), inference, {{&output, 1}, false, true, true, true}, 0);
  for (const Step& step : lowering->steps) EXPECT_FALSE(step.deterministic);
}

TEST(Decompose, Matmul) {
  const TestTensor a = like(kFloat, {2, 3}), b = like(kFloat, {3, 2});
  const std::optional<Lowering> product = TestCall("matmul", {a, b}).lower(0);
  EXPECT_STREQ(product->steps[0].name, "contraction");
  ASSERT_EQ(product->steps[0].attributes.size(), 1u);  // every attribute is given
  EXPECT_STREQ(product->steps[0].attributes[0].name, "scaled");
  EXPECT_EQ(product->steps[0].attributes[0].integers, std::vector<int64_t>{0});
  EXPECT_STREQ(TestCall("matmul", {a, b}).lower(1)->steps[0].name, "reduce");
  EXPECT_FALSE(TestCall("matmul", {a, b}).lower(2));
  // Repeated operands are converted before they are repeated.
  const TestTensor small = like(COMPUTE_DTYPE_INT8, {2, 2});
  const std::optional<Lowering> mixed = TestCall("matmul", {small, like(kInt, {5, 2, 2})}).lower(0);
  EXPECT_EQ(mixed->temporaries[0].size_bytes, 16);
}

// ---- The form of lowerings ------------------------------------------------------------------------------------------

TEST(Decompose, CompositesAreOfferedFirst) {
  const std::vector<TestTensor> inputs{like(kFloat, {4, 2})};
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
  EXPECT_FALSE(TestCall("var", {scalar_like(kFloat)}).lower(0)->is_composite);
  EXPECT_FALSE(TestCall("var", {like(kFloat, {1, 0})}, axes({1})).lower(0)->is_composite);
  EXPECT_FALSE(TestCall("scatter", {inputs[0], like(kInt, {1, 1}), like(kFloat, {1, 1})}).lower(0)->is_composite);
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

TEST(Decompose, CallsOfCompositionsAreCounted) {
  const auto compose = [](const char* name, const char* composition) {
    RegisteredOp given;
    given.name = name;
    given.inputs = "x";
    given.outputs = "y";
    given.composition = composition;
    given.parse_composition = parse_composition;
    register_op(given);
    return composed_call_count(find_op(name, 0));
  };
  EXPECT_EQ(composed_call_count(find_op("negative", 0)), 1u);
  EXPECT_EQ(compose("test.counted", "a = negative(x); y = exp(a)"), 2u);
  EXPECT_EQ(compose("test.counted_twice", "a = test.counted(x); b = sin(a); y = test.counted(b)"), 5u);
}

// The op itself is asked for first, with the attribute as it was given.
TEST(Decompose, AHandleReachesThePlugin) {
  RegisteredOp given;
  given.name = "test.grouped";
  given.inputs = "x";
  given.outputs = "y";
  given.attributes = "group: handle";
  given.composition = "y = negative(x)";
  given.parse_composition = parse_composition;
  register_op(given);
  constexpr uint64_t kGroup = 0xfedcba9876543210;
  const std::optional<Lowering> lowering =
      TestCall("test.grouped", {like(kFloat, {3})}, TestAttributes().handle("group", kGroup)).lower(0);
  ASSERT_TRUE(lowering && lowering->steps.size() == 1);
  EXPECT_STREQ(lowering->steps[0].name, "test.grouped");
  ASSERT_EQ(lowering->steps[0].attributes.size(), 1u);
  const StepAttribute& attribute = lowering->steps[0].attributes[0];
  EXPECT_STREQ(attribute.name, "group");
  EXPECT_EQ(attribute.kind, COMPUTE_KIND_HANDLE);
  EXPECT_EQ(attribute.integers, std::vector<int64_t>{static_cast<int64_t>(kGroup)});
  EXPECT_EQ(error_of([&] { TestCall("test.grouped", {like(kFloat, {3})}, TestAttributes().int64("group", 1)); }),
            "test.grouped: attribute group takes a handle, not an int64");
}

// The plain call of an op, as its row of ops.def states it.
TestCall plain_call(const OpSchema& schema) {
  constexpr std::pair<std::string_view, std::string_view> kCalls[] = {
#define COMPUTE_UNARY(...)
#define COMPUTE_BINARY(...)
#define COMPUTE_TERNARY(...)
#define COMPUTE_OP(name, version, inputs, attributes, dtype_rule, shape_rule, bound, flags, summary, operands, \
                   gradient, sources, call)                                                                    \
  {#name, call},
#include <compute/ops.def>
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP
  };
  const auto numbers = [](std::string text, char separator) {
    std::replace(text.begin(), text.end(), separator, ' ');
    std::istringstream stream(text);
    return std::vector<int64_t>(std::istream_iterator<int64_t>(stream), {});
  };
  const auto dtype_of = [](const std::string& name) { return name == "T" ? kFloat : dtype_from_name(name); };
  std::vector<TestTensor> inputs;
  TestAttributes attributes;
  const auto* const row =
      std::find_if(std::begin(kCalls), std::end(kCalls), [&](const auto& known) { return known.first == schema.name; });
  std::istringstream words(row != std::end(kCalls) ? std::string(row->second) : std::string());
  for (std::string word; words >> word;) {
    const size_t mark = word.find('=') != word.npos ? word.find('=') : word.find(':');
    const std::string name = word.substr(0, mark), value = word.substr(mark + 1);
    if (word[mark] == ':') {
      inputs.push_back(like(dtype_of(name), numbers(value, 'x')));
      continue;
    }
    const auto attribute = std::find_if(schema.attributes.begin(), schema.attributes.end(),
                                        [&](const AttributeSchema& known) { return known.name == name; });
    const char* const kept = attribute->name.c_str();
    switch (attribute->kind) {
      case AttributeKind::kInt64:
        attributes.ints(kept, numbers(attribute->is_list ? value.substr(1) : value, ','));
        break;
      case AttributeKind::kDtype:
        attributes.dtype(kept, dtype_of(value));
        break;
      case AttributeKind::kString:
        attributes.string(kept, value);
        break;
      default:
        attributes.float64(kept, std::stod(value));
    }
  }
  if (words.str().empty()) {
    compute_dtype dtype = kFloat;
    if (schema.is_elementwise && !in_class(kFloat, schema.input_class)) {
      dtype = in_class(kInt, schema.input_class) ? kInt : in_class(kBool, schema.input_class) ? kBool : kComplex;
    }
    for (size_t i = 0; i < schema.inputs.size(); ++i) {
      const bool is_condition = schema.result == RowResult::kSecond && i == 0;
      inputs.push_back(like(is_condition ? kBool : dtype, {4096, 128}));
    }
  }
  return {schema.name, std::move(inputs), attributes};
}

// What plugin.h promises about scalars and operands; and no operand reaches outside of its tensor.
void check_steps(const TestCall& test, const Lowering& lowering) {
  const std::vector<OutputDesc> outputs = test.infer();
  const auto size_of = [&](const StepOperand& operand) {
    const auto i = static_cast<size_t>(operand.index);
    if (operand.kind == ValueKind::kTemporary) return lowering.temporaries.at(i).size_bytes;
    const std::span<const int64_t> shape(operand.kind == ValueKind::kInput ? test.inputs.at(i).shape
                                                                           : outputs.at(i).shape);
    return element_count(shape) * dtype_size(operand.dtype);
  };
  for (const Step& step : lowering.steps) {
    SCOPED_TRACE(step.name);
    size_t next = 0;
    for (const TypedExpression& e : step.expressions) {
      for (const compute_plugin_node& node : e.nodes()) {
        if (node.kind != COMPUTE_PLUGIN_NODE_SCALAR) continue;
        EXPECT_EQ(step.scalars.at(next + static_cast<size_t>(node.value)).dtype, node.dtype);
      }
      next += static_cast<size_t>(e.plugin_view().scalar_count);
    }
    EXPECT_LE(next, step.scalars.size());
    for (const auto* operands : {&step.inputs, &step.outputs}) {
      const bool is_output = operands == &step.outputs;
      for (const StepOperand& operand : *operands) {
        if (operand.is_absent()) continue;
        EXPECT_EQ(operand.access & COMPUTE_PLUGIN_TENSOR_OUTPUT, is_output ? COMPUTE_PLUGIN_TENSOR_OUTPUT : 0);
        ASSERT_EQ(operand.shape.size(), operand.strides.size());
        EXPECT_LE(operand.shape.size(), size_t{COMPUTE_PLUGIN_MAX_RANK});
        int64_t first = operand.offset, last = operand.offset;
        for (size_t i = 0; i < operand.shape.size(); ++i) {
          EXPECT_GE(operand.shape[i], 1);
          EXPECT_TRUE(!is_output || operand.strides[i] != 0 || operand.shape[i] == 1);
          (operand.strides[i] < 0 ? first : last) += (operand.shape[i] - 1) * operand.strides[i];
        }
        EXPECT_GE(first, 0);
        EXPECT_LE((last + 1) * dtype_size(operand.dtype), size_of(operand));
      }
    }
  }
}

TEST(Decompose, EveryAlternativeKeepsThePromises) {
  // What every device runs: the required primitives, and ops that may run on the host.
  std::vector<std::string> required{"map", "copy", "reduce", "gather", "scatter"};
  for (const OpSchema* schema : op_schemas()) {
    if ((schema->flags & kOpHost) != 0) required.push_back(schema->name);
  }
  for (const OpSchema* schema : op_schemas()) {
    SCOPED_TRACE(schema->name);
    const TestCall test = plain_call(*schema);
    int32_t count = 0;
    std::optional<Lowering> last;
    for (; std::optional<Lowering> next = test.lower(count); ++count) {
      check_steps(test, *next);
      last = std::move(next);
    }
    ASSERT_GT(count, 0);
    // The last one consists of them.
    for (const Step& step : last->steps) {
      EXPECT_TRUE(std::find(required.begin(), required.end(), step.name) != required.end()) << step.name;
      if (std::string_view(step.name) != "reduce") continue;
      const compute_plugin_expression& after = step.expressions.at(1).plugin_view();
      for (int32_t i = 0; i < after.node_count; ++i) EXPECT_NE(after.nodes[i].kind, int32_t{COMPUTE_PLUGIN_NODE_INDEX});
    }
  }
}

// ---- Networks -------------------------------------------------------------------------------------------------------

TEST(Decompose, AffineIsOneProductWithAnEpilogue) {
  const TestTensor x = like(kHalf, {2, 1, 2}), weight = like(kHalf, {2, 2}), bias = like(kHalf, {2});
  const TestCall test("affine", {x, weight, bias},
                      TestAttributes().string("activation", "relu").int64("transpose_weight", 1));
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
  const TestTensor q = like(kFloat, {1, 2, 64, 4}), rows = like(kFloat, {1, 2, 64});
  const std::optional<Lowering> lowering = TestCall("attention_grad", {q, q, q, q, q, rows}).lower(1);
  const int64_t matrix = 2 * 64 * 64 * 4;
  EXPECT_GE(lowering->temporary_bytes, 2 * matrix);
  EXPECT_LT(lowering->temporary_bytes, 3 * matrix);
}

// ---- User expressions -----------------------------------------------------------------------------------------------

TEST(Decompose, MapOfAnExpression) {
  constexpr std::string_view kInputs[] = {"a", "b"}, kScalars[] = {"s"};
  const ExpressionTemplate expression = parse("a * s + b; index(1) + convert(b, int64)", kInputs, kScalars);
  const std::vector<TestTensor> operands{like(kFloat, {2, 1}), like(kFloat, {2}), scalar_like(kDouble, true)};
  std::vector<OperandDesc> descs;
  for (const TestTensor& x : operands) descs.push_back(x.desc());
  const std::vector<OutputDesc> made = infer(MapCall{expression, descs}).outputs;
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].dtype, kFloat);
  EXPECT_EQ(made[1].dtype, kLong);
  EXPECT_EQ(made[1].shape, (std::vector<int64_t>{2, 2}));
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
