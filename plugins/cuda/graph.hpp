// SPDX-License-Identifier: Apache-2.0
// Recorded lists of runs as CUDA graphs: one launch per graph run, with the values of slots written to the nodes that
// use them.
#pragma once

#include <compute/plugin.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "plugins/cuda/plan.hpp"

namespace compute::cuda {

/// A kernel launch as a node.
struct GraphKernel {
  struct Slot {
    int32_t word;  // index in the parameters; the value also uses the next word
    int32_t slot;
  };
  const Kernel* kernel = nullptr;
  Grid grid;
  std::vector<uint64_t> words;
  std::vector<Slot> slots;
  CUgraphNode node = nullptr;
};

/// A run that must be captured, because a library launches its kernels.
struct GraphCapture {
  const Plan* plan = nullptr;
  compute_plugin_run run{};
  std::vector<compute_plugin_operand> tensors;
  std::vector<compute_plugin_scalar> scalars;
  std::vector<int32_t> slots;  // per scalar; empty: no scalar is a slot
  CUgraphNode node = nullptr;
};

/// Collects the nodes of a graph, each after the one before.
class GraphBuilder {
 public:
  explicit GraphBuilder(Device& device) : device_(device), memory_(device.share_launch_memory()) {}

  void add(GraphKernel node) {
    order_.push_back({true, kernels.size()});
    kernels.push_back(std::move(node));
  }
  // A run of `plan` with that many tensors and scalars.
  void capture(const Plan& plan, const compute_plugin_run& run, int32_t tensor_count, int32_t scalar_count,
               const int32_t* slots) {
    GraphCapture node;
    node.plan = &plan;
    node.run = run;
    node.tensors.assign(run.tensors, run.tensors + tensor_count);
    if (scalar_count > 0) {
      node.scalars.assign(run.scalars, run.scalars + scalar_count);
      if (slots != nullptr) node.slots.assign(slots, slots + scalar_count);
    }
    add(std::move(node));
  }
  void add(GraphCapture node) {
    order_.push_back({false, captures.size()});
    captures.push_back(std::move(node));
  }

  Device& device() const { return device_; }
  const std::shared_ptr<const LaunchMemory>& memory() const { return memory_; }

  struct Entry {
    bool is_kernel;
    size_t index;
  };
  const std::vector<Entry>& order() const { return order_; }

  std::vector<GraphKernel> kernels;
  std::vector<GraphCapture> captures;

 private:
  Device& device_;
  const std::shared_ptr<const LaunchMemory> memory_;
  std::vector<Entry> order_;
};

class Graph {
 public:
  Graph(Device& device, const compute_plugin_graph& graph);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Called for one run at a time; core orders runs.
  void run(Stream& stream, const compute_plugin_scalar* slots);

 private:
  void make();
  CUgraph capture(GraphCapture& node);
  void update(const compute_plugin_scalar* slots);

  GraphBuilder builder_;
  Stream internal_;                            // the stream on which runs are captured
  std::vector<compute_plugin_scalar> values_;  // of the slots, as the nodes have them now
  bool has_values_ = false;
  bool has_faults_ = false;  // some runs report faults and have no record
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

}  // namespace compute::cuda
