// SPDX-License-Identifier: Apache-2.0
// The host has no memory left: every operator new of a call fails in turn. The call then returns OUT_OF_MEMORY, or
// succeeds anyway, leaks nothing and does not affect later calls.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "robustness.hpp"
#include "tests/dlpack/dlpack.hpp"

namespace {

// Allocations of this thread that still succeed; negative: all do. libcompute takes operator new from this program.
thread_local int64_t allocations_left = -1;

std::atomic<int64_t> live_allocations{0};

bool may_allocate() {
  if (allocations_left < 0) return true;
  if (allocations_left == 0) return false;
  --allocations_left;
  return true;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (!may_allocate()) return nullptr;
  live_allocations.fetch_add(1, std::memory_order_relaxed);
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size == 0 ? 1 : size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void give_back(void* memory) noexcept {
  if (memory != nullptr) live_allocations.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocate_or_throw(size, 1); }
void* operator new[](std::size_t size) { return allocate_or_throw(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, std::size_t(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, std::size_t(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }

namespace robustness {
namespace {

// Makes the first, second, … allocation of `call` fail until it needs no more. Returns how many failures it took.
template <class F>
int64_t fail_each_allocation(F&& call) {
  for (int64_t n = 0;; ++n) {
    allocations_left = n;
    compute_error* error = call();
    const bool was_short = allocations_left == 0;
    allocations_left = -1;
    if (error != nullptr) {
      EXPECT_FAILS(error, COMPUTE_ERROR_OUT_OF_MEMORY);
    } else if (!was_short) {
      return n;
    }
    if (n > 20000) {
      ADD_FAILURE() << "it never succeeds";
      return n;
    }
  }
}

// The same several times. The last time nothing stays that was not there before, neither of the host nor of the device.
template <class F>
void fail_without_trace(const char* what, compute_device* device, F&& call) {
  const auto used = [&] {
    compute_device_statistics statistics{};
    statistics.struct_size = sizeof statistics;
    EXPECT_OK(compute_device_synchronize(device));
    EXPECT_OK(compute_device_get_statistics(device, &statistics));
    return statistics.memory_used;
  };
  for (int round = 0; round < 3; ++round) fail_each_allocation(call);  // now everything is cached
  const int64_t used_before = used(), live_before = live_allocations.load();
  const int64_t failures = fail_each_allocation(call);
  EXPECT_EQ(used(), used_before) << what;
  const auto has_trace = [&] { return live_allocations.load() - live_before > 2 + failures / 4; };
  // A thread that called back frees memory afterwards, on a busy machine late.
  for (int i = 0; i < 6000 && has_trace(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(has_trace()) << live_allocations.load() - live_before << " allocations are left of " << what
                            << ", which failed " << failures << " times";
}

// As run_op, but without allocating anything itself.
compute_error* run(const char* name, compute_stream* stream, std::initializer_list<compute_tensor*> inputs,
                   compute_tensor** output, const compute_attribute* attribute = nullptr) {
  const compute_op* op = nullptr;
  if (compute_error* error = compute_op_find(name, 0, &op)) return error;
  return compute_op_run(op, stream, attribute, attribute ? 1 : 0, inputs.begin(), static_cast<int64_t>(inputs.size()),
                        output, 1);
}

ISOLATED_TEST(HostMemory, TheInterposedAllocatorIsTheLibrarys) {
  const Device cpu = open("cpu");
  const int64_t shape[] = {4};
  allocations_left = 0;
  Tensor tensor;
  compute_error* error = compute_tensor_empty(cpu, COMPUTE_DTYPE_FLOAT32, 1, shape, tensor.out());
  allocations_left = -1;
  EXPECT_FAILS(error, COMPUTE_ERROR_OUT_OF_MEMORY);
}

class HostMemory : public testing::TestWithParam<const char*> {};

void wrap_without_memory() {
  // On error the deleter is not called; on success once.
  float wrapped[64] = {};
  int deleted = 0;
  int64_t successes = 0;
  const int64_t rows[] = {2, 2, 2, 2, 2, 2};  // more axes than fit into the tensor itself
  fail_each_allocation([&] {                  // the host device is found by the first that succeeds
    Tensor first;
    return compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 6, rows, nullptr, wrapped, COMPUTE_WRAP_EXPOSED, nullptr,
                                    nullptr, first.out());
  });
  fail_each_allocation([&] {
    Tensor outer, inner;
    const auto count = [](void*, void* user_data) { ++*static_cast<int*>(user_data); };
    compute_error* error = compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 6, rows, nullptr, wrapped,
                                                    COMPUTE_WRAP_EXPOSED, count, &deleted, outer.out());
    if (error != nullptr) return error;
    ++successes;
    error = compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 5, rows, nullptr, wrapped + 1, COMPUTE_WRAP_EXPOSED, count,
                                     &deleted, inner.out());
    successes += error == nullptr ? 1 : 0;
    return error;
  });
  EXPECT_GT(successes, 2);
  EXPECT_EQ(deleted, successes);
}

void record_without_memory(compute_stream* stream, compute_tensor* x) {
  fail_each_allocation([&] {
    Tensor y;
    Graph graph;
    compute_error* error = compute_graph_begin(stream, nullptr);
    if (error != nullptr) return error;
    error = run("square", stream, {x}, y.out());
    compute_error* ended = compute_graph_end(stream, graph.out());
    if (error != nullptr) {
      compute_error_free(ended);
      return error;
    }
    return ended;
  });
}

TEST_P(HostMemory, EveryAllocationOfACallMayFail) {
  const Outcome outcome = run_in_child([] {
    use_plugins({"minimal"});
    const Device device = open(GetParam()), cpu = open("cpu");
    const Stream stream = make_stream(device);
    const Tensor x = make_tensor<float>(device, {1, 2, 3, 4, 5, 6}, {2, 3});
    const Tensor host = make_tensor<float>(cpu, {1, 2, 3, 4, 5, 6}, {2, 3});
    const int64_t shape[] = {3, 2}, axis[] = {1};
    const compute_attribute axes = int_attribute("axes", axis, 1);

    fail_each_allocation([&] {
      Tensor tensor;
      return compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, 2, shape, tensor.out());
    });
    fail_each_allocation([&] {
      Tensor view;
      return compute_tensor_permute(x, 2, nullptr, view.out());
    });
    fail_each_allocation([&] {
      Stream other;
      return compute_stream_create(device, nullptr, other.out());
    });
    compute_stream_options untracked_options = {};
    untracked_options.struct_size = sizeof untracked_options;
    untracked_options.flags = COMPUTE_STREAM_UNTRACKED;
    Stream untracked;
    ASSERT_OK(compute_stream_create(device, &untracked_options, untracked.out()));
    fail_each_allocation([&] {
      Tensor y;
      return run("square", untracked, {x}, y.out());
    });
    for (const char* name : {"exp", "negative", "round"}) {
      fail_each_allocation([&] {
        Tensor y;
        return run(name, stream, {x}, y.out());
      });
    }
    fail_each_allocation([&] {
      Tensor y;
      return run("var", stream, {x}, y.out(), &axes);
    });
    fail_each_allocation([&] {
      Tensor y;
      return run("add", stream, {x, host}, y.out());  // a mirror
    });
    fail_each_allocation([&] {
      Tensor y;
      return compute_tensor_to_device(host, device, y.out());
    });
    wrap_without_memory();
    fail_each_allocation([&] {
      const char* names[] = {"a"};
      Expression expression;
      return compute_expression_parse("tanh(a*a + 1)", names, 1, nullptr, 0, expression.out());
    });
    fail_each_allocation([&] {
      Event event;
      return compute_event_record(stream, nullptr, event.out());
    });
    fail_each_allocation([&] {
      compute_text* text = nullptr;
      compute_error* error = compute_device_which("cpu", COMPUTE_FORMAT_JSON, &text);
      compute_text_free(text);
      return error;
    });
    record_without_memory(stream, x);
    EXPECT_OK(compute_stream_synchronize(stream));
    Tensor y;
    EXPECT_OK(run_op("add", stream, {x, x}, y.out()));
    EXPECT_EQ(read<float>(y), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

void exchange_without_memory(compute_device* device, compute_tensor* x) {
  int exports = 0;
  const auto to_dlpack = [&] {
    DLManagedTensorVersioned* managed = nullptr;
    compute_error* error = compute_tensor_to_dlpack(x, -1, &managed);
    EXPECT_EQ(managed == nullptr, error != nullptr);
    if (managed != nullptr) managed->deleter(managed);
    exports += error == nullptr ? 1 : 0;
    return error;
  };
  DLManagedTensorVersioned* managed = nullptr;
  if (code_of(compute_tensor_to_dlpack(x, -1, &managed)) == COMPUTE_OK) {
    managed->deleter(managed);
    fail_without_trace("to_dlpack", device, to_dlpack);
    EXPECT_GT(exports, 2);
  }

  float foreign[6] = {1, 2, 3, 4, 5, 6};
  int64_t extents[] = {2, 3};
  int deleted = 0, imports = 0;
  DLManagedTensorVersioned theirs{};
  theirs.version = {1, 0};
  theirs.manager_ctx = &deleted;
  theirs.deleter = [](DLManagedTensorVersioned* self) { ++*static_cast<int*>(self->manager_ctx); };
  theirs.dl_tensor.data = foreign;
  theirs.dl_tensor.device = {1, 0};  // kDLCPU
  theirs.dl_tensor.ndim = 2;
  theirs.dl_tensor.dtype = {2, 32, 1};  // kDLFloat
  theirs.dl_tensor.shape = extents;
  fail_without_trace("from_dlpack", device, [&] {
    Tensor taken;
    compute_error* error = compute_tensor_from_dlpack(&theirs, taken.out());
    imports += error == nullptr ? 1 : 0;
    return error;
  });
  EXPECT_GT(imports, 2);
  EXPECT_EQ(deleted, imports);
}

// What is handed over: to and from DLPack, to a callback, to a graph. Each is done once per success, and never else.
TEST_P(HostMemory, NothingIsHandedOverTwiceOrNotAtAll) {
  const Outcome outcome = run_in_child([] {
    use_plugins({"minimal"});
    const Device device = open(GetParam());
    const Stream stream = make_stream(device);
    const Tensor x = make_tensor<float>(device, {1, 2, 3, 4, 5, 6}, {2, 3});
    const auto in_turn = [&](const char* what, auto call) { fail_without_trace(what, device, call); };

    exchange_without_memory(device, x);

    static std::atomic<int> called;
    called = 0;
    int accepted = 0;
    const auto wait_for_calls = [&] {
      for (int i = 0; i < 6000 && called < accepted; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // for the callback's thread to free memory
    };
    in_turn("notify", [&] {
      const auto count = [](const compute_error* error, void*) { called += error == nullptr ? 1 : 100; };
      compute_error* error = compute_stream_notify(stream, count, nullptr);
      if (error != nullptr) return error;
      ++accepted;
      wait_for_calls();
      return error;
    });
    EXPECT_GT(accepted, 2);
    EXPECT_EQ(called, accepted);

    const Tensor at = make_tensor<int32_t>(device, {1}, {1, 1}), update = make_tensor<float>(device, {9}, {1, 1});
    in_turn("scatter", [&] {
      Tensor y;
      return run("scatter", stream, {x, at, update}, y.out());
    });

    Tensor slot, y;
    Graph graph;
    EXPECT_OK(compute_tensor_slot(COMPUTE_DTYPE_FLOAT32, slot.out()));
    EXPECT_OK(compute_graph_begin(stream, nullptr));
    EXPECT_OK(run("multiply", stream, {x, slot}, y.out()));
    EXPECT_OK(compute_graph_end(stream, graph.out()));
    const float two = 2;
    in_turn("graph_set_slot", [&] { return compute_graph_set_slot(graph, slot, &two); });
    in_turn("graph_run", [&] { return compute_graph_run(graph, stream); });
    in_turn("graph_get_info", [&] {
      compute_graph_info info{};
      info.struct_size = sizeof info;
      return compute_graph_get_info(graph, &info);
    });
    EXPECT_OK(compute_stream_synchronize(stream));
    EXPECT_EQ(read<float>(y), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

// Functions that look, name and make views.
TEST_P(HostMemory, NothingIsLostWhereALookHasNoMemory) {
  const Outcome outcome = run_in_child([] {
    use_plugins({"minimal"});
    const Device device = open(GetParam());
    const Stream stream = make_stream(device), other = make_stream(device);
    const Tensor x = make_tensor<float>(device, {1, 2, 3, 4, 5, 6}, {2, 3});
    const auto in_turn = [&](const char* what, auto call) { fail_without_trace(what, device, call); };
    const int64_t flat[] = {6}, tall[] = {4, 2, 3}, row[] = {3}, step[] = {1};

    in_turn("views", [&] {
      Tensor a, b, c, d, e;
      compute_error* error = compute_tensor_reshape(x, 1, flat, a.out());
      if (error == nullptr) error = compute_tensor_broadcast(x, 3, tall, b.out());
      if (error == nullptr) error = compute_tensor_expand(x, 0, c.out());
      if (error == nullptr) error = compute_tensor_squeeze(c, 0, d.out());
      if (error == nullptr) error = compute_tensor_view(x, COMPUTE_DTYPE_INT32, 1, row, step, 0, e.out());
      return error;
    });
    in_turn("slot", [&] {
      Tensor slot;
      return compute_tensor_slot(COMPUTE_DTYPE_FLOAT32, slot.out());
    });
    in_turn("scope", [&] {
      compute_error* error = compute_scope_push("train", "main.c", 12);
      return error != nullptr ? error : compute_scope_pop();
    });
    in_turn("event", [&] {
      Event event;
      compute_error* error = compute_event_record(stream, nullptr, event.out());
      if (error == nullptr) error = compute_event_wait(event, other);
      return error != nullptr ? error : compute_event_synchronize(event);
    });
    in_turn("device_list", [&] {
      compute_device_info infos[8]{};
      infos[0].struct_size = sizeof infos[0];
      int64_t count = 0;
      return compute_device_list(infos, 8, &count);
    });
    in_turn("device_attributes", [&] {
      compute_device_attribute attributes[32]{};
      attributes[0].struct_size = sizeof attributes[0];
      int64_t count = 0;
      return compute_device_attributes(GetParam(), attributes, 32, &count);
    });
    in_turn("op_query", [&] {
      const compute_op* op = nullptr;
      if (compute_error* error = compute_op_find("var", 0, &op)) return error;
      const compute_tensor_spec spec = {
          sizeof spec, COMPUTE_STRUCT_TENSOR_SPEC, nullptr, COMPUTE_DTYPE_FLOAT32, 3, tall, nullptr, 0, 0};
      compute_support support = {};
      support.struct_size = sizeof support;
      compute_error* error = compute_op_query(device, op, nullptr, 0, &spec, 1, nullptr, 0, &support);
      compute_text_free(support.text);
      return error;
    });
    in_turn("waits", [&] {
      int32_t finished = 0;
      compute_error* error = compute_tensor_synchronize(x);
      if (error == nullptr) error = compute_stream_query(stream, &finished);
      if (error == nullptr) error = compute_stream_wait_for(stream, 1000, &finished);
      return error != nullptr ? error : compute_device_synchronize(device);
    });
    EXPECT_EQ(read<float>(x), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

// The thread sanitizer, with which it takes minutes, sees the device with the most threads.
std::vector<const char*> devices_without_memory() {
  std::vector<const char*> devices = devices_with_ops();
  if (kThreadSanitizer) devices.resize(1);
  return devices;
}

INSTANTIATE_TEST_SUITE_P(HostMemory, HostMemory, testing::ValuesIn(devices_without_memory()),
                         [](const auto& info) { return std::string(info.param); });

// Plans, expressions and reports.
void prepare_without_memory(compute_device* device, compute_stream* stream, compute_tensor* x) {
  fail_without_trace("plan", device, [&] {
    const compute_op* op = nullptr;
    if (compute_error* error = compute_op_find("exp", 0, &op)) return error;
    compute_tensor *input = x, *given = nullptr;
    Plan plan;
    if (compute_error* error = compute_plan_create(device, op, nullptr, 0, &input, 1, &given, 1, plan.out()))
      return error;
    Tensor y;
    return compute_plan_run(plan, stream, nullptr, 0, &input, 1, y.out(), 1);
  });
  const char* names[] = {"a"};
  fail_without_trace("expression", device, [&] {
    Expression parsed;
    return compute_expression_parse("tanh(a*a + 1)", names, 1, nullptr, 0, parsed.out());
  });
  Expression expression;
  EXPECT_OK(compute_expression_parse("tanh(a*a + 1)", names, 1, nullptr, 0, expression.out()));
  fail_without_trace("map of an expression", device, [&] {
    compute_tensor* input = x;
    Tensor y;
    return compute_map(stream, expression, &input, 1, nullptr, 0, y.out(), 1);
  });
  fail_without_trace("load report", device, [&] {
    compute_text* text = nullptr;
    compute_error* error = compute_load_report(COMPUTE_FORMAT_JSON, &text);
    compute_text_free(text);
    return error;
  });
  fail_without_trace("placement report", device, [&] {
    compute_text* text = nullptr;
    compute_error* error = compute_placement_report(COMPUTE_FORMAT_JSON, &text);
    compute_text_free(text);
    return error;
  });
}

TEST_P(HostMemory, NothingIsLostWhereACallHasNoMemory) {
  const Outcome outcome = run_in_child([] {
    use_plugins({"minimal"});
    const Device device = open(GetParam());
    const Stream stream = make_stream(device);
    const Tensor x = make_tensor<float>(device, {1, 2, 3, 4, 5, 6}, {2, 3}),
                 square = make_full<float>(device, {3, 3}, 2);
    const Tensor result = make_full<float>(device, {2, 3}, 0);
    const Tensor indices = make_tensor<int32_t>(device, {1, 0});
    const int64_t shape[] = {2, 3}, zero[] = {0, 0}, one[] = {1, 1};
    float values[6] = {1, 2, 3, 4, 5, 6};
    const auto in_turn = [&](const char* what, auto call) { fail_without_trace(what, device, call); };

    in_turn("full", [&] {
      Tensor made;
      return compute_tensor_full(device, COMPUTE_DTYPE_FLOAT32, 2, shape, values, made.out());
    });
    in_turn("from_host", [&] {
      Tensor made;
      return compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 2, shape, values, made.out());
    });
    in_turn("read", [&] { return compute_tensor_read(x, values, sizeof values); });
    in_turn("write", [&] { return compute_tensor_write(result, values, sizeof values); });
    in_turn("read_async", [&] {
      compute_error* error = compute_tensor_read_async(x, values, sizeof values, stream);
      return error != nullptr ? error : compute_stream_synchronize(stream);
    });
    in_turn("map", [&] {
      void* data = nullptr;
      int32_t is_copy = 0;
      compute_error* error = compute_tensor_map(result, COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE, &data, &is_copy);
      return error != nullptr ? error : compute_tensor_unmap(result, data);
    });
    in_turn("slice", [&] {
      Tensor view;
      return compute_tensor_slice(x, 2, zero, one, one, view.out());
    });
    in_turn("scalar", [&] {
      Tensor scalar;
      return compute_tensor_scalar(COMPUTE_DTYPE_FLOAT32, values, 0, scalar.out());
    });
    in_turn("matmul", [&] {
      Tensor y;
      return run("matmul", stream, {x, square}, y.out());
    });
    in_turn("take", [&] {
      Tensor y;
      return run("take", stream, {x, indices}, y.out());
    });
    in_turn("concat", [&] {
      Tensor y;
      return run("concat", stream, {x, x}, y.out());
    });
    in_turn("add_into", [&] {
      compute_tensor* output = result;
      return run("add", stream, {x, x}, &output);
    });
    prepare_without_memory(device, stream, x);
    EXPECT_OK(compute_stream_synchronize(stream));
    EXPECT_EQ(read<float>(x), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(read<float>(result), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

}  // namespace
}  // namespace robustness
