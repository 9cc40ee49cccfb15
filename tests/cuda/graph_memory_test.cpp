// SPDX-License-Identifier: Apache-2.0
// The memory of graphs whose kernels check indices, in the plugin's own classes: on the fake driver or a real
// one.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fake_cuda.hpp"
#include "plugins/cuda/compiler.hpp"
#include "plugins/cuda/device.hpp"
#include "plugins/cuda/graph.hpp"
#include "plugins/cuda/kernel_table.hpp"
#include "plugins/cuda/libraries.hpp"
#include "plugins/cuda/plan.hpp"
#include "plugins/cuda/stream.hpp"

using namespace compute::cuda;

namespace compute::cuda {
namespace {

// What core would give: here an error is its message.
std::string last_error;

compute_error* new_error(const compute_plugin_error_info* info) {
  last_error.assign(info->message.data, static_cast<size_t>(info->message.size));
  return reinterpret_cast<compute_error*>(&last_error);
}

void give_core() {
  compute_plugin_core core{};
  core.table_size = sizeof core;
  core.error_new = new_error;
  common::set_core(&core);
}

// Writes the code of an index out of range to the record.
constexpr const char* kReport =
    ".version 6.3\n.target sm_50\n.address_size 64\n"
    ".visible .entry report(.param .u64 record, .param .u64 code) {\n"
    "  .reg .b64 %record, %code;\n  .reg .b32 %low;\n"
    "  ld.param.u64 %record, [record];\n  ld.param.u64 %code, [code];\n"
    "  cvt.u32.u64 %low, %code;\n  st.global.u32 [%record], %low;\n  ret;\n}\n";

// A plan of one kernel, which reports `code`.
class ReportingPlan final : public Plan {
 public:
  ReportingPlan() {
    Program program;
    program.code = kReport;
    program.entry = "report";
    kernel_ = load(program);
    reports_faults = true;
  }
  ~ReportingPlan() override { cu.module_unload(kernel_.module); }

  void run(const compute_plugin_run&, Stream&) const override { FAIL() << "graphs have it as a node"; }
  void add_to(GraphBuilder& graph, const compute_plugin_run& run, const int32_t*) const override {
    GraphKernel node;
    node.kernel = &kernel_;
    node.grid = {1, 1};
    const uint64_t record = reinterpret_cast<uintptr_t>(graph.memory()->fault_record);
    node.words = {run.fault.buffer != 0 ? run.fault.buffer : record, code};
    graph.add(std::move(node));
  }

  uint64_t code = COMPUTE_PLUGIN_FAULT_NONE;

 private:
  Kernel kernel_;
};

class CudaGraphMemory : public testing::Test {
 protected:
  void SetUp() override {
    give_core();
    if (!open_driver()) GTEST_SKIP() << driver_report().remedy;
    device.emplace(read_devices().at(0));
    current.emplace(device->context(), true);
    plan.emplace();
    runs_kernels = device->info().name.rfind("Fake", 0) != 0;
    std::printf("graphs run on %s\n", runs_kernels ? "a GPU" : "the fake driver");
  }
  void TearDown() override {
    plan.reset();
    current.reset();
    device.reset();
  }

  std::unique_ptr<Graph> graph(const compute_plugin_fault* record = nullptr) {
    compute_plugin_run run{};
    run.struct_size = sizeof run;
    run.fault.buffer = reinterpret_cast<uintptr_t>(record);
    compute_plugin_graph_node node{};
    node.struct_size = sizeof node;
    node.kind = COMPUTE_PLUGIN_GRAPH_NODE_RUN;
    node.plan = reinterpret_cast<uintptr_t>(&*plan);
    node.run = &run;
    compute_plugin_graph made{};
    made.struct_size = sizeof made;
    made.nodes = &node;
    made.node_count = 1;
    return std::make_unique<Graph>(*device, made);
  }

  // The record of the graph that is made next, if its memory is the last that was released.
  compute_plugin_fault* next_record() {
    const LaunchMemory memory = device->take_launch_memory();
    device->give_launch_memory(memory);
    return memory.fault_record;
  }

  // Runs it and waits. The error, "" if there is none.
  std::string run(Graph& graph, Stream& stream, uint64_t number) {
    graph.run(stream, nullptr);
    return finish(stream, number);
  }
  static std::string finish(Stream& stream, uint64_t number) {
    stream.mark(number, false);
    compute_error* error = nullptr;
    const uint64_t reached = stream.sync(number, INT64_MAX, &error);
    EXPECT_EQ(reached, error == nullptr ? number : number - 1);
    return error == nullptr ? "" : last_error;
  }

  std::optional<Device> device;
  std::optional<Current> current;
  std::optional<ReportingPlan> plan;
  bool runs_kernels = false;
};

TEST_F(CudaGraphMemory, IsGivenBackWithTheGraph) {
  Stream stream(*device, 0);
  compute_plugin_fault* const record = next_record();
  for (uint64_t number = 1; number < 200; ++number) {
    EXPECT_EQ(run(*graph(), stream, number), "");
    ASSERT_EQ(next_record(), record) << "after " << number << " graphs";
  }
}

TEST_F(CudaGraphMemory, IsCheckedAsLongAsTheGraphExists) {
  Stream stream(*device, 0), other(*device, 0);
  compute_plugin_fault* const record = next_record();
  plan->code = COMPUTE_PLUGIN_FAULT_INDEX;
  const std::unique_ptr<Graph> made = graph();
  made->run(stream, nullptr);
  if (!runs_kernels) record->code = COMPUTE_PLUGIN_FAULT_INDEX;
  EXPECT_NE(finish(stream, 1).find("out of range"), std::string::npos);
  EXPECT_EQ(record->code, COMPUTE_PLUGIN_FAULT_NONE);
  EXPECT_EQ(finish(other, 1), "");
}

// The memory then belongs to somebody else, and so do its faults.
TEST_F(CudaGraphMemory, IsNotCheckedByStreamsAfterwards) {
  Stream stream(*device, 0);
  EXPECT_EQ(run(*graph(), stream, 1), "");
  const LaunchMemory memory = device->take_launch_memory();
  memory.fault_record->code = COMPUTE_PLUGIN_FAULT_INDEX;
  EXPECT_EQ(finish(stream, 2), "");
  EXPECT_EQ(memory.fault_record->code, COMPUTE_PLUGIN_FAULT_INDEX);
  *memory.fault_record = {};
  device->give_launch_memory(memory);
}

TEST_F(CudaGraphMemory, OutlivesAStream) {
  const std::unique_ptr<Graph> made = graph();
  for (int i = 0; i < 3; ++i) {
    Stream stream(*device, 0);
    EXPECT_EQ(run(*made, stream, 1), "");
  }
}

// Core checks its own records, and nothing reports to the graph's.
TEST_F(CudaGraphMemory, IsNotCheckedIfRunsHaveRecords) {
  const LaunchMemory of_core = device->take_launch_memory();
  plan->code = COMPUTE_PLUGIN_FAULT_INDEX;
  Stream stream(*device, 0);
  compute_plugin_fault* const own = next_record();
  const std::unique_ptr<Graph> made = graph(of_core.fault_record);
  own->code = COMPUTE_PLUGIN_FAULT_INDEX;
  made->run(stream, nullptr);
  if (!runs_kernels) of_core.fault_record->code = COMPUTE_PLUGIN_FAULT_INDEX;
  EXPECT_EQ(finish(stream, 1), "");
  EXPECT_EQ(of_core.fault_record->code, COMPUTE_PLUGIN_FAULT_INDEX);
  EXPECT_EQ(own->code, COMPUTE_PLUGIN_FAULT_INDEX);
  *of_core.fault_record = {};
  device->give_launch_memory(of_core);
}

// ---- Failures of the driver -----------------------------------------------------------------------------------------

template <class Function>
Function fake(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library != nullptr ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

TEST_F(CudaGraphMemory, IsNotTakenByStreamsThatAreNotMade) {
  const auto fail = fake<FakeFail>("fake_cuda_fail");
  if (fail == nullptr) GTEST_SKIP() << "needs the fake driver";
  compute_plugin_fault* const record = next_record();
  fail("cuStreamCreateWithPriority", 1);
  EXPECT_THROW(Stream(*device, 0), Error);
  EXPECT_EQ(next_record(), record);
  for (const char* function : {"cuStreamCreateWithPriority", "cuGraphCreate", "cuGraphInstantiateWithFlags"}) {
    fail(function, 1);
    EXPECT_THROW(graph(), Error) << function;
    // The graph's own stream gives its memory back after the graph.
    std::vector<LaunchMemory> taken = {device->take_launch_memory(), device->take_launch_memory()};
    EXPECT_TRUE(taken[0].fault_record == record || taken[1].fault_record == record) << function;
    for (const LaunchMemory& memory : taken) device->give_launch_memory(memory);
  }
}

TEST_F(CudaGraphMemory, IsFreedIfItCannotBeMadeReady) {
  const auto fail = fake<FakeFail>("fake_cuda_fail");
  if (fail == nullptr) GTEST_SKIP() << "needs the fake driver";
  const auto used = fake<FakeUsedBytes>("fake_cuda_used_bytes");
  const auto blocks = fake<FakeHostBlocks>("fake_cuda_host_blocks");
  const int64_t used_before = used(), blocks_before = blocks();
  for (const char* function : {"cuMemHostAlloc", "cuMemAlloc_v2", "cuMemsetD8Async", "cuStreamSynchronize"}) {
    fail(function, 1);
    EXPECT_THROW(device->take_launch_memory(), Error) << function;
    EXPECT_EQ(used(), used_before) << function;
    EXPECT_EQ(blocks(), blocks_before) << function;
  }
  device->give_launch_memory(device->take_launch_memory());
}

// ---- Threads --------------------------------------------------------------------------------------------------------

// Other threads ask a stream how far it is while graphs that ran on it come and go.
TEST_F(CudaGraphMemory, ComesAndGoesWhileStreamsAreAsked) {
  Stream stream(*device, 0);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> askers;
  for (int i = 0; i < 2; ++i) {
    askers.emplace_back([&] {
      while (!is_over.load()) {
        compute_error* error = nullptr;
        stream.reached(&error);
        EXPECT_EQ(error, nullptr);
      }
    });
  }
  for (uint64_t number = 1; number < 300; ++number) {
    const std::unique_ptr<Graph> first = graph(), second = graph();
    first->run(stream, nullptr);
    EXPECT_EQ(run(*second, stream, number), "");
  }
  is_over.store(true);
  for (std::thread& asker : askers) asker.join();
}

}  // namespace
}  // namespace compute::cuda
