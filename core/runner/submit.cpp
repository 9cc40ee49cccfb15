// SPDX-License-Identifier: Apache-2.0
#include "core/runner/submit.hpp"

#include <memory>
#include <new>
#include <utility>

#include "core/memory/fault_records.hpp"
#include "core/memory/residency.hpp"
#include "core/process/process_config.hpp"
#include "core/runner/observed_op.hpp"
#include "core/runner/run_memory.hpp"
#include "core/streams/submission.hpp"

namespace compute {
namespace {

// COMPUTE_SYNC=1: every submission is waited for, so that an error names its op.
bool waits_after_each_op() {
  static const bool waits = setting(SettingId::kSync).flag;
  return waits;
}

// For COMPUTE_DEBUG=memory: temporaries hold no numbers before a step writes them.
void fill_new(Device& device, const Block& block, Timeline& timeline) {
  if (device.plugin == nullptr) return;
  Submission submission(timeline, {}, "debug fill");
  const compute_plugin_operand place =
      device.is_host ? compute_plugin_operand{block.buffer + static_cast<uint64_t>(block.offset_bytes), 0}
                     : compute_plugin_operand{block.buffer, block.offset_bytes};
  submission.check(device.table.fill(timeline.plugin_stream, place, block.size_bytes, kNewPattern.data(), 2));
}

// The block of a plan's temporaries, if it has any. A std::optional clears all its room first, which costs a plan
// without temporaries more than all else here.
class Temporaries {
 public:
  Temporaries(Device& device, int64_t size_bytes, Timeline& user) : is_held_(size_bytes > 0) {
    if (is_held_) [[unlikely]]
      new (&owned_) OwnedBlock(*device.memory, size_bytes, user, MemoryUse::kTemporary);
  }
  Temporaries(const Temporaries&) = delete;
  Temporaries& operator=(const Temporaries&) = delete;
  ~Temporaries() { give_back(); }

  explicit operator bool() const noexcept { return is_held_; }
  OwnedBlock* operator->() noexcept { return &owned_; }
  void give_back() noexcept {
    if (std::exchange(is_held_, false)) [[unlikely]]
      owned_.~OwnedBlock();
  }

 private:
  union {
    OwnedBlock owned_;
  };
  bool is_held_;
};

}  // namespace

void submit(const PlannedCall& call) {
  Plan& plan = *call.plan;
  Timeline& timeline = *call.timeline;
  Device& device = plan.device;
  if (plan.runs_on_host) [[unlikely]]
    note_run_on_host(device, plan.name);
  Temporaries owned(device, plan.block_bytes, timeline);
  const Block block = owned ? owned->block() : Block{};
  if (owned && debugs_memory()) fill_new(device, block, timeline);
  std::shared_ptr<FaultRecords> faults;
  if (plan.checks_faults) faults = FaultRecords::make(device, 1);
  std::shared_ptr<RunMemory> run_memory;
  if (plan.needs) [[unlikely]]
    run_memory = RunMemory::make(device, plan.needs);
  SmallVector<Use, 16> uses;
  Use* use = uses.extend(call.inputs.size() + call.outputs.size());
  for (const auto& place : call.inputs) {
    if (place.buffer != nullptr) *use++ = {place.buffer, false, false};
  }
  for (const auto& place : call.outputs) {
    if (place.buffer != nullptr) *use++ = {place.buffer, true, place.covers, place.made};
  }
  uses.shrink(static_cast<size_t>(use - uses.data()));
  const auto at = [is_host = device.is_host](uint64_t buffer, int64_t offset) {
    return is_host ? compute_plugin_operand{buffer + static_cast<uint64_t>(offset), 0}
                   : compute_plugin_operand{buffer, offset};
  };
  uint64_t number = 0;
  try {
    Submission submission(timeline, uses, plan.name, 1, plan.work_bytes);
    number = submission.number();
    if (owned) owned->used_by(timeline, number);
    if (faults) faults->used_by(timeline, number);
    if (run_memory) [[unlikely]]
      run_memory->used_by(timeline, number);
    // Before anything is queued that may write the record.
    if (faults && !timeline.immediate)
      timeline.expect_fault_locked(number, {plan.name, plan.indices, faults->at(0)}, faults);
    SmallVector<compute_plugin_operand, 8> operands;
    SmallVector<compute_plugin_scalar, 8> scalars;
    for (const PlannedStep& step : plan.steps) {
      operands.clear();
      compute_plugin_operand* to = operands.extend(step.operands.size());
      for (const PlannedStep::Operand& operand : step.operands) {
        const auto index = static_cast<size_t>(operand.index);
        if (operand.kind >= ValueKind::kTemporary) {
          if (operand.kind == ValueKind::kAbsent) {
            *to++ = {};
            continue;
          }
          *to++ = at(block.buffer, block.offset_bytes + plan.temporary_offsets[index] + operand.offset_bytes);
          continue;
        }
        const PlannedCall::Place& place = operand.kind == ValueKind::kInput ? call.inputs[index] : call.outputs[index];
        *to++ = at(place.buffer->handle, place.buffer->base_offset + place.offset_bytes + operand.offset_bytes);
      }
      scalars.clear();
      if (!step.scalars.empty()) {
        scalars.resize(step.scalars.size());
        fill_scalars(call, step, scalars.data());
      }
      compute_plugin_run run{};
      run.struct_size = sizeof run;
      run.struct_type = COMPUTE_PLUGIN_STRUCT_RUN;
      run.stream = timeline.plugin_stream;
      run.tensors = operands.data();
      run.scalars = scalars.data();
      run.tensor_count = static_cast<int32_t>(operands.size());
      run.scalar_count = static_cast<int32_t>(scalars.size());
      run.workspace_bytes = step.workspace_bytes;
      if (block) run.workspace = at(block.buffer, block.offset_bytes + plan.workspace_offset);
      if (faults && step.reports_faults) run.fault = faults->operand(0);
      if (run_memory) [[unlikely]]
        run_memory->give(run, step.needs, step.place);
      submission.check(device.table.plan_run(step.plan, run), plan.name);
    }
    timeline.count_op();
    if (Work* const work = submission.observed()) [[unlikely]]
      tell_of_op(*work, call);
    if (faults && timeline.immediate && faults->at(0)->code != COMPUTE_PLUGIN_FAULT_NONE) {
      const Error error = fault_error(plan.name, plan.indices.get(), *faults->at(0), device);
      if (!call.makes_outputs) submission.spoil(error);
      throw error;
    }
    plan.count_run(timeline);
  } catch (...) {
    // Where part of it was queued the stream has failed; only the plugin knows.
    timeline.poll();
    throw;
  }
  owned.give_back();
  if (waits_after_each_op() && !timeline.immediate) timeline.wait_for_own(number);
}

}  // namespace compute
