// SPDX-License-Identifier: Apache-2.0
// What a stream records for a graph.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>

#include <cstdint>
#include <vector>

#include "core/execution/execution.hpp"
#include "core/memory/buffer.hpp"
#include "core/streams/submission.hpp"

namespace compute {

// One run of a plugin plan, with everything that plan_run is told.
struct RecordedRun {
  uint64_t plan = 0;
  const char* op = "";  // that it is a part of
  std::vector<compute_plugin_operand> tensors;
  std::vector<compute_plugin_scalar> scalars;
  std::vector<int32_t> scalar_slots;  // index into Recording::slots, or -1
  compute_plugin_operand workspace{};
  int64_t workspace_bytes = 0;
  compute_plugin_operand fault{};
  bool reports_faults = false;
  bool in_block = false;  // `workspace` is relative to the graph's block
  std::vector<bool> tensor_in_block;
};

// A slot and the dtype that one scalar wants it in.
struct RecordedSlot {
  Tensor* tensor = nullptr;  // retained
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
};

struct Recording {
  std::vector<CallPlan*> plans;  // retained
  std::vector<RecordedRun> runs;
  std::vector<RecordedSlot> slots;
  std::vector<Use> uses;         // merged
  std::vector<Buffer*> buffers;  // of the uses; retained
  int64_t block_bytes = 0;
  compute_error* error = nullptr;  // the first one
  // Outputs made while recording: until the first run they were written last by a submission without values.
  std::vector<Buffer*> unfilled;
  Access unfilled_at;

  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

  void use(Buffer& buffer, bool write, bool covers);
  // (L of the recorded timeline)
  void note_unfilled(Timeline& timeline, Buffer& made);
  // Outputs made while recording that nobody holds any more: only the runs of the graph use them. (Nobody can get hold
  // of one again.)
  std::vector<const Buffer*> inner() const;
  // The graph has been run.
  void has_values() noexcept;
};

// Adds a call to the recording of its timeline; throws what cannot be recorded, after noting it.
void record(Recording& recording, const Execution& execution);

// Spoils the recording that `timeline` is in, if it is in one: compute_graph_end reports the first error.
void note_recording_error(Timeline& timeline, const Error& error) noexcept;

}  // namespace compute
