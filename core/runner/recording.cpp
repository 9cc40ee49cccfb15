// SPDX-License-Identifier: Apache-2.0
#include "core/runner/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/memory/residency.hpp"

namespace compute {

Recording::~Recording() {
  for (Plan* plan : plans) plan->release();
  for (const RecordedSlot& slot : slots) release_handle(slot.tensor);
  // Outputs that somebody still holds stay without values.
  if (std::all_of(unfilled.begin(), unfilled.end(), [](const Buffer* made) { return made->references.load() == 1; }))
    has_values();
  for (Buffer* buffer : buffers) buffer->release();
  compute_error_free(error);
}

void Recording::note_unfilled(Timeline& timeline, Buffer& made) {
  unfilled.reserve(unfilled.size() + 1);
  if (unfilled_at.timeline == nullptr) {
    const bool is_idle = timeline.has_reached(timeline.submitted());
    unfilled_at = {&timeline, timeline.next("graph")};
    if (is_idle) timeline.reach(unfilled_at.number);
    timeline.note_unfilled(unfilled_at.number);
  }
  unfilled.push_back(&made);
  std::lock_guard guard(made.lock);
  const Access before = made.last_write;  // by the memory's previous user
  made.record_write(*unfilled_at.timeline, unfilled_at.number);
  if (before.timeline != nullptr) made.record_read(*before.timeline, before.number);
}

void Recording::has_values() noexcept {
  if (unfilled_at.timeline != nullptr) unfilled_at.timeline->restore(unfilled_at.number);
  unfilled_at = {};
}

// A buffer that is read before it is covered stays a read of the graph as a whole.
void Recording::use(Buffer& buffer, bool write, bool covers) {
  for (Use& known : uses) {
    if (known.hazards != &buffer) continue;
    known.write = known.write || write;
    return;
  }
  uses.reserve(uses.size() + 1);
  buffers.push_back(&buffer);
  buffer.retain();
  uses.push_back({&buffer, write, covers});
}

void note_recording_error(Timeline& timeline, const Error& error) noexcept {
  if (timeline.recording.load(std::memory_order_relaxed) == nullptr) return;
  std::lock_guard guard(timeline.lock);
  Recording* recording = timeline.recording.load(std::memory_order_relaxed);
  if (recording != nullptr && recording->error == nullptr) recording->error = make_error(error);
}

namespace {

// The number of the slot that a scalar of the call comes from; -1 if it is a plain value.
int32_t slot_of(Recording& recording, const PlannedCall& call, const StepScalar& scalar) {
  Tensor* tensor = nullptr;
  if (scalar.source == ScalarSource::kOperand) tensor = call.operands[static_cast<size_t>(scalar.index)];
  if (scalar.source == ScalarSource::kRunTimeAttribute)
    tensor = call.run_time[static_cast<size_t>(scalar.index)].scalar;
  if (tensor == nullptr || tensor->kind != Tensor::Kind::kSlot) return -1;
  for (size_t i = 0; i < recording.slots.size(); ++i) {
    if (recording.slots[i].tensor == tensor && recording.slots[i].dtype == scalar.dtype) return static_cast<int32_t>(i);
  }
  recording.slots.push_back({tensor, scalar.dtype});
  tensor->retain();
  return static_cast<int32_t>(recording.slots.size() - 1);
}

}  // namespace

void record(Recording& recording, const PlannedCall& call) {
  std::lock_guard guard(call.timeline->lock);
  Plan& plan = *call.plan;
  if (!plan.capturable) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("{}: {} cannot record this op in a graph", plan.name, plan.device.name));
  }
  if (plan.runs_on_host) note_run_on_host(plan.device, plan.name);
  recording.plans.reserve(recording.plans.size() + 1);
  recording.plans.push_back(&plan);
  plan.retain();
  for (const PlannedStep& step : plan.steps) {
    RecordedStep run;
    run.plan = step.plan;
    run.op = plan.name;
    run.indices = plan.indices;
    run.reports_faults = step.reports_faults;
    run.needs = step.needs;
    run.place = recording.needs.add(step.needs);
    for (const PlannedStep::Operand& operand : step.operands) {
      const auto index = static_cast<size_t>(operand.index);
      const bool temporary = operand.kind == ValueKind::kTemporary;
      run.tensor_in_block.push_back(temporary);
      if (operand.kind == ValueKind::kAbsent) {
        run.tensors.push_back({});
      } else if (temporary) {
        run.tensors.push_back({0, plan.temporary_offsets[index] + operand.offset_bytes});
      } else {
        const PlannedCall::Place& place = operand.kind == ValueKind::kInput ? call.inputs[index] : call.outputs[index];
        run.tensors.push_back(operand_at(*place.buffer, place.offset_bytes + operand.offset_bytes));
      }
    }
    run.scalars.resize(step.scalars.size());
    fill_scalars(call, step, run.scalars.data());
    for (const StepScalar& scalar : step.scalars) run.scalar_slots.push_back(slot_of(recording, call, scalar));
    run.in_block = plan.block_bytes > 0;
    run.workspace = {0, plan.workspace_offset};
    run.workspace_bytes = step.workspace_bytes;
    recording.runs.push_back(std::move(run));
  }
  recording.block_bytes = std::max(recording.block_bytes, plan.block_bytes);
  for (const auto& place : call.inputs) {
    if (place.buffer != nullptr) recording.use(*place.buffer, false, false);
  }
  for (const auto& place : call.outputs) {
    if (place.buffer == nullptr) continue;
    recording.use(*place.buffer, true, place.covers);
    if (place.made) recording.note_unfilled(*call.timeline, *place.buffer);
  }
}

}  // namespace compute
