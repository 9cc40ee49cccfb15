// SPDX-License-Identifier: Apache-2.0
// Graphs: lists of runs, and the slots of their scalars.
#include "plan.hpp"

namespace minimal {
namespace {

struct Node {
  SharedPlan plan;
  compute_plugin_run run;
  std::vector<compute_plugin_operand> tensors;
  std::vector<compute_plugin_scalar> scalars;
  std::vector<int32_t> slots;  // per scalar, or -1
};

struct Graph {
  std::vector<Node> nodes;
};

Node make_node(const compute_plugin_graph_node& given) {
  understand(given, "a node of the graph");
  if (given.kind != COMPUTE_PLUGIN_GRAPH_NODE_RUN)
    throw Failure(COMPUTE_ERROR_UNSUPPORTED, "minimal: a graph of other nodes than runs");
  understand(*given.run, "a run of the graph");
  Node node = {from_handle<SharedPlan>(given.plan), whole(*given.run), {}, {}, {}};
  node.run.struct_size = sizeof node.run;
  node.run.next = nullptr;
  node.run.arguments = {};  // a run writes its arguments before those of the one before it are read
  node.tensors.assign(given.run->tensors, given.run->tensors + given.run->tensor_count);
  node.scalars.assign(given.run->scalars, given.run->scalars + given.run->scalar_count);
  node.slots.assign(node.scalars.size(), -1);
  if (given.scalar_slots != nullptr) node.slots.assign(given.scalar_slots, given.scalar_slots + node.scalars.size());
  return node;
}

compute_error* create(uint64_t, const compute_plugin_graph* graph, uint64_t* out_graph) {
  *out_graph = 0;
  return guard([&] {
    understand(*graph, "the graph");
    auto made = std::make_unique<Graph>();
    for (int64_t i = 0; i < graph->node_count; ++i) made->nodes.push_back(make_node(element(graph->nodes, i)));
    log("compile", "minimal makes a graph of " + std::to_string(made->nodes.size()) + " runs");
    *out_graph = to_handle(made.release());
  });
}

// What is in the way of a failure stays as it was: all is resolved before the first task is queued.
compute_error* run(uint64_t graph, const compute_plugin_graph_run* run) {
  return guard([&] {
    understand(*run, "the run of the graph");
    Stream& self = from_handle<Stream>(run->stream);
    std::vector<std::function<void()>> tasks;
    const Graph& given = from_handle<Graph>(graph);
    for (Node node : given.nodes) {
      for (size_t i = 0; i < node.slots.size(); ++i) {
        if (node.slots[i] >= 0) node.scalars[i] = run->slots[node.slots[i]];
      }
      node.run.tensors = node.tensors.data();
      node.run.scalars = node.scalars.data();
      tasks.push_back(make_task(node.plan, node.run, self.device));
    }
    for (std::function<void()>& task : tasks) self.submit(std::move(task));
  });
}

void release(uint64_t, uint64_t graph) { delete &from_handle<Graph>(graph); }

}  // namespace

const compute_plugin_graph_table& graph_table() {
  static constexpr compute_plugin_graph_table kTable = {sizeof(compute_plugin_graph_table), create, run, release};
  return kTable;
}

}  // namespace minimal
