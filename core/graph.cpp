// SPDX-License-Identifier: Apache-2.0
#include "core/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/sized.hpp"
#include "core/stream.hpp"
#include "core/submission.hpp"

namespace compute {

Recording::~Recording() {
  for (CallPlan* plan : plans) plan->release();
  for (const RecordedSlot& slot : slots) release_handle(slot.tensor);
  // Outputs that somebody still holds stay without values.
  if (std::all_of(unfilled.begin(), unfilled.end(), [](const Buffer* made) { return made->references.load() == 1; })) has_values();
  for (const Use& use : uses) use.buffer->release();
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
  const Access before = made.last_write;  // of what used the memory before
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
    if (known.buffer != &buffer) continue;
    known.write = known.write || write;
    return;
  }
  uses.push_back({&buffer, write, covers});
  buffer.retain();
}

void note_recording_error(Timeline& timeline, const Error& error) noexcept {
  if (timeline.recording.load(std::memory_order_relaxed) == nullptr) return;
  std::lock_guard guard(timeline.lock);
  Recording* recording = timeline.recording.load(std::memory_order_relaxed);
  if (recording != nullptr && recording->error == nullptr) recording->error = make_error(error);
}

namespace {

// The number of the slot that a scalar of the call comes from; -1 if it is a plain value.
int32_t slot_of(Recording& recording, const Execution& execution, const StepScalar& scalar) {
  Tensor* tensor = nullptr;
  if (scalar.source == ScalarSource::kOperand) tensor = execution.operands[static_cast<size_t>(scalar.index)];
  if (scalar.source == ScalarSource::kRunTimeAttribute) tensor = execution.run_time[static_cast<size_t>(scalar.index)].scalar;
  if (tensor == nullptr || tensor->kind != Tensor::Kind::kSlot) return -1;
  for (size_t i = 0; i < recording.slots.size(); ++i) {
    if (recording.slots[i].tensor == tensor && recording.slots[i].dtype == scalar.dtype) return static_cast<int32_t>(i);
  }
  recording.slots.push_back({tensor, scalar.dtype});
  tensor->retain();
  return static_cast<int32_t>(recording.slots.size() - 1);
}

}  // namespace

void record(Recording& recording, const Execution& execution) {
  std::lock_guard guard(execution.timeline->lock);
  CallPlan& plan = *execution.plan;
  if (!plan.capturable) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("{}: {} cannot record this op in a graph", plan.name, plan.device.name));
  }
  recording.plans.reserve(recording.plans.size() + 1);
  recording.plans.push_back(&plan);
  plan.retain();
  for (const PreparedStep& step : plan.steps) {
    RecordedRun run;
    run.plan = step.plan;
    run.op = plan.name;
    run.reports_faults = step.reports_faults;
    for (const PreparedStep::Operand& operand : step.operands) {
      const auto index = static_cast<size_t>(operand.index);
      const bool temporary = operand.kind == ValueKind::kTemporary;
      run.tensor_in_block.push_back(temporary);
      if (temporary) {
        run.tensors.push_back({0, plan.temporary_offsets[index] + operand.offset_bytes});
      } else {
        const Execution::Place& place =
            operand.kind == ValueKind::kInput ? execution.inputs[index] : execution.outputs[index];
        run.tensors.push_back(operand_at(*place.buffer, place.offset_bytes + operand.offset_bytes));
      }
    }
    run.scalars.resize(step.scalars.size());
    fill_scalars(execution, step, run.scalars.data());
    for (const StepScalar& scalar : step.scalars) run.scalar_slots.push_back(slot_of(recording, execution, scalar));
    run.in_block = plan.block_bytes > 0;
    run.workspace = {0, plan.workspace_offset};
    run.workspace_bytes = step.workspace_bytes;
    recording.runs.push_back(std::move(run));
  }
  recording.block_bytes = std::max(recording.block_bytes, plan.block_bytes);
  for (const auto& place : execution.inputs) {
    if (place.buffer != nullptr) recording.use(*place.buffer, false, false);
  }
  for (const auto& place : execution.outputs) {
    if (place.buffer == nullptr) continue;
    recording.use(*place.buffer, true, place.covers);
    if (place.made) recording.note_unfilled(*execution.timeline, *place.buffer);
  }
  plan.runs.fetch_add(1, std::memory_order_relaxed);
}

namespace {

// Moves what is relative to the block to where the block is.
void settle_block(compute_graph& graph) {
  Recording& recording = *graph.recording;
  if (recording.block_bytes == 0) return;
  graph.block.reset(make_buffer(graph.device, recording.block_bytes, nullptr, MemoryUse::kTemporary));
  for (RecordedRun& run : recording.runs) {
    for (size_t i = 0; i < run.tensors.size(); ++i) {
      if (run.tensor_in_block[i]) run.tensors[i] = operand_at(*graph.block, run.tensors[i].offset_bytes);
    }
    if (run.in_block) run.workspace = operand_at(*graph.block, run.workspace.offset_bytes);
  }
  recording.use(*graph.block, true, true);
}

void make_fault_records(compute_graph& graph) {
  const auto& runs = graph.recording->runs;
  const auto count = std::count_if(runs.begin(), runs.end(), [](const RecordedRun& run) { return run.reports_faults; });
  if (count > 0) graph.faults = FaultRecords::make(graph.device, static_cast<size_t>(count));
  size_t next = 0;
  for (RecordedRun& run : graph.recording->runs) {
    if (graph.faults && run.reports_faults) run.fault = graph.faults->operand(next++);
  }
}

compute_plugin_run plugin_run(const RecordedRun& recorded, const compute_plugin_scalar* scalars, uint64_t stream) {
  compute_plugin_run run{};
  run.struct_size = sizeof run;
  run.struct_type = COMPUTE_PLUGIN_STRUCT_RUN;
  run.stream = stream;
  run.tensors = recorded.tensors.data();
  run.scalars = scalars;
  run.workspace = recorded.workspace;
  run.workspace_bytes = recorded.workspace_bytes;
  run.tensor_count = static_cast<int32_t>(recorded.tensors.size());
  run.scalar_count = static_cast<int32_t>(recorded.scalars.size());
  run.fault = recorded.fault;
  return run;
}

// Hands the list to the plugin, which may make one executable of it. Without the extension, replay is a loop.
void make_native(compute_graph& graph) {
  const GraphTable& table = graph.device.graphs;
  if (!table) return;
  std::vector<compute_plugin_run> runs;
  std::vector<compute_plugin_graph_node> nodes;
  for (const RecordedRun& run : graph.recording->runs) runs.push_back(plugin_run(run, run.scalars.data(), 0));
  for (size_t i = 0; i < runs.size(); ++i) {
    compute_plugin_graph_node& node = nodes.emplace_back();
    node.struct_size = sizeof node;
    node.struct_type = COMPUTE_PLUGIN_STRUCT_GRAPH_NODE;
    node.kind = 1;
    node.plan = graph.recording->runs[i].plan;
    node.run = &runs[i];
    node.scalar_slots = graph.recording->runs[i].scalar_slots.data();
  }
  compute_error* error = table.create(nodes, static_cast<int32_t>(graph.recording->slots.size()), &graph.native);
  if (error != nullptr && error->code == COMPUTE_ERROR_UNSUPPORTED) {
    compute_error_free(error);  // replay, then
    return;
  }
  graph.device.check(error);
}

void run_graph(compute_graph& graph, Timeline& timeline) {
  const NotParked not_parked;  // what is waited for is waited for with the graph's lock held
  std::lock_guard order(graph.lock);
  Recording& recording = *graph.recording;
  if (recording.runs.empty()) return;
  SmallVector<Use, 16> uses;
  uses.append(recording.uses.data(), recording.uses.size());
  // Runs share the records: of two on two streams it could not be told which one a fault is of.
  if (graph.faults && graph.last_run.timeline != nullptr && graph.last_run.timeline != &timeline) {
    graph.last_run.timeline->wait_for_end(graph.last_run.number, COMPUTE_TIMEOUT_NONE);
  }
  Submission submission(timeline, uses, "graph");
  if (graph.faults) graph.faults->used_by(timeline, submission.number());
  graph.last_run = {&timeline, submission.number()};
  if (graph.faults && !timeline.immediate) {
    size_t next = 0;
    for (const RecordedRun& recorded : recording.runs) {
      if (!recorded.reports_faults) continue;
      timeline.expect_fault_locked(submission.number(), recorded.op, graph.faults->at(next++), graph.faults);
    }
  }
  if (graph.native != 0) {
    SmallVector<compute_plugin_scalar, 8> slots(recording.slots.size());
    for (size_t i = 0; i < slots.size(); ++i) std::memcpy(slots[i].bits, graph.slot_values[i].data(), 16);
    submission.check(graph.device.graphs.run(graph.native, timeline.plugin_stream, slots.data()), "graph");
  } else {
    SmallVector<compute_plugin_scalar, 8> scalars;
    for (const RecordedRun& recorded : recording.runs) {
      scalars.clear();
      scalars.append(recorded.scalars.data(), recorded.scalars.size());
      for (size_t i = 0; i < recorded.scalar_slots.size(); ++i) {
        const int32_t slot = recorded.scalar_slots[i];
        if (slot >= 0) std::memcpy(scalars[i].bits, graph.slot_values[static_cast<size_t>(slot)].data(), 16);
      }
      const compute_plugin_run run = plugin_run(recorded, scalars.data(), timeline.plugin_stream);
      submission.check(graph.device.table.op_run(recorded.plan, run), recorded.op);
    }
  }
  if (graph.faults && timeline.immediate) {
    for (size_t i = 0, next = 0; i < recording.runs.size(); ++i) {
      if (!recording.runs[i].reports_faults) continue;
      compute_plugin_fault& fault = *graph.faults->at(next++);
      if (fault.code == COMPUTE_FAULT_NONE) continue;
      const Error error = fault_error(recording.runs[i].op, std::exchange(fault, {}), graph.device);
      submission.spoil(error);
      throw error;
    }
  }
  recording.has_values();
  graph.device.counters.ops_run.fetch_add(static_cast<int64_t>(recording.plans.size()), std::memory_order_relaxed);
}

}  // namespace
}  // namespace compute

compute_graph::~compute_graph() {
  if (native == 0 && !faults) return;
  if (last_run.timeline != nullptr) {
    try {
      last_run.timeline->wait_for_end(last_run.number, COMPUTE_TIMEOUT_NONE);
    } catch (...) {
      // The plugin takes no mark: there is nothing to wait for.
    }
  }
  if (native != 0 && device.health.load() != COMPUTE_HEALTH_FORKED) device.graphs.release(native);
}

using namespace compute;

extern "C" {

compute_error* compute_graph_begin(compute_stream* stream) {
  return guard([&] {
    compute_stream& self = checked(stream);
    const Running running;
    self.device.require_usable();
    if (self.is_borrowed()) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("the default stream of {}, which others use, records no graphs; make a stream",
                                                         self.device.name));
    }
    auto recording = std::make_unique<Recording>();
    std::lock_guard guard(self.timeline.lock);
    if (self.timeline.recording.load() != nullptr) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the stream is recording already");
    }
    self.timeline.recording.store(recording.release());
  });
}

compute_error* compute_graph_end(compute_stream* stream, compute_graph** out_graph) {
  if (out_graph != nullptr) *out_graph = nullptr;
  return guard([&] {
    require_not_null(out_graph, "out_graph");
    compute_stream& self = checked(stream);
    const Running running;
    std::unique_ptr<Recording> recording;
    {
      std::lock_guard guard(self.timeline.lock);
      recording.reset(self.timeline.recording.exchange(nullptr));
    }
    if (!recording) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the stream is not recording");
    if (recording->error != nullptr) throw Error::adopt(std::exchange(recording->error, nullptr));
    struct Release {
      void operator()(compute_graph* graph) const { release_handle(graph); }
    };
    std::unique_ptr<compute_graph, Release> graph(new compute_graph(self.device));
    graph->recording = std::move(recording);
    for (const RecordedSlot& slot : graph->recording->slots) {
      const ScalarBits bits =
          convert_scalar(scalar_from_memory(slot.tensor->dtype, slot.tensor->bits.data()), slot.tensor->dtype, slot.dtype);
      auto& value = graph->slot_values.emplace_back();
      std::memcpy(value.data(), bits.bits, 16);
    }
    settle_block(*graph);
    make_fault_records(*graph);
    make_native(*graph);
    *out_graph = graph.release();
  });
}

compute_error* compute_graph_run(compute_graph* graph, compute_stream* stream) {
  return guard([&] {
    compute_graph& self = checked(graph);
    const Running running;
    self.device.require_usable();
    if (stream != nullptr && &checked(stream).device != &self.device) {
      throw Error(COMPUTE_ERROR_DEVICE_MISMATCH,
                  fmt::format("the graph was recorded on {}, the stream is on {}", self.device.name, stream->device.name));
    }
    Timeline& timeline = stream != nullptr ? stream->timeline : default_timeline(self.device);
    if (timeline.recording.load() != nullptr) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "a graph cannot be run on a stream that is recording");
    }
    run_graph(self, timeline);
  });
}

compute_error* compute_graph_set_scalar(compute_graph* graph, compute_tensor* scalar, const void* value) {
  return guard([&] {
    compute_graph& self = checked(graph);
    const Tensor& slot = checked(scalar);
    require_not_null(value, "value");
    const Running running;
    bool found = false;
    std::lock_guard guard(self.lock);
    for (size_t i = 0; i < self.recording->slots.size(); ++i) {
      const RecordedSlot& known = self.recording->slots[i];
      if (known.tensor != &slot) continue;
      const ScalarBits bits = convert_scalar(scalar_from_memory(slot.dtype, value), slot.dtype, known.dtype);
      std::memcpy(self.slot_values[i].data(), bits.bits, 16);
      found = true;
    }
    if (!found) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the graph does not use this scalar as a slot");
  });
}

compute_error* compute_graph_get_info(compute_graph* graph, compute_graph_info* out_info) {
  clear_sized(out_info);
  return guard([&] {
    require_not_null(out_info, "out_info");
    compute_graph& self = checked(graph);
    compute_graph_info info{};
    info.nodes = static_cast<int64_t>(self.recording->runs.size());
    info.temporary_bytes = self.recording->block_bytes;
    info.native = self.native != 0 ? 1 : 0;
    write_sized(info, out_info, "out_info");
  });
}

void compute_graph_retain(compute_graph* graph) {
  if (graph != nullptr && graph->is_alive()) graph->retain();
}
void compute_graph_release(compute_graph* graph) { release_handle(graph); }

}  // extern "C"
