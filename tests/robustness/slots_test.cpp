// SPDX-License-Identifier: Apache-2.0
// Every slot of a plugin's tables, broken in every possible way: the program continues, and the message names plugin
// and slot.
#include <compute/plugin.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <type_traits>

#include "robustness.hpp"
#include "tests/dlpack/dlpack.hpp"

namespace robustness {
namespace {

template <class Slot>
constexpr bool kGivesError = false;
template <class... Arguments>
constexpr bool kGivesError<compute_error* (*)(Arguments...)> = true;

struct SlotRow {
  std::string table, name;
  bool gives_error;
};

const std::vector<SlotRow>& slots() {
  static const std::vector<SlotRow> rows = {
#define COMPUTE_PLUGIN_SLOT(table, slot, need) {#table, #slot, kGivesError<decltype(table::slot)>},
#include "core/loading/plugin_slots.def"
#undef COMPUTE_PLUGIN_SLOT
  };
  return rows;
}

// What cannot be broken here, and why.
const std::map<std::string, std::string> kLeftOut = {
    {"compute_plugin_device_table.memory_info", "read where memory is limited by what is free alone"},
    {"compute_plugin_device_table.stream_wait_host", "unit_core.HostWaits calls it"},
    {"compute_plugin_device_table.signal_host_wait", "unit_core.HostWaits calls it"},
    {"compute_plugin_ops_table.list", "the faulty plugin breaks no extensions"},
    {"compute_plugin_kernel_table.compile", "the faulty plugin has no kernels"},
    {"compute_plugin_kernel_table.launch", "the faulty plugin has no kernels"},
    {"compute_plugin_kernel_table.release", "the faulty plugin has no kernels"},
    {"compute_plugin_graph_table.create", "the faulty plugin has no graphs"},
    {"compute_plugin_graph_table.run", "the faulty plugin has no graphs"},
    {"compute_plugin_graph_table.release", "the faulty plugin has no graphs"},
    {"compute_plugin_native_table.device_handle", "the faulty plugin has no native handles"},
    {"compute_plugin_native_table.stream_handle", "the faulty plugin has no native handles"},
    {"compute_plugin_native_table.buffer_handle", "the faulty plugin has no native handles"},
    {"compute_plugin_external_table.memory_create", "the faulty plugin breaks no extensions"},
    {"compute_plugin_external_table.memory_import", "the faulty plugin breaks no extensions"},
    {"compute_plugin_external_table.semaphore_create", "the faulty plugin breaks no extensions"},
    {"compute_plugin_external_table.semaphore_import", "the faulty plugin breaks no extensions"},
    {"compute_plugin_external_table.semaphore_release", "the faulty plugin breaks no extensions"},
    {"compute_plugin_external_table.semaphore_signal", "the faulty plugin breaks no extensions"},
    {"compute_plugin_external_table.semaphore_wait", "the faulty plugin breaks no extensions"},
    {"compute_plugin_collective_table.make_id", "the faulty plugin has no collectives"},
    {"compute_plugin_collective_table.join", "the faulty plugin has no collectives"},
    {"compute_plugin_collective_table.supports", "the faulty plugin has no collectives"},
    {"compute_plugin_collective_table.run", "the faulty plugin has no collectives"},
    {"compute_plugin_collective_table.failure", "the faulty plugin has no collectives"},
    {"compute_plugin_collective_table.abort", "the faulty plugin has no collectives"},
    {"compute_plugin_collective_table.leave", "the faulty plugin has no collectives"},
    {"compute_plugin_collective_table.describe", "the faulty plugin has no collectives"},
};

// Faults specific to a slot, and the expected message.
const std::multimap<std::string, std::pair<std::string, std::string>> kOwnBreakages = {
    {"memory_allocate", {"zero", "returned 0"}}, {"stream_create", {"zero", "returned 0"}},
    {"memory_map", {"zero", "returned NULL"}},   {"stream_reached", {"beyond", "last mark"}},
    {"stream_sync", {"beyond", "last mark"}},    {"stream_sync", {"lie", "without a time limit"}},
};

void say(compute_error* error) {
  if (error == nullptr) return;
  std::fprintf(stderr, "[%s] %s\n", compute_error_code_name(compute_error_get_code(error)),
               compute_error_message(error));
  compute_error_free(error);
}

void import_memory() {
  static int64_t shape[] = {4};
  static float data[4];
  DLManagedTensorVersioned managed = {};
  managed.version = {1, 0};
  managed.dl_tensor.data = data;
  managed.dl_tensor.device = {12, 0};
  managed.dl_tensor.ndim = 1;
  managed.dl_tensor.dtype = {2, 32, 1};
  managed.dl_tensor.shape = shape;
  Tensor tensor;
  say(compute_tensor_from_dlpack(&managed, tensor.out()));
}

// From an event on one device to an event on another.
void measure_time(compute_stream* stream, compute_device* second) {
  const compute_event_options timed = {sizeof timed, COMPUTE_STRUCT_EVENT_OPTIONS, nullptr, COMPUTE_EVENT_TIMED, 0};
  Stream other;
  Event start, end;
  say(compute_stream_create(second, nullptr, other.out()));
  say(compute_event_record(stream, &timed, start.out()));
  if (other.get() != nullptr) say(compute_event_record(other, &timed, end.out()));
  int64_t ns = 0;
  if (start.get() != nullptr && end.get() != nullptr) say(compute_event_elapsed(start, end, &ns));
}

void ask_for_square(compute_device* device) {
  const compute_op* op = nullptr;
  say(compute_op_find("square", 0, &op));
  const int64_t shape[] = {1000};
  const compute_tensor_spec spec = {
      sizeof spec, COMPUTE_STRUCT_TENSOR_SPEC, nullptr, COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, 0, 0};
  compute_support support = {};
  support.struct_size = sizeof support;
  say(compute_op_query(device, op, nullptr, 0, &spec, 1, nullptr, 0, &support));
  compute_text_free(support.text);
}

void prepare_square(compute_device* device, compute_tensor* x) {
  const compute_op* op = nullptr;
  say(compute_op_find("square", 0, &op));
  compute_tensor* output = nullptr;
  compute_plan* plan = nullptr;
  say(compute_plan_create(device, op, nullptr, 0, &x, 1, &output, 1, &plan));
  compute_plan_release(plan);
}

void cancel_stream(compute_device* device) {
  Stream stream;
  say(compute_stream_create(device, nullptr, stream.out()));
  if (stream.get() != nullptr) say(compute_stream_cancel(stream));
}

// Enters every slot.
void use_everything(bool shuts_down) {
  {
    Device device, second;
    say(compute_device_open("faulty0", device.out()));
    if (device.get() == nullptr) return;
    say(compute_device_open("faulty1", second.out()));
    if (const pid_t child = fork(); child == 0) {
      _exit(0);
    } else {
      int status = 0;
      waitpid(child, &status, 0);
    }
    Stream a, b;
    say(compute_stream_create(device, nullptr, a.out()));
    say(compute_stream_create(device, nullptr, b.out()));
    const int64_t shape[] = {1000};
    const float two = 2;
    Tensor x, y, z, moved;
    say(compute_tensor_full(device, COMPUTE_DTYPE_FLOAT32, 1, shape, &two, x.out()));
    const std::vector<float> values(1000, 3.0f);
    if (x.get() != nullptr) say(compute_tensor_write(x, values.data(), 4000));
    compute_device_telemetry telemetry = {sizeof telemetry, COMPUTE_STRUCT_DEVICE_TELEMETRY, nullptr, 0, 0, 0, 0, 0};
    say(compute_device_get_telemetry(device, &telemetry));
    ask_for_square(device);
    if (x.get() != nullptr) prepare_square(device, x);
    cancel_stream(device);
    if (x.get() != nullptr && a.get() != nullptr) say(run_op("square", a, {x}, y.out()));
    if (y.get() != nullptr && b.get() != nullptr) say(run_op("negative", b, {y}, z.out()));
    int32_t finished = 0;
    if (a.get() != nullptr) say(compute_stream_query(a, &finished));
    if (b.get() != nullptr) say(compute_stream_query(b, &finished));
    if (b.get() != nullptr) say(compute_stream_synchronize(b));
    if (a.get() != nullptr && second.get() != nullptr) measure_time(a, second);
    std::vector<float> back(1000);
    if (x.get() != nullptr) say(compute_tensor_read(x, back.data(), 4000));
    void* data = nullptr;
    int32_t is_copy = 0;
    if (x.get() != nullptr) say(compute_tensor_map(x, COMPUTE_ACCESS_READ, &data, &is_copy));
    if (data != nullptr) say(compute_tensor_unmap(x, data));
    if (x.get() != nullptr && second.get() != nullptr) say(compute_tensor_to_device(x, second, moved.out()));
    compute_kernel* kernel = nullptr;
    say(compute_kernel_compile(device, "portable", "", -1, "f", nullptr, &kernel));
    import_memory();
  }
  int32_t drained = 0;
  if (shuts_down) say(compute_shutdown(1'000'000'000, &drained));
}

void expect_named(const SlotRow& slot, const std::string& action, const std::string& words) {
  SCOPED_TRACE(slot.table + "." + slot.name + "=" + action);
  const Outcome outcome = run_in_child([&] {
    use_plugins({"faulty"});
    setenv("COMPUTE_MINIMAL_HOST_VISIBLE", "1", 1);
    set_faults(slot.name + "=" + action);
    use_everything(slot.name != "on_exit");
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.status << "\n" << outcome.output;
  if (slot.name == "on_fork_child") return;  // nothing can be said there
  const size_t place = outcome.output.find("plugin faulty: " + slot.name);
  ASSERT_NE(place, std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find(words, place), std::string::npos) << outcome.output;
}

// In the tables, or left out for a reason: a slot that is added to plugin.h has to be dealt with here.
TEST(Slots, WhatIsLeftOutIsThere) {
  for (const auto& [name, reason] : kLeftOut) {
    const bool is_there = std::any_of(slots().begin(), slots().end(),
                                      [&](const SlotRow& row) { return row.table + "." + row.name == name; });
    EXPECT_TRUE(is_there) << name;
  }
}

void break_each(const std::string& action, const std::string& words, bool errors_only) {
  for (const SlotRow& slot : slots()) {
    if (kLeftOut.contains(slot.table + "." + slot.name) || (errors_only && !slot.gives_error)) continue;
    expect_named(slot, action, words);
  }
}

TEST(Slots, WhatIsThrownBecomesARejection) { break_each("throw", "threw an exception", false); }
TEST(Slots, AnErrorIsGivenAwayOnce) { break_each("stale", "returned before", true); }
TEST(Slots, APointerThatIsNoErrorIsNotTouched) { break_each("bogus", "did not create", true); }

TEST(Slots, WhatTheyWriteIsChecked) {
  for (const SlotRow& slot : slots()) {
    const auto [first, last] = kOwnBreakages.equal_range(slot.name);
    for (auto row = first; row != last; ++row) expect_named(slot, row->second.first, row->second.second);
  }
}

}  // namespace
}  // namespace robustness
