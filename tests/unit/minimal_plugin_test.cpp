// SPDX-License-Identifier: Apache-2.0
// Drives the minimal plugin through its table, with its own core table, without core.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <compute/plugin.h>

struct compute_error {
  compute_error_code code;
  std::string message;
};

namespace {

// ---- The core -------------------------------------------------------------------------------------------------------

std::atomic<bool> no_pinned_heap = false, has_graphs = false;

compute_error* error_new(const compute_plugin_error_info* info) {
  return new compute_error{info->code, std::string(info->message.data, info->message.size)};
}
void error_free(compute_error* error) { delete error; }
compute_error_code error_code(const compute_error* error) { return error->code; }
void log_line(int32_t, const char*, int64_t, const char*, int64_t) {}
int64_t setting(const char* name, int64_t name_size, char* buffer, int64_t capacity) {
  const std::string_view key(name, static_cast<size_t>(name_size));
  std::string value;
  if (key == "COMPUTE_MINIMAL_MEMORY") value = "16777216";
  if (key == "COMPUTE_MINIMAL_NO_PINNED" && no_pinned_heap) value = "1";
  if (key == "COMPUTE_MINIMAL_GRAPHS" && has_graphs) value = "1";
  if (value.empty()) return -1;
  value.copy(buffer, capacity);
  return static_cast<int64_t>(value.size());
}

int32_t blob_load(const void*, int64_t, compute_plugin_take_blob, void*) { return 0; }
void blob_store(const void*, int64_t, const void*, int64_t) {}

const compute_plugin_core kCore = {
    sizeof kCore, COMPUTE_PLUGIN_INTERFACE, 0, error_new, error_free, error_code, log_line, setting, blob_load,
    blob_store};

// The code of an error, which is freed; OK for none.
compute_error_code code_of(compute_error* error) {
  const compute_error_code code = error ? error->code : COMPUTE_OK;
  delete error;
  return code;
}
#define EXPECT_OK(call) EXPECT_EQ(code_of(call), COMPUTE_OK)
#define ASSERT_OK(call) ASSERT_EQ(code_of(call), COMPUTE_OK)

struct Library {
  Library() : handle(dlopen(COMPUTE_MINIMAL_PLUGIN, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle, nullptr) << dlerror();
    query = reinterpret_cast<compute_plugin_query_function>(dlsym(handle, "compute_plugin_query"));
    open = reinterpret_cast<compute_plugin_open_function>(dlsym(handle, "compute_plugin_open"));
    EXPECT_OK(open(COMPUTE_PLUGIN_INTERFACE, &kCore, &table));
  }
  ~Library() { dlclose(handle); }

  void* handle;
  compute_plugin_query_function query;
  compute_plugin_open_function open;
  const compute_plugin_table* table = nullptr;
};

// ---- Ops ------------------------------------------------------------------------------------------------------------

template <class T>
struct DtypeOf;
#define DTYPE_OF(type, name) \
  template <>                \
  struct DtypeOf<type> : std::integral_constant<int32_t, COMPUTE_DTYPE_##name> {};
DTYPE_OF(bool, BOOL)
DTYPE_OF(int8_t, INT8)
DTYPE_OF(int32_t, INT32)
DTYPE_OF(int64_t, INT64)
DTYPE_OF(uint8_t, UINT8)
DTYPE_OF(uint64_t, UINT64)
DTYPE_OF(float, FLOAT32)
DTYPE_OF(double, FLOAT64)
DTYPE_OF(std::complex<float>, COMPLEX64)
DTYPE_OF(std::complex<double>, COMPLEX128)

// An expression under construction: node numbers are returned.
class Expression {
 public:
  int32_t input(int32_t dtype, int32_t index) { return leaf(COMPUTE_PLUGIN_NODE_INPUT, dtype, index); }
  int32_t scalar(int32_t dtype, int32_t index) { return leaf(COMPUTE_PLUGIN_NODE_SCALAR, dtype, index); }
  int32_t index(int32_t axis) { return leaf(COMPUTE_PLUGIN_NODE_INDEX, COMPUTE_DTYPE_INT64, axis); }
  template <class T>
  int32_t constant(T value) {
    const int32_t node = leaf(COMPUTE_PLUGIN_NODE_CONSTANT, DtypeOf<T>::value, 0);
    std::memcpy(nodes_[node].bits, &value, sizeof value);
    return node;
  }
  int32_t call(int32_t intrinsic, int32_t dtype, std::initializer_list<int32_t> operands) {
    const int32_t node = leaf(COMPUTE_PLUGIN_NODE_CALL, dtype, intrinsic);
    nodes_[node].operand_count = static_cast<int32_t>(operands.size());
    nodes_[node].first_operand = static_cast<int64_t>(operands_.size());
    operands_.insert(operands_.end(), operands);
    return node;
  }
  Expression& output(int32_t node) {
    outputs_.push_back(node);
    return *this;
  }
  const compute_plugin_expression* get() {
    expression_ = {sizeof expression_,
                   COMPUTE_PLUGIN_STRUCT_EXPRESSION,
                   nullptr,
                   {},
                   static_cast<int32_t>(nodes_.size()),
                   inputs_,
                   scalars_,
                   static_cast<int32_t>(outputs_.size()),
                   nodes_.data(),
                   operands_.data(),
                   static_cast<int64_t>(operands_.size()),
                   outputs_.data()};
    return &expression_;
  }

 private:
  int32_t leaf(int32_t kind, int32_t dtype, int32_t value) {
    if (kind == COMPUTE_PLUGIN_NODE_INPUT) inputs_ = std::max(inputs_, value + 1);
    if (kind == COMPUTE_PLUGIN_NODE_SCALAR) scalars_ = std::max(scalars_, value + 1);
    nodes_.push_back({kind, dtype, value, 0, 0, {}});
    return static_cast<int32_t>(nodes_.size()) - 1;
  }

  std::vector<compute_plugin_node> nodes_;
  std::vector<int32_t> operands_, outputs_;
  int32_t inputs_ = 0, scalars_ = 0;
  compute_plugin_expression expression_;
};

Expression identity(int32_t dtype) {
  Expression expression;
  expression.output(expression.input(dtype, 0));
  return expression;
}

// A tensor of a test: its layout in elements and a buffer. The buffer's contents start `offset` elements before element
// 0.
struct Operand {
  int32_t dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  uint64_t buffer;
  int64_t offset_bytes = 0;
};

std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

struct Op {
  std::string name;
  std::vector<Operand> inputs = {}, outputs = {};
  std::vector<const compute_plugin_expression*> expressions = {};
  std::vector<int64_t> axes = {};
  int64_t axis = -1;
  std::string kind = {}, reduction = {};
  int32_t accumulator = 0;
  std::vector<compute_plugin_scalar> scalars = {};
};

// ---- The device -----------------------------------------------------------------------------------------------------

class MinimalPlugin : public testing::Test {
 protected:
  void SetUp() override {
    compute_plugin_device_options options = {
        sizeof options, COMPUTE_PLUGIN_STRUCT_DEVICE_OPTIONS, nullptr, nullptr, 0, 0};
    ASSERT_OK(library_.table->device_open(0, &options, &device_, &table_));
    stream_ = make_stream();
  }
  void TearDown() override {
    table_->stream_destroy(stream_);
    table_->close(device_);
    no_pinned_heap = false;
  }

  uint64_t make_stream() {
    compute_plugin_stream_options options = {sizeof options, COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS, nullptr, 0, 0};
    uint64_t stream = 0;
    EXPECT_OK(table_->stream_create(device_, &options, &stream));
    return stream;
  }
  uint64_t allocate(int64_t size_bytes, int32_t heap = 0) {
    uint64_t buffer = 0;
    EXPECT_OK(try_allocate(size_bytes, &buffer, heap));
    return buffer;
  }
  compute_error* try_allocate(int64_t size_bytes, uint64_t* out_buffer, int32_t heap = 0) {
    const compute_plugin_allocation request = {sizeof request, COMPUTE_PLUGIN_STRUCT_ALLOCATION, nullptr, heap, 0,
                                               size_bytes};
    return table_->memory_allocate(device_, &request, out_buffer, &data_);
  }
  const compute_plugin_operand* at(uint64_t buffer, int64_t offset_bytes) {
    place_ = {buffer, offset_bytes};
    return &place_;
  }
  // Waits for everything on the stream.
  compute_error_code finish(uint64_t stream) {
    uint64_t reached = 0;
    EXPECT_OK(table_->stream_mark(stream, ++number_, 0));
    const compute_error_code code = code_of(table_->stream_sync(stream, number_, INT64_MAX, &reached));
    if (code == COMPUTE_OK) {
      EXPECT_EQ(reached, number_);
    }
    return code;
  }
  template <class T>
  Operand upload(const std::vector<T>& values, std::vector<int64_t> shape = {}, int32_t dtype = DtypeOf<T>::value) {
    if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
    Operand operand = {dtype, shape, row_major(shape), allocate(values.size() * sizeof(T))};
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      const T value = values[i];
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    EXPECT_OK(table_->copy_from_host(stream_, bytes.data(), nullptr, at(operand.buffer, 0), bytes.size(), 0));
    EXPECT_EQ(finish(stream_), COMPUTE_OK);
    return operand;
  }
  Operand empty(int32_t dtype, std::vector<int64_t> shape, int64_t element_bytes) {
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    return {dtype, shape, row_major(shape), allocate(count * element_bytes)};
  }
  template <class T>
  Operand empty(std::vector<int64_t> shape) {
    return empty(DtypeOf<T>::value, shape, sizeof(T));
  }
  template <class T>
  std::vector<T> download(const Operand& operand) {
    const int64_t count = std::accumulate(operand.shape.begin(), operand.shape.end(), int64_t{1}, std::multiplies<>());
    std::unique_ptr<T[]> values(new T[count]);
    EXPECT_OK(table_->copy_to_host(stream_, at(operand.buffer, 0), values.get(), nullptr, count * sizeof(T), 0));
    EXPECT_EQ(finish(stream_), COMPUTE_OK);
    return std::vector<T>(values.get(), values.get() + count);
  }

  // Calls `use` with the op as the plugin gets it.
  template <class F>
  void with_op(const Op& op, F use) {
    std::vector<compute_plugin_tensor> tensors;
    auto add = [&](const Operand& operand, int32_t access) {
      const int64_t place = operand.offset_bytes | 64;
      tensors.push_back({sizeof(compute_plugin_tensor), COMPUTE_PLUGIN_STRUCT_TENSOR, nullptr, operand.dtype,
                         static_cast<int32_t>(operand.shape.size()), operand.shape.data(), operand.strides.data(),
                         access, static_cast<int32_t>(place & -place), COMPUTE_PLUGIN_LAYOUT_STRIDED, 0});
    };
    for (const Operand& input : op.inputs) add(input, COMPUTE_PLUGIN_TENSOR_INPUT);
    for (const Operand& output : op.outputs) add(output, COMPUTE_PLUGIN_TENSOR_OUTPUT);
    std::vector<compute_attribute> attributes;
    auto attribute = [&](const char* name, int32_t kind, int64_t count, const void* values) {
      attributes.push_back({sizeof(compute_attribute), 0, nullptr, name, static_cast<int64_t>(std::strlen(name)), kind,
                            0, count, values});
    };
    const compute_string kind = {op.kind.data(), static_cast<int64_t>(op.kind.size())};
    const compute_string reduction = {op.reduction.data(), static_cast<int64_t>(op.reduction.size())};
    if (!op.axes.empty()) attribute("axes", COMPUTE_KIND_INT64, op.axes.size(), op.axes.data());
    if (op.axis >= 0) attribute("axis", COMPUTE_KIND_INT64, 1, &op.axis);
    if (!op.kind.empty()) attribute("kind", COMPUTE_KIND_STRING, 1, &kind);
    if (!op.reduction.empty()) attribute("reduction", COMPUTE_KIND_STRING, 1, &reduction);
    if (op.accumulator != 0) attribute("accumulator", COMPUTE_KIND_DTYPE, 1, &op.accumulator);
    compute_plugin_op described = {};
    described.struct_size = sizeof described;
    described.struct_type = COMPUTE_PLUGIN_STRUCT_OP;
    described.name = {op.name.data(), static_cast<int64_t>(op.name.size())};
    described.version = 1;
    described.input_count = static_cast<int32_t>(op.inputs.size());
    described.output_count = static_cast<int32_t>(op.outputs.size());
    described.tensors = tensors.data();
    described.attributes = attributes.data();
    described.attribute_count = static_cast<int32_t>(attributes.size());
    described.expressions = op.expressions.data();
    described.expression_count = static_cast<int32_t>(op.expressions.size());
    described.scalar_count = static_cast<int32_t>(op.scalars.size());
    use(described);
  }

  // A compute_plugin_refuse that keeps the reason.
  static void keep_reason(void* context, const compute_plugin_refusal* refused) {
    *static_cast<int32_t*>(context) = refused->reason;
  }

  // The reason of the refusal, which op_query and op_prepare give alike; 0 if the op is taken.
  int32_t refusal(const Op& op) {
    compute_plugin_query_info info = {sizeof info, COMPUTE_PLUGIN_STRUCT_QUERY_INFO, nullptr, -1, 0, 0};
    compute_plugin_plan_info plan_info = {sizeof plan_info, COMPUTE_PLUGIN_STRUCT_PLAN_INFO, nullptr, 0, 0, 0, 0, 0};
    int32_t reason = 0, of_prepare = 0;
    uint64_t plan = 0;
    with_op(op, [&](const compute_plugin_op& described) {
      EXPECT_OK(table_->op_query(device_, &described, &info, keep_reason, &reason));
      EXPECT_OK(table_->op_prepare(device_, &described, &plan, &plan_info, keep_reason, &of_prepare));
    });
    EXPECT_EQ(info.supported, reason == 0);
    EXPECT_EQ(of_prepare, reason);
    EXPECT_EQ(plan != 0, reason == 0);
    if (plan != 0) table_->plan_release(device_, plan);
    return reason;
  }

  template <class Table>
  const Table* extension(const char* name) {
    return static_cast<const Table*>(
        library_.table->get_extension(device_, name, static_cast<int64_t>(std::strlen(name))));
  }

  // A plan of x + x, and its run on two buffers.
  struct Doubling {
    Expression expression;
    Op op;
    uint64_t plan = 0;
    std::vector<compute_plugin_operand> tensors;
    compute_plugin_run run{};
  };
  std::unique_ptr<Doubling> doubling(const Operand& x, const Operand& y) {
    auto made = std::make_unique<Doubling>();
    const int32_t input = made->expression.input(COMPUTE_DTYPE_FLOAT32, 0);
    made->expression.output(made->expression.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_FLOAT32, {input, input}));
    made->op = {.name = "map", .inputs = {x}, .outputs = {y}, .expressions = {made->expression.get()}};
    with_op(made->op, [&](const compute_plugin_op& described) {
      compute_plugin_plan_info info = {sizeof info, COMPUTE_PLUGIN_STRUCT_PLAN_INFO, nullptr, 0, 0, 0, 0, 0};
      int32_t reason = 0;
      EXPECT_OK(table_->op_prepare(device_, &described, &made->plan, &info, keep_reason, &reason));
    });
    made->tensors = {{x.buffer, 0}, {y.buffer, 0}};
    made->run.struct_size = sizeof made->run;
    made->run.struct_type = COMPUTE_PLUGIN_STRUCT_RUN;
    made->run.stream = stream_;
    made->run.tensors = made->tensors.data();
    made->run.tensor_count = 2;
    return made;
  }

  void run_on(uint64_t stream, const Op& op, compute_plugin_operand fault = {}) {
    uint64_t plan = 0;
    compute_plugin_plan_info info = {sizeof info, COMPUTE_PLUGIN_STRUCT_PLAN_INFO, nullptr, 0, 0, 0, 0, 0};
    with_op(op, [&](const compute_plugin_op& described) {
      int32_t reason = 0;
      EXPECT_OK(table_->op_prepare(device_, &described, &plan, &info, keep_reason, &reason));
      EXPECT_EQ(reason, 0);
    });
    ASSERT_NE(plan, 0u);
    EXPECT_EQ(info.workspace_bytes, 0);
    std::vector<compute_plugin_operand> tensors;
    for (const Operand& input : op.inputs) tensors.push_back({input.buffer, input.offset_bytes});
    for (const Operand& output : op.outputs) tensors.push_back({output.buffer, output.offset_bytes});
    const compute_plugin_run run = {sizeof run,
                                    COMPUTE_PLUGIN_STRUCT_RUN,
                                    nullptr,
                                    stream,
                                    tensors.data(),
                                    op.scalars.data(),
                                    {},
                                    fault,
                                    static_cast<int32_t>(tensors.size()),
                                    static_cast<int32_t>(op.scalars.size()),
                                    0,
                                    0,
                                    0,
                                    {}};
    EXPECT_OK(table_->plan_run(plan, &run));
    table_->plan_release(device_, plan);  // immediately: the queued run keeps it
  }
  void run(const Op& op) {
    run_on(stream_, op);
    EXPECT_EQ(finish(stream_), COMPUTE_OK);
  }

  // intrinsic(values...) elementwise.
  template <class R, class T>
  std::vector<R> apply(int32_t intrinsic, const std::vector<std::vector<T>>& operands) {
    Expression expression;
    Op op = {.name = "map"};
    std::vector<int32_t> nodes;
    for (const auto& values : operands) {
      nodes.push_back(expression.input(DtypeOf<T>::value, static_cast<int32_t>(nodes.size())));
      op.inputs.push_back(upload(values));
    }
    int32_t result = 0;
    if (nodes.size() == 1) result = expression.call(intrinsic, DtypeOf<R>::value, {nodes[0]});
    if (nodes.size() == 2) result = expression.call(intrinsic, DtypeOf<R>::value, {nodes[0], nodes[1]});
    expression.output(result);
    op.expressions = {expression.get()};
    op.outputs = {empty<R>({static_cast<int64_t>(operands[0].size())})};
    run(op);
    return download<R>(op.outputs[0]);
  }

  Library library_;
  uint64_t device_ = 0, stream_ = 0, number_ = 0;
  compute_plugin_operand place_ = {};
  static inline thread_local void* data_ = nullptr;  // of the last allocation
  const compute_plugin_device_table* table_ = nullptr;
};

// ---- The plugin and its devices -------------------------------------------------------------------------------------

TEST_F(MinimalPlugin, ManifestSaysWhoItIs) {
  const compute_plugin_manifest* manifest = library_.query();
  EXPECT_EQ(std::string_view(manifest->name.data, manifest->name.size), "minimal");
  EXPECT_EQ(manifest->interface_max, COMPUTE_PLUGIN_INTERFACE);
  EXPECT_EQ(manifest->draft, COMPUTE_PLUGIN_DRAFT);
  EXPECT_GT(manifest->build_id.size, 0);
}

TEST_F(MinimalPlugin, EnumeratesTwoDevices) {
  std::vector<uint64_t> ids;
  const compute_plugin_sink sink = {sizeof sink, &ids,
                                    [](void* context, const compute_plugin_device_info* info) {
                                      static_cast<std::vector<uint64_t>*>(context)->push_back(info->id);
                                      EXPECT_EQ(info->pci_address.size, 0);
                                      EXPECT_EQ(info->memory_bytes, 16777216);
                                    },
                                    [](void*, const compute_plugin_requirement*) { FAIL(); }};
  ASSERT_OK(library_.table->enumerate(&sink));
  EXPECT_EQ(ids, (std::vector<uint64_t>{0, 1}));
}

TEST_F(MinimalPlugin, LeavesOptionalSlotsEmpty) {
  EXPECT_EQ(table_->memory_info, nullptr);
  EXPECT_EQ(table_->memory_import, nullptr);
  EXPECT_EQ(table_->copy_peer, nullptr);
  EXPECT_EQ(table_->kernels, nullptr);
  EXPECT_EQ(extension<compute_plugin_graph_table>(COMPUTE_PLUGIN_EXT_GRAPH_V1), nullptr);
  EXPECT_EQ(extension<compute_plugin_native_table>(COMPUTE_PLUGIN_EXT_NATIVE_V1), nullptr);
}

// The library itself stays: plugins are linked so that dlclose leaves them.
TEST(MinimalPluginLibrary, ClosesWithoutTrace) {
  auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  std::ptrdiff_t after_first = 0;  // a sanitizer may have started its own thread by then
  for (int round = 0; round < 100; ++round) {
    Library library;
    uint64_t device = 0, stream = 0;
    const compute_plugin_device_table* table = nullptr;
    compute_plugin_device_options options = {
        sizeof options, COMPUTE_PLUGIN_STRUCT_DEVICE_OPTIONS, nullptr, nullptr, 0, 0};
    ASSERT_OK(library.table->device_open(1, &options, &device, &table));
    compute_plugin_stream_options stream_options = {sizeof stream_options, COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS,
                                                    nullptr, 0, 0};
    ASSERT_OK(table->stream_create(device, &stream_options, &stream));
    table->close(device);
    if (round == 0) after_first = threads();
  }
  // A thread that was joined stays in the list until it has got a processor once more.
  for (int looks = 0; looks < 6000 && threads() > after_first; ++looks)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(threads(), after_first);
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

compute_plugin_mapping mapping_of(int32_t heap, uint64_t buffer, int64_t size_bytes, int32_t access) {
  return {sizeof(compute_plugin_mapping),
          COMPUTE_PLUGIN_STRUCT_MAPPING,
          nullptr,
          buffer,
          0,
          size_bytes,
          heap,
          access,
          0,
          0};
}

TEST_F(MinimalPlugin, BuffersAreNoAddresses) {
  const uint64_t buffer = allocate(4096);
  EXPECT_LT(buffer, 4096u);
  EXPECT_EQ(data_, nullptr);
  void* data = &data;
  const compute_plugin_mapping mapping = mapping_of(0, buffer, 4096, COMPUTE_PLUGIN_ACCESS_READ);
  EXPECT_EQ(code_of(table_->memory_map(device_, &mapping, &data)), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(data, nullptr);
  table_->memory_free(device_, 0, buffer);
}

TEST_F(MinimalPlugin, RunsOutOfMemoryWithoutSticking) {
  uint64_t buffer = 1;
  EXPECT_EQ(code_of(try_allocate(16777217, &buffer)), COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(buffer, 0u);
  const uint64_t all = allocate(16777216);
  EXPECT_EQ(code_of(try_allocate(1, &buffer)), COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
  table_->memory_free(device_, 0, all);
  table_->memory_free(device_, 0, allocate(16777216));
}

TEST_F(MinimalPlugin, RefusesBytesOutsideOfABuffer) {
  const uint64_t buffer = allocate(64);
  char bytes[65] = {};
  EXPECT_OK(table_->copy_from_host(stream_, bytes, nullptr, at(buffer, 32), 32, 0));
  EXPECT_EQ(code_of(table_->copy_from_host(stream_, bytes, nullptr, at(buffer, 32), 33, 0)), COMPUTE_ERROR_INTERNAL);
  EXPECT_EQ(code_of(table_->copy_to_host(stream_, at(buffer, -1), bytes, nullptr, 2, 0)), COMPUTE_ERROR_INTERNAL);
  EXPECT_EQ(finish(stream_), COMPUTE_OK);
  table_->memory_free(device_, 0, buffer);
  EXPECT_EQ(code_of(table_->copy_from_host(stream_, bytes, nullptr, at(buffer, 0), 1, 0)), COMPUTE_ERROR_INTERNAL);
}

TEST_F(MinimalPlugin, HasAPinnedHeapUnlessToldOtherwise) {
  const compute_plugin_caps* caps = table_->caps(device_);
  ASSERT_EQ(caps->heap_count, 2);
  EXPECT_TRUE(caps->heaps[1].flags & COMPUTE_PLUGIN_HEAP_PINNED);
  const uint64_t buffer = allocate(64, 1);
  void* data = nullptr;
  const compute_plugin_mapping mapping = mapping_of(1, buffer, 64, COMPUTE_PLUGIN_ACCESS_WRITE);
  ASSERT_OK(table_->memory_map(device_, &mapping, &data));
  EXPECT_EQ(data, data_) << "the address that the allocation gave";
  std::memset(data, 7, 64);
  table_->memory_unmap(device_, &mapping, data);
  table_->memory_free(device_, 1, buffer);
}

TEST_F(MinimalPlugin, MeasuresItsMemory) {
  compute_plugin_telemetry value = {sizeof value, COMPUTE_PLUGIN_STRUCT_TELEMETRY, nullptr, -1, -1, -1, -1, -1};
  const uint64_t buffer = allocate(4096);
  std::vector<int64_t> processes;
  const auto take = [](void* context, const compute_plugin_process* process) {
    static_cast<std::vector<int64_t>*>(context)->assign({process->process_id, process->memory_bytes});
  };
  ASSERT_OK(table_->telemetry(device_, &value, take, &processes));
  EXPECT_EQ(processes, (std::vector<int64_t>{getpid(), 4096}));
  EXPECT_EQ(value.memory_process_bytes, 4096);
  EXPECT_EQ(value.temperature_millidegrees, -1);
  table_->memory_free(device_, 0, buffer);
}

// ---- Streams --------------------------------------------------------------------------------------------------------

TEST_F(MinimalPlugin, WaitsForTheHostAndCancels) {
  uint64_t wait = 0, reached = 0;
  ASSERT_OK(table_->stream_wait_host(stream_, &wait));
  EXPECT_OK(table_->stream_mark(stream_, 1, 0));
  EXPECT_OK(table_->stream_sync(stream_, 1, 20'000'000, &reached));
  EXPECT_EQ(reached, 0u);
  table_->signal_host_wait(device_, wait);
  EXPECT_OK(table_->stream_sync(stream_, 1, INT64_MAX, &reached));
  EXPECT_EQ(reached, 1u);
  ASSERT_OK(table_->stream_wait_host(stream_, &wait));
  EXPECT_OK(table_->stream_mark(stream_, 2, 0));
  EXPECT_OK(table_->stream_cancel(stream_));
  EXPECT_EQ(code_of(table_->stream_sync(stream_, 2, INT64_MAX, &reached)), COMPUTE_ERROR_CANCELLED);
  EXPECT_EQ(reached, 1u);
  table_->signal_host_wait(device_, wait);
}

TEST_F(MinimalPlugin, TimesMarksOnAClockOfItsOwn) {
  int64_t before = 0, after = 0, host = 0, wrap = 0, first = 0, second = 0;
  ASSERT_OK(table_->clock(device_, &before, &host, &wrap));
  EXPECT_EQ(wrap, int64_t{1} << 36);
  EXPECT_OK(table_->stream_mark(stream_, 1, COMPUTE_PLUGIN_MARK_TIMED));
  EXPECT_OK(table_->stream_mark(stream_, 2, 0));
  EXPECT_OK(table_->stream_mark(stream_, 3, COMPUTE_PLUGIN_MARK_TIMED));
  uint64_t reached = 0;
  EXPECT_OK(table_->stream_sync(stream_, 3, INT64_MAX, &reached));
  ASSERT_OK(table_->clock(device_, &after, &host, &wrap));
  EXPECT_NE(after, host);
  EXPECT_OK(table_->mark_time(stream_, 3, &second));
  EXPECT_OK(table_->mark_time(stream_, 1, &first));
  EXPECT_LE(before, first);
  EXPECT_LE(first, second);
  EXPECT_LE(second, after);
  EXPECT_EQ(code_of(table_->mark_time(stream_, 2, &first)), COMPUTE_ERROR_INVALID_ARGUMENT) << "it was not timed";
  EXPECT_EQ(code_of(table_->mark_time(stream_, 3, &first)), COMPUTE_ERROR_INVALID_ARGUMENT) << "it is forgotten";
  const uint64_t other = make_stream();
  EXPECT_OK(table_->stream_wait(stream_, other, 1, 0));
  EXPECT_OK(table_->stream_mark(stream_, 4, COMPUTE_PLUGIN_MARK_TIMED));
  EXPECT_OK(table_->mark_time(stream_, 4, nullptr)) << "not reached yet, and not wanted any more";
  EXPECT_OK(table_->stream_mark(other, 1, 0));
  EXPECT_OK(table_->stream_sync(stream_, 4, INT64_MAX, &reached));
  EXPECT_EQ(code_of(table_->mark_time(stream_, 4, &first)), COMPUTE_ERROR_INVALID_ARGUMENT);
  table_->stream_destroy(other);
  number_ = 4;
}

TEST_F(MinimalPlugin, StreamsHaveThePrioritiesOfItsCaps) {
  const compute_plugin_caps& caps = *table_->caps(device_);
  EXPECT_LT(caps.priority_least, 0);
  EXPECT_GT(caps.priority_greatest, 0);
  compute_plugin_stream_options options = {sizeof options, COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS, nullptr, 0, 0};
  uint64_t stream = 0;
  for (const int32_t priority : {caps.priority_least, caps.priority_greatest}) {
    options.priority = priority;
    ASSERT_OK(table_->stream_create(device_, &options, &stream));
    table_->stream_destroy(stream);
  }
  options.priority = caps.priority_greatest + 1;
  EXPECT_EQ(code_of(table_->stream_create(device_, &options, &stream)), COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST_F(MinimalPlugin, RunsGraphs) {
  has_graphs = true;
  const auto* graphs = extension<compute_plugin_graph_table>(COMPUTE_PLUGIN_EXT_GRAPH_V1);
  has_graphs = false;
  ASSERT_NE(graphs, nullptr);
  const Operand x = upload(std::vector<float>(4, 3.0f)), inner = empty<float>({4}), y = empty<float>({4});
  const std::unique_ptr<Doubling> first = doubling(x, inner), second = doubling(inner, y);
  compute_plugin_graph_node nodes[2] = {};
  for (int i = 0; i < 2; ++i) {
    nodes[i].struct_size = sizeof nodes[i];
    nodes[i].struct_type = COMPUTE_PLUGIN_STRUCT_GRAPH_NODE;
    nodes[i].kind = COMPUTE_PLUGIN_GRAPH_NODE_RUN;
    nodes[i].plan = (i == 0 ? first : second)->plan;
    nodes[i].run = &(i == 0 ? first : second)->run;
  }
  compute_plugin_graph described = {sizeof described, COMPUTE_PLUGIN_STRUCT_GRAPH, nullptr, 0, 0, nodes, 2};
  uint64_t graph = 0;
  ASSERT_OK(graphs->create(device_, &described, &graph));
  const compute_plugin_graph_run run = {sizeof run, COMPUTE_PLUGIN_STRUCT_GRAPH_RUN, nullptr, stream_, nullptr, 0, 0};
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(graphs->run(graph, &run));
    EXPECT_EQ(download<float>(y), std::vector<float>(4, 12.0f));
  }
  graphs->release(device_, graph);
  table_->plan_release(device_, first->plan);
  table_->plan_release(device_, second->plan);
}

TEST_F(MinimalPlugin, FillsInOrder) {
  const uint64_t buffer = allocate(64);
  const uint32_t pattern = 0x01020304;
  uint32_t words[16] = {};
  EXPECT_OK(table_->fill(stream_, at(buffer, 0), 64, &pattern, 4, 0));
  EXPECT_OK(table_->fill(stream_, at(buffer, 16), 16, "\x09", 1, 0));
  EXPECT_OK(table_->copy_to_host(stream_, at(buffer, 0), words, nullptr, 64, 0));
  EXPECT_EQ(finish(stream_), COMPUTE_OK);
  EXPECT_EQ(words[3], pattern);
  EXPECT_EQ(words[4], 0x09090909u);
  EXPECT_EQ(words[8], pattern);
}

TEST_F(MinimalPlugin, MarksAreReachedAndWaitsTimeOut) {
  uint64_t reached = 7;
  EXPECT_OK(table_->stream_reached(stream_, &reached));
  EXPECT_EQ(reached, 0u);
  const uint64_t other = make_stream();
  EXPECT_OK(table_->stream_wait(stream_, other, 5, 0));
  EXPECT_OK(table_->stream_mark(stream_, 3, 0));
  EXPECT_OK(table_->stream_sync(stream_, 3, 20'000'000, &reached));
  EXPECT_EQ(reached, 0u);  // the time limit has passed, which is not an error
  EXPECT_OK(table_->stream_mark(other, 5, 0));
  table_->stream_destroy(other);  // queued work still runs
  EXPECT_OK(table_->stream_sync(stream_, 3, INT64_MAX, &reached));
  EXPECT_EQ(reached, 3u);
  number_ = 3;
}

TEST_F(MinimalPlugin, DestroyedStreamsFinishTheirWork) {
  const Operand data = upload(std::vector<float>(1000, 1.0f));
  Expression expression;
  const int32_t x = expression.input(COMPUTE_DTYPE_FLOAT32, 0);
  expression.output(expression.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_FLOAT32, {x, x}));
  const Op twice = {.name = "map", .inputs = {data}, .outputs = {data}, .expressions = {expression.get()}};
  uint64_t before = stream_, number = number_;
  for (int round = 0; round < 20; ++round) {
    const uint64_t stream = make_stream();
    EXPECT_OK(table_->stream_wait(stream, before, number, 0));
    run_on(stream, twice);
    EXPECT_OK(table_->stream_mark(stream, number = 1, 0));
    if (before != stream_) table_->stream_destroy(before);
    before = stream;
  }
  EXPECT_OK(table_->stream_wait(stream_, before, 1, 0));
  table_->stream_destroy(before);
  EXPECT_EQ(download<float>(data), std::vector<float>(1000, 0x1p20f));
}

// ---- Expressions ----------------------------------------------------------------------------------------------------

TEST_F(MinimalPlugin, TakesEveryIntrinsicOfItsClass) {
  enum { BOOL = 1, SIGNED = 2, UNSIGNED = 4, FLOAT = 8, COMPLEX = 16 };
  enum { ANY = 31, INTEGER = 6, BITS = 7, REAL = 14, INEXACT = 24, NUMERIC = 30 };
  struct Dtype {
    int32_t id;
    const char* name;
    int32_t category;
  };
  const Dtype dtypes[] = {
#define COMPUTE_DTYPE(id, name, NAME, size, category, ...) {id, #name, category},
#include <compute/dtypes.def>
#undef COMPUTE_DTYPE
  };
  struct Intrinsic {
    int32_t id;
    const char* name;
    int32_t arity, operands;
    std::string_view result;
  };
  const Intrinsic intrinsics[] = {
#define COMPUTE_INTRINSIC(id, name, arity, operands, result, ...) {id, #name, arity, operands, #result},
#include <compute/intrinsics.def>
#undef COMPUTE_INTRINSIC
  };
  for (const Intrinsic& intrinsic : intrinsics) {
    for (const Dtype& dtype : dtypes) {
      const bool is_half = dtype.id == COMPUTE_DTYPE_FLOAT16 || dtype.id == COMPUTE_DTYPE_BFLOAT16;
      if (!(intrinsic.operands & dtype.category) || (is_half && intrinsic.id > COMPUTE_PLUGIN_INTRINSIC_WHERE))
        continue;
      int32_t result = dtype.id;
      if (intrinsic.result == "BOOL") result = COMPUTE_DTYPE_BOOL;
      if (intrinsic.result == "PART" && dtype.category == COMPLEX) result -= 2;
      if (intrinsic.result == "PAIR") result += 2;
      Expression expression;
      const bool is_where = intrinsic.id == COMPUTE_PLUGIN_INTRINSIC_WHERE;
      const int32_t x = expression.input(is_where ? COMPUTE_DTYPE_BOOL : dtype.id, 0);
      const int32_t y = expression.input(dtype.id, 1), z = expression.input(dtype.id, 2);
      int32_t call = 0;
      if (intrinsic.arity == 1) call = expression.call(intrinsic.id, result, {x});
      if (intrinsic.arity == 2) call = expression.call(intrinsic.id, result, {x, y});
      if (intrinsic.arity == 3) call = expression.call(intrinsic.id, result, {x, y, z});
      expression.output(call);
      const Operand operand = {dtype.id, {1}, {1}, 1};
      EXPECT_EQ(refusal({.name = "map",
                         .inputs = {operand, operand, operand},
                         .outputs = {{result, {1}, {1}, 1}},
                         .expressions = {expression.get()}}),
                0)
          << intrinsic.name << " of " << dtype.name;
    }
  }
}

TEST_F(MinimalPlugin, RefusesWhatItDoesNotKnow) {
  const Operand operand = {COMPUTE_DTYPE_FLOAT32, {1}, {1}, 1};
  Expression newer;
  newer.output(newer.call(1000, COMPUTE_DTYPE_FLOAT32, {newer.input(COMPUTE_DTYPE_FLOAT32, 0)}));
  Expression complex_to_real;
  complex_to_real.output(complex_to_real.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, COMPUTE_DTYPE_FLOAT32,
                                              {complex_to_real.input(COMPUTE_DTYPE_COMPLEX64, 0)}));
  EXPECT_EQ(refusal({.name = "map", .inputs = {operand}, .outputs = {operand}, .expressions = {newer.get()}}),
            COMPUTE_PLUGIN_REFUSE_INTRINSIC);
  EXPECT_EQ(refusal({.name = "contraction", .inputs = {operand, operand}, .outputs = {operand}}),
            COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED);
  EXPECT_EQ(refusal({.name = "copy", .inputs = {{99, {1}, {1}, 1}}, .outputs = {operand}}),
            COMPUTE_PLUGIN_REFUSE_DTYPE);
  EXPECT_EQ(refusal({.name = "copy", .inputs = {{COMPUTE_DTYPE_COMPLEX64, {1}, {1}, 1}}, .outputs = {operand}}),
            COMPUTE_PLUGIN_REFUSE_DTYPE);
  EXPECT_NE(refusal({.name = "map", .inputs = {operand}, .outputs = {operand}, .expressions = {complex_to_real.get()}}),
            0);
}

TEST_F(MinimalPlugin, IntegersWrapAndNeverTrap) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  using Ints = std::vector<int32_t>;
  const std::vector<Ints> operands = {{7, -7, 7, -7, kLeast, 5, 3, -2}, {2, 2, -2, -2, -1, 0, 40, -1}};
  EXPECT_EQ(apply<int32_t>(COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV, operands), (Ints{3, -4, -4, 3, kLeast, 0, 0, 2}));
  EXPECT_EQ(apply<int32_t>(COMPUTE_PLUGIN_INTRINSIC_MOD, operands), (Ints{1, 1, -1, -1, 0, 0, 3, 0}));
  EXPECT_EQ(apply<int32_t>(COMPUTE_PLUGIN_INTRINSIC_SHL, operands), (Ints{28, -28, 0, 0, 0, 5, 0, 0}));
  EXPECT_EQ(apply<int32_t>(COMPUTE_PLUGIN_INTRINSIC_SHR, operands), (Ints{1, -2, 0, -1, -1, 5, 0, -1}));
  EXPECT_EQ(apply<int32_t>(COMPUTE_PLUGIN_INTRINSIC_MUL_HIGH, operands), (Ints{0, -1, -1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(apply<int32_t>(COMPUTE_PLUGIN_INTRINSIC_ABS, std::vector<Ints>{{kLeast, -3}}), (Ints{kLeast, 3}));
  EXPECT_EQ(apply<int32_t>(COMPUTE_PLUGIN_INTRINSIC_MUL, std::vector<Ints>{{kLeast, 1 << 16}, {-1, 1 << 16}}),
            (Ints{kLeast, 0}));
  EXPECT_EQ(apply<uint64_t>(COMPUTE_PLUGIN_INTRINSIC_MUL_HIGH, std::vector<std::vector<uint64_t>>{{~0ull}, {~0ull}}),
            (std::vector<uint64_t>{~0ull - 1}));
  EXPECT_EQ(apply<int8_t>(COMPUTE_PLUGIN_INTRINSIC_SHL, std::vector<std::vector<int8_t>>{{1, 1}, {7, 8}}),
            (std::vector<int8_t>{-128, 0}));
}

TEST_F(MinimalPlugin, PowersOfIntegers) {
  using Ints = std::vector<int32_t>;
  EXPECT_EQ(apply<int32_t>(COMPUTE_PLUGIN_INTRINSIC_POW,
                           std::vector<Ints>{{2, -3, 1, -1, -1, 0, 0, 2, 2}, {10, 3, -5, -5, -4, 0, -1, -1, 32}}),
            (Ints{1024, -27, 1, -1, 1, 1, 0, 0, 0}));
}

TEST_F(MinimalPlugin, FloatsFloorTheirQuotients) {
  const double inf = INFINITY;
  const std::vector<std::vector<double>> operands = {{7, -7, 1, -1, 1, -0.0, inf}, {2, 2, 0.1, inf, 0, 3, 2}};
  const auto quotients = apply<double>(COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV, operands);
  EXPECT_EQ(std::vector<double>(quotients.begin(), quotients.begin() + 6),
            (std::vector<double>{3, -4, 9, -0.0, inf, -0.0}));
  EXPECT_TRUE(std::signbit(quotients[3]));
  EXPECT_TRUE(std::signbit(quotients[5]));
  EXPECT_EQ(quotients[6], inf);
  const auto rests = apply<double>(COMPUTE_PLUGIN_INTRINSIC_MOD, operands);
  EXPECT_EQ(std::vector<double>(rests.begin(), rests.begin() + 4), (std::vector<double>{1, 1, std::fmod(1, 0.1), inf}));
  EXPECT_TRUE(std::isnan(rests[4]));
}

TEST_F(MinimalPlugin, NanWinsInMinAndMax) {
  const float nan = NAN;
  const auto least =
      apply<float>(COMPUTE_PLUGIN_INTRINSIC_MIN, std::vector<std::vector<float>>{{1, nan, 1}, {2, 1, nan}});
  EXPECT_EQ(least[0], 1);
  EXPECT_TRUE(std::isnan(least[1]) && std::isnan(least[2]));
}

TEST_F(MinimalPlugin, ConversionsTruncateAndSaturate) {
  const std::vector<std::vector<double>> operands = {{1.9, -1.9, 300, -300, NAN, 1e30, -INFINITY}};
  EXPECT_EQ(apply<int8_t>(COMPUTE_PLUGIN_INTRINSIC_CONVERT, operands),
            (std::vector<int8_t>{1, -1, 127, -128, 0, 127, -128}));
  EXPECT_EQ(apply<uint8_t>(COMPUTE_PLUGIN_INTRINSIC_CONVERT, operands),
            (std::vector<uint8_t>{1, 0, 255, 0, 0, 255, 0}));
  EXPECT_EQ(apply<bool>(COMPUTE_PLUGIN_INTRINSIC_CONVERT, std::vector<std::vector<double>>{{0, -0.0, 0.1, NAN}}),
            (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ(apply<float>(COMPUTE_PLUGIN_INTRINSIC_CONVERT,
                         std::vector<std::vector<int64_t>>{{(int64_t{1} << 62) + 1, 16777217}}),
            (std::vector<float>{0x1p62f, 16777216.0f}));
  EXPECT_EQ(apply<std::complex<float>>(COMPUTE_PLUGIN_INTRINSIC_CONVERT, std::vector<std::vector<int32_t>>{{3}}),
            (std::vector<std::complex<float>>{3}));
}

TEST_F(MinimalPlugin, HalvesSurviveTheWayThroughFloat) {
  for (const int32_t dtype : {COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16}) {
    std::vector<uint16_t> bits;
    const int infinity = dtype == COMPUTE_DTYPE_FLOAT16 ? 0x7C00 : 0x7F80;
    for (int pattern = 0; pattern < 65536; ++pattern) {
      if ((pattern & 0x7FFF) <= infinity) bits.push_back(static_cast<uint16_t>(pattern));
    }
    const auto count = static_cast<int64_t>(bits.size());
    const Operand half = upload(bits, {}, dtype), wide = empty<float>({count}), back = empty(dtype, {count}, 2);
    run({.name = "copy", .inputs = {half}, .outputs = {wide}});
    run({.name = "copy", .inputs = {wide}, .outputs = {back}});
    EXPECT_EQ(download<uint16_t>(back), bits);
  }
}

TEST_F(MinimalPlugin, HalvesRoundOnceToEven) {
  const double tie = 1 + 0x1p-11;
  const std::vector<double> values = {tie, tie + 0x1p-40, 65519.99, 65520, 0x1p-25, 0x1.8p-25, -1e300, 3 * 0x1p-24 / 2};
  const Operand input = upload(values), output = empty(COMPUTE_DTYPE_FLOAT16, {8}, 2);
  run({.name = "copy", .inputs = {input}, .outputs = {output}});
  EXPECT_EQ(download<uint16_t>(output),
            (std::vector<uint16_t>{0x3C00, 0x3C01, 0x7BFF, 0x7C00, 0x0000, 0x0001, 0xFC00, 0x0002}));
}

TEST_F(MinimalPlugin, ComplexFunctionsKeepAccuracyNearTheirZeros) {
  using C = std::complex<double>;
  const auto small =
      apply<C>(COMPUTE_PLUGIN_INTRINSIC_EXPM1, std::vector<std::vector<C>>{{{1e-20, 1e-20}, {0, 6.283185307179586}}});
  EXPECT_DOUBLE_EQ(small[0].real(), 1e-20);
  EXPECT_DOUBLE_EQ(small[0].imag(), 1e-20);
  EXPECT_DOUBLE_EQ(small[1].imag(), -2.4492935982947064e-16);
  const auto logs =
      apply<C>(COMPUTE_PLUGIN_INTRINSIC_LOG1P, std::vector<std::vector<C>>{{{1e-20, 1e-20}, {1e300, 1e300}}});
  EXPECT_DOUBLE_EQ(logs[0].real(), 1e-20);
  EXPECT_DOUBLE_EQ(logs[1].real(), std::log(1e300) + std::log(2.0) / 2);
  const auto quotient =
      apply<C>(COMPUTE_PLUGIN_INTRINSIC_DIV, std::vector<std::vector<C>>{{{1e300, 1e300}}, {{1e300, 1e300}}});
  EXPECT_EQ(quotient[0], C(1));
  const auto powers = apply<C>(COMPUTE_PLUGIN_INTRINSIC_POW, std::vector<std::vector<C>>{{0, {0, 1}}, {0, 2}});
  EXPECT_EQ(powers[0], C(1));
  EXPECT_NEAR(std::abs(powers[1] - C(-1)), 0, 1e-15);
}

TEST_F(MinimalPlugin, MapHasScalarsIndicesAndSeveralOutputs) {
  Expression expression;
  const int32_t x = expression.input(COMPUTE_DTYPE_FLOAT32, 0);
  const int32_t s = expression.scalar(COMPUTE_DTYPE_FLOAT32, 0);
  const int32_t column =
      expression.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, COMPUTE_DTYPE_FLOAT32, {expression.index(1)});
  expression.output(
      expression.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_FLOAT32,
                      {expression.call(COMPUTE_PLUGIN_INTRINSIC_MUL, COMPUTE_DTYPE_FLOAT32, {x, s}), column}));
  expression.output(expression.call(COMPUTE_PLUGIN_INTRINSIC_GT, COMPUTE_DTYPE_BOOL, {x, expression.constant(2.5f)}));
  compute_plugin_scalar ten = {};
  const float value = 10;
  std::memcpy(ten.bits, &value, sizeof value);
  Operand input = upload(std::vector<float>{1, 2, 3});
  input.shape = {2, 3};
  input.strides = {0, -1};  // [3, 2, 1] twice
  input.offset_bytes = 2 * sizeof(float);
  const Operand sum = empty<float>({2, 3}), greater = empty<bool>({2, 3});
  run({.name = "map",
       .inputs = {input},
       .outputs = {sum, greater},
       .expressions = {expression.get()},
       .scalars = {ten}});
  EXPECT_EQ(download<float>(sum), (std::vector<float>{30, 21, 12, 30, 21, 12}));
  EXPECT_EQ(download<bool>(greater), (std::vector<bool>{true, false, false, true, false, false}));
}

// ---- reduce ---------------------------------------------------------------------------------------------------------

TEST_F(MinimalPlugin, RefusesWhatANewerCoreAddsToAPrimitive) {
  const Operand input = upload(std::vector<float>{1, 2}), output = empty<float>({2});
  Expression body = identity(COMPUTE_DTYPE_FLOAT32), epilogue = identity(COMPUTE_DTYPE_FLOAT32);
  Op op = {.name = "map", .inputs = {input}, .outputs = {output}, .expressions = {body.get()}};
  EXPECT_EQ(refusal(op), 0);
  op.expressions.push_back(epilogue.get());
  EXPECT_EQ(refusal(op), COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED);
  op.expressions.pop_back();
  op.axis = 0;
  EXPECT_EQ(refusal(op), COMPUTE_PLUGIN_REFUSE_ATTRIBUTE);
}

TEST_F(MinimalPlugin, ReducesAnyAxes) {
  const Operand input = upload(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 3, 2});
  Expression before = identity(COMPUTE_DTYPE_INT32), after = identity(COMPUTE_DTYPE_INT32);
  auto reduce = [&](const char* kind, std::vector<int64_t> axes, std::vector<int64_t> shape) {
    const Operand output = empty<int32_t>(shape);
    run({.name = "reduce",
         .inputs = {input},
         .outputs = {output},
         .expressions = {before.get(), after.get()},
         .axes = axes,
         .kind = kind,
         .accumulator = COMPUTE_DTYPE_INT32});
    return download<int32_t>(output);
  };
  using Ints = std::vector<int32_t>;
  EXPECT_EQ(reduce("sum", {0, 1, 2}, {1, 1, 1}), (Ints{78}));
  EXPECT_EQ(reduce("sum", {0, 2}, {1, 3, 1}), (Ints{18, 26, 34}));
  EXPECT_EQ(reduce("max", {1}, {2, 1, 2}), (Ints{5, 6, 11, 12}));
  EXPECT_EQ(reduce("prod", {2}, {2, 3, 1}), (Ints{2, 12, 30, 56, 90, 132}));
  EXPECT_EQ(reduce("min", {}, {2, 3, 2}), (Ints{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

TEST_F(MinimalPlugin, ReducesAProductOfBroadcastInputs) {
  // matmul of [2, 3] and [3, 2] as core decomposes it; `after` doubles the result by its own scalar.
  Operand a = upload(std::vector<float>{1, 2, 3, 4, 5, 6}), b = upload(std::vector<float>{1, 2, 3, 4, 5, 6});
  a.shape = b.shape = {2, 2, 3};
  a.strides = {3, 0, 1};
  b.strides = {0, 1, 2};
  Expression before, after;
  before.output(
      before.call(COMPUTE_PLUGIN_INTRINSIC_MUL, COMPUTE_DTYPE_FLOAT32,
                  {before.call(COMPUTE_PLUGIN_INTRINSIC_MUL, COMPUTE_DTYPE_FLOAT32,
                               {before.input(COMPUTE_DTYPE_FLOAT32, 0), before.input(COMPUTE_DTYPE_FLOAT32, 1)}),
                   before.scalar(COMPUTE_DTYPE_FLOAT32, 0)}));
  after.output(after.call(COMPUTE_PLUGIN_INTRINSIC_MUL, COMPUTE_DTYPE_FLOAT32,
                          {after.input(COMPUTE_DTYPE_FLOAT32, 0), after.scalar(COMPUTE_DTYPE_FLOAT32, 0)}));
  compute_plugin_scalar scalars[2] = {};
  const float values[] = {1, 2};
  for (int i = 0; i < 2; ++i) std::memcpy(scalars[i].bits, &values[i], sizeof(float));
  const Operand output = empty<float>({2, 2, 1});
  run({.name = "reduce",
       .inputs = {a, b},
       .outputs = {output},
       .expressions = {before.get(), after.get()},
       .axes = {2},
       .kind = "sum",
       .accumulator = COMPUTE_DTYPE_FLOAT32,
       .scalars = {scalars[0], scalars[1]}});
  EXPECT_EQ(download<float>(output), (std::vector<float>{44, 56, 98, 128}));
}

TEST_F(MinimalPlugin, SumsInPairs) {
  const int64_t count = 100000;
  const Operand input = upload(std::vector<float>(count, 0.1f)), output = empty<float>({1});
  Expression before = identity(COMPUTE_DTYPE_FLOAT32), after = identity(COMPUTE_DTYPE_FLOAT32);
  run({.name = "reduce",
       .inputs = {input},
       .outputs = {output},
       .expressions = {before.get(), after.get()},
       .axes = {0},
       .kind = "sum",
       .accumulator = COMPUTE_DTYPE_FLOAT32});
  const double exact = count * static_cast<double>(0.1f);
  EXPECT_LE(std::abs(download<float>(output)[0] - exact), (std::log2(count) + 8) * 0x1p-24 * exact);
}

// ---- gather and scatter ---------------------------------------------------------------------------------------------

TEST_F(MinimalPlugin, GathersAlongAnAxis) {
  const Operand input = upload(std::vector<int32_t>{1, 2, 3, 4, 5, 6}, {2, 3});
  const Operand indices = upload(std::vector<int64_t>{2, -3, 0, -1}, {2, 2}), output = empty<int32_t>({2, 2});
  run({.name = "gather", .inputs = {input, indices}, .outputs = {output}, .axis = 1});
  EXPECT_EQ(download<int32_t>(output), (std::vector<int32_t>{3, 1, 4, 6}));
}

TEST_F(MinimalPlugin, WritesTheFirstFaultIntoTheRecord) {
  const Operand input = upload(std::vector<int32_t>{1, 2, 3});
  const Operand indices = upload(std::vector<int32_t>{0, 3, -4}), output = empty<int32_t>({3});
  const uint64_t buffer = allocate(64, 1);
  auto* fault = static_cast<compute_plugin_fault*>(data_);
  *fault = {};
  run_on(stream_, {.name = "gather", .inputs = {input, indices}, .outputs = {output}, .axis = 0}, {buffer, 0});
  EXPECT_EQ(finish(stream_), COMPUTE_OK);
  EXPECT_EQ(fault->code, COMPUTE_PLUGIN_FAULT_INDEX);
  EXPECT_EQ(fault->argument, 1);
  EXPECT_EQ(fault->value, 3);
  EXPECT_EQ(fault->limit, 3);
  EXPECT_EQ(fault->position, 1);
  EXPECT_EQ(download<int32_t>(output)[0], 1);
  table_->memory_free(device_, 1, buffer);
}

TEST_F(MinimalPlugin, AFaultWithoutARecordFailsTheStream) {
  const Operand input = upload(std::vector<int32_t>{1, 2, 3});
  const Operand indices = upload(std::vector<int32_t>{7}), output = empty<int32_t>({1});
  const uint64_t good = number_;
  run_on(stream_, {.name = "gather", .inputs = {input, indices}, .outputs = {output}, .axis = 0});
  EXPECT_OK(table_->stream_mark(stream_, ++number_, 0));
  uint64_t reached = 0;
  EXPECT_EQ(code_of(table_->stream_sync(stream_, number_, INT64_MAX, &reached)), COMPUTE_ERROR_KERNEL_FAILED);
  EXPECT_EQ(reached, good);
  EXPECT_EQ(code_of(table_->stream_reached(stream_, &reached)), COMPUTE_ERROR_KERNEL_FAILED);
  table_->stream_destroy(stream_);
  stream_ = make_stream();  // which heals
  EXPECT_EQ(download<int32_t>(input), (std::vector<int32_t>{1, 2, 3}));
}

TEST_F(MinimalPlugin, ScattersInEveryWay) {
  const Operand indices = upload(std::vector<int32_t>{1, 1, -1, 0});
  auto scatter = [&](const char* reduction, std::vector<float> values) {
    const Operand updates = upload(values), output = upload(std::vector<float>{10, 20, 30});
    run({.name = "scatter", .inputs = {indices, updates}, .outputs = {output}, .axis = 0, .reduction = reduction});
    return download<float>(output);
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(scatter("", {1, 2, 3, 4}), (Floats{4, 2, 3}));
  EXPECT_EQ(scatter("set", {1, 2, 3, 4}), (Floats{4, 2, 3}));
  EXPECT_EQ(scatter("add", {1, 2, 3, 4}), (Floats{14, 23, 33}));
  EXPECT_EQ(scatter("mul", {1, 2, 3, 4}), (Floats{40, 40, 90}));
  EXPECT_EQ(scatter("min", {1, 2, 3, 4}), (Floats{4, 1, 3}));
  EXPECT_EQ(scatter("max", {1, 25, 31, 4}), (Floats{10, 25, 31}));
}

TEST_F(MinimalPlugin, OnePlanRunsOnSeveralStreams) {
  Expression expression;
  const int32_t x = expression.input(COMPUTE_DTYPE_FLOAT64, 0);
  expression.output(expression.call(COMPUTE_PLUGIN_INTRINSIC_EXP, COMPUTE_DTYPE_FLOAT64, {x}));
  const Operand input = upload(std::vector<double>(1000, 1.0));
  std::vector<Operand> outputs;
  std::vector<uint64_t> streams;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    outputs.push_back(empty<double>({1000}));
    streams.push_back(make_stream());
  }
  uint64_t plan = 0;
  compute_plugin_plan_info info = {sizeof info, COMPUTE_PLUGIN_STRUCT_PLAN_INFO, nullptr, 0, 0, 0, 0, 0};
  with_op({.name = "map", .inputs = {input}, .outputs = {outputs[0]}, .expressions = {expression.get()}},
          [&](const compute_plugin_op& described) {
            int32_t reason = 0;
            ASSERT_OK(table_->op_prepare(device_, &described, &plan, &info, keep_reason, &reason));
            EXPECT_EQ(reason, 0);
          });
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const compute_plugin_operand tensors[] = {{input.buffer, 0}, {outputs[i].buffer, 0}};
      const compute_plugin_run run = {
          sizeof run, COMPUTE_PLUGIN_STRUCT_RUN, nullptr, streams[i], tensors, nullptr, {}, {}, 2, 0, 0, 0, 0, {}};
      uint64_t reached = 0;
      for (int round = 0; round < 5; ++round) EXPECT_OK(table_->plan_run(plan, &run));
      EXPECT_OK(table_->stream_mark(streams[i], 5, 0));
      EXPECT_OK(table_->stream_sync(streams[i], 5, INT64_MAX, &reached));
    });
  }
  for (std::thread& thread : threads) thread.join();
  table_->plan_release(device_, plan);
  for (const Operand& output : outputs) EXPECT_EQ(download<double>(output), std::vector<double>(1000, std::exp(1.0)));
}

}  // namespace
