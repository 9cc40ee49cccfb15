// SPDX-License-Identifier: Apache-2.0
// Bad input gives an error object whose message names the op, the argument and the values, and has no other
// effect.
#include <gtest/gtest.h>

#include <cstring>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

constexpr compute_error_code kInvalid = COMPUTE_ERROR_INVALID_ARGUMENT;

void expect_error(const Error& error, compute_error_code code, std::initializer_list<const char*> mentions,
                  const std::string& what) {
  EXPECT_EQ(error.code(), code) << what << ": " << compute_error_code_name(error.code()) << " " << error.message();
  for (const char* text : mentions)
    EXPECT_TRUE(error.mentions(text)) << what << ": no '" << text << "' in: " << error.message();
}

Operand floats(const Session& session, const Shape& shape) { return session.upload(Array(dtype::FLOAT32, shape)); }

Error run(const Session& session, const std::string& op, const Attributes& attributes,
          const std::vector<Operand>& inputs, Tensor output = {}) {
  const bool given = output.get() != nullptr;
  Error error = session.try_run(op, attributes, inputs, nullptr, output);
  if (!given && error) {
    EXPECT_EQ(output.get(), nullptr) << "an output was made in spite of the error";
  }
  return error;
}

void shapes(const Session& session) {
  expect_error(run(session, "add", {}, {floats(session, {2, 3}), floats(session, {4, 3})}), kInvalid,
               {"add: shapes [2,3] and [4,3] do not broadcast"}, "add");
  expect_error(run(session, "matmul", {}, {floats(session, {2, 3}), floats(session, {4, 3})}), kInvalid,
               {"matmul", "[2,3]", "[4,3]"}, "matmul");
  expect_error(run(session, "matmul", {}, {floats(session, {}), floats(session, {3})}), kInvalid, {"matmul"},
               "matmul of rank 0");
  expect_error(run(session, "concat", {{"axis", int64_t{0}}}, {floats(session, {2, 3}), floats(session, {2, 4})}),
               kInvalid, {"concat", "[2,4]"}, "concat");
  expect_error(run(session, "concat", {{"axis", int64_t{2}}}, {floats(session, {2, 3}), floats(session, {2, 3})}),
               kInvalid, {"concat", "2"}, "concat axis");
  expect_error(run(session, "stack", {}, {floats(session, {2}), floats(session, {3})}), kInvalid, {"stack"}, "stack");
  expect_error(run(session, "sum", {{"axes", Shape{2}}}, {floats(session, {2, 3})}), kInvalid, {"sum", "2"}, "axis");
  expect_error(run(session, "sum", {{"axes", Shape{0, 0}}}, {floats(session, {2, 3})}), kInvalid, {"sum"},
               "an axis twice");
  expect_error(run(session, "sum", {{"axes", Shape{0, -2}}}, {floats(session, {2, 3})}), kInvalid, {"sum"},
               "an axis twice");
  expect_error(run(session, "max", {}, {floats(session, {0})}), kInvalid, {"max"}, "max of nothing");
  expect_error(run(session, "argmax", {{"axis", int64_t{5}}}, {floats(session, {2})}), kInvalid, {"argmax", "5"},
               "argmax axis");
  const Operand indices = session.upload(Array(dtype::INT64, {2, 2}));
  expect_error(run(session, "take_along_axis", {}, {floats(session, {3}), indices}), kInvalid, {"take_along_axis"},
               "rank of indices");
  expect_error(run(session, "scatter", {}, {floats(session, {3, 2}), indices, floats(session, {2, 3})}), kInvalid,
               {"scatter"}, "shape of updates");
}

void dtypes(const Session& session) {
  const Operand integers = session.upload(Array(dtype::INT32, {3}));
  expect_error(run(session, "mean", {}, {integers}), kInvalid, {"mean", "int32", "cast"},
               "integers where floats are needed");
  expect_error(run(session, "bitwise_and", {}, {integers, floats(session, {3})}), kInvalid,
               {"bitwise_and", "y is float32"}, "floats where integers are needed");
  expect_error(run(session, "take", {}, {floats(session, {3}), floats(session, {3})}), kInvalid, {"take", "float32"},
               "float indices");
  expect_error(run(session, "where", {}, {floats(session, {3}), floats(session, {3}), floats(session, {3})}), kInvalid,
               {"where", "bool"}, "where's condition");
  if (session.supports(dtype::COMPLEX64, COMPUTE_DTYPE_LEVEL_STORAGE)) {
    const Operand z = session.upload(Array(dtype::COMPLEX64, {3}));
    expect_error(run(session, "cast", {{"dtype", int64_t{dtype::FLOAT32}}}, {z}), kInvalid, {"cast", "complex64"},
                 "complex to real");
    expect_error(run(session, "less", {}, {z, z}), kInvalid, {"less", "complex64"}, "order of complex numbers");
  }
  Tensor x;
  const int64_t shape[] = {2};
  for (compute_dtype wrong : {0, 18, -1, 1000}) {
    expect_error(Error(compute_tensor_empty(session.device(), wrong, 1, shape, x.out())), kInvalid, {}, "no dtype");
    EXPECT_EQ(compute_dtype_size(wrong), 0);
    EXPECT_STREQ(compute_dtype_name(wrong), "");
  }
}

void extents(const Session& session) {
  Tensor x;
  const int64_t negative[] = {2, -1}, huge[] = {int64_t{1} << 40, int64_t{1} << 40}, many[40] = {};
  const auto make = [&](int32_t rank, const int64_t* shape) {
    return Error(compute_tensor_empty(session.device(), COMPUTE_DTYPE_FLOAT32, rank, shape, x.out()));
  };
  expect_error(make(2, negative), kInvalid, {"-1"}, "a negative extent");
  expect_error(make(-1, negative), kInvalid, {"-1"}, "a negative rank");
  expect_error(make(33, many), kInvalid, {"33"}, "rank 33");
  expect_error(make(2, huge), COMPUTE_ERROR_OUT_OF_RANGE, {}, "a size that overflows");
  expect_error(make(1, nullptr), kInvalid, {}, "no shape");
  EXPECT_EQ(x.get(), nullptr);
  // An extent of 0 makes the other extents irrelevant.
  const int64_t nothing[] = {int64_t{1} << 40, 0, int64_t{1} << 40};
  const Error fine = make(3, nothing);
  EXPECT_TRUE(!fine || fine.code() == COMPUTE_ERROR_OUT_OF_RANGE) << fine.message();
}

void attributes(const Session& session) {
  const Operand x = floats(session, {3, 4});
  expect_error(run(session, "sum", {{"axis", int64_t{0}}}, {x}), kInvalid, {"sum", "axis"}, "an unknown attribute");
  expect_error(run(session, "exp", {{"axis", int64_t{0}}}, {x}), kInvalid, {"exp", "axis"},
               "an attribute where there is none");
  expect_error(run(session, "sum", {{"keepdims", std::complex<double>(0.5)}}, {x}), kInvalid, {"sum", "keepdims"},
               "a wrong kind");
  expect_error(run(session, "sum", {{"keepdims", std::string("yes")}}, {x}), kInvalid, {"sum", "keepdims"},
               "a wrong kind");
  expect_error(run(session, "cast", {}, {x}), kInvalid, {"cast", "dtype"}, "a required one is missing");
  expect_error(run(session, "cast", {{"dtype", int64_t{99}}}, {x}), kInvalid, {"cast", "dtype"}, "no dtype");
  expect_error(run(session, "scatter", {{"reduction", std::string("average")}},
                   {x, session.upload(Array(dtype::INT64, {1, 4})), floats(session, {1, 4})}),
               kInvalid, {"scatter", "average"}, "an unknown word");

  // Structs of other sizes: an older program's smaller ones, and an array of mixed ones.
  const compute_op* sum = nullptr;
  check(compute_op_find("sum", 0, &sum));
  const int64_t one = 1;
  compute_attribute list[2] = {};
  for (compute_attribute& a : list) {
    a.struct_size = sizeof a;
    a.struct_type = COMPUTE_STRUCT_ATTRIBUTE;
    a.kind = COMPUTE_KIND_INT64;
    a.count = 1;
    a.values = &one;
  }
  list[0].name = "axes";
  list[0].name_size = 4;
  list[1].name = "keepdims";
  list[1].name_size = 8;
  compute_tensor* input[] = {x.tensor};
  compute_tensor* output[] = {nullptr};
  check(compute_op_run(sum, nullptr, list, 2, input, 1, output, 1));
  Tensor result;
  *result.out() = output[0];
  EXPECT_EQ(compute_tensor_rank(result), 2);
  list[1].struct_size = sizeof list[1] + 8;
  output[0] = nullptr;
  expect_error(Error(compute_op_run(sum, nullptr, list, 2, input, 1, output, 1)), kInvalid, {}, "mixed sizes");
  list[0].struct_size = 4;
  expect_error(Error(compute_op_run(sum, nullptr, list, 1, input, 1, output, 1)), kInvalid, {},
               "a struct without its header");
  list[1] = list[0] = compute_attribute{
      sizeof(compute_attribute), COMPUTE_STRUCT_ATTRIBUTE, nullptr, "axes", 4, COMPUTE_KIND_INT64, 0, 1, &one};
  expect_error(Error(compute_op_run(sum, nullptr, list, 2, input, 1, output, 1)), kInvalid, {"axes"},
               "an attribute twice");
}

void outputs(const Session& session) {
  const Operand x = floats(session, {4, 6}), y = floats(session, {4, 6});
  const auto add_into = [&](const Tensor& output) { return run(session, "add", {}, {x, y}, output); };
  expect_error(add_into(session.empty(dtype::FLOAT32, {6, 4})), kInvalid, {"add", "[6,4]", "[4,6]"}, "another shape");
  expect_error(add_into(session.empty(dtype::FLOAT32, {1, 4, 6})), kInvalid, {"add"}, "another rank");
  expect_error(add_into(session.empty(dtype::INT32, {4, 6})), kInvalid, {"add", "int32"}, "another dtype");
  const Operand row = floats(session, {1, 6});
  expect_error(add_into(broadcast(row, {4, 6}).tensor), kInvalid, {"add", "output"}, "an output that overlaps itself");

  // Outputs that share memory with an input other than as the same view.
  session.need(dtype::FLOAT32, COMPUTE_DTYPE_LEVEL_ARITHMETIC);
  const Operand big = floats(session, {9, 6});
  const Operand upper = sliced(big, {0, 0}, {4, 6}, {1, 1}), shifted = sliced(big, {1, 0}, {4, 6}, {1, 1}),
                flipped = sliced(big, {3, 0}, {4, 6}, {-1, 1});
  const Operand lower = sliced(big, {5, 0}, {4, 6}, {1, 1});
  expect_error(run(session, "exp", {}, {upper}, shifted.tensor), kInvalid, {"exp", "overlap"},
               "a shifted view of an input");
  expect_error(run(session, "exp", {}, {upper}, flipped.tensor), kInvalid, {"exp", "overlap"}, "the input backwards");
  EXPECT_FALSE(run(session, "exp", {}, {upper}, lower.tensor)) << "parts of one buffer that do not meet";
  EXPECT_FALSE(run(session, "exp", {}, {upper}, upper.tensor)) << "the identical view";
  const Operand square = floats(session, {5, 5});
  expect_error(run(session, "matmul", {}, {square, square}, square.tensor), kInvalid, {"matmul", "overlap"},
               "an op that is not in place");
  expect_error(run(session, "exp", {}, {square}, permuted(square, {1, 0}).tensor), kInvalid, {"exp", "overlap"},
               "the input transposed");
}

void counts(const Session& session) {
  const Operand x = floats(session, {3});
  expect_error(run(session, "add", {}, {x}), kInvalid, {"add"}, "one operand too few");
  expect_error(run(session, "exp", {}, {x, x}), kInvalid, {"exp"}, "one operand too many");
  expect_error(run(session, "concat", {}, {}), kInvalid, {"concat"}, "no operand");
  const compute_op* add = nullptr;
  check(compute_op_find("add", 0, &add));
  compute_tensor* inputs[] = {x.tensor, nullptr};
  compute_tensor* output[] = {nullptr, nullptr};
  expect_error(Error(compute_op_run(add, nullptr, nullptr, 0, inputs, 2, output, 1)), kInvalid, {"add"},
               "a NULL operand");
  inputs[1] = x.tensor;
  expect_error(Error(compute_op_run(add, nullptr, nullptr, 0, inputs, 2, output, 2)), kInvalid, {"add"}, "two outputs");
  expect_error(Error(compute_op_run(add, nullptr, nullptr, 0, inputs, -2, output, 1)), kInvalid, {},
               "a negative count");
  expect_error(Error(compute_op_run(add, nullptr, nullptr, 0, nullptr, 2, output, 1)), kInvalid, {}, "no operands");
  expect_error(Error(compute_op_run(nullptr, nullptr, nullptr, 0, inputs, 2, output, 1)), kInvalid, {}, "no op");
}

void names(const Session& session) {
  const compute_op* op = nullptr;
  expect_error(Error(compute_op_find("exq", 0, &op)), COMPUTE_ERROR_NOT_FOUND, {"exq", "exp"}, "an unknown op");
  EXPECT_EQ(op, nullptr);
  expect_error(Error(compute_op_find("exp", 99, &op)), COMPUTE_ERROR_NOT_FOUND, {"exp"}, "an unknown version");
  expect_error(Error(compute_op_find(nullptr, 0, &op)), kInvalid, {}, "no name");
  Device device;
  const Error unknown(compute_device_open("nosuchdevice7", device.out()));
  EXPECT_TRUE(unknown.code() == COMPUTE_ERROR_NOT_FOUND || unknown.code() == kInvalid) << unknown.message();
  EXPECT_TRUE(unknown.mentions("nosuchdevice")) << unknown.message();
  const std::string absent = session.plugin() + ":997";
  expect_error(Error(compute_device_open(absent.c_str(), device.out())), COMPUTE_ERROR_NOT_FOUND, {"997"},
               "a device that is not there");
  expect_error(Error(compute_device_open("cpu+", device.out())), kInvalid, {"^"}, "a malformed selector");
  EXPECT_EQ(device.get(), nullptr);
  expect_error(Error(compute_config_set("COMPUTE_NO_SUCH_SETTING", "1")), COMPUTE_ERROR_NOT_FOUND, {},
               "an unknown setting");
  EXPECT_EQ(compute_device_name(session.device()), session.name());
}

void null_handles(const Session& session) {
  Tensor t;
  Stream s;
  Event e;
  float value = 0;
  int32_t flag = 7;
  void* data = &value;
  const int64_t shape[] = {1};
  compute_text* text = nullptr;
  expect_error(Error(compute_tensor_empty(nullptr, COMPUTE_DTYPE_FLOAT32, 1, shape, t.out())), kInvalid, {},
               "no device");
  expect_error(Error(compute_tensor_empty(session.device(), COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr)), kInvalid, {},
               "no out-parameter");
  expect_error(Error(compute_tensor_read(nullptr, &value, 4)), kInvalid, {}, "read");
  expect_error(Error(compute_tensor_write(nullptr, &value, 4)), kInvalid, {}, "write");
  expect_error(Error(compute_tensor_reshape(nullptr, 1, shape, t.out())), kInvalid, {}, "reshape");
  expect_error(Error(compute_tensor_map(nullptr, COMPUTE_ACCESS_READ, &data, &flag)), kInvalid, {}, "map");
  EXPECT_EQ(data, nullptr) << "an out-parameter is written on every return";
  EXPECT_EQ(flag, 0);
  expect_error(Error(compute_stream_create(nullptr, nullptr, s.out())), kInvalid, {}, "stream of no device");
  expect_error(Error(compute_stream_synchronize(nullptr)), kInvalid, {}, "synchronize");
  flag = 7;
  expect_error(Error(compute_stream_query(nullptr, &flag)), kInvalid, {}, "query");
  EXPECT_EQ(flag, 0);
  expect_error(Error(compute_event_record(nullptr, nullptr, e.out())), kInvalid, {}, "event");
  expect_error(Error(compute_event_synchronize(nullptr)), kInvalid, {}, "event");
  expect_error(Error(compute_graph_begin(nullptr, nullptr)), kInvalid, {}, "graph");
  expect_error(Error(compute_load_report(99, &text)), kInvalid, {}, "an unknown format");
  expect_error(Error(compute_device_open("cpu", nullptr)), kInvalid, {}, "no out-parameter");
  // Releasing and freeing nothing is allowed.
  compute_tensor_release(nullptr);
  compute_stream_release(nullptr);
  compute_event_release(nullptr);
  compute_device_release(nullptr);
  compute_plan_release(nullptr);
  compute_graph_release(nullptr);
  compute_expression_release(nullptr);
  compute_kernel_release(nullptr);
  compute_error_free(nullptr);
  compute_text_free(nullptr);
}

void sizes_and_access(const Session& session) {
  const Operand x = floats(session, {3});
  float values[4] = {};
  expect_error(Error(compute_tensor_read(x.tensor, values, 16)), kInvalid, {"16", "12"}, "read of another size");
  expect_error(Error(compute_tensor_write(x.tensor, values, 8)), kInvalid, {"8", "12"}, "write of another size");
  expect_error(Error(compute_tensor_read(x.tensor, nullptr, 12)), kInvalid, {}, "read to nowhere");
  void* data = nullptr;
  int32_t is_copy = 0;
  expect_error(Error(compute_tensor_map(x.tensor, 0, &data, &is_copy)), kInvalid, {}, "map for nothing");
  expect_error(Error(compute_tensor_map(x.tensor, 8, &data, &is_copy)), COMPUTE_ERROR_UNSUPPORTED, {},
               "map for something unknown");
  // Scalars are immutable.
  const float one = 1;
  Tensor scalar;
  check(compute_tensor_scalar(COMPUTE_DTYPE_FLOAT32, &one, 0, scalar.out()));
  EXPECT_TRUE(Error(compute_tensor_write(scalar, &one, 4))) << "a scalar was written";
  EXPECT_TRUE(run(session, "negative", {}, {{Array(dtype::FLOAT32, {}), scalar}}, scalar)) << "a scalar as an output";
}

// An error object names its subject.
void error_objects(const Session& session) {
  const Error error = run(session, "add", {}, {floats(session, {2, 3}), floats(session, {4, 3})});
  ASSERT_TRUE(error);
  EXPECT_STREQ(compute_error_op(error.get()), "add");
  EXPECT_STREQ(compute_error_code_name(error.code()), "INVALID_ARGUMENT");
  EXPECT_EQ(compute_error_native_code(error.get()), 0);
  EXPECT_EQ(compute_error_cause(error.get()), nullptr);
  EXPECT_EQ(error.message().find('\n'), std::string::npos) << "one line";
  EXPECT_STREQ(compute_error_code_name(1000), "UNKNOWN");
  EXPECT_STREQ(compute_error_code_name(COMPUTE_ERROR_INTERNAL), "INTERNAL");
  EXPECT_STREQ(compute_error_code_name(COMPUTE_ERROR_CANCELLED), "CANCELLED");
  EXPECT_STREQ(compute_error_code_name(COMPUTE_ERROR_PEER_FAILED), "PEER_FAILED");
  EXPECT_STREQ(compute_error_code_name(COMPUTE_ERROR_NUMERICAL), "NUMERICAL");
  const Error argument = run(session, "take", {}, {floats(session, {3}), floats(session, {3})});
  EXPECT_EQ(compute_error_argument(argument.get()), 1) << argument.message();
}

void unknown_kernel_language(const Session& session) {
  compute_kernel* kernel = nullptr;
  const Error error(compute_kernel_compile(session.device(), "no-such-language", "", -1, "f", nullptr, &kernel));
  EXPECT_TRUE(error.code() == COMPUTE_ERROR_UNSUPPORTED || error.code() == kInvalid) << error.message();
  EXPECT_EQ(kernel, nullptr);
}

}  // namespace

void add_error_tests(Registry& registry) {
  const struct {
    const char* name;
    void (*body)(const Session&);
  } kTests[] = {
      {"shapes", shapes},
      {"dtypes", dtypes},
      {"extents", extents},
      {"attributes", attributes},
      {"outputs", outputs},
      {"counts", counts},
      {"names", names},
      {"null_handles", null_handles},
      {"sizes_and_access", sizes_and_access},
      {"error_objects", error_objects},
      {"unknown_kernel_language", unknown_kernel_language},
  };
  for (const auto& entry : kTests) {
    Test test{"error", entry.name, entry.body};
    test.runs_ops = false;
    registry.add(std::move(test));
  }
}

}  // namespace compute::conformance
