// SPDX-License-Identifier: Apache-2.0
#include "core/ops/infer.hpp"

#include "tests/unit/op_caller.hpp"
#include "tests/unit/strict_promotion.hpp"

namespace compute {
namespace {

constexpr compute_dtype kBool = COMPUTE_DTYPE_BOOL;
constexpr compute_dtype kByte = COMPUTE_DTYPE_INT8;
constexpr compute_dtype kInt = COMPUTE_DTYPE_INT32;
constexpr compute_dtype kLong = COMPUTE_DTYPE_INT64;
constexpr compute_dtype kHalf = COMPUTE_DTYPE_FLOAT16;
constexpr compute_dtype kFloat = COMPUTE_DTYPE_FLOAT32;
constexpr compute_dtype kComplex = COMPUTE_DTYPE_COMPLEX64;

using Shape = std::vector<int64_t>;

// "float32 [2,3]".
std::string inferred(std::string_view op, std::vector<TestTensor> inputs, const TestAttributes& attributes = {}) {
  const std::vector<OutputDesc> outputs = TestCall(op, std::move(inputs), attributes).infer();
  return dtype_name(outputs[0].dtype) + " " + shape_text(outputs[0].shape);
}

std::string refused(std::string_view op, std::vector<TestTensor> inputs, const TestAttributes& attributes = {},
                    compute_error_code code = COMPUTE_ERROR_INVALID_ARGUMENT) {
  return error_of([&] { TestCall(op, std::move(inputs), attributes).infer(); }, code);
}

TestAttributes axis(int64_t value) { return TestAttributes().int64("axis", value); }
TestAttributes dtype(compute_dtype value) { return TestAttributes().dtype("dtype", value); }

TEST(Infer, Elementwise) {
  EXPECT_EQ(inferred("add", {like(kFloat, {2, 1}), like(kFloat, {3})}), "float32 [2,3]");
  EXPECT_EQ(inferred("add", {like(kByte, {0, 1}), like(kInt, {1, 5})}), "int32 [0,5]");
  EXPECT_EQ(inferred("less", {like(kHalf, {2}), like(kFloat, {})}), "bool [2]");
  EXPECT_EQ(inferred("abs", {like(kComplex, {2})}), "float32 [2]");
  EXPECT_EQ(inferred("where", {like(kBool, {2, 1}), like(kByte, {3}), like(kInt, {})}), "int32 [2,3]");
  EXPECT_EQ(inferred("multiply", {like(kHalf, {4}), scalar_like(kFloat, true)}), "float16 [4]");
  EXPECT_EQ(inferred("multiply", {like(kHalf, {4}), scalar_like(kFloat)}), "float32 [4]");
  EXPECT_EQ(inferred("add", {scalar_like(kFloat), scalar_like(kLong, true)}), "float32 []");
}

TEST(Infer, ElementwiseRefusals) {
  EXPECT_EQ(refused("add", {like(kFloat, {2, 3}), like(kFloat, {4, 3})}),
            "add: shapes [2,3] and [4,3] do not broadcast");
  EXPECT_EQ(refused("where", {like(kBool, {2}), like(kFloat, {1}), like(kFloat, {3})}),
            "where: shapes [2] and [3] do not broadcast");
  EXPECT_EQ(refused("add", {like(kFloat, {0}), like(kFloat, {2})}), "add: shapes [0] and [2] do not broadcast");
  EXPECT_EQ(refused("erf", {like(kComplex, {})}), "erf: x is complex64; erf takes floating-point dtypes");
  EXPECT_EQ(refused("add", {like(kBool, {}), like(kBool, {})}),
            "add: x is bool; add takes numeric dtypes; cast it (cast(x, uint8))");
  EXPECT_EQ(refused("logical_and", {like(kBool, {}), like(kInt, {})}),
            "logical_and: y is int32; logical_and takes bool; cast it (cast(y, bool))");
  EXPECT_EQ(refused("real", {like(kFloat, {})}),
            "real: x is float32; real takes complex dtypes; cast it (cast(x, complex64))");
  EXPECT_EQ(refused("where", {like(kInt, {}), like(kInt, {}), like(kInt, {})}),
            "where: x is int32, not bool; cast it (cast(x, bool))");
  EXPECT_EQ(refused("less", {like(kFloat, {2}), scalar_like(kComplex, true)}),
            "less: y is complex64; less takes integer and floating-point dtypes");
  EXPECT_EQ(refused("bitwise_and", {like(kBool, {2}), like(kFloat, {2})}),
            "bitwise_and: y is float32; bitwise_and takes integer dtypes and bool");
  EXPECT_EQ(refused("bitwise_left_shift", {like(kInt, {2}), scalar_like(COMPUTE_DTYPE_FLOAT64, true)}),
            "bitwise_left_shift: y is float64; bitwise_left_shift takes integer dtypes");
  EXPECT_EQ(refused("bitwise_left_shift", {like(kBool, {2}), like(kBool, {2})}),
            "bitwise_left_shift: x is bool; bitwise_left_shift takes integer dtypes; cast it (cast(x, uint8))");
  EXPECT_EQ(refused("subtract", {scalar_like(COMPUTE_DTYPE_FLOAT64, true), like(COMPUTE_DTYPE_FLOAT8_E5M2, {2})}),
            "subtract: y is float8_e5m2; subtract takes numeric dtypes; cast it (cast(y, float32))");
  // The faulty operand's number goes with the message.
  try {
    TestCall("add", {like(kFloat, {2}), like(kFloat, {3})}).infer();
  } catch (const Error& error) {
    EXPECT_EQ(error.argument, 1);
  }
}

TEST(Infer, KindsMix) {
  EXPECT_EQ(inferred("add", {like(kInt, {2}), like(kFloat, {2})}), "float32 [2]");
  EXPECT_EQ(inferred("multiply", {like(kBool, {2}), like(kByte, {2})}), "int8 [2]");
  EXPECT_EQ(inferred("divide", {like(kLong, {2}), like(kBool, {2})}), "float32 [2]");
  EXPECT_EQ(inferred("divide", {like(kLong, {2}), like(kHalf, {2})}), "float16 [2]");
  EXPECT_EQ(inferred("exp", {like(kInt, {})}), "float32 []");
  EXPECT_EQ(inferred("hypot", {like(kBool, {}), like(kInt, {})}), "float32 []");
  EXPECT_EQ(inferred("less", {like(kInt, {2}), like(kHalf, {2})}), "bool [2]");
  EXPECT_EQ(inferred("abs", {like(kInt, {2})}), "int32 [2]");
  EXPECT_EQ(inferred("bitwise_or", {like(kBool, {2}), like(kInt, {2})}), "int32 [2]");
  EXPECT_EQ(inferred("where", {like(kBool, {}), like(kInt, {2}), like(kComplex, {2})}), "complex64 [2]");
  EXPECT_EQ(inferred("add", {like(kInt, {2}), scalar_like(COMPUTE_DTYPE_FLOAT64, true)}), "float32 [2]");
  EXPECT_EQ(inferred("clip", {like(kByte, {2}), scalar_like(kLong, true), scalar_like(kFloat, true)}), "float32 [2]");
  EXPECT_EQ(inferred("concat", {like(kByte, {2}), like(kBool, {3}), like(kHalf, {1})}), "float16 [6]");
  EXPECT_EQ(inferred("stack", {like(kBool, {2}), like(kInt, {2})}), "int32 [2,2]");
  EXPECT_EQ(inferred("matmul", {like(kBool, {2, 3}), like(kFloat, {3, 4})}), "float32 [2,4]");
  EXPECT_EQ(inferred("einsum", {like(kInt, {2}), like(kComplex, {2})}, TestAttributes().string("equation", "i,i->")),
            "complex64 []");
  EXPECT_EQ(inferred("vecdot", {like(kInt, {2}), like(kFloat, {2})}), "float32 []");
  EXPECT_EQ(inferred("convolution", {like(kByte, {1, 1, 4}), like(kFloat, {1, 1, 2})}), "float32 [1,1,3]");
  EXPECT_EQ(inferred("scatter", {like(kFloat, {3}), like(kLong, {2}), like(kInt, {2})}), "float32 [3]");
  EXPECT_EQ(inferred("searchsorted", {like(kInt, {3}), like(kFloat, {2})}), "int64 [2]");
  EXPECT_EQ(refused("matmul", {like(kBool, {2, 3}), like(kBool, {3, 4})}),
            "matmul: a is bool; matmul takes numeric dtypes; cast it (cast(a, uint8))");
  EXPECT_EQ(refused("scatter", {like(kInt, {3}), like(kLong, {2}), like(kFloat, {2})}),
            "scatter: updates is float32, but x is int32; cast updates (cast(updates, int32))");
}

// A given output keeps its dtype, if its kind is not lower than the result's.
TEST(Infer, OutputsThatAreGiven) {
  const auto into = [](std::string_view op, std::vector<TestTensor> inputs, compute_dtype wanted) {
    const TestCall call(op, std::move(inputs));
    OpCall given = call.call();
    given.wanted = {&wanted, 1};
    const Inference inference = infer(given);
    if (inference.map) {
      EXPECT_EQ(inference.map.output_dtype(0), inference.outputs[0].dtype);
    }
    return inference.outputs[0].dtype;
  };
  EXPECT_EQ(into("add", {like(kHalf, {2}), like(kFloat, {2})}, kHalf), kHalf);
  EXPECT_EQ(into("add", {like(kByte, {2}), like(kInt, {2})}, kByte), kByte);
  EXPECT_EQ(into("add", {like(kByte, {2}), like(kInt, {2})}, kComplex), kComplex);
  EXPECT_EQ(into("less", {like(kFloat, {2}), like(kFloat, {2})}, kFloat), kFloat);
  EXPECT_EQ(into("divide", {like(kInt, {2}), like(kInt, {2})}, kInt), kFloat);
  EXPECT_EQ(into("multiply", {like(kFloat, {2}), like(kComplex, {2})}, kFloat), kComplex);
  EXPECT_EQ(into("matmul", {like(kFloat, {2, 2}), like(kFloat, {2, 2})}, kHalf), kFloat);
}

TEST(Infer, StrictRefusals) {
  COMPUTE_REQUIRE_STRICT_PROMOTION();
  const std::string remedy = ", or set COMPUTE_PROMOTION=mixed";
  EXPECT_EQ(refused("add", {like(kInt, {}), like(kFloat, {})}),
            "add: int32 and float32 have no common dtype; cast one of them (cast(x, float32))" + remedy);
  EXPECT_EQ(refused("exp", {like(kInt, {})}),
            "exp: x is int32; exp takes floating-point and complex dtypes; cast it (cast(x, float32))" + remedy);
  EXPECT_EQ(refused("atan2", {like(kFloat, {}), like(kInt, {})}),
            "atan2: y is int32; atan2 takes floating-point dtypes; cast it (cast(y, float32))" + remedy);
  EXPECT_EQ(refused("where", {like(kBool, {}), like(kInt, {}), like(kFloat, {})}),
            "where: int32 and float32 have no common dtype; cast one of them (cast(y, float32))" + remedy);
  EXPECT_EQ(refused("add", {like(kInt, {2}), scalar_like(kFloat, true)}),
            "add: int32 and the number float32 have no common dtype; cast one of them (cast(x, float32))" + remedy);
  EXPECT_EQ(refused("concat", {like(kByte, {2}), like(kFloat, {2})}),
            "concat: int8 and float32 have no common dtype; cast one of them (cast(xs[0], float32))" + remedy);
  EXPECT_EQ(refused("matmul", {like(kBool, {2, 3}), like(kFloat, {3, 4})}),
            "matmul: a is bool; matmul takes numeric dtypes; cast it (cast(a, uint8))");
  EXPECT_EQ(refused("scatter", {like(kFloat, {3}), like(kLong, {2}), like(kInt, {2})}),
            "scatter: updates is int32, but x is float32; cast updates (cast(updates, float32))");
  EXPECT_EQ(inferred("multiply", {like(kFloat, {2}), like(kComplex, {2})}), "complex64 [2]");
}

TEST(Infer, SizesThatDoNotFit) {
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(refused("add", {like(kFloat, {huge, 1}), like(kFloat, {1, huge})}, {}, COMPUTE_ERROR_OUT_OF_RANGE),
            "add: the size of shape [1099511627776,1099511627776] with elements of 4 bytes does not fit in int64");
  EXPECT_EQ(refused("fill", {}, dtype(kFloat).ints("shape", {huge, huge, 0}), COMPUTE_ERROR_OUT_OF_RANGE),
            "fill: the size of shape [1099511627776,1099511627776,0] with elements of 4 bytes does not fit in int64");
  EXPECT_EQ(refused("fill", {}, dtype(kFloat).ints("shape", {2, -1})), "fill: shape [2,-1] has a negative extent");
  EXPECT_EQ(refused("fill", {}, dtype(kFloat).ints("shape", Shape(33, 1))),
            "fill: the result has rank 33; the limit is 32");
  EXPECT_EQ(refused("stack", {like(kFloat, Shape(32, 1))}), "stack: the result has rank 33; the limit is 32");
  const int64_t most = INT64_MAX;
  EXPECT_EQ(refused("concat", {like(kFloat, {most, 0}), like(kFloat, {most, 0})}, {}, COMPUTE_ERROR_OUT_OF_RANGE),
            "concat: the extents along axis 0 do not fit in int64");
}

TEST(Infer, Reductions) {
  const TestTensor x = like(kByte, {2, 3, 4});
  const auto axes = [](Shape list) { return TestAttributes().ints("axes", std::move(list)); };
  EXPECT_EQ(inferred("sum", {x}), "int64 []");
  EXPECT_EQ(inferred("sum", {x}, axes({-1, 0})), "int64 [3]");
  EXPECT_EQ(inferred("sum", {x}, axes({1}).int64("keepdims", 1)), "int64 [2,1,4]");
  EXPECT_EQ(inferred("sum", {x}, axes({})), "int64 [2,3,4]");
  EXPECT_EQ(inferred("prod", {x}, dtype(kFloat)), "float32 []");
  EXPECT_EQ(inferred("max", {x}), "int8 []");
  EXPECT_EQ(inferred("all", {x}), "bool []");
  EXPECT_EQ(inferred("mean", {like(kHalf, {2})}), "float16 []");
  EXPECT_EQ(inferred("mean", {like(kComplex, {2})}), "complex64 []");
  EXPECT_EQ(inferred("std", {like(kComplex, {2})}), "float32 []");
  EXPECT_EQ(inferred("argmax", {x}, axis(1)), "int64 [2,4]");
  EXPECT_EQ(inferred("argmin", {x}, TestAttributes().int64("keepdims", 1)), "int64 [1,1,1]");
  EXPECT_EQ(refused("sum", {x}, axes({3})), "sum: axis 3 is out of range for a tensor of rank 3");
  EXPECT_EQ(refused("sum", {x}, axes({-4})), "sum: axis -4 is out of range for a tensor of rank 3");
  EXPECT_EQ(refused("sum", {x}, axes({0, -3})), "sum: axis 0 is given twice");
  EXPECT_EQ(refused("sum", {x}, TestAttributes().int64("keepdims", 2)), "sum: keepdims is 2; it must be 0 or 1");
  EXPECT_EQ(refused("sum", {like(kComplex, {2})}, dtype(kFloat)), "sum: x is complex64; its sum cannot be float32");
  EXPECT_EQ(refused("prod", {x}, dtype(kBool)), "prod: x is int8; its prod cannot be bool");
  EXPECT_EQ(refused("mean", {x}),
            "mean: x is int8; mean takes floating-point and complex dtypes; cast it (cast(x, float32))");
  EXPECT_EQ(refused("max", {like(kComplex, {2})}), "max: x is complex64; max takes integer and floating-point dtypes");
  EXPECT_EQ(refused("argmax", {like(kBool, {2})}),
            "argmax: x is bool; argmax takes integer and floating-point dtypes; cast it (cast(x, uint8))");
  EXPECT_EQ(refused("max", {like(kFloat, {2, 0})}, axes({1})),
            "max: x has shape [2,0]; the max of zero elements is undefined");
  EXPECT_EQ(refused("argmin", {like(kFloat, {0})}),
            "argmin: x has shape [0]; the argmin of zero elements is undefined");
  EXPECT_EQ(inferred("max", {like(kFloat, {2, 0})}, axes({0})), "float32 [0]");
}

TEST(Infer, Creation) {
  EXPECT_EQ(inferred("arange", {}, dtype(kInt).int64("size", 5)), "int32 [5]");
  EXPECT_EQ(inferred("eye", {}, dtype(kBool).int64("rows", 2).int64("columns", 0)), "bool [2,0]");
  EXPECT_EQ(inferred("fill", {}, dtype(kHalf).ints("shape", {})), "float16 []");
  EXPECT_EQ(inferred("linspace", {}, dtype(kHalf).int64("size", 2).int64("start", 0).int64("stop", 1)), "float16 [2]");
  EXPECT_EQ(refused("arange", {}, dtype(kInt).int64("size", -5)), "arange: size is -5; it must not be negative");
  EXPECT_EQ(refused("arange", {}, dtype(kBool).int64("size", 5)), "arange: dtype is bool; expected a numeric dtype");
  EXPECT_EQ(refused("linspace", {}, dtype(kInt).int64("size", 2).int64("start", 0).int64("stop", 1)),
            "linspace: dtype is int32; expected a floating-point or complex dtype; cast the result");
}

TEST(Infer, Movement) {
  EXPECT_EQ(inferred("cast", {like(kFloat, {2})}, dtype(kByte)), "int8 [2]");
  EXPECT_EQ(inferred("cast", {like(kComplex, {2})}, dtype(kBool)), "bool [2]");
  EXPECT_EQ(refused("cast", {like(kComplex, {2})}, dtype(kFloat)),
            "cast: x is complex64 and cannot be converted to float32; use real(x) or abs(x)");
  EXPECT_EQ(inferred("concat", {like(kByte, {2, 3}), like(kInt, {4, 3})}), "int32 [6,3]");
  EXPECT_EQ(refused("concat", {like(kByte, {2, 3}), like(kInt, {2, 4})}),
            "concat: xs[1] has shape [2,4], which differs from [2,3] outside axis 0");
  EXPECT_EQ(refused("concat", {like(kByte, {})}), "concat: xs[0] has rank 0; use stack to join scalars");
  EXPECT_EQ(refused("concat", {like(kByte, {2})}, axis(1)), "concat: axis 1 is out of range for a tensor of rank 1");
  EXPECT_EQ(inferred("stack", {like(kByte, {3}), like(kByte, {3})}, axis(-1)), "int8 [3,2]");
  EXPECT_EQ(refused("stack", {like(kByte, {3}), like(kByte, {2})}),
            "stack: xs[1] has shape [2], which differs from [3]");
  EXPECT_EQ(inferred("take", {like(kHalf, {2, 3}), like(kLong, {4, 5})}, axis(1)), "float16 [2,4,5]");
  EXPECT_EQ(refused("take", {like(kHalf, {2, 3}), like(kFloat, {4})}),
            "take: indices is float32; expected an integer dtype; cast it (cast(indices, int64))");
  EXPECT_EQ(refused("take", {like(kHalf, {2, 3}), like(kBool, {4})}),
            "take: indices is bool; expected an integer dtype; cast it (cast(indices, int64))");
  EXPECT_EQ(refused("take", {like(kHalf, {}), like(kLong, {4})}),
            "take: axis 0 is out of range for a tensor of rank 0");
  EXPECT_EQ(refused("take", {like(kHalf, {0, 3}), like(kLong, {4})}),
            "take: axis 0 of x of shape [0,3] has no elements");
  EXPECT_EQ(inferred("take", {like(kHalf, {0, 3}), like(kLong, {0})}), "float16 [0,3]");
  EXPECT_EQ(inferred("take_along_axis", {like(kHalf, {2, 3}), like(kLong, {1, 5})}), "float16 [2,5]");
  EXPECT_EQ(refused("take_along_axis", {like(kHalf, {2, 3}), like(kLong, {5})}),
            "take_along_axis: indices of shape [5] and x of shape [2,3] differ in rank");
  EXPECT_EQ(refused("take_along_axis", {like(kHalf, {2, 3}), like(kLong, {3, 5})}),
            "take_along_axis: shapes [2,3] and [3,5] do not broadcast outside axis 1");
}

TEST(Infer, Scatter) {
  const TestTensor x = like(kFloat, {2, 3}), indices = like(kLong, {1, 4}), updates = like(kFloat, {1, 4});
  const auto along = [](const char* reduction) { return axis(1).string("reduction", reduction); };
  EXPECT_EQ(inferred("scatter", {x, indices, updates}, along("add")), "float32 [2,3]");
  EXPECT_EQ(inferred("scatter", {x, indices, scalar_like(kLong, true)}, along("add")), "float32 [2,3]");
  EXPECT_EQ(refused("scatter", {x, indices, updates}, along("sett")),
            "scatter: reduction is \"sett\", not one of set, add, mul, min, max; did you mean \"set\"?");
  EXPECT_EQ(refused("scatter", {like(kBool, {2, 3}), indices, like(kBool, {1, 4})}, along("add")),
            "scatter: reduction \"add\" does not support bool");
  EXPECT_EQ(refused("scatter", {like(kComplex, {2, 3}), indices, like(kComplex, {1, 4})}, along("max")),
            "scatter: reduction \"max\" does not support complex64");
  EXPECT_EQ(refused("scatter", {x, like(kFloat, {1, 4}), updates}, along("add")),
            "scatter: indices is float32; expected an integer dtype; cast it (cast(indices, int64))");
  EXPECT_EQ(refused("scatter", {x, indices, like(COMPUTE_DTYPE_FLOAT64, {1, 4})}, along("add")),
            "scatter: updates is float64, but x is float32; cast updates (cast(updates, float32))");
  EXPECT_EQ(refused("scatter", {x, indices, like(kFloat, {1, 3})}, along("add")),
            "scatter: indices have shape [1,4], but updates have shape [1,3]");
  EXPECT_EQ(refused("scatter", {x, like(kLong, {4}), like(kFloat, {4})}, along("add")),
            "scatter: indices of shape [4] and x of shape [2,3] differ in rank");
  EXPECT_EQ(refused("scatter", {x, indices, updates}),
            "scatter: indices have shape [1,4], which exceeds x of shape [2,3] along axis 1");
  EXPECT_EQ(refused("scatter", {like(kFloat, {2, 0}), indices, updates}, along("set")),
            "scatter: indices have shape [1,4], which exceeds x of shape [2,0] along axis 1");
  EXPECT_EQ(refused("scatter", {x, indices, updates}, along("set").int64("deterministic", 3)),
            "scatter: deterministic is 3; it must be 0 or 1");
}

TEST(Infer, Matmul) {
  EXPECT_EQ(inferred("matmul", {like(kFloat, {2, 3}), like(kFloat, {3, 4})}), "float32 [2,4]");
  EXPECT_EQ(inferred("matmul", {like(kByte, {5, 1, 2, 3}), like(kInt, {6, 3, 4})}), "int32 [5,6,2,4]");
  EXPECT_EQ(inferred("matmul", {like(kFloat, {3}), like(kFloat, {3})}), "float32 []");
  EXPECT_EQ(inferred("matmul", {like(kFloat, {7, 2, 3}), like(kFloat, {3})}), "float32 [7,2]");
  EXPECT_EQ(inferred("matmul", {like(kFloat, {3}), like(kFloat, {7, 3, 2})}), "float32 [7,2]");
  EXPECT_EQ(inferred("matmul", {like(kHalf, {0, 3}), like(COMPUTE_DTYPE_BFLOAT16, {3, 0})}), "float32 [0,0]");
  EXPECT_EQ(refused("matmul", {like(kFloat, {2, 3}), like(kFloat, {4, 5})}),
            "matmul: shapes [2,3] and [4,5] cannot be multiplied: 3 columns, but 4 rows");
  EXPECT_EQ(refused("matmul", {like(kFloat, {2, 2, 3}), like(kFloat, {3, 3, 4})}),
            "matmul: shapes [2,2,3] and [3,3,4] do not broadcast in their batch axes");
  EXPECT_EQ(refused("matmul", {like(kFloat, {}), like(kFloat, {3})}), "matmul: a has rank 0; use multiply for scalars");
  EXPECT_EQ(refused("matmul", {like(kBool, {2, 2}), like(kBool, {2, 2})}),
            "matmul: a is bool; matmul takes numeric dtypes; cast it (cast(a, uint8))");
}

// Scales, biases and kept statistics have the extents of their axes, and the dtype of x or of what is computed.
TEST(Infer, NormParameters) {
  const TestTensor x = like(kHalf, {2, 6, 5}), rows = like(kFloat, {2, 6}), groups = like(kFloat, {2, 3});
  const TestTensor per_channel = like(kFloat, {6}), along_row = like(kHalf, {5}), along_channels = like(kHalf, {6});
  const TestAttributes three = TestAttributes().int64("groups", 3);
  struct Norm {
    const char* op;
    std::vector<TestTensor> inputs;
    size_t first_parameter;  // those before it are dy and x
    TestAttributes attributes = {};
  };
  const Norm norms[] = {
      {"layer_norm", {x, along_row, along_row}, 1},
      {"layer_norm_grad", {x, x, rows, rows, along_row}, 2},
      {"batch_norm", {x, along_channels, along_channels}, 1},
      {"batch_norm_grad", {x, x, per_channel, per_channel, along_channels}, 2},
      {"batch_norm_inference", {x, per_channel, per_channel, along_channels, along_channels}, 1},
      {"group_norm", {x, along_channels, along_channels}, 1, three},
      {"group_norm_grad", {x, x, groups, groups, along_channels}, 2, three},
      {"rms_norm", {x, along_row}, 1},
      {"rms_norm_grad", {x, x, rows, along_row}, 2},
  };
  for (const Norm& norm : norms) {
    SCOPED_TRACE(norm.op);
    EXPECT_EQ(inferred(norm.op, norm.inputs, norm.attributes), "float16 [2,6,5]");
    for (size_t i = norm.first_parameter; i < norm.inputs.size(); ++i) {
      SCOPED_TRACE(i);
      for (const int64_t change : {-1, 1}) {
        std::vector<TestTensor> inputs = norm.inputs;
        std::vector<int64_t> shape = inputs[i].shape;
        shape.back() += change;
        inputs[i] = like(inputs[i].dtype, shape);
        EXPECT_NE(refused(norm.op, inputs, norm.attributes), "");
      }
      std::vector<TestTensor> inputs = norm.inputs;
      inputs[i] = like(kInt, inputs[i].shape);
      EXPECT_NE(refused(norm.op, inputs, norm.attributes), "");
    }
  }
}

TEST(Infer, Map) {
  constexpr std::string_view kNames[] = {"a", "b"};
  const ExpressionTemplate expression = parse("a + b; index(1)", kNames);
  const TestTensor a = like(kFloat, {2, 1}), b = like(kFloat, {3}), c = like(kFloat, {4, 2});
  const auto run = [&](std::vector<OperandDesc> operands) { return infer(MapCall{expression, operands}).outputs; };
  EXPECT_EQ(run({a.desc(), b.desc()})[1].shape, (Shape{2, 3}));
  EXPECT_EQ(error_of([&] { run({a.desc()}); }), "expression: expected 2 inputs and scalars, got 1");
  EXPECT_EQ(error_of([&] { run({b.desc(), c.desc()}); }), "expression: shapes [3] and [4,2] do not broadcast");
  EXPECT_EQ(error_of([&] {
              run({b.desc(), b.desc()});
            }),
            "expression: index(1) is outside the index space of shape [3]");
}

TEST(Infer, Strides) {
  EXPECT_EQ(row_major_strides(Shape{2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(row_major_strides(Shape{2, 0, 4}), (Shape{4, 4, 1}));
  const TestTensor x = like(kFloat, {3, 1});
  EXPECT_EQ(broadcast_strides(x.desc(), Shape{5, 3, 4}), (Shape{0, 1, 0}));
  EXPECT_EQ(element_count(Shape{}), 1);
  EXPECT_EQ(shape_text(Shape{}), "[]");
}

}  // namespace
}  // namespace compute
