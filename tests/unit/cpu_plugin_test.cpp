// SPDX-License-Identifier: Apache-2.0
// Drives the CPU plugin through its table, with its own core table, without core.
#include <compute/plugin.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

struct compute_error {
  compute_error_code code;
  std::string message;
};

namespace {

// ---- The core -------------------------------------------------------------------------------------------------------

const char* threads_setting = nullptr;  // of the device that is opened next

compute_error* error_new(const compute_plugin_error_info* info) {
  return new compute_error{info->code, std::string(info->message.data, static_cast<size_t>(info->message.size))};
}
void error_free(compute_error* error) { delete error; }
compute_error_code error_code(const compute_error* error) { return error->code; }
void log_line(int32_t, const char*, int64_t, const char*, int64_t) {}
int64_t setting(const char* name, int64_t name_size, char* buffer, int64_t capacity) {
  if (std::string_view(name, static_cast<size_t>(name_size)) != "COMPUTE_CPU_THREADS" || !threads_setting) return -1;
  const std::string value = threads_setting;
  value.copy(buffer, static_cast<size_t>(capacity));
  return static_cast<int64_t>(value.size());
}

int32_t blob_load(const void*, int64_t, compute_plugin_take_blob, void*) { return 0; }
void blob_store(const void*, int64_t, const void*, int64_t) {}

const compute_plugin_core kCore = {
    sizeof kCore, COMPUTE_PLUGIN_INTERFACE, 0, error_new, error_free, error_code, log_line, setting, blob_load,
    blob_store};

compute_error_code code_of(compute_error* error) {
  const compute_error_code code = error != nullptr ? error->code : COMPUTE_OK;
  delete error;
  return code;
}
#define EXPECT_OK(call) EXPECT_EQ(code_of(call), COMPUTE_OK)
#define ASSERT_OK(call) ASSERT_EQ(code_of(call), COMPUTE_OK)

compute_plugin_open_function open_function() {
  static void* const library = dlopen(COMPUTE_CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<compute_plugin_open_function>(dlsym(library, "compute_plugin_open"));
}

// Threads that are alive; one that was joined a moment ago may still be listed.
int64_t task_count() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

uint64_t buffer_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// ---- Ops ------------------------------------------------------------------------------------------------------------

// A row-major tensor in the test's own memory.
struct Operand {
  int32_t dtype;
  std::vector<int64_t> shape;
  const void* data;
};

class CpuPlugin : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    ASSERT_NE(open_function(), nullptr) << dlerror();
    const compute_plugin_table* plugin = nullptr;
    ASSERT_OK(open_function()(COMPUTE_PLUGIN_INTERFACE, &kCore, &plugin));
    uint64_t id = 0;
    compute_plugin_sink sink{};
    sink.table_size = sizeof sink;
    sink.context = &id;
    sink.device = [](void* context, const compute_plugin_device_info* info) {
      *static_cast<uint64_t*>(context) = info->id;
    };
    sink.requirement = [](void*, const compute_plugin_requirement*) {};
    ASSERT_OK(plugin->enumerate(&sink));
    const compute_plugin_device_options options = {
        sizeof options, COMPUTE_PLUGIN_STRUCT_DEVICE_OPTIONS, nullptr, nullptr, 0, 0};
    ASSERT_OK(plugin->device_open(id, &options, &device_, &table_));
    stream_ = make_stream(GetParam());
  }
  void TearDown() override {
    if (table_ == nullptr) return;
    table_->stream_destroy(stream_);
    table_->close(device_);
  }

  bool is_immediate() const { return GetParam() == COMPUTE_PLUGIN_STREAM_IMMEDIATE; }

  uint64_t make_stream(uint32_t flags) {
    const compute_plugin_stream_options options = {sizeof options, COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS, nullptr, flags,
                                                   0};
    uint64_t stream = 0;
    EXPECT_OK(table_->stream_create(device_, &options, &stream));
    return stream;
  }
  compute_error_code finish() {
    uint64_t reached = 0;
    if (const auto code = code_of(table_->stream_mark(stream_, ++number_, 0)); code != COMPUTE_OK) return code;
    const auto code = code_of(table_->stream_sync(stream_, number_, INT64_MAX, &reached));
    EXPECT_EQ(reached == number_, code == COMPUTE_OK);
    return code;
  }

  static compute_attribute attribute(const char* name, int32_t kind, const void* values, size_t count = 1) {
    return {sizeof(compute_attribute),   0,     nullptr, name, static_cast<int64_t>(std::strlen(name)), kind, 0,
            static_cast<int64_t>(count), values};
  }

  // Prepares and runs; the plan is released at once, since queued work keeps it.
  compute_error_code run(const char* name, const std::vector<Operand>& inputs, const Operand& output,
                         const std::vector<compute_attribute>& attributes = {},
                         const compute_plugin_expression* expression = nullptr, uint64_t fault = 0) {
    std::vector<std::vector<int64_t>> strides;
    std::vector<compute_plugin_tensor> tensors;
    std::vector<compute_plugin_operand> places;
    std::vector<Operand> operands = inputs;
    operands.push_back(output);
    strides.reserve(operands.size());
    for (const Operand& operand : operands) {
      std::vector<int64_t>& steps = strides.emplace_back(operand.shape.size(), 1);
      for (size_t i = steps.size(); i-- > 1;) steps[i - 1] = steps[i] * operand.shape[i];
      tensors.push_back({sizeof(compute_plugin_tensor), COMPUTE_PLUGIN_STRUCT_TENSOR, nullptr, operand.dtype,
                         static_cast<int32_t>(operand.shape.size()), operand.shape.data(), steps.data(),
                         tensors.size() < inputs.size() ? COMPUTE_PLUGIN_TENSOR_INPUT : COMPUTE_PLUGIN_TENSOR_OUTPUT, 1,
                         COMPUTE_PLUGIN_LAYOUT_STRIDED, 0});
      places.push_back({buffer_of(operand.data), 0});
    }
    compute_plugin_op op{};
    op.struct_size = sizeof op;
    op.struct_type = COMPUTE_PLUGIN_STRUCT_OP;
    op.name = {name, static_cast<int64_t>(std::strlen(name))};
    op.version = 1;
    op.input_count = static_cast<int32_t>(inputs.size());
    op.output_count = 1;
    op.tensors = tensors.data();
    op.attributes = attributes.data();
    op.attribute_count = static_cast<int32_t>(attributes.size());
    op.expressions = &expression;
    op.expression_count = expression != nullptr;
    return run(op, places, nullptr, fault);
  }
  compute_error_code run(const compute_plugin_op& op, const std::vector<compute_plugin_operand>& places,
                         const compute_plugin_scalar* scalars, uint64_t fault = 0) {
    uint64_t plan = 0;
    compute_plugin_plan_info info = {sizeof info, COMPUTE_PLUGIN_STRUCT_PLAN_INFO, nullptr, 0, 0, 0, 0, 0};
    bool is_refused = false;
    const compute_plugin_refuse refuse = [](void* context, const compute_plugin_refusal*) {
      *static_cast<bool*>(context) = true;
    };
    if (const auto code = code_of(table_->op_prepare(device_, &op, &plan, &info, refuse, &is_refused));
        code != COMPUTE_OK)
      return code;
    if (is_refused) return COMPUTE_ERROR_UNSUPPORTED;
    workspaces_.push_back(std::make_unique<char[]>(static_cast<size_t>(info.workspace_bytes) + 64));
    const uint64_t workspace = (buffer_of(workspaces_.back().get()) + 63) / 64 * 64;
    const compute_plugin_run run = {sizeof run,
                                    COMPUTE_PLUGIN_STRUCT_RUN,
                                    nullptr,
                                    stream_,
                                    places.data(),
                                    scalars,
                                    {workspace, 0},
                                    {fault, 0},
                                    static_cast<int32_t>(places.size()),
                                    op.scalar_count,
                                    0,
                                    0,
                                    0,
                                    {}};
    const auto code = code_of(table_->plan_run(plan, &run));
    table_->plan_release(device_, plan);
    return code;
  }

  // y = x + x in float32.
  compute_error_code run_twice(const float* x, float* y, int64_t n) {
    const compute_plugin_node nodes[] = {
        {COMPUTE_PLUGIN_NODE_INPUT, COMPUTE_DTYPE_FLOAT32, 0, 0, 0, {}},
        {COMPUTE_PLUGIN_NODE_CALL, COMPUTE_DTYPE_FLOAT32, COMPUTE_PLUGIN_INTRINSIC_ADD, 2, 0, {}},
    };
    const int32_t operands[] = {0, 0}, output = 1;
    const compute_plugin_expression expression = {
        sizeof expression, COMPUTE_PLUGIN_STRUCT_EXPRESSION, nullptr, {}, 2, 1, 0, 1, nodes, operands, 2, &output};
    return run("map", {{COMPUTE_DTYPE_FLOAT32, {n}, x}}, {COMPUTE_DTYPE_FLOAT32, {n}, y}, {}, &expression);
  }

  uint64_t device_ = 0, stream_ = 0, number_ = 0;
  const compute_plugin_device_table* table_ = nullptr;
  std::vector<std::unique_ptr<char[]>> workspaces_;  // until the stream has ended
};

INSTANTIATE_TEST_SUITE_P(Streams, CpuPlugin, testing::Values(COMPUTE_PLUGIN_STREAM_IMMEDIATE, 0),
                         [](const auto& info) { return info.param != 0 ? "immediate" : "queued"; });

// ---- Opening --------------------------------------------------------------------------------------------------------

TEST(CpuPluginOpen, TheBuildIdIsTheLinkers) {
  const auto query = reinterpret_cast<compute_plugin_query_function>(
      dlsym(dlopen(COMPUTE_CPU_PLUGIN, RTLD_NOW), "compute_plugin_query"));
  ASSERT_NE(query, nullptr);
  const compute_string id = query()->build_id;
  ASSERT_EQ(id.size, 40) << "an SHA-1 in hexadecimal digits";
  EXPECT_EQ(std::string(id.data, 40).find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(CpuPluginOpen, RefusesAnotherInterfaceVersion) {
  ASSERT_NE(open_function(), nullptr) << dlerror();
  const auto* table = reinterpret_cast<const compute_plugin_table*>(1);
  EXPECT_EQ(code_of(open_function()(COMPUTE_PLUGIN_INTERFACE + 1, &kCore, &table)), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(table, nullptr);
}

// ---- Streams --------------------------------------------------------------------------------------------------------

TEST_P(CpuPlugin, FillsAndCopiesOfEverySizeInOrder) {
  for (const int64_t size : {0, 1, 2, 3, 7, 8, 63, 64, 65, 130, 4097, 1000003, 17 << 20}) {
    for (const int32_t pattern_size : {1, 2, 4, 8, 16}) {
      if (size % pattern_size != 0 || (size > 100000 && pattern_size != 1 && pattern_size != 4)) continue;
      const uint8_t pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
      std::vector<uint8_t> a(static_cast<size_t>(size) + 2, 0xee), b = a, c = a;
      const compute_plugin_operand in_a = {buffer_of(a.data()), 1}, in_b = {buffer_of(b.data()), 1};
      ASSERT_OK(table_->fill(stream_, &in_a, size, pattern, pattern_size, 0));
      ASSERT_OK(table_->copy_from_host(stream_, a.data() + 1, nullptr, &in_b, size, 0));
      ASSERT_OK(table_->copy_to_host(stream_, &in_b, c.data() + 1, nullptr, size, 0));
      ASSERT_EQ(finish(), COMPUTE_OK);
      EXPECT_EQ(c.front(), 0xee);
      EXPECT_EQ(c.back(), 0xee);
      for (int64_t i = 0; i < size; ++i) {
        ASSERT_EQ(c[static_cast<size_t>(i) + 1], pattern[i % pattern_size]) << i << " of " << size;
      }
    }
  }
}

TEST_P(CpuPlugin, MarksAreReachedInOrder) {
  uint64_t reached = 7;
  EXPECT_OK(table_->stream_reached(stream_, &reached));
  EXPECT_EQ(reached, 0u);
  for (const uint64_t number : {1, 2, 10}) EXPECT_OK(table_->stream_mark(stream_, number, 0));
  if (is_immediate()) {
    EXPECT_OK(table_->stream_reached(stream_, &reached));
    EXPECT_EQ(reached, 10u);
  }
  EXPECT_OK(table_->stream_sync(stream_, 10, INT64_MAX, &reached));
  EXPECT_EQ(reached, 10u);
  EXPECT_OK(table_->stream_sync(stream_, 11, 1'000'000, &reached));  // the time limit has passed, which is not an error
  EXPECT_EQ(reached, 10u);
}

TEST_P(CpuPlugin, WaitsForTheHost) {
  if (GetParam()) return;  // not on an immediate stream
  uint64_t wait = 0, reached = 0;
  ASSERT_OK(table_->stream_wait_host(stream_, &wait));
  EXPECT_OK(table_->stream_mark(stream_, 1, 0));
  EXPECT_OK(table_->stream_sync(stream_, 1, 20'000'000, &reached));
  EXPECT_EQ(reached, 0u);
  table_->signal_host_wait(device_, wait);
  EXPECT_OK(table_->stream_sync(stream_, 1, INT64_MAX, &reached));
  EXPECT_EQ(reached, 1u);
  // A wait may end before the stream comes to it.
  ASSERT_OK(table_->stream_wait_host(stream_, &wait));
  table_->signal_host_wait(device_, wait);
  EXPECT_OK(table_->stream_mark(stream_, 2, 0));
  number_ = 2;
  EXPECT_EQ(finish(), COMPUTE_OK);
}

TEST_P(CpuPlugin, ACancelledStreamFails) {
  uint64_t stream = 0, wait = 0, reached = 0;
  compute_plugin_stream_options options = {sizeof options, COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS, nullptr, 0, 0};
  ASSERT_OK(table_->stream_create(device_, &options, &stream));
  EXPECT_OK(table_->stream_mark(stream, 1, 0));
  EXPECT_OK(table_->stream_sync(stream, 1, INT64_MAX, &reached));
  ASSERT_OK(table_->stream_wait_host(stream, &wait));
  std::vector<float> values(64, 1.0F);
  const compute_plugin_operand place = {buffer_of(values.data()), 0};
  const float zero = 0;
  EXPECT_OK(table_->fill(stream, &place, 256, &zero, 4, 0));
  EXPECT_OK(table_->stream_mark(stream, 2, 0));
  EXPECT_OK(table_->stream_cancel(stream));
  EXPECT_EQ(code_of(table_->stream_sync(stream, 2, INT64_MAX, &reached)), COMPUTE_ERROR_CANCELLED);
  EXPECT_EQ(reached, 1u);
  EXPECT_EQ(values, std::vector<float>(64, 1.0F)) << "work behind the wait has run";
  EXPECT_EQ(code_of(table_->fill(stream, &place, 256, &zero, 4, 0)), COMPUTE_ERROR_CANCELLED);
  table_->signal_host_wait(device_, wait);
  table_->stream_destroy(stream);
  // One that is idle fails too.
  ASSERT_OK(table_->stream_create(device_, &options, &stream));
  EXPECT_OK(table_->stream_cancel(stream));
  compute_error_code code = COMPUTE_OK;
  while (code == COMPUTE_OK) code = code_of(table_->stream_reached(stream, &reached));
  EXPECT_EQ(code, COMPUTE_ERROR_CANCELLED);
  table_->stream_destroy(stream);
}

TEST_P(CpuPlugin, TimesMarks) {
  int64_t before = 0, after = 0, host = 0, wrap = 0, first = 0, second = 0;
  ASSERT_OK(table_->clock(device_, &before, &host, &wrap));
  EXPECT_EQ(wrap, 0);
  EXPECT_EQ(before, host);
  EXPECT_OK(table_->stream_mark(stream_, 1, COMPUTE_PLUGIN_MARK_TIMED));
  EXPECT_OK(table_->stream_mark(stream_, 2, COMPUTE_PLUGIN_MARK_TIMED));
  EXPECT_OK(table_->stream_mark(stream_, 3, COMPUTE_PLUGIN_MARK_TIMED));
  EXPECT_OK(table_->mark_time(stream_, 3, nullptr));
  number_ = 3;
  EXPECT_EQ(finish(), COMPUTE_OK);
  ASSERT_OK(table_->clock(device_, &after, &host, &wrap));
  EXPECT_OK(table_->mark_time(stream_, 1, &first));
  EXPECT_OK(table_->mark_time(stream_, 2, &second));
  EXPECT_LE(before, first);
  EXPECT_LE(first, second);
  EXPECT_LE(second, after);
  for (const uint64_t number : {1, 3, 4})
    EXPECT_EQ(code_of(table_->mark_time(stream_, number, &first)), COMPUTE_ERROR_INVALID_ARGUMENT) << number;
}

TEST_P(CpuPlugin, WaitsForAnotherStream) {
  const uint64_t other = make_stream(0), gate = make_stream(0);
  std::vector<float> x(100000, 1), y(x.size());
  uint64_t reached = 0;
  // `other` copies after `gate` has reached 1, which it does when the waiter is waiting or will soon be.
  EXPECT_OK(table_->stream_wait(other, gate, 1, 0));
  const compute_plugin_operand in_y = {buffer_of(y.data()), 0};
  EXPECT_OK(table_->copy_from_host(other, x.data(), nullptr, &in_y, 400000, 0));
  EXPECT_OK(table_->stream_mark(other, 1, 0));
  EXPECT_OK(table_->stream_sync(other, 1, 1'000'000, &reached));
  EXPECT_EQ(reached, 0u);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_OK(table_->stream_mark(gate, 1, 0));
  });
  EXPECT_OK(table_->stream_wait(stream_, other, 1, 0));  // an immediate stream blocks here
  if (is_immediate()) {
    EXPECT_OK(table_->stream_reached(other, &reached));
    EXPECT_EQ(reached, 1u);
  }
  EXPECT_EQ(run_twice(y.data(), y.data(), static_cast<int64_t>(y.size())), COMPUTE_OK);
  EXPECT_EQ(finish(), COMPUTE_OK);
  opener.join();
  EXPECT_EQ(y, std::vector<float>(x.size(), 2));
  table_->stream_destroy(other);
  table_->stream_destroy(gate);
}

TEST_P(CpuPlugin, ADestroyedStreamFinishesItsWork) {
  std::vector<float> x(1000, 1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(run_twice(x.data(), x.data(), 1000), COMPUTE_OK);
  const uint64_t old = stream_;
  EXPECT_OK(table_->stream_mark(old, 1, 0));
  stream_ = make_stream(GetParam());
  EXPECT_OK(table_->stream_wait(stream_, old, 1, 0));
  table_->stream_destroy(old);
  EXPECT_EQ(run_twice(x.data(), x.data(), 1000), COMPUTE_OK);
  EXPECT_EQ(finish(), COMPUTE_OK);
  EXPECT_EQ(x, std::vector<float>(1000, 2048));
}

// ---- Faults ---------------------------------------------------------------------------------------------------------

TEST_P(CpuPlugin, WritesTheFirstFaultIntoTheRecord) {
  const int64_t axis = 0;
  const int32_t x[] = {1, 2, 3}, indices[] = {0, -1, 3, -4};
  int32_t y[4] = {};
  alignas(64) compute_plugin_fault fault = {};
  EXPECT_EQ(
      run("gather", {{COMPUTE_DTYPE_INT32, {3}, x}, {COMPUTE_DTYPE_INT32, {4}, indices}}, {COMPUTE_DTYPE_INT32, {4}, y},
          {attribute("axis", COMPUTE_KIND_INT64, &axis)}, nullptr, buffer_of(&fault)),
      COMPUTE_OK);
  EXPECT_EQ(finish(), COMPUTE_OK);
  EXPECT_EQ(fault.code, COMPUTE_PLUGIN_FAULT_INDEX);
  EXPECT_EQ(fault.argument, 1);
  EXPECT_EQ(fault.value, 3);
  EXPECT_EQ(fault.limit, 3);
  EXPECT_EQ(fault.position, 2);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 3);
}

TEST_P(CpuPlugin, AFaultWithoutARecordIsAnError) {
  const int64_t axis = 0;
  const int32_t x[] = {1, 2, 3}, indices[] = {7};
  int32_t y[1] = {};
  ASSERT_EQ(finish(), COMPUTE_OK);
  const uint64_t good = number_;
  const auto code = run("gather", {{COMPUTE_DTYPE_INT32, {3}, x}, {COMPUTE_DTYPE_INT32, {1}, indices}},
                        {COMPUTE_DTYPE_INT32, {1}, y}, {attribute("axis", COMPUTE_KIND_INT64, &axis)});
  float z = 1;
  if (is_immediate()) {  // the call's own, and it does not stick
    EXPECT_EQ(code, COMPUTE_ERROR_KERNEL_FAILED);
    EXPECT_EQ(run_twice(&z, &z, 1), COMPUTE_OK);
    EXPECT_EQ(finish(), COMPUTE_OK);
    EXPECT_EQ(z, 2);
    return;
  }
  EXPECT_EQ(code, COMPUTE_OK);
  EXPECT_EQ(finish(), COMPUTE_ERROR_KERNEL_FAILED);
  uint64_t reached = 0;
  EXPECT_EQ(code_of(table_->stream_reached(stream_, &reached)), COMPUTE_ERROR_KERNEL_FAILED);
  EXPECT_EQ(reached, good);
  EXPECT_EQ(run_twice(&z, &z, 1), COMPUTE_ERROR_KERNEL_FAILED);  // it takes no more work
  table_->stream_destroy(stream_);
  stream_ = make_stream(0);  // which heals
  EXPECT_EQ(run_twice(&z, &z, 1), COMPUTE_OK);
  EXPECT_EQ(finish(), COMPUTE_OK);
  EXPECT_EQ(z, 2);
}

// All segments from a quarter on are bad, so that each thread finds some.
TEST_P(CpuPlugin, TheFirstBadSegmentIsReportedWhicheverThreadComesFirst) {
  constexpr int64_t kSegments = 1 << 17, kRows = kSegments, kFirst = kSegments / 4;
  std::vector<float> x(kRows, 1), y(kSegments);
  std::vector<int64_t> offsets(kSegments + 1);
  for (int64_t i = 0; i <= kSegments; ++i) offsets[static_cast<size_t>(i)] = i <= kFirst ? i : kRows + i;
  const compute_string kind = {"sum", 3};
  const compute_dtype accumulator = COMPUTE_DTYPE_FLOAT32;
  const auto reduce = [&](uint64_t fault) {
    return run(
        "segmented_reduce",
        {{COMPUTE_DTYPE_FLOAT32, {kRows}, x.data()}, {COMPUTE_DTYPE_INT64, {kSegments + 1}, offsets.data()}},
        {COMPUTE_DTYPE_FLOAT32, {kSegments}, y.data()},
        {attribute("kind", COMPUTE_KIND_STRING, &kind), attribute("accumulator", COMPUTE_KIND_DTYPE, &accumulator)},
        nullptr, fault);
  };
  for (int round = 0; round < 20; ++round) {
    alignas(64) compute_plugin_fault fault = {};
    EXPECT_EQ(reduce(buffer_of(&fault)), COMPUTE_OK);
    EXPECT_EQ(finish(), COMPUTE_OK);
    EXPECT_EQ(fault.code, COMPUTE_PLUGIN_FAULT_INDEX);
    EXPECT_EQ(fault.argument, 1);
    EXPECT_EQ(fault.value, kRows + kFirst + 1);
    EXPECT_EQ(fault.limit, kRows);
    ASSERT_EQ(fault.position, kFirst);
    EXPECT_EQ(y[kFirst - 1], 1);
  }
  // Without a record the run fails, and no thread is lost.
  const auto code = reduce(0);
  EXPECT_EQ(is_immediate() ? code : finish(), COMPUTE_ERROR_KERNEL_FAILED);
}

// ---- Ops ------------------------------------------------------------------------------------------------------------

// Sizes around vectors, blocks and pieces; non-temporal stores write the greatest. From odd addresses and in place.
TEST_P(CpuPlugin, OddSizesAndAddresses) {
  std::vector<int64_t> sizes(130);
  std::iota(sizes.begin(), sizes.end(), 1);
  sizes.insert(sizes.end(), {511, 512, 513, 527, 1023, 1025, 8191, 8193, 65537, (5 << 20) + 13});
  std::vector<float> x(static_cast<size_t>(sizes.back()) + 40), y;
  for (const int64_t n : sizes) {
    for (const int64_t lead : {0, 1, 5, 16}) {
      std::iota(x.begin(), x.begin() + n + lead + 1, 0.0f);
      y.assign(static_cast<size_t>(n + lead + 1), -1);
      ASSERT_EQ(run_twice(x.data() + lead, y.data() + lead, n), COMPUTE_OK);
      ASSERT_EQ(run_twice(x.data() + lead, x.data() + lead, n), COMPUTE_OK);
      ASSERT_EQ(finish(), COMPUTE_OK);
      ASSERT_EQ(std::count(y.begin(), y.begin() + lead, -1.0f), lead);
      ASSERT_EQ(y.back(), -1);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(y[static_cast<size_t>(i + lead)], 2.0f * static_cast<float>(i + lead))
            << n << ", " << lead << ", " << i;
        ASSERT_EQ(x[static_cast<size_t>(i + lead)], y[static_cast<size_t>(i + lead)]) << n << ", " << lead << ", " << i;
      }
    }
  }
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

// A tensor of any strides, in elements.
struct View {
  int32_t dtype;
  std::vector<int64_t> shape, strides;
  const void* data;
};

// An expression of float32 with one output, the last node.
class RowExpression {
 public:
  explicit RowExpression(int32_t inputs) : inputs_(inputs) {}

  int32_t input(int32_t value) { return add(COMPUTE_PLUGIN_NODE_INPUT, value, {}); }
  int32_t scalar(int32_t value) {
    scalars_ = value + 1;
    return add(COMPUTE_PLUGIN_NODE_SCALAR, value, {});
  }
  int32_t index(int32_t axis) { return add(COMPUTE_PLUGIN_NODE_INDEX, axis, {}, COMPUTE_DTYPE_INT32); }
  int32_t call(int32_t intrinsic, std::vector<int32_t> operands) {
    return add(COMPUTE_PLUGIN_NODE_CALL, intrinsic, std::move(operands));
  }
  const compute_plugin_expression* finish() {
    output_ = static_cast<int32_t>(nodes_.size()) - 1;
    expression_ = {sizeof expression_,
                   COMPUTE_PLUGIN_STRUCT_EXPRESSION,
                   nullptr,
                   {},
                   output_ + 1,
                   inputs_,
                   scalars_,
                   1,
                   nodes_.data(),
                   operands_.data(),
                   static_cast<int64_t>(operands_.size()),
                   &output_};
    return &expression_;
  }

 private:
  int32_t add(int32_t kind, int32_t value, std::vector<int32_t> operands, int32_t dtype = COMPUTE_DTYPE_FLOAT32) {
    nodes_.push_back(
        {kind, dtype, value, static_cast<int32_t>(operands.size()), static_cast<int64_t>(operands_.size()), {}});
    operands_.insert(operands_.end(), operands.begin(), operands.end());
    return static_cast<int32_t>(nodes_.size()) - 1;
  }

  int32_t inputs_, scalars_ = 0, output_ = 0;
  std::vector<compute_plugin_node> nodes_;
  std::vector<int32_t> operands_;
  compute_plugin_expression expression_{};
};

class CpuPluginRows : public CpuPlugin {
 protected:
  compute_error_code run_row(const std::vector<View>& inputs, const std::vector<View>& outputs,
                             std::vector<int64_t> axes, const std::vector<const char*>& kinds,
                             std::vector<RowExpression> expressions, std::vector<int64_t> stored,
                             const std::vector<float>& scalars = {}) {
    std::vector<compute_plugin_tensor> tensors;
    std::vector<compute_plugin_operand> places;
    for (const std::vector<View>* list : {&inputs, &outputs}) {
      for (const View& view : *list) {
        tensors.push_back({sizeof(compute_plugin_tensor), COMPUTE_PLUGIN_STRUCT_TENSOR, nullptr, view.dtype,
                           static_cast<int32_t>(view.shape.size()), view.shape.data(), view.strides.data(),
                           list == &inputs ? COMPUTE_PLUGIN_TENSOR_INPUT : COMPUTE_PLUGIN_TENSOR_OUTPUT, 1,
                           COMPUTE_PLUGIN_LAYOUT_STRIDED, 0});
        places.push_back({buffer_of(view.data), 0});
      }
    }
    std::vector<compute_string> names;
    for (const char* kind : kinds) names.push_back({kind, static_cast<int64_t>(std::strlen(kind))});
    const std::vector<int32_t> accumulators(kinds.size(), COMPUTE_DTYPE_FLOAT32);
    const compute_attribute attributes[] = {
        attribute("axes", COMPUTE_KIND_INT64, axes.data(), axes.size()),
        attribute("kinds", COMPUTE_KIND_STRING, names.data(), names.size()),
        attribute("accumulators", COMPUTE_KIND_DTYPE, accumulators.data(), accumulators.size()),
        attribute("stored", COMPUTE_KIND_INT64, stored.data(), stored.size())};
    std::vector<const compute_plugin_expression*> finished;
    for (RowExpression& expression : expressions) finished.push_back(expression.finish());
    std::vector<compute_plugin_scalar> values(scalars.size());
    for (size_t i = 0; i < scalars.size(); ++i) std::memcpy(values[i].bits, &scalars[i], sizeof scalars[i]);
    const std::vector<int32_t> scalar_dtypes(scalars.size(), COMPUTE_DTYPE_FLOAT32);
    compute_plugin_op op{};
    op.struct_size = sizeof op;
    op.struct_type = COMPUTE_PLUGIN_STRUCT_OP;
    op.name = {"row", 3};
    op.version = 1;
    op.input_count = static_cast<int32_t>(inputs.size());
    op.output_count = static_cast<int32_t>(outputs.size());
    op.tensors = tensors.data();
    op.attributes = attributes;
    op.attribute_count = 4;
    op.expressions = finished.data();
    op.expression_count = static_cast<int32_t>(finished.size());
    op.scalar_count = static_cast<int32_t>(scalars.size());
    op.scalar_dtypes = scalar_dtypes.data();
    const auto code = run(op, places, values.data());
    if (code != COMPUTE_OK) return code;
    return finish();  // `values` live until then
  }

  // softmax of [outer, n, inner] along axis 1, with the sums as float64 in `sums`.
  compute_error_code softmax(const View& x, const View& y, const View& sums) {
    RowExpression greatest(1), same(1), powers(2), sum(2), quotients(3);
    greatest.input(0);
    same.input(0);
    const auto power = [](RowExpression& e) {
      const int32_t a = e.input(0), b = e.input(1);
      return e.call(COMPUTE_PLUGIN_INTRINSIC_EXP, {e.call(COMPUTE_PLUGIN_INTRINSIC_SUB, {a, b})});
    };
    power(powers);
    sum.input(0);
    const int32_t dividend = power(quotients);
    const int32_t divisor = quotients.input(2);
    quotients.call(COMPUTE_PLUGIN_INTRINSIC_DIV, {dividend, divisor});
    return run_row({x}, {y, sums}, {1}, {"max", "sum"}, {greatest, same, powers, sum, quotients}, {1});
  }
};

INSTANTIATE_TEST_SUITE_P(Streams, CpuPluginRows, testing::Values(COMPUTE_PLUGIN_STREAM_IMMEDIATE, 0),
                         [](const auto& info) { return info.param != 0 ? "immediate" : "queued"; });

// The memory of a tensor [outer, n, inner], and its strides.
struct RowLayout {
  const char* name;
  std::vector<int64_t> (*strides)(int64_t outer, int64_t n, int64_t inner);
};
const RowLayout kRowLayouts[] = {{"row-major",
                                  [](int64_t, int64_t n, int64_t inner) {
                                    return std::vector<int64_t>{n * inner, inner, 1};
                                  }},
                                 {"with gaps",
                                  [](int64_t, int64_t n, int64_t inner) {
                                    return std::vector<int64_t>{n * (inner + 3) + 1, inner + 3, 1};
                                  }},
                                 {"transposed",
                                  [](int64_t outer, int64_t n, int64_t) {
                                    return std::vector<int64_t>{1, outer, outer * n};
                                  }},
                                 {"scattered", [](int64_t, int64_t n, int64_t inner) {
                                    return std::vector<int64_t>{3 * n * inner, 3 * inner, 3};
                                  }}};

// Short, long and split rows; few and many columns, and so few that several points lie side by side; both into other
// layouts than their own, and in place.
TEST_P(CpuPluginRows, SoftmaxOfEveryShapeAndLayout) {
  const std::vector<std::vector<int64_t>> shapes = {
      {1, 1, 1},     {7, 1, 1},     {1, 1, 300},  {1, 9, 1},    {1000, 3, 1},  {300, 8, 1},    {129, 63, 1},
      {5, 511, 1},   {3, 513, 1},   {2, 1025, 1}, {4, 5000, 1}, {20, 5000, 1}, {2, 70001, 1},  {1, 3, 1000},
      {1, 100, 257}, {1, 33797, 3}, {2, 700, 2},  {50, 6, 5},   {3, 40, 65},   {1, 2000, 130}, {2, 40007, 5},
  };
  for (const std::vector<int64_t>& shape : shapes) {
    const int64_t outer = shape[0], n = shape[1], inner = shape[2];
    for (const RowLayout& from : kRowLayouts) {
      for (const RowLayout& to : kRowLayouts) {
        if (outer * n * inner > 100000 && &to != &from && &to != kRowLayouts) continue;
        const std::vector<int64_t> in = from.strides(outer, n, inner), out = to.strides(outer, n, inner);
        const auto size = [&](const std::vector<int64_t>& strides) {
          return static_cast<size_t>((outer - 1) * strides[0] + (n - 1) * strides[1] + (inner - 1) * strides[2] + 1);
        };
        const bool in_place = &from == &to;
        std::vector<float> x(size(in)), y(size(out), -7);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 1009) / 64;
        const std::vector<float> before = x;
        std::vector<double> sums(static_cast<size_t>(outer * inner), -1);
        float* const result = in_place ? x.data() : y.data();
        ASSERT_EQ(softmax({COMPUTE_DTYPE_FLOAT32, shape, in, x.data()}, {COMPUTE_DTYPE_FLOAT32, shape, out, result},
                          {COMPUTE_DTYPE_FLOAT64, {outer, 1, inner}, {inner, inner, 1}, sums.data()}),
                  COMPUTE_OK);
        for (int64_t i = 0; i < outer; ++i) {
          for (int64_t k = 0; k < inner; ++k) {
            const auto value = [&](int64_t j) {
              return static_cast<double>(before[static_cast<size_t>(i * in[0] + j * in[1] + k * in[2])]);
            };
            double greatest = value(0), sum = 0;
            for (int64_t j = 0; j < n; ++j) greatest = std::max(greatest, value(j));
            for (int64_t j = 0; j < n; ++j) sum += std::exp(value(j) - greatest);
            ASSERT_NEAR(sums[static_cast<size_t>(i * inner + k)], sum, 3e-6 * sum)
                << from.name << " to " << to.name << ": " << outer << ", " << n << ", " << inner << " at " << i << ", "
                << k;
            for (int64_t j = 0; j < n; ++j) {
              const double expected = std::exp(value(j) - greatest) / sum;
              ASSERT_NEAR(static_cast<double>(result[i * out[0] + j * out[1] + k * out[2]]), expected, 4e-6 * expected)
                  << from.name << " to " << to.name << ": " << outer << ", " << n << ", " << inner << " at " << i
                  << ", " << j << ", " << k;
            }
          }
        }
      }
    }
  }
}

// A variance without a map: the scalars of both `after`, and an operand that is the same for all rows.
TEST_P(CpuPluginRows, StagesHaveScalarsAndBroadcastOperands) {
  for (const int64_t n : {1, 5, 64, 1000, 3000, 200000}) {
    const int64_t rows = n > 10000 ? 2 : 37;
    std::vector<float> x(static_cast<size_t>(rows * n)), w(static_cast<size_t>(n)), means(static_cast<size_t>(rows)),
        variances(means);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 31 % 101) - 50;
    for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 3) + 1;
    RowExpression products(2), mean(1), squares(3), variance(2);
    int32_t a = products.input(0), b = products.input(1);
    products.call(COMPUTE_PLUGIN_INTRINSIC_MUL, {a, b});
    a = mean.input(0);
    b = mean.scalar(0);
    mean.call(COMPUTE_PLUGIN_INTRINSIC_DIV, {a, b});
    a = squares.input(0);
    b = squares.input(2);
    a = squares.call(COMPUTE_PLUGIN_INTRINSIC_SUB, {a, b});
    squares.call(COMPUTE_PLUGIN_INTRINSIC_MUL, {a, a});
    a = variance.input(0);
    b = variance.scalar(0);
    variance.call(COMPUTE_PLUGIN_INTRINSIC_DIV, {a, b});
    ASSERT_EQ(run_row({{COMPUTE_DTYPE_FLOAT32, {rows, n}, {n, 1}, x.data()},
                       {COMPUTE_DTYPE_FLOAT32, {rows, n}, {0, 1}, w.data()}},
                      {{COMPUTE_DTYPE_FLOAT32, {rows, 1}, {1, 1}, means.data()},
                       {COMPUTE_DTYPE_FLOAT32, {rows, 1}, {1, 1}, variances.data()}},
                      {1}, {"sum", "sum"}, {products, mean, squares, variance}, {0, 1},
                      {static_cast<float>(n), static_cast<float>(n + 1)}),
              COMPUTE_OK);
    for (int64_t i = 0; i < rows; ++i) {
      double expected = 0, squared = 0;
      for (int64_t j = 0; j < n; ++j) {
        expected += static_cast<double>(x[static_cast<size_t>(i * n + j)]) * w[static_cast<size_t>(j)];
      }
      expected /= static_cast<double>(n);
      for (int64_t j = 0; j < n; ++j) {
        const double distance = x[static_cast<size_t>(i * n + j)] - expected;
        squared += distance * distance;
      }
      squared /= static_cast<double>(n + 1);
      ASSERT_NEAR(means[static_cast<size_t>(i)], expected, 3e-4) << n << ", " << i;
      ASSERT_NEAR(variances[static_cast<size_t>(i)], squared, 1e-4 * squared + 1e-4) << n << ", " << i;
    }
  }
}

// Positions along a kept axis and along a combined one, in short and long rows and in columns.
TEST_P(CpuPluginRows, ExpressionsReadPositions) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{40, 9}, {3, 1500}, {300, 700}}) {
    for (const int64_t axis : {0, 1}) {
      std::vector<float> x(static_cast<size_t>(shape[0] * shape[1]), 1), y(x.size());
      RowExpression before(1), after(1), map(2);
      const auto add_positions = [](RowExpression& e, int32_t first) {
        for (const int32_t along : {0, 1}) {
          const int32_t position = e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, {e.index(along)});
          first = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, {first, position});
        }
        return first;
      };
      add_positions(before, before.input(0));
      after.input(0);
      const int32_t greatest = map.input(1);
      map.call(COMPUTE_PLUGIN_INTRINSIC_SUB, {add_positions(map, map.input(0)), greatest});
      const View view = {COMPUTE_DTYPE_FLOAT32, shape, {shape[1], 1}, x.data()};
      ASSERT_EQ(run_row({view}, {{COMPUTE_DTYPE_FLOAT32, shape, {shape[1], 1}, y.data()}}, {axis}, {"max"},
                        {before, after, map}, {}),
                COMPUTE_OK);
      for (int64_t i = 0; i < shape[0]; ++i) {
        for (int64_t j = 0; j < shape[1]; ++j) {
          const int64_t at = axis == 0 ? i : j;
          ASSERT_EQ(y[static_cast<size_t>(i * shape[1] + j)], static_cast<float>(at - (shape[axis == 0 ? 0 : 1] - 1)))
              << shape[0] << ", " << shape[1] << ", " << axis << " at " << i << ", " << j;
        }
      }
    }
  }
}

TEST_P(CpuPluginRows, RefusesWhatTheContractDoesNotHave) {
  std::vector<float> x(8, 1), y(8);
  const View in = {COMPUTE_DTYPE_FLOAT32, {2, 4}, {4, 1}, x.data()},
             out = {COMPUTE_DTYPE_FLOAT32, {2, 1}, {1, 1}, y.data()};
  RowExpression same(1);
  same.input(0);
  EXPECT_EQ(run_row({in}, {out}, {1}, {"sum"}, {same, same}, {0}), COMPUTE_OK);
  EXPECT_EQ(run_row({in}, {out}, {1}, {"median"}, {same, same}, {0}), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(run_row({in}, {out}, {1}, {"all"}, {same, same}, {0}), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(run_row({in}, {out}, {1}, {"sum", "sum"}, {same, same}, {0}), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(run_row({in}, {out}, {1}, {"sum"}, {same, same}, {1}), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(run_row({in}, {out}, {1}, {"sum"}, {same, same}, {}), COMPUTE_ERROR_UNSUPPORTED);
}

class CpuPluginThreads : public CpuPlugin {
 protected:
  void SetUp() override {
    threads_setting = "1";
    CpuPlugin::SetUp();
  }
  void TearDown() override {
    CpuPlugin::TearDown();
    threads_setting = nullptr;
  }
};

INSTANTIATE_TEST_SUITE_P(Streams, CpuPluginThreads, testing::Values(COMPUTE_PLUGIN_STREAM_IMMEDIATE, 0),
                         [](const auto& info) { return info.param != 0 ? "immediate" : "queued"; });

// Devices of several numbers of threads, one after the other.
class CpuPluginBits : public CpuPlugin {
 protected:
  void SetUp() override {}
  void TearDown() override {}

  // Sums of float32 along an axis of [rows, columns], as often as there are numbers of threads.
  std::vector<std::vector<float>> running_sums(const std::vector<float>& x, int64_t rows, int64_t columns, int64_t axis,
                                               int64_t exclusive) {
    std::vector<std::vector<float>> results;
    for (const char* threads : {"1", "2", "16"}) {
      threads_setting = threads;
      CpuPlugin::SetUp();
      std::vector<float>& y = results.emplace_back(x.size());
      const int64_t reverse = 0;
      const compute_string kind = {"sum", 3};
      const int32_t accumulator = COMPUTE_DTYPE_FLOAT32;
      EXPECT_EQ(run("scan", {{COMPUTE_DTYPE_FLOAT32, {rows, columns}, x.data()}},
                    {COMPUTE_DTYPE_FLOAT32, {rows, columns}, y.data()},
                    {attribute("axis", COMPUTE_KIND_INT64, &axis), attribute("kind", COMPUTE_KIND_STRING, &kind),
                     attribute("exclusive", COMPUTE_KIND_INT64, &exclusive),
                     attribute("reverse", COMPUTE_KIND_INT64, &reverse),
                     attribute("accumulator", COMPUTE_KIND_DTYPE, &accumulator)}),
                COMPUTE_OK);
      EXPECT_EQ(finish(), COMPUTE_OK);
      CpuPlugin::TearDown();
    }
    threads_setting = nullptr;
    return results;
  }
};

INSTANTIATE_TEST_SUITE_P(Streams, CpuPluginBits, testing::Values(COMPUTE_PLUGIN_STREAM_IMMEDIATE, 0),
                         [](const auto& info) { return info.param != 0 ? "immediate" : "queued"; });

// Numbers so different that each order of their sums is another number.
TEST_P(CpuPluginBits, RunningSumsAreTheSameForEveryNumberOfThreads) {
  struct Example {
    int64_t rows, columns, axis;
  };
  for (const Example& e : {Example{1, 300000, 1}, {3, 100000, 1}, {5000, 64, 0}, {700, 300, 0}, {40, 70000, 1}}) {
    std::vector<float> x(static_cast<size_t>(e.rows * e.columns));
    uint32_t state = 1;
    for (float& value : x) {
      state = state * 1664525 + 1013904223;
      value = std::ldexp(static_cast<float>(static_cast<int32_t>(state)), static_cast<int>(state >> 8) % 60 - 30);
    }
    for (const int64_t exclusive : {0, 1}) {
      SCOPED_TRACE(std::to_string(e.rows) + " rows, " + std::to_string(e.columns) + " columns, axis " +
                   std::to_string(e.axis) + ", exclusive " + std::to_string(exclusive));
      const std::vector<std::vector<float>> sums = running_sums(x, e.rows, e.columns, e.axis, exclusive);
      EXPECT_EQ(std::memcmp(sums[0].data(), sums[1].data(), x.size() * sizeof(float)), 0);
      EXPECT_EQ(std::memcmp(sums[0].data(), sums[2].data(), x.size() * sizeof(float)), 0);
    }
  }
}

// An OpenMP team would spin and starve all other threads.
TEST_P(CpuPluginThreads, AProductStartsNoThread) {
  const int64_t n = 600;
  std::vector<float> a(static_cast<size_t>(n * n), 1), b = a, c = a;
  std::vector<double> d(a.begin(), a.end()), e = d, f = d;
  const int64_t before = task_count();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run("contraction", {{COMPUTE_DTYPE_FLOAT32, {n, n}, a.data()}, {COMPUTE_DTYPE_FLOAT32, {n, n}, b.data()}},
                  {COMPUTE_DTYPE_FLOAT32, {n, n}, c.data()}),
              COMPUTE_OK);
    EXPECT_EQ(run("contraction", {{COMPUTE_DTYPE_FLOAT64, {n, n}, d.data()}, {COMPUTE_DTYPE_FLOAT64, {n, n}, e.data()}},
                  {COMPUTE_DTYPE_FLOAT64, {n, n}, f.data()}),
              COMPUTE_OK);
  }
  EXPECT_EQ(finish(), COMPUTE_OK);
  EXPECT_LE(task_count(), before);  // a thread of an earlier test may have ended
  EXPECT_EQ(c, std::vector<float>(c.size(), static_cast<float>(n)));
  EXPECT_EQ(f, std::vector<double>(f.size(), static_cast<double>(n)));
}

}  // namespace
