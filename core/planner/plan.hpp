// SPDX-License-Identifier: Apache-2.0
// A plan: a call prepared on one device for given layouts of its operands.
#pragma once

#include <compute/plugin.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/small_vector.hpp"
#include "core/ops/lowering.hpp"
#include "core/ops/op_call.hpp"
#include "core/ops/schema.hpp"

struct compute_device;

namespace compute {

class Timeline;

// The key of a plan, as words: the op, its static attributes and the layout of every operand.
using PlanKey = SmallVector<uint64_t, 64>;

// Memory that runs need for arguments; also where the part of one of several runs begins.
struct RunNeeds {
  int64_t argument_bytes = 0;

  explicit operator bool() const noexcept { return argument_bytes != 0; }
  // Adds the needs of another run, which begin at the result.
  RunNeeds add(const RunNeeds& run) noexcept {
    constexpr int64_t kAlignment = 256;
    const int64_t begin = (argument_bytes + kAlignment - 1) / kAlignment * kAlignment;
    argument_bytes = begin + run.argument_bytes;
    return {begin};
  }
};

// One plugin plan, and the sources of its operands and scalars.
struct PlannedStep {
  struct Operand {
    ValueKind kind;
    int32_t index;
    int64_t offset_bytes;
  };
  uint64_t plan = 0;
  bool shares_plan = false;  // with an earlier step
  const char* name = "";
  std::vector<Operand> operands;  // inputs, then outputs
  std::vector<StepScalar> scalars;
  int64_t workspace_bytes = 0;
  RunNeeds needs, place;  // `place` is in the memory of all steps
  bool reports_faults = false;
  bool runs_on_host = false;
};

// A prepared call. Immutable except for its counters; kept alive by references.
struct Plan {
  explicit Plan(compute_device& device) : device(device) {}

  compute_device& device;
  const OpSchema* op = nullptr;          // NULL for a user's expression
  ExpressionTemplate expression, after;  // their addresses are in `key`
  const char* name = "";
  std::vector<uint64_t> key;
  uint64_t hash = 0;
  std::vector<OutputDesc> outputs;
  std::vector<std::vector<int64_t>> output_strides;  // row-major
  std::vector<PlannedStep> steps;
  std::vector<int64_t> temporary_offsets;
  int64_t workspace_offset = 0;
  int64_t block_bytes = 0;  // temporaries, then the greatest workspace of a step
  int64_t work_bytes = 0;   // as for Timeline::part_locked
  int64_t flops = 0;        // for observers; 0 for ops that are not counted in operations
  bool capturable = true;
  bool checks_faults = false;
  bool runs_on_host = false;                  // a step of it, as its plugin says
  RunNeeds needs;                             // of all steps
  std::shared_ptr<const IndexPlace> indices;  // Lowering::indices

  // Counts a run on `timeline`, which is locked: on the first one that ran the plan without an atomic addition, which
  // costs as much as all the rest of a count.
  void count_run(const Timeline& timeline) noexcept {
    const Timeline* first = first_user_.load(std::memory_order_relaxed);
    if (first == nullptr && first_user_.compare_exchange_strong(first, &timeline, std::memory_order_relaxed))
      first = &timeline;
    if (first == &timeline) [[likely]]
      runs_of_first_.store(runs_of_first_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else
      runs_of_others_.fetch_add(1, std::memory_order_relaxed);
  }
  int64_t runs() const noexcept {
    return runs_of_first_.load(std::memory_order_relaxed) + runs_of_others_.load(std::memory_order_relaxed);
  }

  // Releases the steps prepared so far; called only before the plan is shared.
  void drop_steps() noexcept;
  // Its size as counted by the cache.
  int64_t plugin_plans() const {
    return std::max<int64_t>(1, std::ranges::count(steps, false, &PlannedStep::shares_plan));
  }

  std::atomic<int32_t> references{1};
  void retain() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

 private:
  ~Plan() = default;
  void destroy() noexcept;

  std::atomic<const Timeline*> first_user_{nullptr};
  std::atomic<int64_t> runs_of_first_{0}, runs_of_others_{0};
  friend class PlanCache;
};

struct PlanRelease {
  void operator()(Plan* plan) const noexcept { plan->release(); }
};
using PlanReference = std::unique_ptr<Plan, PlanRelease>;

}  // namespace compute
