// SPDX-License-Identifier: Apache-2.0
// The recording of a stream for a graph.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/error.hpp"
#include "core/memory/buffer.hpp"
#include "core/runner/planned_call.hpp"
#include "core/streams/submission.hpp"

namespace compute {

// One run of a plugin plan, with all arguments of plan_run.
struct RecordedStep {
  uint64_t plan = 0;
  const char* op = "";                        // the op that the run is a part of
  std::shared_ptr<const IndexPlace> indices;  // from its plan
  std::vector<compute_plugin_operand> tensors;
  std::vector<compute_plugin_scalar> scalars;
  std::vector<int32_t> scalar_slots;  // index into Recording::slots, or -1
  compute_plugin_operand workspace{};
  int64_t workspace_bytes = 0;
  RunNeeds needs, place;  // `place` is in the memory of all runs
  bool reports_faults = false;
  bool in_block = false;  // `workspace` is relative to the graph's block
  std::vector<bool> tensor_in_block;
};

// Work of a graph that is not a run of a plan. Other rooms derive from it.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  // Called before each run of the graph; its failure is that of compute_graph_run.
  virtual void prepare() = 0;
  // (L) Queues the work on a stream, as part of submission `number`.
  virtual compute_error* submit(Timeline& timeline, uint64_t number) noexcept = 0;
  // A run has failed after `prepare`. Returns the error for the caller.
  virtual Error cancel(const Error& error) noexcept = 0;
};

// It comes after the first `runs_before` runs of the recording.
struct RecordedWorkPlace {
  size_t runs_before;
  std::unique_ptr<RecordedWork> work;
};

// A slot, and the dtype that one scalar needs.
struct RecordedSlot {
  Tensor* tensor = nullptr;  // retained
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
};

struct Recording {
  std::vector<Plan*> plans;  // retained
  std::vector<RecordedStep> runs;
  std::vector<RecordedWorkPlace> other_work;  // in its order
  std::vector<RecordedSlot> slots;
  std::vector<Use> uses;         // merged
  std::vector<Buffer*> buffers;  // of the uses; retained
  int64_t block_bytes = 0;
  RunNeeds needs;                  // of all runs
  compute_error* error = nullptr;  // the first one
  // Outputs that were created while recording. Until the first run they count as last written by a submission without
  // values.
  std::vector<Buffer*> unfilled;
  Access unfilled_at;

  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

  void use(Buffer& buffer, bool write, bool covers);
  bool is_empty() const noexcept { return runs.empty() && other_work.empty(); }
  // (L of the recorded timeline)
  void note_unfilled(Timeline& timeline, Buffer& made);
  // The graph has been run.
  void has_values() noexcept;
};

// Adds a call to the recording of its timeline. For a call that cannot be recorded, it stores the error in the
// recording and throws it.
void record(Recording& recording, const PlannedCall& call);

// Invalidates the recording of `timeline`, if there is one: compute_graph_end reports the first error.
void note_recording_error(Timeline& timeline, const Error& error) noexcept;

}  // namespace compute
