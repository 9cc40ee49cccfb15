// SPDX-License-Identifier: Apache-2.0
// The fields of an error besides its message: the op, the operand or attribute at fault, the device; and labels and
// scopes in messages.
#include <compute/ops.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "robustness.hpp"

namespace robustness {
namespace {

constexpr compute_error_code kInvalid = COMPUTE_ERROR_INVALID_ARGUMENT;

struct Fields {
  const char* op;
  int32_t argument;
  const char* attribute;
  const char* device;
};

// Frees the error.
void expect_fields(compute_error* raw, const Fields& fields, std::initializer_list<const char*> parts = {}) {
  const Error error(raw);
  ASSERT_NE(error, nullptr);
  const std::string message = compute_error_message(error.get());
  EXPECT_STREQ(compute_error_op(error.get()), fields.op) << message;
  EXPECT_EQ(compute_error_argument(error.get()), fields.argument) << message;
  EXPECT_STREQ(compute_error_attribute(error.get()), fields.attribute) << message;
  EXPECT_STREQ(compute_error_device(error.get()), fields.device) << message;
  for (const char* part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
}

struct Minimal {
  Minimal() {
    use_plugins({"minimal"});
    device = open("minimal0");
    x = make_tensor<float>(device, {1, 2, 3, 4, 5, 6}, {2, 3});
  }
  Device device;
  Tensor x, out;
};

ISOLATED_TEST(ErrorFields, OfOperands) {
  Minimal at;
  const Tensor wide = make_tensor<float>(at.device, {1, 2, 3, 4}), flags = make_tensor<int32_t>(at.device, {1, 0, 1});
  EXPECT_OK(compute_tensor_set_label(wide, "weights"));
  expect_fields(compute_add(nullptr, at.x, wide, at.out.out()), {"add", 1, "", "minimal0"},
                {"[2,3]", "[4]", "(input 1 is \"weights\")"});
  expect_fields(run_op("add", nullptr, {at.x, wide}, at.out.out()), {"add", 1, "", "minimal0"}, {"\"weights\""});
  expect_fields(run_op("bitwise_and", nullptr, {at.x, flags}, at.out.out()), {"bitwise_and", 0, "", "minimal0"},
                {"x is float32"});
  const Tensor c = make_tensor<float>(at.device, {1, 2, 3, 4, 5, 6}, {3, 2});
  expect_fields(compute_concat(nullptr, std::vector<compute_tensor*>{at.x, c}.data(), 2, nullptr, at.out.out()),
                {"concat", 1, "", "minimal0"});
  expect_fields(compute_matmul(nullptr, at.x, at.x, nullptr, at.out.out()), {"matmul", 1, "", "minimal0"}, {"[2,3]"});
  expect_fields(compute_mean(nullptr, flags, nullptr, at.out.out()), {"mean", 0, "", "minimal0"}, {"int32"});
}

ISOLATED_TEST(ErrorFields, OfOutputs) {
  Minimal at;
  Tensor small = make_tensor<float>(at.device, {1, 2});
  EXPECT_OK(compute_tensor_set_label(small, "result"));
  expect_fields(compute_add_into(nullptr, at.x, at.x, small), {"add", 2, "", "minimal0"},
                {"output 0", "(output 0 is \"result\")"});
  const float one = 1;
  Tensor scalar;
  EXPECT_OK(compute_tensor_scalar(COMPUTE_DTYPE_FLOAT32, &one, 0, scalar.out()));
  expect_fields(compute_exp_into(nullptr, at.x, scalar), {"exp", 1, "", "minimal0"});
}

ISOLATED_TEST(ErrorFields, OfAttributes) {
  Minimal at;
  compute_sum_options options = {};
  options.struct_size = sizeof options;
  const int64_t axes[] = {5};
  options.axes = axes;
  options.axes_count = 1;
  expect_fields(compute_sum(nullptr, at.x, &options, at.out.out()), {"sum", -1, "axes", "minimal0"}, {"axis 5"});
  const int64_t twice[] = {1, -1};
  options.axes = twice;
  options.axes_count = 2;
  expect_fields(compute_sum(nullptr, at.x, &options, at.out.out()), {"sum", -1, "axes", "minimal0"}, {"twice"});
  options = {};
  options.struct_size = sizeof options;
  options.keepdims = 7;
  expect_fields(compute_sum(nullptr, at.x, &options, at.out.out()), {"sum", -1, "keepdims", "minimal0"}, {"7"});
  const int64_t value = 1;
  expect_fields(run_op("sum", nullptr, {at.x}, at.out.out(), {int_attribute("axs", &value, 1)}),
                {"sum", -1, "axs", "minimal0"}, {"axes"});
  expect_fields(run_op("exp", nullptr, {at.x}, at.out.out(), {int_attribute("axes", &value, 1)}),
                {"exp", -1, "axes", "minimal0"});
}

ISOLATED_TEST(ErrorFields, OfMasksOfAxes) {
  Minimal at;
  compute_sum_options options = {};
  options.struct_size = sizeof options;
  const int64_t axes[] = {0};
  options.axes_mask = 2;
  EXPECT_OK(compute_sum(nullptr, at.x, &options, at.out.out()));
  EXPECT_EQ(read<float>(at.out), (std::vector<float>{6, 15}));
  options.axes_mask = 3;
  EXPECT_OK(compute_sum(nullptr, at.x, &options, at.out.out()));
  EXPECT_EQ(read<float>(at.out), (std::vector<float>{21}));
  options.axes_mask = 4;
  expect_fields(compute_sum(nullptr, at.x, &options, at.out.out()), {"sum", -1, "axes", "minimal0"}, {"axis 2"});
  options.axes_mask = uint64_t{1} << 63;
  expect_fields(compute_sum(nullptr, at.x, &options, at.out.out()), {"sum", -1, "axes", "minimal0"}, {"axis 63"});
  options.axes_mask = 1;
  options.axes = axes;
  options.axes_count = 1;
  EXPECT_FAILS(compute_sum(nullptr, at.x, &options, at.out.out()), kInvalid, "axes and axes_mask are both given");
}

// An op without a stream and operands runs on cpu; so an error of it names cpu.
ISOLATED_TEST(ErrorFields, OfCreation) {
  compute_tensor* out = nullptr;
  expect_fields(compute_arange(nullptr, -1, COMPUTE_DTYPE_FLOAT32, nullptr, &out), {"arange", -1, "size", "cpu"},
                {"-1"});
}

// Known for certain only where handles are kept.
ISOLATED_TEST(ErrorFields, OfReleasedHandlesThatAreKept) {
  setenv("COMPUTE_DEBUG", "handles", 1);
  Minimal at;
  compute_tensor* const gone = make_tensor<float>(at.device, {1, 2, 3, 4}).release();
  EXPECT_OK(compute_tensor_set_label(gone, "weights"));
  compute_tensor_release(gone);
  for (const bool typed : {true, false}) {
    expect_fields(
        typed ? compute_add(nullptr, at.x, gone, at.out.out()) : run_op("add", nullptr, {at.x, gone}, at.out.out()),
        {"add", 1, "", "minimal0"}, {"add: input 1 (float32 [4], label \"weights\") was released"});
  }
  expect_fields(compute_exp_into(nullptr, at.x, gone), {"exp", 1, "", "minimal0"},
                {"exp: output 0 (float32 [4], label \"weights\") was released"});
  EXPECT_FAILS(compute_tensor_write(gone, nullptr, 0), kInvalid,
               "compute_tensor_write: tensor (float32 [4], label \"weights\") was released");
  expect_fields(compute_exp(nullptr, reinterpret_cast<compute_tensor*>(at.device.get()), at.out.out()),
                {"exp", 0, "", ""}, {"exp: input 0: wrong type of handle: expected tensor, got device"});
}

// Functions other than ops name the device of their handle.
ISOLATED_TEST(ErrorFields, OfOtherFunctions) {
  Minimal at;
  float value = 0;
  expect_fields(compute_tensor_read(at.x, &value, 4), {"", -1, "", "minimal0"});
  expect_fields(compute_tensor_write(at.x, &value, 4), {"", -1, "", "minimal0"});
  const int64_t shape[] = {7};
  expect_fields(compute_tensor_view(at.x, COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, 0, at.out.out()),
                {"", -1, "", "minimal0"});
  expect_fields(compute_tensor_reshape(at.x, 1, shape, at.out.out()), {"", -1, "", "minimal0"});
  const int64_t negative[] = {-7};
  expect_fields(compute_tensor_empty(at.device, COMPUTE_DTYPE_FLOAT32, 1, negative, at.out.out()),
                {"", -1, "", "minimal0"});
  compute_graph* graph = nullptr;
  const Stream stream = make_stream(at.device);
  expect_fields(compute_graph_end(stream, &graph), {"", -1, "", "minimal0"});
}

ISOLATED_TEST(ErrorFields, OfReductionsOfExpressions) {
  Minimal at;
  Expression square, two, index;
  const char* const names[] = {"x", "y"};
  EXPECT_OK(compute_expression_parse("x * x", names, 1, nullptr, 0, square.out()));
  EXPECT_OK(compute_expression_parse("x + y", names, 2, nullptr, 0, two.out()));
  EXPECT_OK(compute_expression_parse("x + index(0)", names, 1, nullptr, 0, index.out()));
  compute_tensor* const inputs[] = {at.x};
  const auto reduce = [&](int32_t reduction, compute_reduce_options options) {
    options.struct_size = sizeof options;
    return compute_reduce(nullptr, square, reduction, &options, inputs, 1, nullptr, 0, at.out.out());
  };
  EXPECT_OK(reduce(COMPUTE_REDUCTION_SUM, {}));
  EXPECT_EQ(read<float>(at.out), std::vector<float>{91});
  for (const int32_t other : {0, int32_t{COMPUTE_REDUCTION_MEAN}, 8, -1})
    EXPECT_FAILS(reduce(other, {}), kInvalid, "reduce", "reduction is " + std::to_string(other), "_ALL or _ANY");
  compute_reduce_options options = {};
  options.struct_size = sizeof options;
  options.keepdims = 2;
  EXPECT_FAILS(reduce(COMPUTE_REDUCTION_SUM, options), kInvalid, "keepdims is 2");
  options = {};
  options.struct_size = sizeof options;
  options.accumulator = 99;
  EXPECT_FAILS(reduce(COMPUTE_REDUCTION_SUM, options), kInvalid, "accumulator 99");
  options = {};
  options.struct_size = sizeof options;
  options.axes_mask = 4;
  expect_fields(reduce(COMPUTE_REDUCTION_SUM, options), {"reduce", -1, "axes", "minimal0"}, {"axis 2"});
  options = {};
  options.struct_size = sizeof options;
  options.after = two;
  EXPECT_FAILS(reduce(COMPUTE_REDUCTION_SUM, options), kInvalid, "after", "2 inputs");
  options.after = index;
  EXPECT_FAILS(reduce(COMPUTE_REDUCTION_SUM, options), kInvalid, "after", "index");
  options.after = nullptr;
  EXPECT_FAILS(compute_reduce(nullptr, two, COMPUTE_REDUCTION_SUM, &options, inputs, 1, nullptr, 0, at.out.out()),
               kInvalid, "2", "1");
  EXPECT_FAILS(compute_reduce(nullptr, square, COMPUTE_REDUCTION_SUM, &options, inputs, 1, nullptr, 0, nullptr),
               kInvalid, "output");
}

ISOLATED_TEST(ErrorFields, OfNumbers) {
  Minimal at;
  Expression scaled;
  const char *const inputs[] = {"x"}, *const scalars[] = {"a"};
  EXPECT_OK(compute_expression_parse("x * a", inputs, 1, scalars, 1, scaled.out()));
  compute_tensor* const x[] = {at.x};
  const auto map = [&](const compute_number& number) {
    at.out.reset();
    return compute_map(nullptr, scaled, x, 1, &number, 1, at.out.out(), 1);
  };
  EXPECT_OK(map({COMPUTE_KIND_FLOAT64, 0, 0, 0.5, 0, nullptr}));
  EXPECT_EQ(read<float>(at.out), (std::vector<float>{0.5f, 1, 1.5f, 2, 2.5f, 3}));
  EXPECT_OK(map({COMPUTE_KIND_INT64, 0, 2, 0, 0, nullptr}));
  EXPECT_EQ(read<float>(at.out), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  expect_fields(map({77, 0, 0, 0, 0, nullptr}), {"map", 1, "", "minimal0"}, {"scalar 0", "77"});
  expect_fields(map({COMPUTE_KIND_SCALAR, 0, 0, 0, 0, at.x}), {"map", 1, "", "minimal0"}, {"memory"});
  EXPECT_FAILS(map({COMPUTE_KIND_SCALAR, 0, 0, 0, 0, nullptr}), kInvalid, "NULL");
  EXPECT_FAILS(map({COMPUTE_KIND_FLOAT64, 1, 0, 0, 0, nullptr}), COMPUTE_ERROR_UNSUPPORTED, "reserved");
}

// The table of an error for want of memory names tensors and where they were made.
ISOLATED_TEST(ErrorFields, LabelsAndScopesOfWhatHoldsMemory) {
  setenv("COMPUTE_MEMORY_LIMIT", "8M", 1);
  Minimal at;
  EXPECT_OK(compute_scope_push("train", "main.c", 12));
  EXPECT_OK(compute_scope_push("embed", nullptr, 0));
  Tensor held = make_full(at.device, {1'500'000}, 1.0f);
  EXPECT_OK(compute_tensor_set_label(held, "weights"));
  EXPECT_OK(compute_scope_pop());
  EXPECT_OK(compute_scope_pop());
  const int64_t shape[] = {1'500'000};
  expect_fields(compute_tensor_empty(at.device, COMPUTE_DTYPE_FLOAT32, 1, shape, at.out.out()),
                {"", -1, "", "minimal0"}, {"bytes  float32 [1500000]  \"weights\"  scope: train (main.c:12) > embed"});
}

}  // namespace
}  // namespace robustness
