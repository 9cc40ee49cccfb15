// SPDX-License-Identifier: Apache-2.0
// Recording and replaying.
#include <gtest/gtest.h>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

Graph end(const Stream& stream) {
  Graph graph;
  check(compute_graph_end(stream, graph.out()));
  return graph;
}

// A chain with a value inside, an output made while recording and one that was given.
void replay(const Session& session) {
  Inputs inputs(61);
  const Shape shape = {23, 17};
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, shape, -2, 2)),
                y = session.upload(inputs.uniform(dtype::FLOAT32, shape, -2, 2));
  const Tensor given = session.empty(dtype::FLOAT32, shape);
  const Stream stream = session.stream(), other = session.stream();
  const Operand both[] = {x, y};

  const int64_t ops_before = session.statistics().ops_run;
  check(compute_graph_begin(stream, nullptr));
  Tensor made;
  {
    const Operand product{Array(dtype::FLOAT32, shape), session.run("multiply", {}, both, stream)};
    const Operand sum[] = {product, y};
    made = session.run("add", {}, sum, stream);
    session.run("negative", {}, std::span(sum, 1), stream, given);
  }
  const Graph graph = end(stream);
  EXPECT_EQ(session.statistics().ops_run, ops_before) << "recording executes nothing";

  compute_graph_info info{};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_STRUCT_GRAPH_INFO;
  check(compute_graph_get_info(graph, &info));
  EXPECT_GE(info.nodes, 3);

  for (int i = 0; i < 4; ++i) {
    const Array values = inputs.uniform(dtype::FLOAT32, shape, -2, 2);
    check(compute_tensor_write(x.tensor, values.data(), values.size_bytes()));
    check(compute_graph_run(graph, i % 2 ? other : stream));
    const Operand now[] = {{values, x.tensor}, y};
    // The reference in two steps, as the graph takes them.
    const oracle::Result product = reference("multiply", {}, now);
    Array rounded(dtype::FLOAT32, shape);
    for (size_t j = 0; j < product.elements.size(); ++j)
      rounded.set(static_cast<int64_t>(j), product.elements[j].value);
    const Operand sum[] = {{rounded, {}}, y};
    session.judge(made, reference("add", {}, sum), bound_of("add", dtype::FLOAT32), "output made while recording");
    session.judge(given, reference("negative", {}, std::span(sum, 1)), bound_of("negative", dtype::FLOAT32),
                  "output given");
  }
}

// Runs of one graph are ordered: x = x + 1, a hundred times over two streams.
void runs_are_ordered(const Session& session) {
  Array zero(dtype::FLOAT32, {5000}), one(dtype::FLOAT32, {5000});
  for (int64_t i = 0; i < one.size(); ++i) one.set(i, Value::of(Real{1}));
  const Operand operands[] = {session.upload(zero), session.upload(one)};
  const Stream a = session.stream(), b = session.stream();
  check(compute_graph_begin(a, nullptr));
  session.run("add", {}, operands, a, operands[0].tensor);
  const Graph graph = end(a);
  for (int i = 0; i < 100; ++i) check(compute_graph_run(graph, i % 2 ? a : b));
  const Array result = session.download(operands[0].tensor);
  for (int64_t i = 0; i < result.size(); i += 97) EXPECT_EQ(result.at(i).re, 100);
}

// A slot's value is changed between runs, and neither a plan nor a transfer comes of it.
void slots(const Session& session) {
  Inputs inputs(62);
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {300}, 1, 2));
  const Stream stream = session.stream();
  Tensor slot;
  check(compute_tensor_slot(COMPUTE_DTYPE_FLOAT32, slot.out()));
  check(compute_graph_begin(stream, nullptr));
  const Operand operands[] = {x, {Array(dtype::FLOAT32, {}), slot}};
  const Tensor y = session.run("multiply", {}, operands, stream);
  const Graph graph = end(stream);
  check(compute_graph_run(graph, stream));
  session.download(y);
  const compute_device_statistics before = session.statistics();
  for (float value : {2.0f, -0.75f, 1e10f}) {
    check(compute_graph_set_slot(graph, slot, &value));
    check(compute_graph_run(graph, stream));
    Array s(dtype::FLOAT32, {});
    s.set(0, Value::of(Real{value}));
    const Operand meant[] = {x, {s, {}}};
    session.judge(y, reference("multiply", {}, meant), bound_of("multiply", dtype::FLOAT32), "slot");
  }
  const compute_device_statistics after = session.statistics();
  EXPECT_EQ(after.plans_prepared, before.plans_prepared);
  EXPECT_EQ(after.transfers_to_device, before.transfers_to_device);
}

// A steady replay allocates nothing.
void replay_allocates_nothing(const Session& session) {
  Inputs inputs(63);
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {64, 64}, -1, 1));
  const Stream stream = session.stream();
  check(compute_graph_begin(stream, nullptr));
  Operand y = x;
  for (int i = 0; i < 4; ++i) y.tensor = session.run("tanh", {}, std::span(&y, 1), stream);
  const Graph graph = end(stream);
  check(compute_graph_run(graph, stream));
  check(compute_stream_synchronize(stream));
  const compute_device_statistics before = session.statistics();
  for (int i = 0; i < 50; ++i) check(compute_graph_run(graph, stream));
  check(compute_stream_synchronize(stream));
  const compute_device_statistics after = session.statistics();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.plans_prepared, before.plans_prepared);
  EXPECT_EQ(after.memory_used, before.memory_used);
}

// What must not happen while recording is an error, which _end repeats.
void errors_while_recording(const Session& session) {
  Inputs inputs(64);
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {16}, -1, 1));
  const auto recording = [&](const std::string& what,
                             const std::function<compute_error*(const Stream&, const Tensor&)>& forbidden) {
    const Stream stream = session.stream();
    check(compute_graph_begin(stream, nullptr));
    const Tensor y = session.run("exp", {}, std::span(&x, 1), stream);
    const Error error(forbidden(stream, y));
    EXPECT_TRUE(error) << what << " while recording was not refused";
    Graph graph;
    const Error at_end(compute_graph_end(stream, graph.out()));
    EXPECT_EQ(at_end.code(), error.code()) << what << ": " << at_end.message();
    EXPECT_EQ(graph.get(), nullptr);
    // The stream is usable again.
    session.expect("exp", {}, std::span(&x, 1), bound_of("exp", dtype::FLOAT32), "after " + what, stream);
  };
  recording("waiting", [](const Stream& stream, const Tensor&) { return compute_stream_synchronize(stream); });
  recording("reading", [](const Stream& stream, const Tensor& y) {
    float values[16];
    return compute_tensor_read_async(y, values, sizeof values, stream);
  });

  Graph graph;
  const Stream idle = session.stream();
  check(compute_graph_begin(idle, nullptr));
  EXPECT_TRUE(Error(compute_graph_begin(idle, nullptr))) << "recording was begun twice";
  Error(compute_graph_end(idle, graph.out()));
  EXPECT_EQ(Error(compute_graph_end(idle, graph.out())).code(), COMPUTE_ERROR_INVALID_ARGUMENT)
      << "nothing is being recorded";
  // Other streams are unaffected.
  const Stream stream = session.stream();
  check(compute_graph_begin(stream, nullptr));
  session.expect("exp", {}, std::span(&x, 1), bound_of("exp", dtype::FLOAT32), "another stream", idle);
  session.run("exp", {}, std::span(&x, 1), stream);
  end(stream);
}

// The graph keeps its tensors alive: handles may be released after recording.
void keeps_what_it_uses(const Session& session) {
  Inputs inputs(65);
  const Stream stream = session.stream();
  Graph graph;
  Tensor y;
  oracle::Result expected;
  {
    const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {1000}, -1, 1));
    expected = reference("exp", {}, std::span(&x, 1));
    check(compute_graph_begin(stream, nullptr));
    y = session.run("exp", {}, std::span(&x, 1), stream);
    graph = end(stream);
  }
  const Operand noise = session.upload(inputs.uniform(dtype::FLOAT32, {1000}, -1, 1));
  check(compute_graph_run(graph, stream));
  session.judge(y, expected, bound_of("exp", dtype::FLOAT32), "after the release of the input");
}

}  // namespace

void add_graph_tests(Registry& registry) {
  registry.add({"graph", "replay", replay});
  registry.add({"graph", "runs_are_ordered", runs_are_ordered});
  registry.add({"graph", "slots", slots});
  registry.add({"graph", "replay_allocates_nothing", replay_allocates_nothing});
  registry.add({"graph", "errors_while_recording", errors_while_recording});
  registry.add({"graph", "keeps_what_it_uses", keeps_what_it_uses});
}

}  // namespace compute::conformance
