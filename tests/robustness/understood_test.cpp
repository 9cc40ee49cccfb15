// SPDX-License-Identifier: Apache-2.0
// Acts as core, and sends a plugin `next` entries and flags of a newer interface. The plugin must return UNSUPPORTED
// for those that must be understood, and skip the rest. The argument is the plugin's file.
#include <compute/plugin.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

struct compute_error {
  compute_error_code code;
  std::string message;
};

namespace {

constexpr compute_struct_header kMust = {sizeof kMust, COMPUTE_STRUCT_MUST_UNDERSTAND | 77, nullptr};
constexpr compute_struct_header kMay = {sizeof kMay, 77, nullptr};
constexpr compute_struct_header kMustAtEnd = {sizeof kMustAtEnd, 78, &kMust};

const char* plugin_file = nullptr;

const compute_plugin_core kCore = {
    .table_size = sizeof kCore,
    .interface_newest = COMPUTE_PLUGIN_INTERFACE,
    .core_version = 1,
    .error_new =
        [](const compute_plugin_error_info* info) {
          return new compute_error{info->code,
                                   std::string(info->message.data, static_cast<size_t>(info->message.size))};
        },
    .error_free = [](compute_error* error) { delete error; },
    .error_code = [](const compute_error* error) { return error->code; },
    .log = [](int32_t, const char*, int64_t, const char*, int64_t) {},
    .setting = [](const char* name, int64_t name_size, char* buffer, int64_t capacity) -> int64_t {
      const char* value = std::getenv(std::string(name, static_cast<size_t>(name_size)).c_str());
      if (value == nullptr) return -1;
      const std::string_view text = value;
      std::memcpy(buffer, text.data(), std::min<size_t>(text.size(), static_cast<size_t>(capacity)));
      return static_cast<int64_t>(text.size());
    },
    .blob_load = [](const void*, int64_t, compute_plugin_take_blob, void*) -> int32_t { return 0; },
    .blob_store = [](const void*, int64_t, const void*, int64_t) {},
};

// The code of an error, which ends here.
compute_error_code code_of(compute_error* error, std::string* out_message = nullptr) {
  if (error == nullptr) return COMPUTE_OK;
  const compute_error_code code = error->code;
  if (out_message != nullptr) *out_message = error->message;
  delete error;
  return code;
}

#define EXPECT_GOOD(call)                                      \
  do {                                                         \
    std::string message;                                       \
    EXPECT_EQ(code_of(call, &message), COMPUTE_OK) << message; \
  } while (false)

template <class T>
T sized(uint32_t type) {
  T value{};
  value.struct_size = sizeof value;
  value.struct_type = type;
  return value;
}

compute_string text(std::string_view value) { return {value.data(), static_cast<int64_t>(value.size())}; }

class Understood : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    void* library = dlopen(plugin_file, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto open = reinterpret_cast<compute_plugin_open_function>(dlsym(library, "compute_plugin_open"));
    ASSERT_NE(open, nullptr);
    std::string message;
    ASSERT_EQ(code_of(open(COMPUTE_PLUGIN_INTERFACE, &kCore, &plugin), &message), COMPUTE_OK) << message;
    const compute_plugin_sink sink = {sizeof sink, nullptr,
                                      [](void*, const compute_plugin_device_info* info) {
                                        if (!has_id && info->unusable.size == 0) id = info->id;
                                        has_id = has_id || info->unusable.size == 0;
                                      },
                                      [](void*, const compute_plugin_requirement* requirement) {
                                        if (requirement->required == 1 && requirement->state != 1)
                                          missing = std::string(requirement->name.data,
                                                                static_cast<size_t>(requirement->name.size));
                                      }};
    ASSERT_EQ(code_of(plugin->enumerate(&sink), &message), COMPUTE_OK) << message;
    if (!has_id) return;
    auto options = sized<compute_plugin_device_options>(COMPUTE_PLUGIN_STRUCT_DEVICE_OPTIONS);
    ASSERT_EQ(code_of(plugin->device_open(id, &options, &device, &table), &message), COMPUTE_OK) << message;
    const compute_plugin_caps& caps = *table->caps(device);
    is_host = (caps.flags & COMPUTE_PLUGIN_DEVICE_IS_HOST) != 0;
    auto stream_options = sized<compute_plugin_stream_options>(COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS);
    ASSERT_EQ(code_of(table->stream_create(device, &stream_options, &stream), &message), COMPUTE_OK) << message;
    for (compute_plugin_operand& operand : operands) operand.buffer = allocated();
  }

  void SetUp() override {
    if (!has_id) GTEST_SKIP() << "there is no device: " << missing << " is missing";
  }

  // NULL if the plugin lacks it.
  template <class Table>
  static const Table* extension(std::string_view name) {
    if (plugin->get_extension == nullptr) return nullptr;
    return static_cast<const Table*>(plugin->get_extension(device, name.data(), static_cast<int64_t>(name.size())));
  }

  static uint64_t allocated() {
    alignas(64) static char storage[4][64];
    static int used = 0;
    if (is_host) return reinterpret_cast<uint64_t>(storage[used++]);
    auto request = sized<compute_plugin_allocation>(COMPUTE_PLUGIN_STRUCT_ALLOCATION);
    request.size_bytes = 64;
    uint64_t buffer = 0;
    void* data = nullptr;
    EXPECT_GOOD(table->memory_allocate(device, &request, &buffer, &data));
    return buffer;
  }

  // `call` receives `value`. Objects made by successful calls are released.
  template <class T>
  static void expect_understood(T& value, const std::function<compute_error*()>& call) {
    const auto expect = [&](compute_error_code code, const char* what) {
      std::string message;
      EXPECT_EQ(code_of(call(), &message), code) << what << " " << message;
      if (code != COMPUTE_OK) {
        EXPECT_NE(message.find("must"), std::string::npos) << message;
      }
    };
    expect(COMPUTE_OK, "as it is");
    value.next = &kMust;
    expect(COMPUTE_ERROR_UNSUPPORTED, "an entry that must be understood");
    value.next = &kMustAtEnd;
    expect(COMPUTE_ERROR_UNSUPPORTED, "the last entry must be understood");
    value.next = &kMay;
    expect(COMPUTE_OK, "an entry that may be skipped");
    value.next = nullptr;
    if constexpr (requires { value.flags; }) {
      const uint32_t flags = value.flags;
      for (const uint32_t must : {1u << 16, 1u << 31}) {
        value.flags = flags | must;
        expect(COMPUTE_ERROR_UNSUPPORTED, "a flag that must be understood");
      }
      value.flags = flags | 1u << 15;
      expect(COMPUTE_OK, "a flag that may be ignored");
      value.flags = flags;
    }
  }

  static inline const compute_plugin_table* plugin = nullptr;
  static inline const compute_plugin_device_table* table = nullptr;
  static inline bool has_id = false, is_host = false;
  static inline std::string missing = "the driver";
  static inline uint64_t id = 0, device = 0, stream = 0;
  static inline std::array<compute_plugin_operand, 3> operands{};  // input, index, output
};

// gather of 4 numbers with an index: it has attributes, arrays of tensors and, as every op could, an expression behind
// them.
struct Gather {
  Gather() {
    for (compute_plugin_tensor& tensor : tensors) {
      tensor = sized<compute_plugin_tensor>(COMPUTE_PLUGIN_STRUCT_TENSOR);
      tensor.dtype = COMPUTE_DTYPE_FLOAT32;
      tensor.rank = 1;
      tensor.shape = &kExtent;
      tensor.strides = &kStride;
      tensor.access = COMPUTE_PLUGIN_TENSOR_INPUT;
      tensor.alignment = 64;
    }
    tensors[1].dtype = COMPUTE_DTYPE_INT64;
    tensors[2].access = COMPUTE_PLUGIN_TENSOR_OUTPUT;
    attribute.name = "axis";
    attribute.name_size = 4;
    attribute.kind = COMPUTE_KIND_INT64;
    attribute.count = 1;
    attribute.values = &kAxis;
    op.name = text("gather");
    op.version = 1;
    op.input_count = 2;
    op.output_count = 1;
    op.tensors = tensors.data();
    op.attributes = &attribute;
    op.attribute_count = 1;
  }

  static constexpr int64_t kExtent = 4, kStride = 1, kAxis = 0;
  std::array<compute_plugin_tensor, 3> tensors;
  compute_attribute attribute = sized<compute_attribute>(COMPUTE_STRUCT_ATTRIBUTE);
  compute_plugin_op op = sized<compute_plugin_op>(COMPUTE_PLUGIN_STRUCT_OP);
};

// map of x -> x.
struct Map {
  Map() {
    for (compute_plugin_tensor& tensor : tensors) {
      tensor = sized<compute_plugin_tensor>(COMPUTE_PLUGIN_STRUCT_TENSOR);
      tensor.dtype = COMPUTE_DTYPE_FLOAT32;
      tensor.rank = 1;
      tensor.shape = &Gather::kExtent;
      tensor.strides = &Gather::kStride;
      tensor.access = COMPUTE_PLUGIN_TENSOR_INPUT;
      tensor.alignment = 64;
    }
    tensors[1].access = COMPUTE_PLUGIN_TENSOR_OUTPUT;
    node.kind = COMPUTE_PLUGIN_NODE_INPUT;
    node.dtype = COMPUTE_DTYPE_FLOAT32;
    std::memcpy(expression.digest, "a digest of mine", 16);
    expression.node_count = expression.input_count = expression.output_count = 1;
    expression.nodes = &node;
    expression.outputs = &kOutput;
    op.name = text("map");
    op.version = 1;
    op.input_count = op.output_count = 1;
    op.tensors = tensors.data();
    op.expression_count = 1;
    op.expressions = &expressions;
  }

  static constexpr int32_t kOutput = 0;
  std::array<compute_plugin_tensor, 2> tensors;
  compute_plugin_node node{};
  compute_plugin_expression expression = sized<compute_plugin_expression>(COMPUTE_PLUGIN_STRUCT_EXPRESSION);
  const compute_plugin_expression* expressions = &expression;
  compute_plugin_op op = sized<compute_plugin_op>(COMPUTE_PLUGIN_STRUCT_OP);
};

TEST_F(Understood, DeviceOptions) {
  auto options = sized<compute_plugin_device_options>(COMPUTE_PLUGIN_STRUCT_DEVICE_OPTIONS);
  expect_understood(options, [&] {
    uint64_t opened = 0;
    const compute_plugin_device_table* out_table = nullptr;
    compute_error* error = plugin->device_open(id, &options, &opened, &out_table);
    if (error == nullptr) out_table->close(opened);
    return error;
  });
}

TEST_F(Understood, StreamsAndMarks) {
  auto options = sized<compute_plugin_stream_options>(COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS);
  expect_understood(options, [&] {
    uint64_t made = 0;
    compute_error* error = table->stream_create(device, &options, &made);
    if (error == nullptr) table->stream_destroy(made);
    return error;
  });
  uint64_t made = 0;
  EXPECT_GOOD(table->stream_create(device, &options, &made));
  EXPECT_EQ(code_of(table->stream_mark(made, 1, 1u << 17)), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_GOOD(table->stream_mark(made, 1, 1u << 15));
  uint64_t reached = 0;
  EXPECT_GOOD(table->stream_sync(made, 1, INT64_MAX, &reached));
  EXPECT_EQ(reached, 1u);
  table->stream_destroy(made);
}

TEST_F(Understood, Allocations) {
  if (table->memory_allocate == nullptr) GTEST_SKIP() << "core allocates";
  auto request = sized<compute_plugin_allocation>(COMPUTE_PLUGIN_STRUCT_ALLOCATION);
  request.size_bytes = 64;
  expect_understood(request, [&] {
    uint64_t buffer = 0;
    void* data = nullptr;
    compute_error* error = table->memory_allocate(device, &request, &buffer, &data);
    if (error == nullptr) table->memory_free(device, 0, buffer);
    return error;
  });
}

TEST_F(Understood, Imports) {
  if (table->memory_import == nullptr) GTEST_SKIP() << "there is no memory_import";
  auto import = sized<compute_plugin_import>(COMPUTE_PLUGIN_STRUCT_IMPORT);
  import.next = &kMust;
  uint64_t buffer = 0;
  std::string message;
  EXPECT_EQ(code_of(table->memory_import(device, &import, &buffer), &message), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_NE(message.find("must"), std::string::npos) << message;
}

constexpr compute_plugin_refuse kNoRefusal = [](void*, const compute_plugin_refusal* refusal) {
  ADD_FAILURE() << std::string(refusal->text.data, static_cast<size_t>(refusal->text.size));
};

compute_error* query(const compute_plugin_device_table& table, uint64_t device, const compute_plugin_op& op,
                     compute_plugin_query_info& info) {
  return table.op_query(device, &op, &info, kNoRefusal, nullptr);
}

compute_error* prepare(const compute_plugin_device_table& table, uint64_t device, const compute_plugin_op& op,
                       uint64_t* out_plan, compute_plugin_plan_info& info) {
  return table.op_prepare(device, &op, out_plan, &info, kNoRefusal, nullptr);
}

TEST_F(Understood, QueriesAndPlans) {
  auto query_info = sized<compute_plugin_query_info>(COMPUTE_PLUGIN_STRUCT_QUERY_INFO);
  auto plan_info = sized<compute_plugin_plan_info>(COMPUTE_PLUGIN_STRUCT_PLAN_INFO);
  Gather gather;
  Map map;
  const auto expect_both = [&](auto& value, const compute_plugin_op& op) {
    expect_understood(value, [&] { return query(*table, device, op, query_info); });
    expect_understood(value, [&] {
      uint64_t plan = 0;
      compute_error* error = prepare(*table, device, op, &plan, plan_info);
      if (error == nullptr) table->plan_release(device, plan);
      return error;
    });
  };
  expect_both(gather.op, gather.op);
  for (compute_plugin_tensor& tensor : gather.tensors) expect_both(tensor, gather.op);
  expect_both(gather.attribute, gather.op);
  expect_both(map.expression, map.op);

  for (const void* next : {static_cast<const void*>(&kMust), static_cast<const void*>(&kMay)}) {
    const compute_error_code code = next == &kMust ? COMPUTE_ERROR_UNSUPPORTED : COMPUTE_OK;
    query_info.next = plan_info.next = next;
    EXPECT_EQ(code_of(query(*table, device, map.op, query_info)), code);
    uint64_t plan = 0;
    EXPECT_EQ(code_of(prepare(*table, device, map.op, &plan, plan_info)), code);
    if (plan != 0) table->plan_release(device, plan);
  }
}

// An unknown layout is refused with LAYOUT, so that core passes a copy.
TEST_F(Understood, LayoutsOfTensors) {
  const auto keep = [](void* context, const compute_plugin_refusal* refusal) {
    *static_cast<compute_plugin_refusal*>(context) = *refusal;
  };
  Gather gather;
  for (int32_t i = 0; i < 2; ++i) {
    gather.tensors[static_cast<size_t>(i)].layout = 77;
    auto query_info = sized<compute_plugin_query_info>(COMPUTE_PLUGIN_STRUCT_QUERY_INFO);
    auto plan_info = sized<compute_plugin_plan_info>(COMPUTE_PLUGIN_STRUCT_PLAN_INFO);
    compute_plugin_refusal asked{}, prepared{};
    uint64_t plan = 0;
    EXPECT_GOOD(table->op_query(device, &gather.op, &query_info, keep, &asked));
    EXPECT_GOOD(table->op_prepare(device, &gather.op, &plan, &plan_info, keep, &prepared));
    EXPECT_EQ(query_info.supported, 0);
    EXPECT_EQ(plan, 0u);
    for (const compute_plugin_refusal& refusal : {asked, prepared}) {
      EXPECT_EQ(refusal.reason, COMPUTE_PLUGIN_REFUSE_LAYOUT);
      EXPECT_EQ(refusal.argument, i);
    }
    gather.tensors[static_cast<size_t>(i)].layout = COMPUTE_PLUGIN_LAYOUT_STRIDED;
  }
}

// A struct of a newer core: it is longer, and its unknown end is not zero.
template <class T>
struct Newer {
  T value;
  uint8_t more[32];

  explicit Newer(const T& known) : value(known) {
    value.struct_size = sizeof *this;
    std::memset(more, 0xAB, sizeof more);
  }
};

// A core of version 1.1 opens a plugin of version 1: its table and structs are longer.
TEST_F(Understood, ANewerCore) {
  struct {
    compute_plugin_core known;
    void (*more[4])();
  } core = {kCore, {}};
  core.known.table_size = sizeof core;
  core.known.interface_newest = COMPUTE_PLUGIN_INTERFACE + 1;
  core.known.core_version = 1u << 16 | 1u << 8;
  const auto open = reinterpret_cast<compute_plugin_open_function>(
      dlsym(dlopen(plugin_file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD), "compute_plugin_open"));
  const compute_plugin_table* again = nullptr;
  // Open for another copy of the library, it is not opened; closed, it is.
  std::string refusal;
  EXPECT_EQ(code_of(open(COMPUTE_PLUGIN_INTERFACE, &core.known, &again), &refusal), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_NE(refusal.find("another copy of the library"), std::string::npos) << refusal;
  EXPECT_EQ(again, nullptr);
  EXPECT_GOOD(open(COMPUTE_PLUGIN_INTERFACE, &kCore, &again));
  if (plugin->close != nullptr) {
    plugin->close();
    EXPECT_GOOD(open(COMPUTE_PLUGIN_INTERFACE, &core.known, &again));
    plugin->close();
    EXPECT_GOOD(open(COMPUTE_PLUGIN_INTERFACE, &kCore, &again));
  }

  Newer options(sized<compute_plugin_device_options>(COMPUTE_PLUGIN_STRUCT_DEVICE_OPTIONS));
  Newer stream_options(sized<compute_plugin_stream_options>(COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS));
  uint64_t opened = 0, made = 0;
  const compute_plugin_device_table* out_table = nullptr;
  EXPECT_GOOD(plugin->device_open(id, &options.value, &opened, &out_table));
  EXPECT_GOOD(out_table->stream_create(opened, &stream_options.value, &made));
  out_table->stream_destroy(made);
  out_table->close(opened);
  if (table->memory_allocate != nullptr) {
    Newer request(sized<compute_plugin_allocation>(COMPUTE_PLUGIN_STRUCT_ALLOCATION));
    request.value.size_bytes = 64;
    uint64_t buffer = 0;
    void* data = nullptr;
    EXPECT_GOOD(table->memory_allocate(device, &request.value, &buffer, &data));
    table->memory_free(device, 0, buffer);
  }

  // An op, its tensors and attributes, the answers and a run.
  Gather known;
  std::array<Newer<compute_plugin_tensor>, 3> tensors = {Newer(known.tensors[0]), Newer(known.tensors[1]),
                                                         Newer(known.tensors[2])};
  Newer attribute(known.attribute);
  Newer op(known.op);
  op.value.tensors = &tensors[0].value;
  op.value.attributes = &attribute.value;
  op.value.flags = 1u << 15;
  Newer query_info(sized<compute_plugin_query_info>(COMPUTE_PLUGIN_STRUCT_QUERY_INFO));
  Newer plan_info(sized<compute_plugin_plan_info>(COMPUTE_PLUGIN_STRUCT_PLAN_INFO));
  EXPECT_GOOD(query(*table, device, op.value, query_info.value));
  EXPECT_EQ(query_info.value.supported, 1);
  uint64_t plan = 0;
  EXPECT_GOOD(prepare(*table, device, op.value, &plan, plan_info.value));
  Newer run(sized<compute_plugin_run>(COMPUTE_PLUGIN_STRUCT_RUN));
  const int64_t zeros[8] = {};
  EXPECT_GOOD(table->copy_from_host(stream, zeros, nullptr, &operands[1], sizeof zeros, 0));
  run.value.stream = stream;
  run.value.tensors = operands.data();
  run.value.tensor_count = 3;
  run.value.flags = 1u << 15;
  EXPECT_GOOD(table->plan_run(plan, &run.value));
  EXPECT_GOOD(table->stream_mark(stream, 100, 0));
  uint64_t reached = 0;
  EXPECT_GOOD(table->stream_sync(stream, 100, INT64_MAX, &reached));
  table->plan_release(device, plan);
  for (const auto* more : {query_info.more, plan_info.more})
    EXPECT_TRUE(std::all_of(more, more + 32, [](uint8_t byte) { return byte == 0xAB; })) << "a field was written";

  // What it does not know is refused as a value.
  const auto refusal_of = [&](const compute_plugin_op& asked) {
    const auto keep = [](void* context, const compute_plugin_refusal* refusal) {
      *static_cast<int32_t*>(context) = refusal->reason;
    };
    int32_t reason = 0;
    uint64_t none = 0;
    EXPECT_GOOD(table->op_prepare(device, &asked, &none, &plan_info.value, keep, &reason));
    EXPECT_EQ(none, 0u);
    return reason;
  };
  op.value.name = text("fused_moe");
  EXPECT_EQ(refusal_of(op.value), COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED);
  op.value.name = text("gather");
  op.value.version = 9;
  EXPECT_EQ(refusal_of(op.value), COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED);
  op.value.version = 1;
  tensors[0].value.dtype = tensors[2].value.dtype = 16;  // float8_e4m3fn
  EXPECT_EQ(refusal_of(op.value), COMPUTE_PLUGIN_REFUSE_DTYPE);
  tensors[0].value.dtype = tensors[2].value.dtype = 70;  // a vendor's
  EXPECT_EQ(refusal_of(op.value), COMPUTE_PLUGIN_REFUSE_DTYPE);
  Map map;
  compute_plugin_node nodes[2] = {map.node, map.node};
  const int32_t operand = 0, output = 1;
  nodes[1].kind = COMPUTE_PLUGIN_NODE_CALL;
  nodes[1].value = 1000;
  nodes[1].operand_count = 1;
  map.expression.node_count = 2;
  map.expression.nodes = nodes;
  map.expression.operands = &operand;
  map.expression.operand_total = 1;
  map.expression.outputs = &output;
  std::memcpy(map.expression.digest, "digest of a call", 16);
  EXPECT_EQ(refusal_of(map.op), COMPUTE_PLUGIN_REFUSE_INTRINSIC);
}

constexpr compute_plugin_refuse kKeepRefusal = [](void* context, const compute_plugin_refusal* refusal) {
  *static_cast<compute_plugin_refusal*>(context) = *refusal;
};

// The reason for which both op_query and op_prepare refuse an op; 0 if they do not.
int32_t reason_against(const compute_plugin_device_table& table, uint64_t device, const compute_plugin_op& op,
                       int32_t* out_argument = nullptr) {
  auto query_info = sized<compute_plugin_query_info>(COMPUTE_PLUGIN_STRUCT_QUERY_INFO);
  auto plan_info = sized<compute_plugin_plan_info>(COMPUTE_PLUGIN_STRUCT_PLAN_INFO);
  compute_plugin_refusal asked{}, prepared{};
  uint64_t plan = 0;
  EXPECT_GOOD(table.op_query(device, &op, &query_info, kKeepRefusal, &asked));
  EXPECT_GOOD(table.op_prepare(device, &op, &plan, &plan_info, kKeepRefusal, &prepared));
  EXPECT_EQ(query_info.supported, asked.reason == 0 ? 1 : 0);
  EXPECT_EQ(asked.reason, prepared.reason);
  if (plan != 0) table.plan_release(device, plan);
  if (out_argument != nullptr) *out_argument = prepared.argument;
  return prepared.reason;
}

// An op that core asks for, with row-major float32 tensors. A plugin looks at names, versions and counts before it
// looks at the tensors.
struct KnownOp {
  explicit KnownOp(std::string_view name, int32_t version, int32_t tensor_count, int32_t expression_count)
      : tensors(static_cast<size_t>(tensor_count), Map().tensors[0]),
        expressions(static_cast<size_t>(expression_count), &map.expression) {
    op.name = text(name);
    op.version = version;
    op.output_count = 1;
    op.input_count = tensor_count - 1;
    tensors.back().access = COMPUTE_PLUGIN_TENSOR_OUTPUT;
    op.tensors = tensors.data();
    op.expressions = expressions.data();
    op.expression_count = expression_count;
  }

  Map map;
  std::vector<compute_plugin_tensor> tensors;
  std::vector<const compute_plugin_expression*> expressions;
  compute_plugin_op op = sized<compute_plugin_op>(COMPUTE_PLUGIN_STRUCT_OP);
};

// A plugin that does not implement the op at all refuses it with NOT_IMPLEMENTED.
TEST_F(Understood, WhatIsNewInTheOpsThatCoreAsksFor) {
  struct Row {
    std::string_view name;
    int32_t version, tensors, expressions;
  };
  static constexpr Row kRows[] = {
#define COMPUTE_KNOWN_OP(name, newest, tensors, expressions, attributes) {#name, newest, tensors, expressions},
#include "plugins/common/op/known_ops.def"
#undef COMPUTE_KNOWN_OP
  };
  for (const Row& row : kRows) {
    const std::string name(row.name);
    const int32_t tensors = std::max(row.tensors, 2);
    EXPECT_EQ(reason_against(*table, device, KnownOp(row.name, 99, tensors, row.expressions).op),
              COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED)
        << name << " of version 99";
    if (row.tensors >= 0) {
      EXPECT_EQ(reason_against(*table, device, KnownOp(row.name, 1, row.tensors + 1, row.expressions).op),
                COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED)
          << name << " with one more tensor";
    }
    EXPECT_EQ(reason_against(*table, device, KnownOp(row.name, 1, tensors, row.expressions + 1).op),
              COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED)
        << name << " with one more expression";
    KnownOp with_attribute(row.name, 1, tensors, row.expressions);
    Gather gather;
    gather.attribute.name = "zz";
    gather.attribute.name_size = 2;
    with_attribute.op.attributes = &gather.attribute;
    with_attribute.op.attribute_count = 1;
    const int32_t reason = reason_against(*table, device, with_attribute.op);
    EXPECT_TRUE(reason == COMPUTE_PLUGIN_REFUSE_ATTRIBUTE || reason == COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED)
        << name << " with the attribute zz: " << reason;
  }
  // Those that every plugin implements.
  Gather gather;
  EXPECT_EQ(reason_against(*table, device, gather.op), 0);
  gather.attribute.name = "zz";
  gather.attribute.name_size = 2;
  EXPECT_EQ(reason_against(*table, device, gather.op), COMPUTE_PLUGIN_REFUSE_ATTRIBUTE);
}

TEST_F(Understood, NodesOfExpressions) {
  Map map;
  std::array<compute_plugin_node, 2> nodes = {map.node, map.node};
  const int32_t output = 1;
  nodes[1].kind = 77;
  nodes[1].operand_count = 0;
  map.expression.node_count = 2;
  map.expression.nodes = nodes.data();
  map.expression.outputs = &output;
  std::memcpy(map.expression.digest, "digest of a node", 16);
  EXPECT_EQ(reason_against(*table, device, map.op), COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED) << "a kind of node";
  nodes[1].kind = COMPUTE_PLUGIN_NODE_CONSTANT;
  for (const int32_t dtype : {0, 16, 70, -1}) {
    nodes[1].dtype = dtype;
    EXPECT_EQ(reason_against(*table, device, map.op), COMPUTE_PLUGIN_REFUSE_DTYPE) << dtype;
  }
  const int32_t operand = 0;
  nodes[1] = map.node;
  nodes[1].kind = COMPUTE_PLUGIN_NODE_CALL;
  nodes[1].operand_count = 1;
  map.expression.operands = &operand;
  map.expression.operand_total = 1;
  for (const int32_t intrinsic : {0, 1000, -1}) {
    nodes[1].value = intrinsic;
    int32_t argument = 0;
    EXPECT_EQ(reason_against(*table, device, map.op, &argument), COMPUTE_PLUGIN_REFUSE_INTRINSIC);
    EXPECT_EQ(argument, intrinsic);
  }
}

TEST_F(Understood, FlagsOfCopies) {
  const int64_t zeros[8] = {};
  int64_t back[8];
  const uint32_t pattern = 0;
  const compute_plugin_operand& output = operands[2];
  uint64_t own = 0, other = 0;
  auto options = sized<compute_plugin_stream_options>(COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS);
  EXPECT_GOOD(table->stream_create(device, &options, &own));
  EXPECT_GOOD(table->stream_create(device, &options, &other));
  EXPECT_GOOD(table->stream_mark(other, 1, 0));
  for (const uint32_t flags : {1u << 15, 1u << 16, 1u << 31}) {
    const compute_error_code expected = flags < 65536 ? COMPUTE_OK : COMPUTE_ERROR_UNSUPPORTED;
    EXPECT_EQ(code_of(table->copy_from_host(own, zeros, nullptr, &output, sizeof zeros, flags)), expected);
    EXPECT_EQ(code_of(table->copy_to_host(own, &output, back, nullptr, sizeof back, flags)), expected);
    EXPECT_EQ(code_of(table->fill(own, &output, sizeof back, &pattern, sizeof pattern, flags)), expected);
    EXPECT_EQ(code_of(table->stream_wait(own, other, 1, flags)), expected);
  }
  EXPECT_GOOD(table->stream_mark(own, 1, 0));
  uint64_t reached = 0;
  EXPECT_GOOD(table->stream_sync(own, 1, INT64_MAX, &reached));
  table->stream_destroy(own);
  table->stream_destroy(other);
}

TEST_F(Understood, RunsAndGraphs) {
  Map map;
  auto info = sized<compute_plugin_plan_info>(COMPUTE_PLUGIN_STRUCT_PLAN_INFO);
  uint64_t plan = 0;
  EXPECT_GOOD(prepare(*table, device, map.op, &plan, info));
  auto run = sized<compute_plugin_run>(COMPUTE_PLUGIN_STRUCT_RUN);
  const compute_plugin_operand tensors[] = {operands[0], operands[2]};
  run.stream = stream;
  run.tensors = tensors;
  run.tensor_count = 2;
  expect_understood(run, [&] { return table->plan_run(plan, &run); });
  run.next = nullptr;

  const auto* graphs = extension<compute_plugin_graph_table>(COMPUTE_PLUGIN_EXT_GRAPH_V1);
  if (graphs != nullptr) {
    std::array<compute_plugin_graph_node, 2> nodes;
    for (compute_plugin_graph_node& node : nodes) {
      node = sized<compute_plugin_graph_node>(COMPUTE_PLUGIN_STRUCT_GRAPH_NODE);
      node.kind = 1;
      node.plan = plan;
      node.run = &run;
    }
    auto described = sized<compute_plugin_graph>(COMPUTE_PLUGIN_STRUCT_GRAPH);
    described.nodes = nodes.data();
    described.node_count = 2;
    const auto create = [&] {
      uint64_t graph = 0;
      compute_error* error = graphs->create(device, &described, &graph);
      if (error == nullptr) graphs->release(device, graph);
      return error;
    };
    expect_understood(described, create);
    for (compute_plugin_graph_node& node : nodes) expect_understood(node, create);
    expect_understood(run, create);
    run.next = nullptr;
    uint64_t graph = 0;
    EXPECT_GOOD(graphs->create(device, &described, &graph));
    auto graph_run = sized<compute_plugin_graph_run>(COMPUTE_PLUGIN_STRUCT_GRAPH_RUN);
    graph_run.stream = stream;
    expect_understood(graph_run, [&] { return graphs->run(graph, &graph_run); });
    EXPECT_GOOD(table->stream_mark(stream, 1, 0));
    uint64_t reached = 0;
    EXPECT_GOOD(table->stream_sync(stream, 1, INT64_MAX, &reached));
    graphs->release(device, graph);
  }
  // What was queued ends before the plan does.
  EXPECT_GOOD(table->stream_mark(stream, 1, 0));
  uint64_t reached = 0;
  EXPECT_GOOD(table->stream_sync(stream, 1, INT64_MAX, &reached));
  table->plan_release(device, plan);
}

TEST_F(Understood, ExternalObjects) {
  const auto* externals = extension<compute_plugin_external_table>(COMPUTE_PLUGIN_EXT_EXTERNAL_DRAFT1);
  if (externals == nullptr) GTEST_SKIP() << "there are no external objects";
  auto request = sized<compute_plugin_external_request>(COMPUTE_PLUGIN_STRUCT_EXTERNAL_REQUEST);
  request.kind = COMPUTE_EXTERNAL_OPAQUE_FD;
  const auto made = [&](const auto& create) {
    auto external = sized<compute_external>(COMPUTE_STRUCT_EXTERNAL);
    external.kind = request.kind;
    external.descriptor = -1;
    compute_error* error = create(&external);
    if (error == nullptr) close(external.descriptor);
    return error;
  };
  expect_understood(request, [&] {
    return made([&](compute_external* external) {
      uint64_t semaphore = 0;
      compute_error* error = externals->semaphore_create(device, &request, &semaphore, external);
      if (error == nullptr) externals->semaphore_release(device, semaphore);
      return error;
    });
  });
  request.next = nullptr;
  request.size_bytes = 100;
  request.alignment = 256;
  expect_understood(request, [&] {
    return made([&](compute_external* external) {
      uint64_t buffer = 0;
      compute_error* error = externals->memory_create(device, &request, &buffer, external);
      if (error == nullptr) table->memory_free(device, -1, buffer);
      return error;
    });
  });
}

TEST_F(Understood, Collectives) {
  const auto* groups = extension<compute_plugin_collective_table>(COMPUTE_PLUGIN_EXT_COLLECTIVE_V1);
  if (groups == nullptr) GTEST_SKIP() << "there are no collectives";
  std::vector<uint8_t> id(8192);
  int64_t id_size = 0;
  EXPECT_GOOD(groups->make_id(device, id.data(), 8192, &id_size));
  EXPECT_GT(id_size, 0);
  EXPECT_LE(id_size, 8192);
  auto options = sized<compute_plugin_group_options>(COMPUTE_PLUGIN_STRUCT_GROUP_OPTIONS);
  options.id = id.data();
  options.id_size = id_size;
  options.size = 2;
  options.timeout_ns = 50'000'000;
  uint64_t group = 0;
  EXPECT_EQ(code_of(groups->join(device, &options, &group)), COMPUTE_ERROR_PEER_FAILED)
      << "the other rank is not there";
  EXPECT_GOOD(groups->make_id(device, id.data(), 8192, &options.id_size));
  options.size = 1;
  for (const int64_t timeout_ns : {int64_t{1} << 40, INT64_MAX}) {
    EXPECT_GOOD(groups->make_id(device, id.data(), 8192, &options.id_size));
    options.timeout_ns = timeout_ns;
    expect_understood(options, [&] {
      EXPECT_GOOD(groups->make_id(device, id.data(), 8192, &options.id_size));
      uint64_t joined = 0;
      compute_error* error = groups->join(device, &options, &joined);
      if (error == nullptr) groups->leave(joined);
      return error;
    });
    options.next = nullptr;
  }
  EXPECT_GOOD(groups->make_id(device, id.data(), 8192, &options.id_size));
  EXPECT_GOOD(groups->join(device, &options, &group));
  compute_string name = {};
  groups->describe(group, &name);
  EXPECT_GT(name.size, 0);

  std::array<compute_plugin_collective, 2> list;
  for (compute_plugin_collective& one : list) {
    one = sized<compute_plugin_collective>(COMPUTE_PLUGIN_STRUCT_COLLECTIVE);
    one.kind = COMPUTE_PLUGIN_COLLECTIVE_BROADCAST;
    one.dtype = COMPUTE_DTYPE_FLOAT32;
    one.count = 4;
    one.src = one.dst = operands[2];
  }
  list[0].kind = COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE;
  list[0].dtype = COMPUTE_DTYPE_INT32;
  list[0].reduction = COMPUTE_REDUCTION_SUM;
  list[0].src = list[0].dst = operands[0];
  for (const compute_plugin_collective& one : list) EXPECT_EQ(groups->supports(group, &one), 1);
  for (int32_t compute_plugin_collective::*field :
       {&compute_plugin_collective::kind, &compute_plugin_collective::dtype, &compute_plugin_collective::reduction}) {
    for (const int32_t unknown : {99, -1}) {
      compute_plugin_collective newer = list[0];
      newer.*field = unknown;
      EXPECT_EQ(groups->supports(group, &newer), 0) << unknown;
    }
  }
  for (compute_plugin_collective& one : list)
    expect_understood(one, [&] { return groups->run(group, stream, list.data(), 2); });
  EXPECT_GOOD(groups->failure(group));
  EXPECT_GOOD(table->stream_mark(stream, 3, 0));
  uint64_t reached = 0;
  EXPECT_GOOD(table->stream_sync(stream, 3, INT64_MAX, &reached));
  groups->leave(group);
}

TEST_F(Understood, Kernels) {
  const compute_plugin_kernel_table* kernels = table->kernels == nullptr ? nullptr : table->kernels(device);
  if (kernels == nullptr) GTEST_SKIP() << "there are no kernels";
  auto source = sized<compute_plugin_kernel_source>(COMPUTE_PLUGIN_STRUCT_KERNEL_SOURCE);
  source.language = text("portable");
  source.source = text("COMPUTE_KERNEL f(COMPUTE_GLOBAL f32* x, const f32 y) { x[0] = y; }");
  source.name = text("f");
  auto info = sized<compute_plugin_kernel_info>(COMPUTE_PLUGIN_STRUCT_KERNEL_INFO);
  const auto compile = [&] {
    uint64_t kernel = 0;
    compute_error* error = kernels->compile(device, &source, &kernel, &info);
    if (error == nullptr) kernels->release(device, kernel);
    return error;
  };
  expect_understood(source, compile);
  expect_understood(info, compile);

  uint64_t kernel = 0;
  EXPECT_GOOD(kernels->compile(device, &source, &kernel, &info));
  const float value = 1;
  std::array<compute_plugin_kernel_argument, 2> arguments;
  for (auto& argument : arguments)
    argument = sized<compute_plugin_kernel_argument>(COMPUTE_PLUGIN_STRUCT_KERNEL_ARGUMENT);
  arguments[0].kind = 1;
  arguments[0].access = COMPUTE_PLUGIN_TENSOR_OUTPUT;
  arguments[0].tensor = operands[2];
  arguments[1].kind = 2;
  arguments[1].value = &value;
  arguments[1].value_size = sizeof value;
  auto launch = sized<compute_plugin_launch>(COMPUTE_PLUGIN_STRUCT_LAUNCH);
  launch.stream = stream;
  for (int axis = 0; axis < 3; ++axis) launch.groups[axis] = launch.group_size[axis] = 1;
  launch.arguments = arguments.data();
  launch.argument_count = 2;
  const auto start = [&] { return kernels->launch(kernel, &launch); };
  expect_understood(launch, start);
  for (auto& argument : arguments) expect_understood(argument, start);
  EXPECT_GOOD(table->stream_mark(stream, 2, 0));
  uint64_t reached = 0;
  EXPECT_GOOD(table->stream_sync(stream, 2, INT64_MAX, &reached));
  kernels->release(device, kernel);
}

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  if (count != 2) return 2;
  plugin_file = arguments[1];
  return RUN_ALL_TESTS();
}
