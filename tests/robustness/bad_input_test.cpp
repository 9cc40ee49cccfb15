// SPDX-License-Identifier: Apache-2.0
// What bad arguments get: an error with the right code whose message names op, argument and values. One process per
// test.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "robustness.hpp"

namespace robustness {
namespace {

constexpr compute_error_code kInvalid = COMPUTE_ERROR_INVALID_ARGUMENT;
constexpr int64_t kHuge = int64_t{1} << 40;

// A device that runs every op in every build.
Device open_minimal() {
  use_plugins({"minimal"});
  return open("minimal0");
}

Tensor floats(compute_device* device, std::vector<int64_t> shape) { return make_full(device, shape, 1.0f); }

// ---- Handles --------------------------------------------------------------------------------------------------------

// Every function that takes a handle, with NULL in its place and everything else as good as it can be.
ISOLATED_TEST(BadInput, NullDevicesAndTensorsAreErrors) {
  use_plugins({"minimal"});
  compute_tensor* tensor = nullptr;
  compute_device_info info = {};
  info.struct_size = sizeof info;
  compute_device_statistics statistics = {};
  statistics.struct_size = sizeof statistics;
  const int64_t shape[] = {1};
  const int32_t axes[] = {0};
  float value = 0;
  void* data = nullptr;
  int32_t number = 0;
  struct DLManagedTensorVersioned* managed = nullptr;

  EXPECT_FAILS(compute_device_get_info(nullptr, &info), kInvalid, "device");
  EXPECT_FAILS(compute_device_get_statistics(nullptr, &statistics), kInvalid, "device");
  EXPECT_FAILS(compute_device_health(nullptr, &number), kInvalid, "device");
  EXPECT_EQ(number, COMPUTE_HEALTH_UNKNOWN);
  EXPECT_FAILS(compute_device_trim(nullptr, 0), kInvalid, "device");
  EXPECT_FAILS(compute_device_synchronize(nullptr), kInvalid, "device");
  EXPECT_FAILS(compute_tensor_empty(nullptr, COMPUTE_DTYPE_FLOAT32, 1, shape, &tensor), kInvalid, "device");
  EXPECT_FAILS(compute_tensor_full(nullptr, COMPUTE_DTYPE_FLOAT32, 1, shape, &value, &tensor), kInvalid, "device");
  EXPECT_FAILS(compute_tensor_from_host(nullptr, COMPUTE_DTYPE_FLOAT32, 1, shape, &value, &tensor), kInvalid, "device");
  EXPECT_FAILS(compute_tensor_touch(nullptr), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_set_label(nullptr, "x"), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_reshape(nullptr, 1, shape, &tensor), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_permute(nullptr, 1, axes, &tensor), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_slice(nullptr, 1, shape, shape, shape, &tensor), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_broadcast(nullptr, 1, shape, &tensor), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_expand(nullptr, 0, &tensor), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_squeeze(nullptr, 0, &tensor), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_view(nullptr, COMPUTE_DTYPE_FLOAT32, 1, shape, shape, 0, &tensor), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_read(nullptr, &value, 4), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_read_element(nullptr, 1, shape, &value, 4), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_write(nullptr, &value, 4), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_read_async(nullptr, &value, 4, nullptr), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_write_async(nullptr, &value, 4, nullptr), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_to_device(nullptr, nullptr, &tensor), kInvalid);
  EXPECT_FAILS(compute_tensor_map(nullptr, COMPUTE_ACCESS_READ, &data, &number), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_unmap(nullptr, &value), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_synchronize(nullptr), kInvalid, "tensor");
  EXPECT_FAILS(compute_tensor_from_dlpack(nullptr, &tensor), kInvalid);
  EXPECT_FAILS(compute_tensor_to_dlpack(nullptr, -1, &managed), kInvalid, "tensor");
}

ISOLATED_TEST(BadInput, NullStreamsOpsAndGraphsAreErrors) {
  use_plugins({"minimal"});
  compute_tensor* tensor = nullptr;
  compute_stream* stream = nullptr;
  compute_event* event = nullptr;
  compute_plan* plan = nullptr;
  compute_graph* graph = nullptr;
  compute_kernel* kernel = nullptr;
  compute_support support = {};
  support.struct_size = sizeof support;
  compute_graph_info graph_info = {};
  graph_info.struct_size = sizeof graph_info;
  compute_op_info op_info = {};
  op_info.struct_size = sizeof op_info;
  compute_launch launch = {};
  launch.struct_size = sizeof launch;
  const float value = 0;
  int32_t number = 0;
  int64_t bytes = 0;

  EXPECT_FAILS(compute_stream_create(nullptr, nullptr, &stream), kInvalid, "device");
  EXPECT_FAILS(compute_stream_synchronize(nullptr), kInvalid, "stream");
  EXPECT_FAILS(compute_stream_wait_for(nullptr, 0, &number), kInvalid, "stream");
  EXPECT_FAILS(compute_stream_query(nullptr, &number), kInvalid, "stream");
  EXPECT_FAILS(compute_stream_notify(
                   nullptr, [](const compute_error*, void*) {}, nullptr),
               kInvalid, "stream");
  EXPECT_FAILS(compute_event_record(nullptr, nullptr, &event), kInvalid, "stream");
  EXPECT_FAILS(compute_event_wait(nullptr, nullptr), kInvalid);
  EXPECT_FAILS(compute_event_synchronize(nullptr), kInvalid, "event");
  EXPECT_FAILS(compute_event_query(nullptr, &number), kInvalid, "event");
  EXPECT_FAILS(compute_event_elapsed(nullptr, nullptr, &bytes), kInvalid, "event");
  EXPECT_FAILS(compute_op_get_info(nullptr, &op_info), kInvalid, "op");
  EXPECT_FAILS(compute_op_run(nullptr, nullptr, nullptr, 0, nullptr, 0, &tensor, 1), kInvalid, "op");
  EXPECT_FAILS(compute_op_query(nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr, 0, &support), kInvalid);
  EXPECT_FAILS(compute_plan_create(nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr, 0, &plan), kInvalid);
  EXPECT_FAILS(compute_plan_run(nullptr, nullptr, nullptr, 0, nullptr, 0, &tensor, 1), kInvalid, "plan");
  EXPECT_FAILS(compute_map(nullptr, nullptr, nullptr, 0, nullptr, 0, &tensor, 1), kInvalid, "expression");
  EXPECT_FAILS(compute_kernel_compile(nullptr, "portable", "", -1, "f", nullptr, &kernel), kInvalid, "device");
  EXPECT_FAILS(compute_kernel_launch(nullptr, nullptr, &launch, nullptr, 0), kInvalid, "kernel");
  EXPECT_FAILS(compute_graph_begin(nullptr, nullptr), kInvalid, "stream");
  EXPECT_FAILS(compute_graph_end(nullptr, &graph), kInvalid, "stream");
  EXPECT_FAILS(compute_graph_run(nullptr, nullptr), kInvalid, "graph");
  EXPECT_FAILS(compute_graph_set_slot(nullptr, nullptr, &value), kInvalid, "graph");
  EXPECT_FAILS(compute_graph_get_info(nullptr, &graph_info), kInvalid, "graph");
}

std::set<const void*> all_ops() {
  int64_t count = 0;
  EXPECT_EQ(compute_op_list(nullptr, 0, &count), nullptr);
  std::vector<compute_op_info> infos(static_cast<size_t>(count));
  for (compute_op_info& info : infos) info.struct_size = sizeof info;
  EXPECT_EQ(compute_op_list(infos.data(), count, &count), nullptr);
  std::set<const void*> ops;
  for (const compute_op_info& info : infos) {
    const compute_op* op = nullptr;
    EXPECT_EQ(compute_op_find(info.name, info.version, &op), nullptr);
    ops.insert(op);
  }
  return ops;
}

// A pointer that is not an op is refused, also after a valid handle was cached.
ISOLATED_TEST(BadInput, HandlesOfOpsAreLookedUp) {
  const compute_op* op = nullptr;
  ASSERT_EQ(compute_op_find("exp", 0, &op), nullptr);
  compute_op_info info{};
  info.struct_size = sizeof info;
  const std::set<const void*> ops = all_ops();
  for (int64_t offset = 1; offset < 4096; ++offset) {
    EXPECT_EQ(compute_op_get_info(op, &info), nullptr);
    const auto* wrong = reinterpret_cast<const compute_op*>(reinterpret_cast<const char*>(op) + offset);
    if (ops.contains(wrong)) continue;
    EXPECT_FAILS(compute_op_run(wrong, nullptr, nullptr, 0, nullptr, 0, nullptr, 0), kInvalid,
                 "was not returned by compute_op_find");
  }
}

// What cannot fail answers with nothing.
ISOLATED_TEST(BadInput, WhatCannotFailTakesNull) {
  compute_device_retain(nullptr), compute_device_release(nullptr);
  compute_tensor_retain(nullptr), compute_tensor_release(nullptr);
  compute_stream_retain(nullptr), compute_stream_release(nullptr);
  compute_event_retain(nullptr), compute_event_release(nullptr);
  compute_plan_retain(nullptr), compute_plan_release(nullptr);
  compute_expression_retain(nullptr), compute_expression_release(nullptr);
  compute_kernel_retain(nullptr), compute_kernel_release(nullptr);
  compute_graph_retain(nullptr), compute_graph_release(nullptr);
  compute_error_free(nullptr), compute_text_free(nullptr);
  EXPECT_EQ(compute_error_get_code(nullptr), COMPUTE_OK);
  EXPECT_STREQ(compute_error_message(nullptr), "");
  EXPECT_STREQ(compute_error_op(nullptr), "");
  EXPECT_STREQ(compute_error_device(nullptr), "");
  EXPECT_EQ(compute_error_cause(nullptr), nullptr);
  EXPECT_STREQ(compute_text_data(nullptr), "");
  EXPECT_EQ(compute_text_size(nullptr), 0);
  EXPECT_STREQ(compute_device_name(nullptr), "");
  EXPECT_EQ(compute_tensor_dtype(nullptr), COMPUTE_DTYPE_NONE);
  EXPECT_EQ(compute_tensor_rank(nullptr), 0);
  EXPECT_EQ(compute_tensor_element_count(nullptr), 0);
  EXPECT_EQ(compute_tensor_device(nullptr), nullptr);
  EXPECT_EQ(compute_tensor_shares_buffer(nullptr, nullptr), 0);
  EXPECT_EQ(compute_stream_device(nullptr), nullptr);
  EXPECT_STREQ(compute_error_code_name(999), "UNKNOWN");
  EXPECT_EQ(compute_dtype_size(99), 0);
  EXPECT_STREQ(compute_dtype_name(-1), "");
}

ISOLATED_TEST(BadInput, NullOutParametersAreErrors) {
  const Device device = open_minimal();
  const Tensor x = floats(device, {2});
  const int64_t shape[] = {2};
  EXPECT_FAILS(compute_device_open("cpu", nullptr), kInvalid, "out_device");
  EXPECT_FAILS(compute_device_list(nullptr, 0, nullptr), kInvalid, "out_count");
  EXPECT_FAILS(compute_device_which("cpu", COMPUTE_FORMAT_TEXT, nullptr), kInvalid, "out_answer");
  EXPECT_FAILS(compute_load_report(COMPUTE_FORMAT_TEXT, nullptr), kInvalid, "out_report");
  EXPECT_FAILS(compute_profile_report(COMPUTE_FORMAT_TEXT, nullptr), kInvalid, "out_report");
  EXPECT_FAILS(compute_leak_report(COMPUTE_FORMAT_TEXT, nullptr), kInvalid, "out_report");
  EXPECT_FAILS(compute_config_describe(COMPUTE_FORMAT_TEXT, nullptr), kInvalid, "out_description");
  EXPECT_FAILS(compute_trace_start(nullptr), kInvalid, "path");
  EXPECT_OK(compute_trace_stop());
  EXPECT_OK(compute_profile_start());
  EXPECT_OK(compute_profile_stop());
  EXPECT_FAILS(compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr), kInvalid, "out_tensor");
  EXPECT_FAILS(compute_tensor_reshape(x, 1, shape, nullptr), kInvalid, "out_view");
  EXPECT_FAILS(compute_stream_create(device, nullptr, nullptr), kInvalid, "out_stream");
  EXPECT_FAILS(compute_op_find("add", 1, nullptr), kInvalid, "out_op");
  EXPECT_FAILS(compute_shutdown(0, nullptr), kInvalid, "out_drained");
}

ISOLATED_TEST(BadInput, HandlesOfAnotherKindAreErrors) {
  const Device device = open_minimal();
  const Tensor x = floats(device, {2});
  compute_tensor* out = nullptr;
  EXPECT_FAILS(run_op("exp", reinterpret_cast<compute_stream*>(x.get()), {x}, &out), kInvalid, "tensor", "stream");
  EXPECT_FAILS(run_op("exp", nullptr, {reinterpret_cast<compute_tensor*>(device.get())}, &out), kInvalid, "device",
               "tensor");
  EXPECT_EQ(out, nullptr);
}

ISOLATED_TEST(BadInput, ReleasedHandlesAreFoundInTheDebugLayer) {
  setenv("COMPUTE_DEBUG", "1", 1);
  const Device device = open_minimal();
  compute_tensor* x = floats(device, {2}).release();
  compute_stream* stream = make_stream(device).release();
  compute_tensor_release(x);
  compute_stream_release(stream);
  compute_tensor* out = nullptr;
  float values[2];
  EXPECT_FAILS(run_op("exp", nullptr, {x}, &out), kInvalid, "exp: input 0 (float32 [2]) was released");
  EXPECT_FAILS(compute_tensor_read(x, values, sizeof values), kInvalid, "released");
  EXPECT_FAILS(compute_stream_synchronize(stream), kInvalid, "stream", "released");
  compute_tensor_release(x);  // once too often: nothing happens
}

// ---- Shapes and dtypes ----------------------------------------------------------------------------------------------

ISOLATED_TEST(BadInput, ShapesThatCannotBe) {
  const Device device = open_minimal();
  compute_tensor* out = nullptr;
  const std::vector<int64_t> ones(40, 1), negative = {2, -3}, large = {kHuge, kHuge}, wide = {kHuge, 1 << 22};
  auto empty = [&](const std::vector<int64_t>& shape) {
    return compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT64, static_cast<int32_t>(shape.size()), shape.data(), &out);
  };
  EXPECT_FAILS(empty(negative), kInvalid, "-3");
  EXPECT_FAILS(empty(ones), kInvalid, "40", "32");
  EXPECT_FAILS(empty(large), COMPUTE_ERROR_OUT_OF_RANGE);
  EXPECT_FAILS(empty(wide), COMPUTE_ERROR_OUT_OF_RANGE);             // the count fits, the bytes do not
  const int64_t most[] = {std::numeric_limits<int64_t>::max() / 8};  // the bytes fit, their rounding up does not
  EXPECT_FAILS(compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT64, 1, most, &out), COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_FAILS(compute_tensor_empty(open("cpu"), COMPUTE_DTYPE_FLOAT64, 1, most, &out), COMPUTE_ERROR_OUT_OF_MEMORY);
  EXPECT_FAILS(compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, -1, nullptr, &out), kInvalid, "-1");
  EXPECT_FAILS(compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, 1, nullptr, &out), kInvalid, "shape");
  EXPECT_FAILS(
      compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, std::numeric_limits<int32_t>::max(), ones.data(), &out),
      kInvalid);
  for (const compute_dtype dtype : {0, 18, 63, 64, 99, -1, std::numeric_limits<int32_t>::min()}) {
    EXPECT_FAILS(compute_tensor_empty(device, dtype, 1, ones.data(), &out), kInvalid, std::to_string(dtype));
  }
  EXPECT_FAILS(compute_tensor_full(device, COMPUTE_DTYPE_FLOAT32, 1, ones.data(), nullptr, &out), kInvalid, "value");
  EXPECT_FAILS(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 1, ones.data(), nullptr, &out), kInvalid);
  EXPECT_EQ(out, nullptr);
}

ISOLATED_TEST(BadInput, ShapesThatDoNotBroadcast) {
  const Device device = open_minimal();
  const Tensor x = floats(device, {2, 3}), y = floats(device, {4, 3});
  compute_tensor* out = nullptr;
  compute_error* error = run_op("add", nullptr, {x, y}, &out);
  ASSERT_NE(error, nullptr);
  EXPECT_STREQ(compute_error_message(error), "add: shapes [2,3] and [4,3] do not broadcast");
  EXPECT_STREQ(compute_error_op(error), "add");
  compute_error_free(error);
  const Tensor row = floats(device, {1, 1}), narrow = floats(device, {kHuge / kHuge});
  Tensor wide;
  const int64_t wide_shape[] = {kHuge, kHuge};
  EXPECT_FAILS(compute_tensor_broadcast(narrow, 2, wide_shape, wide.out()), COMPUTE_ERROR_OUT_OF_RANGE);
  EXPECT_FAILS(run_op("matmul", nullptr, {x, y}, &out), kInvalid, "matmul", "[2,3]", "[4,3]");
}

ISOLATED_TEST(BadInput, DtypesThatDoNotFit) {
  const Device device = open_minimal();
  const Tensor f = floats(device, {2}), i = make_full<int32_t>(device, {2}, 1), l = make_full<int64_t>(device, {2}, 1);
  const Tensor u = make_full<uint64_t>(device, {2}, 1), c = make_full<std::complex<float>>(device, {2}, 1);
  const Tensor b = make_full<bool>(device, {2}, true);
  compute_tensor* out = nullptr;
  EXPECT_FAILS(run_op("mean", nullptr, {i}, &out), kInvalid, "mean", "int32", "cast");
  EXPECT_FAILS(run_op("bitwise_and", nullptr, {i, f}, &out), kInvalid, "bitwise_and", "y is float32");
  EXPECT_FAILS(run_op("add", nullptr, {u, l}, &out), kInvalid, "add", "uint64", "int64", "cast");
  EXPECT_FAILS(run_op("add", nullptr, {b, b}, &out), kInvalid, "add", "bool");
  EXPECT_FAILS(run_op("less", nullptr, {c, c}, &out), kInvalid, "less", "complex64");
  EXPECT_FAILS(run_op("bitwise_and", nullptr, {f, f}, &out), kInvalid, "bitwise_and", "float32");
  EXPECT_FAILS(run_op("take", nullptr, {f, f}, &out), kInvalid, "take", "float32");
  EXPECT_FAILS(run_op("where", nullptr, {f, f, f}, &out), kInvalid, "where", "float32");
  EXPECT_EQ(out, nullptr);
}

// ---- Ops ------------------------------------------------------------------------------------------------------------

ISOLATED_TEST(BadInput, OpsThatAreNotThere) {
  const compute_op* op = nullptr;
  EXPECT_FAILS(compute_op_find("ad", 0, &op), COMPUTE_ERROR_NOT_FOUND, "ad", "add");
  EXPECT_FAILS(compute_op_find("add", 99, &op), COMPUTE_ERROR_NOT_FOUND, "add", "99");
  EXPECT_FAILS(compute_op_find("add", -1, &op), COMPUTE_ERROR_NOT_FOUND, "add");
  EXPECT_FAILS(compute_op_find("", 0, &op), COMPUTE_ERROR_NOT_FOUND);
  EXPECT_FAILS(compute_op_find(std::string(5000, 'x').c_str(), 0, &op), COMPUTE_ERROR_NOT_FOUND);
  EXPECT_FAILS(compute_op_find(nullptr, 0, &op), kInvalid, "name");
  EXPECT_EQ(op, nullptr);
}

ISOLATED_TEST(BadInput, WrongNumbersOfOperands) {
  const Device device = open_minimal();
  const Tensor x = floats(device, {2});
  compute_tensor* out = nullptr;
  const compute_op* add = nullptr;
  ASSERT_OK(compute_op_find("add", 0, &add));
  compute_tensor* inputs[] = {x, x, x};
  compute_tensor* outputs[] = {nullptr, nullptr};
  EXPECT_FAILS(compute_op_run(add, nullptr, nullptr, 0, inputs, 1, &out, 1), kInvalid, "add", "1", "2");
  EXPECT_FAILS(compute_op_run(add, nullptr, nullptr, 0, inputs, 3, &out, 1), kInvalid, "add", "3", "2");
  EXPECT_FAILS(compute_op_run(add, nullptr, nullptr, 0, inputs, -1, &out, 1), kInvalid, "add");
  EXPECT_FAILS(compute_op_run(add, nullptr, nullptr, 0, inputs, 2, outputs, 2), kInvalid, "add");
  EXPECT_FAILS(compute_op_run(add, nullptr, nullptr, 0, inputs, 2, &out, 0), kInvalid, "add");
  EXPECT_FAILS(compute_op_run(add, nullptr, nullptr, 0, nullptr, 2, &out, 1), kInvalid);
  EXPECT_FAILS(compute_op_run(add, nullptr, nullptr, 0, inputs, 2, nullptr, 1), kInvalid);
  EXPECT_FAILS(run_op("add", nullptr, {x, nullptr}, &out), kInvalid, "add");
  EXPECT_FAILS(run_op("concat", nullptr, {}, &out), kInvalid, "concat");
  EXPECT_EQ(out, nullptr);
}

// Whatever is wrong with a call, the error has the op, not its message alone.
ISOLATED_TEST(BadInput, ErrorsHaveTheOp) {
  const Device device = open_minimal();
  const Tensor x = floats(device, {2, 3});
  compute_tensor* out = nullptr;
  const int64_t axis = 0;
  const auto op_of = [](compute_error* error) {
    std::string op = compute_error_op(error);
    compute_error_free(error);
    return op;
  };
  EXPECT_EQ(op_of(run_op("sum", nullptr, {x}, &out, {int_attribute("axis", &axis, 1)})), "sum");
  EXPECT_EQ(op_of(run_op("add", nullptr, {x, nullptr}, &out)), "add");
  EXPECT_EQ(op_of(run_op("add", nullptr, {x}, &out)), "add");
  EXPECT_EQ(op_of(compute_exp(nullptr, nullptr, &out)), "exp");
  EXPECT_EQ(op_of(compute_exp(nullptr, x, nullptr)), "exp");
  EXPECT_EQ(op_of(compute_cast(nullptr, x, 99, nullptr, &out)), "cast");
  const compute_op* op = nullptr;
  ASSERT_OK(compute_op_find("sum", 0, &op));
  compute_support support = {};
  support.struct_size = sizeof support;
  EXPECT_EQ(op_of(compute_op_query(device, op, nullptr, 0, nullptr, 0, nullptr, 0, &support)), "sum");
  Plan plan;
  EXPECT_EQ(op_of(compute_plan_create(device, op, nullptr, 0, nullptr, 0, nullptr, 0, plan.out())), "sum");
}

ISOLATED_TEST(BadInput, AttributesThatAreNotKnownOrNotRight) {
  const Device device = open_minimal();
  const Tensor x = floats(device, {2, 3});
  compute_tensor* out = nullptr;
  const int64_t axis = 7, twice[] = {0, 0}, flag = 1;
  const double real = 1;
  compute_attribute attribute = int_attribute("axis", &axis, 1);
  EXPECT_FAILS(run_op("sum", nullptr, {x}, &out, {attribute}), kInvalid, "sum", "axis", "axes");  // the nearest name
  attribute = int_attribute("axes", &axis, 1);
  EXPECT_FAILS(run_op("sum", nullptr, {x}, &out, {attribute}), kInvalid, "sum", "7");
  attribute = int_attribute("axes", twice, 2);
  EXPECT_FAILS(run_op("sum", nullptr, {x}, &out, {attribute}), kInvalid, "sum", "0");
  attribute = int_attribute("axes", nullptr, 1);
  EXPECT_FAILS(run_op("sum", nullptr, {x}, &out, {attribute}), kInvalid, "sum", "axes");
  attribute = int_attribute("axes", twice, -1);
  EXPECT_FAILS(run_op("sum", nullptr, {x}, &out, {attribute}), kInvalid, "sum", "axes");
  attribute = int_attribute("axes", twice, 1);
  attribute.struct_size = 0xfffffff8u;  // the bytes after it are not read
  EXPECT_FAILS(run_op("sum", nullptr, {x}, &out, {attribute}), kInvalid, "sum", "struct_size");
  attribute = int_attribute("axes", twice, 1);
  EXPECT_FAILS(run_op("sum", nullptr, {x}, &out, {attribute, attribute}), kInvalid, "sum", "axes");  // given twice
  attribute.kind = COMPUTE_KIND_FLOAT64;
  attribute.values = &real;
  EXPECT_FAILS(run_op("sum", nullptr, {x}, &out, {attribute}), kInvalid, "sum", "axes");
  attribute.kind = 77;
  EXPECT_FAILS(run_op("sum", nullptr, {x}, &out, {attribute}), kInvalid, "sum", "axes");
  attribute = int_attribute(nullptr, &flag, 1);
  EXPECT_FAILS(run_op("sum", nullptr, {x}, &out, {attribute}), kInvalid, "sum");
  EXPECT_FAILS(run_op("cast", nullptr, {x}, &out), kInvalid, "cast", "dtype");  // required
  EXPECT_FAILS(run_op("argmax", nullptr, {x}, &out, {int_attribute("axis", twice, 2)}), kInvalid, "argmax", "axis");
  EXPECT_FAILS(run_op("add", nullptr, {x, x}, &out, {int_attribute("alpha", &flag, 1)}), kInvalid, "add", "alpha");
  EXPECT_EQ(out, nullptr);
}

ISOLATED_TEST(BadInput, IndicesOutOfRangeNameTheIndex) {
  use_plugins({"minimal"});
  for (const char* name : devices_with_ops()) {
    const Device device = open(name);
    const Tensor x = floats(device, {3}), indices = make_tensor<int64_t>(device, {0, 5, 1});
    const Stream stream = make_stream(device);
    Tensor out;
    std::string message;
    for (compute_stream* on : {static_cast<compute_stream*>(nullptr), stream.get()}) {
      compute_error* error = run_op("take", on, {x, indices}, out.out());
      float values[3];
      if (error == nullptr) error = compute_tensor_read(out, values, sizeof values);
      EXPECT_FAILS(error, COMPUTE_ERROR_KERNEL_FAILED, "take", "5", "3");
    }
  }
}

// ---- Outputs --------------------------------------------------------------------------------------------------------

ISOLATED_TEST(BadInput, OutputsThatDoNotFitOrOverlap) {
  const Device device = open_minimal();
  const Tensor x = make_tensor<float>(device, {1, 2, 3, 4, 5, 6}, {6});
  const Tensor narrow = floats(device, {5}), lower_kind = make_full<int32_t>(device, {6}, 1);
  auto exp_into = [&](compute_tensor* input, compute_tensor* output) {
    return run_op("exp", nullptr, {input}, &output);
  };
  EXPECT_FAILS(exp_into(x, narrow), kInvalid, "exp", "[5]", "[6]");
  EXPECT_FAILS(exp_into(x, lower_kind), kInvalid, "exp", "int32", "float32");

  // Memory shared otherwise than as the identical view.
  const int64_t from[] = {0}, to[] = {5}, later_from[] = {1}, later_to[] = {6}, backwards[] = {-1};
  const int64_t last = std::numeric_limits<int64_t>::max(), first = std::numeric_limits<int64_t>::min();
  Tensor front, back, reversed, repeated;
  ASSERT_OK(compute_tensor_slice(x, 1, from, to, nullptr, front.out()));
  ASSERT_OK(compute_tensor_slice(x, 1, later_from, later_to, nullptr, back.out()));
  ASSERT_OK(compute_tensor_slice(x, 1, &first, &last, backwards, reversed.out()));
  EXPECT_FAILS(exp_into(front, back), kInvalid, "exp", "overlap");
  EXPECT_FAILS(exp_into(x, reversed), kInvalid, "exp", "overlap");
  // An output that overlaps itself.
  const int64_t shape[] = {3, 6};
  ASSERT_OK(compute_tensor_broadcast(x, 2, shape, repeated.out()));
  const Tensor matrix = floats(device, {3, 6});
  EXPECT_FAILS(exp_into(matrix, repeated), kInvalid, "exp", "[3,6]", "[0,1]", "overlap");
  // Not IN_PLACE.
  const Tensor square = floats(device, {2, 2});
  compute_tensor* output = square;
  EXPECT_FAILS(run_op("matmul", nullptr, {square, square}, &output), kInvalid, "matmul");
  EXPECT_EQ(read<float>(x), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  output = x;
  EXPECT_OK(run_op("square", nullptr, {x}, &output));  // the identical view
  EXPECT_EQ(read<float>(x), (std::vector<float>{1, 4, 9, 16, 25, 36}));
}

// Which elements of 64 a view has.
struct RandomView {
  Tensor tensor;
  uint64_t elements = 0;
};
RandomView random_view(const Tensor& of, const int64_t (&shape)[3], std::mt19937& random) {
  while (true) {
    int64_t strides[3];
    const auto first = static_cast<int64_t>(random() % 64);
    bool is_inside = true;
    RandomView view;
    for (int64_t& stride : strides) stride = static_cast<int64_t>(random() % 33) - 16;
    for (int64_t i = 0; i < shape[0] * shape[1] * shape[2]; ++i) {
      const int64_t at = first + i / (shape[1] * shape[2]) * strides[0] + i / shape[2] % shape[1] * strides[1] +
                         i % shape[2] * strides[2];
      is_inside = is_inside && at >= 0 && at < 64 && (view.elements >> at & 1) == 0;
      if (is_inside) view.elements |= uint64_t{1} << at;
    }
    if (!is_inside) continue;
    EXPECT_OK(compute_tensor_view(of, COMPUTE_DTYPE_FLOAT32, 3, shape, strides, 4 * first, view.tensor.out()));
    return view;
  }
}

// What shares an element is refused, whatever the layouts are. Rows and columns of a matrix are apart.
ISOLATED_TEST(BadInput, OverlapsOfViews) {
  const Tensor memory = floats(open_minimal(), {64});
  std::mt19937 random(1);
  int apart = 0, taken = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto extent = [&] { return 1 + static_cast<int64_t>(random() % 4); };
    const int64_t shape[] = {extent(), extent(), 2};
    const RandomView a = random_view(memory, shape, random), b = random_view(memory, shape, random);
    if (a.elements == b.elements) continue;  // may be the identical view, which is in place
    compute_tensor* output = b.tensor;
    if ((a.elements & b.elements) != 0) {
      EXPECT_FAILS(run_op("exp", nullptr, {a.tensor}, &output), kInvalid, "overlap");
      continue;
    }
    ++apart;
    compute_error* const error = run_op("exp", nullptr, {a.tensor}, &output);
    taken += error == nullptr ? 1 : 0;
    compute_error_free(error);
  }
  EXPECT_GT(taken * 2, apart) << taken << " of " << apart;

  const auto columns = [&](int64_t first, int64_t count) {
    Tensor view;
    const int64_t shape[] = {4, 2, count}, strides[] = {16, 8, 1};
    EXPECT_OK(compute_tensor_view(memory, COMPUTE_DTYPE_FLOAT32, 3, shape, strides, 4 * first, view.out()));
    return view;
  };
  const Tensor left = columns(2, 3), right = columns(5, 3), middle = columns(4, 3);
  compute_tensor* output = right;
  EXPECT_OK(run_op("exp", nullptr, {left}, &output));
  output = middle;
  EXPECT_FAILS(run_op("exp", nullptr, {left}, &output), kInvalid, "overlap");
}

ISOLATED_TEST(BadInput, OperandsOnTwoDevices) {
  use_plugins({"minimal"});
  const Device one = open("minimal0"), two = open("minimal1");
  const Tensor x = floats(one, {2}), y = floats(two, {2});
  compute_tensor* out = nullptr;
  EXPECT_FAILS(run_op("add", nullptr, {x, y}, &out), COMPUTE_ERROR_DEVICE_MISMATCH, "add", "minimal0", "minimal1");
  const Stream stream = make_stream(two);
  EXPECT_FAILS(run_op("exp", stream, {x}, &out), COMPUTE_ERROR_DEVICE_MISMATCH, "exp", "minimal0", "minimal1");
}

// ---- Views and host memory ------------------------------------------------------------------------------------------

ISOLATED_TEST(BadInput, ViewsThatCannotBe) {
  const Device device = open_minimal();
  const Tensor x = floats(device, {2, 3});
  Tensor view, transposed;
  const int64_t two_open[] = {-1, -1}, seven[] = {7}, one_open[] = {4, -1}, negative[] = {-2, 3};
  EXPECT_FAILS(compute_tensor_reshape(x, 2, two_open, view.out()), kInvalid, "axes 0 and 1 are both -1");
  EXPECT_FAILS(compute_tensor_reshape(x, 1, seven, view.out()), kInvalid, "[7]", "[2,3]");
  EXPECT_FAILS(compute_tensor_reshape(x, 2, one_open, view.out()), kInvalid);
  EXPECT_FAILS(compute_tensor_reshape(x, 2, negative, view.out()), kInvalid, "-2");
  EXPECT_FAILS(compute_tensor_reshape(x, 33, negative, view.out()), kInvalid, "33");
  EXPECT_FAILS(compute_tensor_reshape(x, 2, nullptr, view.out()), kInvalid);
  ASSERT_OK(compute_tensor_permute(x, 2, nullptr, transposed.out()));
  const int64_t six[] = {6};
  EXPECT_FAILS(compute_tensor_reshape(transposed, 1, six, view.out()), COMPUTE_ERROR_UNSUPPORTED, "copy");
  const int32_t same[] = {0, 0}, beyond[] = {0, 2};
  EXPECT_FAILS(compute_tensor_permute(x, 2, same, view.out()), kInvalid, "0");
  EXPECT_FAILS(compute_tensor_permute(x, 2, beyond, view.out()), kInvalid, "2");
  EXPECT_FAILS(compute_tensor_permute(x, 1, same, view.out()), kInvalid);
  const int64_t zero_steps[] = {1, 0};
  EXPECT_FAILS(compute_tensor_slice(x, 2, nullptr, nullptr, zero_steps, view.out()), kInvalid, "0");
  EXPECT_FAILS(compute_tensor_slice(x, 3, nullptr, nullptr, nullptr, view.out()), kInvalid, "3", "2");
  const int64_t first_two[] = {std::numeric_limits<int64_t>::max(), 0},
                last_two[] = {std::numeric_limits<int64_t>::min(), 0};
  ASSERT_OK(compute_tensor_slice(x, 2, first_two, nullptr, nullptr, view.out()));  // beyond the end, as in Python
  EXPECT_EQ(compute_tensor_element_count(view), 0);
  ASSERT_OK(compute_tensor_slice(x, 2, nullptr, last_two, nullptr, view.out()));
  EXPECT_EQ(compute_tensor_element_count(view), 0);
  const int64_t none_but_wide[] = {0, kHuge, kHuge};
  EXPECT_FAILS(compute_tensor_reshape(view, 3, none_but_wide, transposed.out()), COMPUTE_ERROR_OUT_OF_RANGE);
  const int64_t other[] = {2, 4}, fewer[] = {3};
  EXPECT_FAILS(compute_tensor_broadcast(x, 2, other, view.out()), kInvalid, "[2,3]", "[2,4]");
  EXPECT_FAILS(compute_tensor_broadcast(x, 1, fewer, view.out()), kInvalid);
  EXPECT_FAILS(compute_tensor_expand(x, 4, view.out()), kInvalid, "4");
  EXPECT_FAILS(compute_tensor_squeeze(x, 0, view.out()), kInvalid, "0");
  EXPECT_FAILS(compute_tensor_squeeze(x, -3, view.out()), kInvalid, "-3");
  const int64_t shape[] = {2}, strides[] = {5}, wide[] = {6}, back[] = {-1};
  EXPECT_FAILS(compute_tensor_view(x, COMPUTE_DTYPE_FLOAT32, 1, shape, wide, 0, view.out()),
               COMPUTE_ERROR_OUT_OF_RANGE);
  EXPECT_OK(compute_tensor_view(x, COMPUTE_DTYPE_FLOAT32, 1, shape, strides, 0, view.out()));
  EXPECT_OK(compute_tensor_view(x, COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, 0, view.out()));
  EXPECT_EQ(compute_tensor_strides(view)[0], 1);
  EXPECT_FAILS(compute_tensor_view(x, COMPUTE_DTYPE_FLOAT32, 1, shape, strides, 4, view.out()),
               COMPUTE_ERROR_OUT_OF_RANGE);
  EXPECT_FAILS(compute_tensor_view(x, COMPUTE_DTYPE_FLOAT32, 1, shape, back, 0, view.out()),
               COMPUTE_ERROR_OUT_OF_RANGE);
  EXPECT_FAILS(compute_tensor_view(x, COMPUTE_DTYPE_FLOAT64, 1, shape, strides, 0, view.out()), kInvalid, "float64");
  EXPECT_FAILS(compute_tensor_view(x, COMPUTE_DTYPE_FLOAT32, 1, shape, strides, std::numeric_limits<int64_t>::max() - 3,
                                   view.out()),
               COMPUTE_ERROR_OUT_OF_RANGE);
  const int64_t far[] = {std::numeric_limits<int64_t>::max()};
  EXPECT_FAILS(compute_tensor_view(x, COMPUTE_DTYPE_FLOAT32, 1, shape, far, 0, view.out()), COMPUTE_ERROR_OUT_OF_RANGE);
}

ISOLATED_TEST(BadInput, HostMemoryOfTheWrongSize) {
  use_plugins({"minimal"});
  for (const char* name : {"cpu", "minimal0"}) {
    const Device device = open(name);
    const Tensor x = floats(device, {4});
    float values[5] = {};
    EXPECT_FAILS(compute_tensor_read(x, values, 20), kInvalid, "20", "16");
    EXPECT_FAILS(compute_tensor_read(x, values, 12), kInvalid, "12", "16");
    EXPECT_FAILS(compute_tensor_read(x, nullptr, 16), kInvalid, "dst");
    EXPECT_FAILS(compute_tensor_write(x, values, -1), kInvalid, "-1");
    EXPECT_FAILS(compute_tensor_write(x, nullptr, 16), kInvalid, "src");
    void* data = nullptr;
    int32_t is_copy = 0;
    EXPECT_FAILS(compute_tensor_map(x, 0, &data, &is_copy), kInvalid, "access");
    EXPECT_FAILS(compute_tensor_map(x, 8, &data, &is_copy), COMPUTE_ERROR_UNSUPPORTED, "access");
    EXPECT_FAILS(compute_tensor_unmap(x, values), kInvalid);
  }
}

ISOLATED_TEST(BadInput, WrappedMemoryThatIsNotRight) {
  alignas(64) static char bytes[64] = {};
  const int64_t shape[] = {4};
  Tensor tensor;
  EXPECT_FAILS(
      compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, bytes, 0, nullptr, nullptr, tensor.out()),
      kInvalid, "promise");
  EXPECT_FAILS(
      compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, bytes, 4, nullptr, nullptr, tensor.out()),
      kInvalid, "promise");
  const struct {
    compute_dtype dtype;
    int alignment;
  } kAligned[] = {{COMPUTE_DTYPE_INT16, 2},    {COMPUTE_DTYPE_UINT16, 2},    {COMPUTE_DTYPE_FLOAT16, 2},
                  {COMPUTE_DTYPE_BFLOAT16, 2}, {COMPUTE_DTYPE_INT32, 4},     {COMPUTE_DTYPE_UINT32, 4},
                  {COMPUTE_DTYPE_FLOAT32, 4},  {COMPUTE_DTYPE_COMPLEX64, 4}, {COMPUTE_DTYPE_INT64, 8},
                  {COMPUTE_DTYPE_UINT64, 8},   {COMPUTE_DTYPE_FLOAT64, 8},   {COMPUTE_DTYPE_COMPLEX128, 8}};
  const int64_t one[] = {1};
  for (const auto& [dtype, alignment] : kAligned) {
    const std::string text = "not aligned to " + std::to_string(alignment) + " bytes";
    EXPECT_FAILS(compute_tensor_wrap_host(dtype, 1, one, nullptr, bytes + alignment / 2, COMPUTE_WRAP_EXPOSED, nullptr,
                                          nullptr, tensor.out()),
                 kInvalid, text.c_str());
    Tensor aligned;
    EXPECT_EQ(code_of(compute_tensor_wrap_host(dtype, 1, one, nullptr, bytes + alignment, COMPUTE_WRAP_EXPOSED, nullptr,
                                               nullptr, aligned.out())),
              COMPUTE_OK)
        << text;
  }
  EXPECT_FAILS(compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, nullptr, COMPUTE_WRAP_EXPOSED,
                                        nullptr, nullptr, tensor.out()),
               kInvalid, "data");
  const int64_t large[] = {kHuge, kHuge};
  EXPECT_FAILS(compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 2, large, nullptr, bytes, COMPUTE_WRAP_EXPOSED, nullptr,
                                        nullptr, tensor.out()),
               COMPUTE_ERROR_OUT_OF_RANGE);
  const int64_t backwards[] = {-1}, many[] = {int64_t{1} << 60};  // to before address 0
  EXPECT_FAILS(compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 1, many, backwards, bytes, COMPUTE_WRAP_EXPOSED, nullptr,
                                        nullptr, tensor.out()),
               COMPUTE_ERROR_OUT_OF_RANGE, "before");
  EXPECT_FAILS(compute_tensor_scalar(COMPUTE_DTYPE_FLOAT32, nullptr, 0, tensor.out()), kInvalid, "value");
  EXPECT_FAILS(compute_tensor_scalar(99, bytes, 0, tensor.out()), kInvalid, "99");
  EXPECT_FAILS(compute_tensor_scalar(COMPUTE_DTYPE_FLOAT32, bytes, COMPUTE_SCALAR_WEAK | 2, tensor.out()),
               COMPUTE_ERROR_UNSUPPORTED, "0x2");
  EXPECT_FAILS(compute_tensor_slot(0, tensor.out()), kInvalid);
}

ISOLATED_TEST(BadInput, WritingToWhatIsReadOnly) {
  const Device device = open_minimal();
  alignas(64) static float values[4] = {1, 2, 3, 4};
  const int64_t shape[] = {4};
  Tensor fixed, scalar;
  ASSERT_OK(compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, values, COMPUTE_WRAP_IMMUTABLE, nullptr,
                                     nullptr, fixed.out()));
  ASSERT_OK(compute_tensor_scalar(COMPUTE_DTYPE_FLOAT32, values, 0, scalar.out()));
  const Tensor x = floats(device, {4});
  compute_tensor* output = fixed;
  EXPECT_FAILS(run_op("exp", nullptr, {x}, &output), kInvalid, "exp");
  EXPECT_FAILS(compute_tensor_write(fixed, values, 16), kInvalid);
  void* data = nullptr;
  int32_t is_copy = 0;
  EXPECT_FAILS(compute_tensor_map(fixed, COMPUTE_ACCESS_WRITE, &data, &is_copy), kInvalid);
  const int64_t square[] = {2, 2}, sliding[] = {1, 1};
  Tensor windows;
  ASSERT_OK(compute_tensor_view(x, COMPUTE_DTYPE_FLOAT32, 2, square, sliding, 0, windows.out()));
  EXPECT_FAILS(compute_tensor_write(windows, values, 16), kInvalid, "[1,1]", "overlap");
  EXPECT_FAILS(compute_tensor_map(windows, COMPUTE_ACCESS_WRITE, &data, &is_copy), kInvalid, "overlap");
  output = scalar;
  EXPECT_NE(code_of(run_op("exp", nullptr, {scalar}, &output)), COMPUTE_OK);
  EXPECT_EQ(values[0], 1);
}

// ---- Expressions, plans, graphs -------------------------------------------------------------------------------------

ISOLATED_TEST(BadInput, ExpressionsGetACaret) {
  const char* names[] = {"a", "b"};
  Expression expression;
  auto parse = [&](const char* text) { return compute_expression_parse(text, names, 2, nullptr, 0, expression.out()); };
  EXPECT_FAILS(parse("a + "), kInvalid, "^");
  EXPECT_FAILS(parse("a + c"), kInvalid, "c", "^");
  EXPECT_FAILS(parse("tanhh(a)"), kInvalid, "tanh", "^");
  EXPECT_FAILS(parse("exp(a, b)"), kInvalid, "exp", "^");
  EXPECT_FAILS(parse("a \u00e9"), kInvalid, "unexpected '\u00e9'");  // a whole character
  EXPECT_FAILS(parse("(a"), kInvalid, "^");
  EXPECT_FAILS(parse(""), kInvalid);
  EXPECT_FAILS(parse(std::string(100000, '(').c_str()), kInvalid);
  EXPECT_FAILS(compute_expression_parse(nullptr, names, 2, nullptr, 0, expression.out()), kInvalid, "text");
  EXPECT_FAILS(compute_expression_parse("a", nullptr, 2, nullptr, 0, expression.out()), kInvalid);
  EXPECT_FAILS(compute_expression_parse("a", names, -1, nullptr, 0, expression.out()), kInvalid);
  const char* same[] = {"a", "a"};
  EXPECT_FAILS(compute_expression_parse("a", same, 2, nullptr, 0, expression.out()), kInvalid, "a");
  ASSERT_OK(parse("a * b"));
  const Device device = open_minimal();
  const Tensor x = floats(device, {2}), y = floats(device, {3});
  compute_tensor* out = nullptr;
  compute_tensor* one[] = {x};
  compute_tensor* two[] = {x, y};
  EXPECT_FAILS(compute_map(nullptr, expression, one, 1, nullptr, 0, &out, 1), kInvalid, "1", "2");
  EXPECT_FAILS(compute_map(nullptr, expression, two, 2, nullptr, 0, &out, 1), kInvalid, "[2]", "[3]");
  ASSERT_OK(compute_expression_parse("index(0) * 2", nullptr, 0, nullptr, 0, expression.out()));
  EXPECT_FAILS(compute_map(nullptr, expression, nullptr, 0, nullptr, 0, &out, 1), kInvalid);
  EXPECT_EQ(out, nullptr);
}

ISOLATED_TEST(BadInput, PlansTakeWhatTheyWereMadeFor) {
  const Device device = open_minimal();
  const compute_op* exp = nullptr;
  ASSERT_OK(compute_op_find("exp", 0, &exp));
  const Tensor x = floats(device, {4}), longer = floats(device, {5}), other = make_full(device, {4}, 1.0);
  compute_tensor* input[] = {x};
  compute_tensor* output[] = {nullptr};
  Plan plan;
  ASSERT_OK(compute_plan_create(device, exp, nullptr, 0, input, 1, output, 1, plan.out()));
  compute_tensor* wrong[] = {longer};
  EXPECT_FAILS(compute_plan_run(plan, nullptr, nullptr, 0, wrong, 1, output, 1), kInvalid, "exp", "[5]", "[4]");
  wrong[0] = other;
  EXPECT_FAILS(compute_plan_run(plan, nullptr, nullptr, 0, wrong, 1, output, 1), kInvalid, "exp", "float64");
  EXPECT_FAILS(compute_plan_run(plan, nullptr, nullptr, 0, wrong, 0, output, 1), kInvalid, "exp");
  EXPECT_EQ(output[0], nullptr);
  EXPECT_OK(compute_plan_run(plan, nullptr, nullptr, 0, input, 1, output, 1));
  compute_tensor_release(output[0]);
}

ISOLATED_TEST(BadInput, GraphsRefuseWhatTheyCannotRecord) {
  use_plugins({"minimal"});
  const Device device = open("minimal0"), cpu = open("cpu");
  const Stream stream = make_stream(device);
  Graph graph;
  EXPECT_FAILS(compute_graph_end(stream, graph.out()), kInvalid);
  ASSERT_OK(compute_graph_begin(stream, nullptr));
  EXPECT_FAILS(compute_graph_begin(stream, nullptr), kInvalid);
  EXPECT_FAILS(compute_stream_synchronize(stream), kInvalid, "record");
  EXPECT_FAILS(compute_graph_end(stream, graph.out()), kInvalid);  // the first error, and no graph
  EXPECT_EQ(graph.get(), nullptr);

  const Tensor x = floats(device, {4}), host = floats(cpu, {4});
  Tensor y;
  ASSERT_OK(compute_graph_begin(stream, nullptr));
  EXPECT_NE(code_of(run_op("add", stream, {x, host}, y.out())), COMPUTE_OK);  // a host operand
  EXPECT_NE(code_of(compute_graph_end(stream, graph.out())), COMPUTE_OK);

  ASSERT_OK(compute_graph_begin(stream, nullptr));
  EXPECT_FAILS(compute_add(stream, x, nullptr, y.out()), kInvalid, "add", "input 1");  // whatever was wrong with a call
  EXPECT_FAILS(compute_graph_end(stream, graph.out()), kInvalid, "add", "input 1");

  ASSERT_OK(compute_graph_begin(stream, nullptr));
  ASSERT_OK(run_op("square", stream, {x}, y.out()));
  ASSERT_OK(compute_graph_end(stream, graph.out()));
  Tensor slot;
  const float value = 1;
  ASSERT_OK(compute_tensor_slot(COMPUTE_DTYPE_FLOAT32, slot.out()));
  EXPECT_FAILS(compute_graph_set_slot(graph, slot, &value), kInvalid);  // the graph does not use it
  const Device two = open("minimal1");
  const Stream elsewhere = make_stream(two);
  EXPECT_FAILS(compute_graph_run(graph, elsewhere), COMPUTE_ERROR_DEVICE_MISMATCH);
  EXPECT_OK(compute_graph_run(graph, stream));
  EXPECT_EQ(read<float>(y), std::vector<float>(4, 1.0f));
}

ISOLATED_TEST(BadInput, LaunchesThatCannotBe) {
  if (kSanitizer) GTEST_SKIP() << "an OpenCL driver is not made for sanitizers";
  Device device;
  if (code_of(compute_device_open("opencl", device.out())) != COMPUTE_OK) GTEST_SKIP() << "there is no OpenCL device";
  compute_kernel* kernel = nullptr;
  EXPECT_FAILS(compute_kernel_compile(device, "opencl-c", "kernel void", -1, "twice", nullptr, &kernel),
               COMPUTE_ERROR_COMPILE_FAILED, "kernel twice on opencl");
  ASSERT_OK(compute_kernel_compile(device, "opencl-c",
                                   "kernel void twice(global float* x) { x[get_global_id(0)] *= 2; }", -1, "twice",
                                   nullptr, &kernel));
  const Tensor x = floats(device, {4});
  compute_kernel_argument argument = {};
  argument.struct_size = sizeof argument;
  argument.kind = COMPUTE_ARGUMENT_TENSOR;
  argument.access = COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE;
  argument.tensor = x;
  compute_launch launch = {};
  launch.struct_size = sizeof launch;
  const auto run = [&](int64_t groups, int64_t group_size, int64_t local_memory_bytes) {
    launch.groups[0] = groups;
    launch.group_size[0] = group_size;
    launch.groups[1] = launch.groups[2] = launch.group_size[1] = launch.group_size[2] = 1;
    launch.local_memory_bytes = local_memory_bytes;
    return compute_kernel_launch(kernel, nullptr, &launch, &argument, 1);
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_FAILS(run(0, 4, 0), kInvalid, "0 groups of 4");
  EXPECT_FAILS(run(kMost, 4, 0), COMPUTE_ERROR_OUT_OF_RANGE, "work-items");
  EXPECT_FAILS(run(1, 4, -1), kInvalid, "local_memory_bytes");
  argument.access = 0;
  EXPECT_FAILS(run(1, 4, 0), kInvalid, "argument 0", "access 0");
  argument.access = COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE;
  EXPECT_OK(run(1, 4, 0));
  EXPECT_EQ(read<float>(x), std::vector<float>(4, 2.0f));
  compute_kernel_release(kernel);
}

// ---- Structs of other sizes -----------------------------------------------------------------------------------------

ISOLATED_TEST(BadInput, StructsMayBeSmallerOrLarger) {
  const Device device = open_minimal(), cpu = open("cpu");
  struct {
    compute_device_info info;
    unsigned char canary[32];
  } given;
  std::memset(&given, 0x5A, sizeof given);
  given.info.struct_size = offsetof(compute_device_info, description);  // an old program
  given.info.next = nullptr;
  EXPECT_OK(compute_device_get_info(cpu, &given.info));
  EXPECT_STREQ(given.info.name, "cpu");
  unsigned char untouched[8];
  std::memset(untouched, 0x5A, sizeof untouched);
  EXPECT_EQ(std::memcmp(&given.info.description, untouched, sizeof untouched), 0);
  EXPECT_EQ(given.info.struct_type, uint32_t{COMPUTE_STRUCT_DEVICE_INFO});
  given.info.struct_size = sizeof given;  // a newer one: what this library does not know is zero
  EXPECT_OK(compute_device_get_info(cpu, &given.info));
  EXPECT_STREQ(given.info.plugin, "cpu");
  EXPECT_EQ(given.info.struct_size, sizeof given);
  const unsigned char nothing[sizeof given.canary] = {};
  EXPECT_EQ(std::memcmp(given.canary, nothing, sizeof nothing), 0);
  EXPECT_FAILS(compute_device_get_info(nullptr, &given.info), kInvalid);  // written on error too
  EXPECT_EQ(given.info.name, nullptr);
  EXPECT_EQ(given.info.struct_size, sizeof given);
  EXPECT_EQ(given.info.struct_type, uint32_t{COMPUTE_STRUCT_DEVICE_INFO});
  given.info.struct_size = 0x5A5A5A5A;  // never set
  EXPECT_FAILS(compute_device_get_info(cpu, &given.info), kInvalid, "struct_size");
  given.info.struct_size = 0;
  EXPECT_FAILS(compute_device_get_info(cpu, &given.info), kInvalid, "struct_size");
  given.info.struct_size = 15;
  EXPECT_FAILS(compute_device_get_info(cpu, &given.info), kInvalid, "struct_size", "15");

  compute_stream_options options = {};
  Stream stream;
  EXPECT_FAILS(compute_stream_create(device, &options, stream.out()), kInvalid, "struct_size");
  options.struct_size = COMPUTE_STREAM_OPTIONS_SIZE_1 - 1;
  EXPECT_FAILS(compute_stream_create(device, &options, stream.out()), kInvalid, "struct_size");
  options.struct_size = COMPUTE_STREAM_OPTIONS_SIZE_1;
  EXPECT_OK(compute_stream_create(device, &options, stream.out()));
  options.struct_size = sizeof options;
  options.flags = 0x80000000u;
  EXPECT_FAILS(compute_stream_create(device, &options, stream.out()), COMPUTE_ERROR_UNSUPPORTED, "flags");
  const Stream good = make_stream(device);
  Event event;
  compute_event_options timed = {sizeof timed, COMPUTE_STRUCT_EVENT_OPTIONS, nullptr, COMPUTE_EVENT_TIMED, 0};
  EXPECT_OK(compute_event_record(good, &timed, event.out()));
  timed.flags = 2;
  EXPECT_FAILS(compute_event_record(good, &timed, event.out()), COMPUTE_ERROR_UNSUPPORTED, "flags");
  timed.flags = 0;
  EXPECT_OK(compute_event_record(good, &timed, event.out()));
}

ISOLATED_TEST(BadInput, ArraysOfStructsAreSteppedByTheFirstSize) {
  struct Larger {
    compute_attribute attribute;
    int64_t newer;
  };
  const Device device = open_minimal();
  const Tensor x = floats(device, {2, 3});
  const compute_op* sum = nullptr;
  ASSERT_OK(compute_op_find("sum", 0, &sum));
  const int64_t axis = 1, keep = 1;
  Larger attributes[] = {{int_attribute("axes", &axis, 1), 0}, {int_attribute("keepdims", &keep, 1), 0}};
  attributes[0].attribute.struct_size = attributes[1].attribute.struct_size = sizeof(Larger);
  compute_tensor* inputs[] = {x};
  Tensor y;
  EXPECT_OK(compute_op_run(sum, nullptr, &attributes[0].attribute, 2, inputs, 1, y.out(), 1));
  EXPECT_EQ(compute_tensor_rank(y), 2);
  EXPECT_EQ(read<float>(y), (std::vector<float>{3, 3}));
  attributes[1].attribute.struct_size = sizeof(compute_attribute);
  EXPECT_FAILS(compute_op_run(sum, nullptr, &attributes[0].attribute, 2, inputs, 1, y.out(), 1), kInvalid,
               "struct_size");
  attributes[0].attribute.struct_size = 0;
  EXPECT_FAILS(compute_op_run(sum, nullptr, &attributes[0].attribute, 2, inputs, 1, y.out(), 1), kInvalid,
               "struct_size");
}

ISOLATED_TEST(BadInput, EveryByteOfAnArrayIsWritten) {
  struct Larger {
    compute_op_info info;
    int64_t newer;
  };
  std::vector<Larger> infos(3);
  std::memset(static_cast<void*>(infos.data()), 0x5A, infos.size() * sizeof(Larger));
  infos[0].info.struct_size = sizeof(Larger);
  infos[0].info.next = nullptr;
  int64_t count = 0;
  ASSERT_OK(compute_op_list(&infos[0].info, 2, &count));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(infos[i].info.struct_size, sizeof(Larger));
    EXPECT_EQ(infos[i].info.struct_type, uint32_t{COMPUTE_STRUCT_OP_INFO});
    EXPECT_EQ(infos[i].info.next, nullptr);
    EXPECT_EQ(infos[i].newer, 0);
  }
  EXPECT_EQ(infos[2].newer, 0x5A5A5A5A5A5A5A5A);  // beyond the capacity
  infos[0].info.struct_size = sizeof(Larger) + 4;
  EXPECT_FAILS(compute_op_list(&infos[0].info, 1, &count), kInvalid, "struct_size", "multiple");
}

ISOLATED_TEST(BadInput, SizesOfStringsAreGivenOrMinusOne) {
  const Device device = open_minimal();
  const Tensor x = floats(device, {2, 3});
  const int64_t keep = 1;
  Tensor y;
  compute_attribute attribute = int_attribute("keepdims", &keep, 1);
  attribute.name_size = -1;
  EXPECT_OK(run_op("sum", nullptr, {x}, y.out(), {attribute}));
  EXPECT_EQ(compute_tensor_rank(y), 2);
  attribute.name_size = 0;
  EXPECT_FAILS(run_op("sum", nullptr, {x}, y.out(), {attribute}), kInvalid, "name_size", "-1");
  attribute.name_size = -2;
  EXPECT_FAILS(run_op("sum", nullptr, {x}, y.out(), {attribute}), kInvalid, "name");
  compute_kernel_options options = {sizeof options, COMPUTE_STRUCT_KERNEL_OPTIONS, nullptr, "-O3", 0};
  compute_kernel* kernel = nullptr;
  EXPECT_FAILS(compute_kernel_compile(device, "portable", "", -1, "f", &options, &kernel), kInvalid, "compiler_options",
               "-1");
  options.compiler_options_size = -1;
  EXPECT_FAILS(compute_kernel_compile(device, "portable", "", -1, "f", &options, &kernel), COMPUTE_ERROR_UNSUPPORTED);
  for (const int64_t size : {int64_t{0}, int64_t{-2}, INT64_MIN}) {
    EXPECT_FAILS(compute_kernel_compile(device, "portable", "x", size, "f", nullptr, &kernel), kInvalid, "source",
                 std::to_string(size));
  }
}

// What a newer program asks for is refused, not dropped.
ISOLATED_TEST(BadInput, WhatANewerProgramAsksForIsNotDropped) {
  const Device device = open_minimal();
  Stream stream;
  struct {
    compute_stream_options options;
    int64_t newer;
  } larger = {{sizeof larger, COMPUTE_STRUCT_STREAM_OPTIONS, nullptr, 0, 0}, 0};
  EXPECT_OK(compute_stream_create(device, &larger.options, stream.out()));
  larger.newer = 1;
  EXPECT_FAILS(compute_stream_create(device, &larger.options, stream.out()), COMPUTE_ERROR_UNSUPPORTED, "options",
               "not zero");
  larger.newer = 0;
  compute_struct_header last = {sizeof last, 7777, nullptr}, first = {sizeof first, 7776, &last};
  larger.options.next = &first;
  EXPECT_OK(compute_stream_create(device, &larger.options, stream.out()));  // skipped
  last.struct_type |= COMPUTE_STRUCT_MUST_UNDERSTAND;
  EXPECT_FAILS(compute_stream_create(device, &larger.options, stream.out()), COMPUTE_ERROR_UNSUPPORTED, "options.next");
  last = {sizeof last, 7777, &first};
  EXPECT_FAILS(compute_stream_create(device, &larger.options, stream.out()), kInvalid, "more than 64 entries");
  last = {sizeof last, 7777 | COMPUTE_STRUCT_MUST_UNDERSTAND, nullptr};

  const Tensor x = floats(device, {2, 3});
  const int64_t keep = 1;
  Tensor y;
  compute_attribute attribute = int_attribute("keepdims", &keep, 1);
  attribute.next = &last;
  EXPECT_FAILS(run_op("sum", nullptr, {x}, y.out(), {attribute}), COMPUTE_ERROR_UNSUPPORTED, "attribute");
  attribute.next = nullptr;
  attribute.reserved = 1;
  EXPECT_FAILS(run_op("sum", nullptr, {x}, y.out(), {attribute}), COMPUTE_ERROR_UNSUPPORTED, "reserved");
  compute_sum_options sum = {};
  sum.struct_size = 16;  // all defaults
  EXPECT_OK(compute_sum(nullptr, x, &sum, y.out()));
  sum.struct_size = sizeof sum;
  sum.next = &last;
  EXPECT_FAILS(compute_sum(nullptr, x, &sum, y.out()), COMPUTE_ERROR_UNSUPPORTED, "options.next");
  compute_device_info info = {};
  info.struct_size = sizeof info;
  info.next = &last;
  EXPECT_FAILS(compute_device_get_info(device, &info), COMPUTE_ERROR_UNSUPPORTED, "out_info.next");
  EXPECT_EQ(info.name, nullptr);
}

ISOLATED_TEST(BadInput, NativeHandlesThatThereAreNot) {
  const Device device = open_minimal(), cpu = open("cpu");
  constexpr uint32_t kKind = COMPUTE_NATIVE_CUDA;
  compute_native_cuda handle = {sizeof handle, 0, nullptr, 7, 7, 7, 7, 7};
  EXPECT_FAILS(compute_device_native_handle(device, kKind, &handle), COMPUTE_ERROR_UNSUPPORTED, "minimal0");
  EXPECT_EQ(handle.context, 0u);
  EXPECT_EQ(handle.address, 0u);
  EXPECT_EQ(handle.struct_type, kKind);
  EXPECT_FAILS(compute_stream_native_handle(make_stream(device), kKind, &handle), COMPUTE_ERROR_UNSUPPORTED,
               "minimal0");
  EXPECT_FAILS(compute_tensor_native_handle(floats(device, {2}), kKind, &handle), COMPUTE_ERROR_UNSUPPORTED,
               "minimal0");
  EXPECT_FAILS(compute_tensor_native_handle(floats(cpu, {2}), kKind, &handle), COMPUTE_ERROR_UNSUPPORTED, "kind 34");
  EXPECT_FAILS(compute_device_native_handle(nullptr, kKind, &handle), kInvalid, "device");
  EXPECT_FAILS(compute_stream_native_handle(nullptr, kKind, &handle), kInvalid, "stream");
  EXPECT_FAILS(compute_tensor_native_handle(nullptr, kKind, &handle), kInvalid, "tensor");
  EXPECT_FAILS(compute_device_native_handle(device, kKind, nullptr), kInvalid, "out_handle");
  handle.struct_size = 8;
  EXPECT_FAILS(compute_device_native_handle(device, kKind, &handle), kInvalid, "out_handle.struct_size");
}

ISOLATED_TEST(BadInput, ListsOfNothing) {
  use_plugins({"minimal"});
  int64_t count = -7;
  EXPECT_OK(compute_device_list(nullptr, 0, &count));
  EXPECT_GE(count, 3);
  EXPECT_FAILS(compute_device_list(nullptr, 3, &count), kInvalid, "infos");
  EXPECT_EQ(count, 0);
  compute_device_info info = {};
  EXPECT_FAILS(compute_device_list(&info, 1, &count), kInvalid, "struct_size");
  info.struct_size = sizeof info;
  EXPECT_OK(compute_device_list(&info, 1, &count));
  EXPECT_STREQ(info.name, "cpu");
  EXPECT_FAILS(compute_device_attributes("nobody", nullptr, 0, &count), COMPUTE_ERROR_NOT_FOUND, "nobody");
  EXPECT_OK(compute_op_list(nullptr, 0, &count));
  EXPECT_GT(count, 80);
}

// ---- Settings -------------------------------------------------------------------------------------------------------

ISOLATED_TEST(BadInput, SettingsThatAreNotThere) {
  EXPECT_FAILS(compute_config_set("COMPUTE_DEVIC", "cpu"), COMPUTE_ERROR_NOT_FOUND, "COMPUTE_DEVIC", "COMPUTE_DEVICE");
  EXPECT_FAILS(compute_config_set("COMPUTE_FALLBACK", "sometimes"), kInvalid, "sometimes", "strict");
  EXPECT_FAILS(compute_config_set("COMPUTE_SPIN_US", "-1"), kInvalid, "COMPUTE_SPIN_US", "-1");
  EXPECT_FAILS(compute_config_set("COMPUTE_MEMORY_LIMIT", "4X"), kInvalid, "4X");
  EXPECT_FAILS(compute_config_set(nullptr, "1"), kInvalid, "name");
  compute_text* text = nullptr;
  compute_text* origin = nullptr;
  EXPECT_FAILS(compute_config_get("COMPUTE_NOTHING", &text, &origin), COMPUTE_ERROR_NOT_FOUND, "COMPUTE_NOTHING");
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(origin, nullptr);
  EXPECT_FAILS(compute_config_get(nullptr, &text, &origin), kInvalid, "name");
  EXPECT_FAILS(compute_config_get("COMPUTE_SYNC", nullptr, &origin), kInvalid, "out_value");
  EXPECT_EQ(origin, nullptr);
  char program[] = "program", flag[] = "--compute-devic=cpu";
  char* arguments[] = {program, flag, nullptr};
  int32_t count = 2;
  EXPECT_FAILS(compute_config_arguments(&count, arguments), COMPUTE_ERROR_NOT_FOUND, "--compute-devic",
               "--compute-device");
  EXPECT_OK(compute_config_set("COMPUTE_SYNC", "1"));
  EXPECT_OK(compute_config_get("COMPUTE_SYNC", &text, &origin));
  EXPECT_EQ(take_text(text), "1");
  EXPECT_EQ(take_text(origin), "the API");
  EXPECT_OK(compute_config_get("sync", &text, nullptr));
  EXPECT_EQ(take_text(text), "1");
  EXPECT_FAILS(compute_scope_pop(), kInvalid);
}

ISOLATED_TEST(BadInput, StructsOfAnotherType) {
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  compute_stream_options options = {};
  options.struct_size = sizeof options;
  Stream stream;
  for (const uint32_t type : {uint32_t{COMPUTE_STRUCT_NONE}, uint32_t{COMPUTE_STRUCT_STREAM_OPTIONS}}) {
    options.struct_type = type;
    EXPECT_OK(compute_stream_create(device, &options, stream.out()));
  }
  for (const uint32_t type : {COMPUTE_STRUCT_EVENT_OPTIONS, COMPUTE_STRUCT_TENSOR_SPEC, COMPUTE_STRUCT_KERNEL_ARGUMENT,
                              COMPUTE_STRUCT_KERNEL_OPTIONS, COMPUTE_STRUCT_LAUNCH, COMPUTE_STRUCT_OP_OPTIONS}) {
    options.struct_type = type;
    EXPECT_FAILS(compute_stream_create(device, &options, stream.out()), kInvalid,
                 "options.struct_type is " + std::to_string(type));
  }
  const Tensor x = make_tensor<float>(device, {1, 2, 3});
  compute_sum_options sum = {};
  sum.struct_size = sizeof sum;
  sum.struct_type = COMPUTE_STRUCT_OP_OPTIONS;
  Tensor y;
  EXPECT_OK(compute_sum(nullptr, x, &sum, y.out()));
  sum.struct_type = COMPUTE_STRUCT_STREAM_OPTIONS;
  EXPECT_FAILS(compute_sum(nullptr, x, &sum, y.out()), kInvalid, "options.struct_type");
}

// ---- Sizes that are too large ---------------------------------------------------------------------------------------

ISOLATED_TEST(BadInput, MemoryThatIsNotThere) {
  use_plugins({"minimal"});
  setenv("COMPUTE_MINIMAL_MEMORY", "1048576", 1);
  const Device device = open("minimal0"), cpu = open("cpu");
  const Tensor held = floats(device, {100000});
  const int64_t shape[] = {200000}, more[] = {1 << 20}, most[] = {int64_t{1} << 58};
  Tensor out;
  EXPECT_FAILS(compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, 1, shape, out.out()),
               COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY, "minimal0", "800000");
  EXPECT_FAILS(compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, 1, more, out.out()),
               COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY, "minimal0", "4194304", "1048576");
  EXPECT_EQ(read<float>(held)[99999], 1);  // nothing sticks
  if (!kSanitizer) {
    EXPECT_FAILS(compute_tensor_empty(cpu, COMPUTE_DTYPE_FLOAT32, 1, most, out.out()), COMPUTE_ERROR_OUT_OF_MEMORY,
                 "cpu");
  }
  const Tensor row = floats(device, {1, 100000});
  Tensor tall;
  const int64_t tall_shape[] = {1000, 100000};
  ASSERT_OK(compute_tensor_broadcast(row, 2, tall_shape, tall.out()));
  EXPECT_FAILS(run_op("exp", nullptr, {tall}, out.out()), COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
}

// ---- More memory than the machine has ------------------------------------------------------------------------------

compute_error* make_bytes(compute_device* device, int64_t size_bytes, Tensor& out) {
  return compute_tensor_empty(device, COMPUTE_DTYPE_UINT8, 1, &size_bytes, out.out());
}

compute_device_statistics statistics_of(compute_device* device) {
  compute_device_statistics statistics = {};
  statistics.struct_size = sizeof statistics;
  EXPECT_OK(compute_device_get_statistics(device, &statistics));
  return statistics;
}

int64_t available_on(compute_device* device) { return statistics_of(device).memory_available; }

// Memory that was given and is not touched yet counts, also after requests that were refused.
ISOLATED_TEST(HostMemory, RefusedRequestsChangeNothing) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer has address space of its own";
  const Device cpu = open("cpu");
  for (int i = 0; i < 4; ++i) {
    Tensor none;
    EXPECT_FAILS(make_bytes(cpu, int64_t{1} << 60, none), COMPUTE_ERROR_OUT_OF_MEMORY);
  }
  const int64_t available = available_on(cpu);
  Tensor first, second;
  EXPECT_OK(make_bytes(cpu, available / 10 * 6, first));
  EXPECT_FAILS(make_bytes(cpu, available / 10 * 6, second), COMPUTE_ERROR_OUT_OF_MEMORY);
}

// What the program itself uses is not taken for memory of tensors that was touched.
ISOLATED_TEST(HostMemory, TheProgramsOwnMemoryIsNotTensors) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer has memory of its own";
  const Device cpu = open("cpu");
  constexpr int64_t kOwn = int64_t{2} << 30;
  if (available_on(cpu) < 4 * kOwn) GTEST_SKIP() << "there is too little memory";
  const std::vector<char> own(static_cast<size_t>(kOwn), 1);
  const int64_t available = available_on(cpu);
  Tensor first, second;
  EXPECT_OK(make_bytes(cpu, available / 10 * 7, first));
  EXPECT_FAILS(make_bytes(cpu, available - statistics_of(cpu).memory_reserved + kOwn / 4, second),
               COMPUTE_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(make_bytes(cpu, available / 10, second));
}

}  // namespace
}  // namespace robustness
