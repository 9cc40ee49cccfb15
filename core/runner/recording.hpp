// SPDX-License-Identifier: Apache-2.0
// The recording of a stream for a graph.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>

#include <cstdint>
#include <vector>

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

// A slot, and the dtype that one scalar needs.
struct RecordedSlot {
  Tensor* tensor = nullptr;  // retained
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
};

struct Recording {
  std::vector<Plan*> plans;  // retained
  std::vector<RecordedStep> runs;
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
