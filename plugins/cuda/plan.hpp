// SPDX-License-Identifier: Apache-2.0
// Prepared ops: launches of generated kernels, or calls of cuBLASLt.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plugins/common/op/op.hpp"
#include "plugins/common/table/slots.hpp"
#include "plugins/cuda/device.hpp"
#include "plugins/cuda/stream.hpp"

namespace compute::cuda {

class GraphBuilder;

/// Immutable: any number of threads may run it at once, on any stream of its device.
class Plan : public common::PlanAnswer {
 public:
  Plan() = default;
  virtual ~Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Queues the work. The device's context must be current.
  virtual void run(const compute_plugin_run& run, Stream& stream) const = 0;

  /// Adds the work to a graph. `slots` contains the graph's slot of every scalar, -1 for none; NULL: no scalar is a
  /// slot.
  virtual void add_to(GraphBuilder& graph, const compute_plugin_run& run, const int32_t* slots) const = 0;
};

/// Why `op` is refused; nothing if prepare() makes a plan.
std::optional<common::Refusal> refuse(Device& device, const common::Op& op);

/// The device's context must be current.
common::PlanOrRefusal<Plan> prepare(Device& device, const common::Op& op);

// ---- Generated kernels ----------------------------------------------------------------------------------------------

/// A kernel's parameters, as one block of words: the pointers, then the block of the launch.
struct LaunchWords {
  const uint64_t* words;
  size_t count;
};

class KernelPlan final : public Plan {
 public:
  KernelPlan(Device& device, const common::Op& op);
  ~KernelPlan() override;

  void run(const compute_plugin_run& run, Stream& stream) const override;
  void add_to(GraphBuilder& graph, const compute_plugin_run& run, const int32_t* slots) const override;

 private:
  struct Step {
    const Kernel* kernel;
    Grid grid;
    std::vector<common::Pointer> pointers;
    std::vector<common::ScalarSlot> scalars;
    std::vector<uint64_t> words;  // of a run, except its addresses and scalars
    CUdeviceptr table;
  };

  explicit KernelPlan(Device& device) : device_(device) {}
  static void fill_words(const Step& step, const compute_plugin_run& run, const LaunchMemory& own, uint64_t* words);

  Device& device_;
  std::vector<Step> steps_;
};

/// Launches a generated kernel, with parameters given as one block.
CUresult launch(const Kernel& kernel, const Grid& grid, const LaunchWords& words, CUstream stream);

}  // namespace compute::cuda
