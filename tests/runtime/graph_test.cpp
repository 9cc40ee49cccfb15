// SPDX-License-Identifier: Apache-2.0
// Graphs: recording executes nothing, replay computes, slots change between runs, and what cannot be recorded says so.
#include "runtime.hpp"

namespace {

using compute::Graph;
using compute::Stream;
using compute::Tensor;
using namespace runtime;

class Graphs : public ::testing::TestWithParam<const char*> {
 protected:
  compute::Device device() const { return compute::Device::open(GetParam()); }
};

TEST_P(Graphs, AReleasedStreamTakesItsRecordingAlong) {
  const compute::Device device = compute::Device::open(GetParam());
  const compute::Tensor x = device.from_host(iota(4));
  for (int i = 0; i < 4; ++i) {
    {
      const compute::Stream abandoned(device);
      auto options = compute::sized<compute_graph_options>();
      options.struct_type = COMPUTE_STRUCT_GRAPH_OPTIONS;
      options.flags = 1;
      EXPECT_EQ(thrown_by([&] { compute::check(compute_graph_begin(abandoned.get(), &options)); }).code,
                COMPUTE_ERROR_UNSUPPORTED);
      options.flags = 0;
      compute::check(compute_graph_begin(abandoned.get(), &options));
      static_cast<void>(compute::negative(x, abandoned));
    }
    const compute::Stream next(device);
    EXPECT_EQ(compute::negative(x, next).to_vector<float>()[3], -3);
    compute_graph* graph = nullptr;
    EXPECT_EQ(thrown_by([&] { compute::check(compute_graph_end(next.get(), &graph)); }).code,
              COMPUTE_ERROR_INVALID_ARGUMENT);
  }
}

TEST_P(Graphs, ReplayComputesWithTheInputsOfTheMoment) {
  const Stream stream(device());
  Tensor x = device().from_host(iota(100));
  Tensor y;
  const auto before = device().statistics();
  const Graph graph = Graph::record(stream, [&] { y = compute::add(compute::multiply(x, x, stream), 1.0f, stream); });
  EXPECT_EQ(device().statistics().ops_run, before.ops_run) << "recording runs nothing";
  graph.run(stream);
  EXPECT_EQ(y.to_vector<float>()[9], 82.0f);
  const std::vector<float> other(100, 3);
  x.write(other.data(), 400);
  graph.run(stream);
  EXPECT_EQ(y.to_vector<float>()[9], 10.0f);
}

TEST_P(Graphs, SlotsChangeBetweenRuns) {
  const Stream stream(device());
  const Tensor x = device().from_host(iota(10));
  compute_tensor* made = nullptr;
  compute::check(compute_tensor_slot(COMPUTE_DTYPE_FLOAT32, &made));
  const Tensor slot(made);
  Tensor y;
  const Graph graph = Graph::record(stream, [&] { y = compute::multiply(x, slot, stream); });
  for (const float factor : {2.0f, -3.0f}) {
    graph.set_slot(slot, factor);
    graph.run(stream);
    EXPECT_EQ(y.to_vector<float>()[9], 9.0f * factor);
  }
  const Tensor stranger = Tensor::scalar(1.0f);
  EXPECT_EQ(thrown_by([&] { graph.set_slot(stranger, 1.0f); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST_P(Graphs, DecomposedOpsWithTemporariesReplay) {
  const Stream stream(device());
  Tensor x = device().from_host(iota(12), {3, 4});
  Tensor y;
  const Graph graph = Graph::record(stream, [&] { y = compute::var(x, 1, 0, false, stream); });
  for (int i = 0; i < 3; ++i) {
    graph.run(stream);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1.25f, 1.25f, 1.25f}));
  }
}

TEST_P(Graphs, RunsOnSeveralStreamsAreOrdered) {
  const Stream recorder(device()), a(device()), b(device());
  const Tensor x = device().from_host(std::vector<float>(20000, 0));
  const Graph graph = Graph::record(recorder, [&] {
    const Tensor one = Tensor::scalar(1.0f, true);
    compute::check(compute_add_into(recorder.get(), x.get(), one.get(), x.get()));
  });
  for (int i = 0; i < 50; ++i) graph.run(i % 2 == 0 ? a : b);
  EXPECT_EQ(x.to_vector<float>()[19999], 100.0f / 2);
}

TEST_P(Graphs, TensorsOfTheGraphOutliveTheirHandles) {
  const Stream stream(device());
  Tensor y;
  const Graph graph = [&] {
    const Tensor x = device().from_host(iota(1000));
    return Graph::record(stream, [&] {
      const Tensor middle = compute::negative(x, stream);
      y = compute::negative(middle, stream);
    });
  }();
  for (int i = 0; i < 5; ++i) {
    const Tensor noise = device().from_host(std::vector<float>(1000, 9));
    graph.run(stream);
    EXPECT_EQ(y.to_vector<float>()[999], 999.0f);
  }
}

TEST_P(Graphs, WhatCannotBeRecordedSaysSoAndSpoilsTheGraph) {
  const Stream stream(device());
  const Tensor x = device().from_host(iota(10));
  compute::check(compute_graph_begin(stream.get(), nullptr));
  EXPECT_EQ(thrown_by([&] { stream.synchronize(); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  compute_graph* graph = nullptr;
  const Thrown thrown = thrown_by([&] { compute::check(compute_graph_end(stream.get(), &graph)); });
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(thrown.message.find("recording"), std::string::npos);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(compute::negative(x, stream).to_vector<float>()[9], -9.0f) << "the stream works again";
  EXPECT_EQ(thrown_by([&] { compute::check(compute_graph_end(stream.get(), &graph)); }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST_P(Graphs, OtherStreamsAreUnaffectedByARecording) {
  const Stream recorder(device()), other(device());
  const Tensor x = device().from_host(iota(10));
  compute::check(compute_graph_begin(recorder.get(), nullptr));
  EXPECT_EQ(compute::negative(x, other).to_vector<float>()[3], -3.0f);
  compute_graph* graph = nullptr;
  compute::check(compute_graph_end(recorder.get(), &graph));
  compute_graph_release(graph);
}

// Every way to look at an output of a graph that has not run.
TEST_P(Graphs, OutputsHoldNoValuesBeforeTheFirstRun) {
  const Stream recorder(device()), other(device());
  const Tensor x = device().from_host(iota(10));
  Tensor y, z;
  const Graph graph = Graph::record(recorder, [&] { y = compute::add(x, 1.0f, recorder); });
  float out[10];
  void* data = nullptr;
  int32_t is_copy = 0;
  compute_tensor* made = nullptr;
  DLManagedTensorVersioned* managed = nullptr;
  const compute::Device elsewhere = compute::Device::open(GetParam() == std::string("cpu") ? "minimal0" : "cpu");
  const int64_t step = 2;
  compute_tensor* part = nullptr;
  compute::check(compute_tensor_slice(y.get(), 1, nullptr, nullptr, &step, &part));
  const Tensor half(part);
  const auto expect_no_values = [&](const char* way, const auto& look) {
    const Thrown thrown = thrown_by(look);
    EXPECT_EQ(thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT) << way;
    EXPECT_NE(thrown.message.find("holds no values"), std::string::npos) << way << ": " << thrown.message;
  };
  const auto expect_nothing_to_see = [&] {
    expect_no_values("read", [&] { compute::check(compute_tensor_read(y.get(), out, 40)); });
    expect_no_values("read_async", [&] { compute::check(compute_tensor_read_async(y.get(), out, 40, other.get())); });
    expect_no_values("map", [&] { compute::check(compute_tensor_map(y.get(), COMPUTE_ACCESS_READ, &data, &is_copy)); });
    expect_no_values("map of a part for writing",
                     [&] { compute::check(compute_tensor_map(half.get(), COMPUTE_ACCESS_WRITE, &data, &is_copy)); });
    expect_no_values("synchronize", [&] { compute::check(compute_tensor_synchronize(y.get())); });
    expect_no_values("to_device", [&] { compute::check(compute_tensor_to_device(y.get(), elsewhere.get(), &made)); });
    expect_no_values("op on the recorded stream", [&] { return compute::negative(y, recorder); });
    expect_no_values("op on another stream", [&] { return compute::negative(y, other); });
    expect_no_values("op on the default stream", [&] { return compute::negative(y); });
    if (GetParam() == std::string("cpu")) {
      for (const int64_t consumer : {-1, 0}) {
        expect_no_values("export", [&] { compute::check(compute_tensor_to_dlpack(y.get(), consumer, &managed)); });
      }
    }
  };
  expect_nothing_to_see();
  const Graph second = Graph::record(recorder, [&] { z = compute::multiply(y, y, recorder); });
  expect_no_values("another graph", [&] { second.run(other); });
  expect_nothing_to_see();
  graph.run(other);
  EXPECT_EQ(y.to_vector<float>()[9], 10.0f);
  second.run(recorder);
  EXPECT_EQ(z.to_vector<float>()[9], 100.0f);
}

TEST_P(Graphs, AnOutputThatIsOverwrittenHoldsValuesBeforeTheFirstRun) {
  const Stream recorder(device());
  const Tensor x = device().from_host(iota(10));
  Tensor written, mapped;
  const Graph graph = Graph::record(recorder, [&] {
    written = compute::add(x, 1.0f, recorder);
    mapped = compute::add(x, 2.0f, recorder);
  });
  const std::vector<float> values(10, 5.0f);
  written.write(values.data(), 40);
  EXPECT_EQ(written.to_vector<float>(), values);
  void* data = nullptr;
  int32_t is_copy = 0;
  compute::check(compute_tensor_map(mapped.get(), COMPUTE_ACCESS_WRITE, &data, &is_copy));
  std::copy(values.begin(), values.end(), static_cast<float*>(data));
  compute::check(compute_tensor_unmap(mapped.get(), data));
  EXPECT_EQ(mapped.to_vector<float>(), values);
  graph.run(recorder);
  EXPECT_EQ(written.to_vector<float>()[9], 10.0f);
  EXPECT_EQ(mapped.to_vector<float>()[9], 11.0f);
}

INSTANTIATE_TEST_SUITE_P(Devices, Graphs, ::testing::Values("cpu", "minimal0"),
                         [](const auto& info) { return info.param; });

TEST(GraphsOfTheRemote, HostTensorsAreRefused) {
  const Stream stream(remote());
  const Tensor x = host().from_host(iota(10));
  compute::check(compute_graph_begin(stream.get(), nullptr));
  const Thrown thrown = thrown_by([&] { return compute::negative(x, stream); });
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown.message, "negative: a host tensor cannot be used while a graph is recorded on minimal0");
  compute_graph* graph = nullptr;
  EXPECT_EQ(thrown_by([&] { compute::check(compute_graph_end(stream.get(), &graph)); }).message, thrown.message);
}

}  // namespace
