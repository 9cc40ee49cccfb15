// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/graph.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace compute::cuda {
namespace {

// The driver's view of a kernel node; `extra` and `bytes` must outlive it.
CUDA_KERNEL_NODE_PARAMS parameters_of(GraphKernel& node, void** extra, size_t* bytes) {
  *bytes = node.words.size() * sizeof(uint64_t);
  extra[0] = reinterpret_cast<void*>(uintptr_t{1});  // CU_LAUNCH_PARAM_BUFFER_POINTER
  extra[1] = node.words.data();
  extra[2] = reinterpret_cast<void*>(uintptr_t{2});  // CU_LAUNCH_PARAM_BUFFER_SIZE
  extra[3] = bytes;
  extra[4] = nullptr;
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = node.kernel->function;
  parameters.gridDimX = node.grid.groups;
  parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = node.grid.group_size;
  parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.sharedMemBytes = node.grid.local_bytes;
  parameters.extra = extra;
  return parameters;
}

}  // namespace

Graph::Graph(Device& device, const compute_plugin_graph& graph)
    : builder_(device), internal_(device, 0), values_(static_cast<size_t>(graph.slot_count)) {
  try {
    for (int64_t i = 0; i < graph.node_count; ++i) {
      const compute_plugin_graph_node& node = *common::at_step(graph.nodes, i);
      if (node.kind != COMPUTE_PLUGIN_GRAPH_NODE_RUN)
        throw Error(COMPUTE_ERROR_UNSUPPORTED, "a graph can contain op runs only");
      const auto* plan = reinterpret_cast<const Plan*>(static_cast<uintptr_t>(node.plan));
      has_faults_ = has_faults_ || (plan->reports_faults && node.run->fault.buffer == 0);
      plan->add_to(builder_, *node.run, node.scalar_slots);
    }
    make();
  } catch (...) {
    if (executable_ != nullptr) cu.graph_exec_destroy(executable_);
    if (graph_ != nullptr) cu.graph_destroy(graph_);
    throw;
  }
}

// Every run has finished, so nothing writes to the memory any more, and the builder releases it.
Graph::~Graph() {
  if (executable_ != nullptr) cu.graph_exec_destroy(executable_);
  if (graph_ != nullptr) cu.graph_destroy(graph_);
}

CUgraph Graph::capture(GraphCapture& node) {
  node.run.tensors = node.tensors.data();
  node.run.scalars = node.scalars.data();
  // Relaxed: the library may have kernels to load, which stricter modes forbid.
  check(cu.stream_begin_capture(internal_.handle(), CU_STREAM_CAPTURE_MODE_RELAXED), "beginning to capture");
  CUgraph child = nullptr;
  try {
    node.plan->run(node.run, internal_);
  } catch (...) {
    cu.stream_end_capture(internal_.handle(), &child);
    if (child != nullptr) cu.graph_destroy(child);
    throw;
  }
  check(cu.stream_end_capture(internal_.handle(), &child), "ending the capture");
  return child;
}

void Graph::make() {
  check(cu.graph_create(&graph_, 0), "creating a graph");
  CUgraphNode before = nullptr;
  bool follows_kernel = false;
  for (const GraphBuilder::Entry& entry : builder_.order()) {
    size_t dependencies = before != nullptr ? 1 : 0;
    CUgraphNode made = nullptr;
    if (entry.is_kernel) {
      GraphKernel& node = builder_.kernels[entry.index];
      const bool early = follows_kernel && node.kernel->waits && cu.graph_add_dependencies != nullptr;
      if (early) dependencies = 0;
      void* extra[5];
      size_t bytes = 0;
      const CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(node, extra, &bytes);
      check(cu.graph_add_kernel_node(&made, graph_, &before, dependencies, &parameters), "adding a kernel to a graph");
      node.node = made;
      if (early) {
        constexpr CUgraphEdgeData kEarly = {
            CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
        check(cu.graph_add_dependencies(graph_, &before, &made, &kEarly, 1), "ordering a graph");
      }
    } else {
      GraphCapture& node = builder_.captures[entry.index];
      const CUgraph child = capture(node);
      const CUresult result = cu.graph_add_child_graph_node(&made, graph_, &before, dependencies, child);
      cu.graph_destroy(child);  // the node has a copy
      check(result, "adding a library's work to a graph");
      node.node = made;
    }
    before = made;
    follows_kernel = entry.is_kernel;
  }
  check(cu.graph_instantiate(&executable_, graph_, 0), "instantiating a graph");
}

// Runs in flight keep the values that they were launched with. If it fails, the next call sets all nodes.
void Graph::update(const compute_plugin_scalar* slots) {
  const auto differs = [&, had_values = std::exchange(has_values_, false)](int32_t slot) {
    return !had_values ||
           std::memcmp(values_[static_cast<size_t>(slot)].bits, slots[slot].bits, sizeof slots[slot].bits) != 0;
  };
  for (GraphKernel& node : builder_.kernels) {
    bool changed = false;
    for (const GraphKernel::Slot& slot : node.slots) {
      if (!differs(slot.slot)) continue;
      std::memcpy(node.words.data() + slot.word, slots[slot.slot].bits, sizeof slots[slot.slot].bits);
      changed = true;
    }
    if (!changed) continue;
    void* extra[5];
    size_t bytes = 0;
    const CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(node, extra, &bytes);
    check(cu.graph_exec_kernel_node_set_params(executable_, node.node, &parameters), "setting a graph's scalars");
  }
  for (GraphCapture& node : builder_.captures) {
    bool changed = false;
    for (size_t i = 0; i < node.slots.size(); ++i) {
      if (node.slots[i] < 0 || !differs(node.slots[i])) continue;
      node.scalars[i] = slots[node.slots[i]];
      changed = true;
    }
    if (!changed) continue;
    const CUgraph child = capture(node);
    const CUresult result = cu.graph_exec_child_graph_node_set_params(executable_, node.node, child);
    cu.graph_destroy(child);
    check(result, "setting a graph's scalars");
  }
  std::copy_n(slots, values_.size(), values_.begin());
  has_values_ = true;
}

void Graph::run(Stream& stream, const compute_plugin_scalar* slots) {
  if (!values_.empty()) update(slots);
  if (has_faults_) stream.watch(builder_.memory());
  stream.note_launch("a graph");
  const CUresult result = cu.graph_launch(executable_, stream.handle());
  if (result != CUDA_SUCCESS) throw stream.failure(result, "launching a graph");
}

}  // namespace compute::cuda
