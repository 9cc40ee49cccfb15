// SPDX-License-Identifier: Apache-2.0
#include "core/runner/graph.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/runner/observed_op.hpp"
#include "core/streams/submission.hpp"

namespace compute {
namespace {

// Makes addresses relative to the block absolute.
void settle_block(compute_graph& graph) {
  Recording& recording = *graph.recording;
  if (recording.block_bytes == 0) return;
  graph.block.reset(make_buffer(graph.device, recording.block_bytes, nullptr, MemoryUse::kTemporary));
  for (RecordedStep& run : recording.runs) {
    for (size_t i = 0; i < run.tensors.size(); ++i) {
      if (run.tensor_in_block[i]) run.tensors[i] = operand_at(*graph.block, run.tensors[i].offset_bytes);
    }
    if (run.in_block) run.workspace = operand_at(*graph.block, run.workspace.offset_bytes);
  }
  recording.use(*graph.block, true, true);
}

// One for each plan that reports faults, in their order; NULL if there are none.
std::shared_ptr<FaultRecords> make_fault_records(const compute_graph& graph) {
  const auto& runs = graph.recording->runs;
  const auto count =
      std::count_if(runs.begin(), runs.end(), [](const RecordedStep& run) { return run.reports_faults; });
  return count > 0 ? FaultRecords::make(graph.device, static_cast<size_t>(count)) : nullptr;
}

compute_plugin_run plugin_run(const RecordedStep& recorded, const compute_plugin_operand& fault,
                              const compute_plugin_scalar* scalars, const RunMemory* memory, uint64_t stream) {
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
  run.fault = fault;
  if (memory != nullptr) memory->give(run, recorded.needs, recorded.place);
  return run;
}

// Other work divides the runs of a graph into sections: the end of a section's runs.
size_t section_end(const Recording& recording, size_t section) {
  return section < recording.other_work.size() ? recording.other_work[section].runs_before : recording.runs.size();
}

void release_native(compute_graph& graph) noexcept {
  for (const uint64_t native : std::exchange(graph.native, {})) {
    if (native != 0) graph.device.graphs.release(native);
  }
}

// Hands the runs of each section to the plugin, which may make one executable of them. Without the extension, replay is
// a loop.
void make_native(compute_graph& graph) {
  const GraphTable& table = graph.device.graphs;
  if (!table || graph.recording->runs.empty()) return;
  std::vector<compute_plugin_run> runs;
  std::vector<compute_plugin_graph_node> nodes;
  std::shared_ptr<FaultRecords> faults = make_fault_records(graph);
  std::shared_ptr<RunMemory> memory = RunMemory::make(graph.device, graph.recording->needs);
  size_t next = 0;
  for (const RecordedStep& run : graph.recording->runs) {
    const compute_plugin_operand fault =
        faults && run.reports_faults ? faults->operand(next++) : compute_plugin_operand{};
    runs.push_back(plugin_run(run, fault, run.scalars.data(), memory.get(), 0));
  }
  for (size_t section = 0, i = 0; section <= graph.recording->other_work.size(); ++section) {
    nodes.clear();
    for (const size_t end = section_end(*graph.recording, section); i < end; ++i) {
      compute_plugin_graph_node& node = nodes.emplace_back();
      node.struct_size = sizeof node;
      node.struct_type = COMPUTE_PLUGIN_STRUCT_GRAPH_NODE;
      node.kind = COMPUTE_PLUGIN_GRAPH_NODE_RUN;
      node.plan = graph.recording->runs[i].plan;
      node.run = &runs[i];
      node.scalar_slots = graph.recording->runs[i].scalar_slots.data();
    }
    uint64_t& native = graph.native.emplace_back(0);
    if (nodes.empty()) continue;
    compute_error* const error = table.create(nodes, static_cast<int32_t>(graph.recording->slots.size()), &native);
    if (error == nullptr) continue;
    const bool is_unsupported = error->code == COMPUTE_ERROR_UNSUPPORTED;
    release_native(graph);
    if (!is_unsupported) graph.device.check(error);
    compute_error_free(error);
    return;  // replay, then
  }
  graph.faults = std::move(faults);
  graph.run_memory = std::move(memory);
}

void run_native(const compute_graph& graph, uint64_t native, const Timeline& timeline, Submission& submission) {
  if (native == 0) return;
  SmallVector<compute_plugin_scalar, 8> slots(graph.slot_values.size());
  for (size_t i = 0; i < slots.size(); ++i) std::memcpy(slots[i].bits, graph.slot_values[i].data(), 16);
  compute_plugin_graph_run run{};
  run.struct_size = sizeof run;
  run.struct_type = COMPUTE_PLUGIN_STRUCT_GRAPH_RUN;
  run.stream = timeline.plugin_stream;
  run.slots = slots.data();
  run.slot_count = static_cast<int32_t>(slots.size());
  submission.check(graph.device.graphs.run(native, run), "graph");
}

void run_step(const compute_graph& graph, const RecordedStep& recorded, const compute_plugin_operand& fault,
              const RunMemory* memory, const Timeline& timeline, Submission& submission) {
  SmallVector<compute_plugin_scalar, 8> scalars;
  scalars.append(recorded.scalars.data(), recorded.scalars.size());
  for (size_t i = 0; i < recorded.scalar_slots.size(); ++i) {
    const int32_t slot = recorded.scalar_slots[i];
    if (slot >= 0) std::memcpy(scalars[i].bits, graph.slot_values[static_cast<size_t>(slot)].data(), 16);
  }
  const compute_plugin_run run = plugin_run(recorded, fault, scalars.data(), memory, timeline.plugin_stream);
  submission.check(graph.device.table.plan_run(recorded.plan, run), recorded.op);
}

// Submits everything as one submission.
void submit_graph(compute_graph& graph, Timeline& timeline) {
  Recording& recording = *graph.recording;
  SmallVector<Use, 16> uses;
  uses.append(recording.uses.data(), recording.uses.size());
  // Runs of the plugin's executable share its fault records, so a fault could not be assigned to one of two concurrent
  // runs.
  if (graph.faults && graph.last_run.timeline != nullptr && graph.last_run.timeline != &timeline) {
    graph.last_run.timeline->require_end(graph.last_run.number);
  }
  const bool is_native = !graph.native.empty();
  const std::shared_ptr<FaultRecords> faults = is_native ? graph.faults : make_fault_records(graph);
  const std::shared_ptr<RunMemory> memory =
      is_native ? graph.run_memory : RunMemory::make(graph.device, recording.needs);
  int64_t work_bytes = 0;
  for (const Plan* plan : recording.plans) work_bytes += plan->work_bytes;
  Submission submission(timeline, uses, "graph", 1, work_bytes);
  if (faults) faults->used_by(timeline, submission.number());
  if (memory) memory->used_by(timeline, submission.number());
  graph.last_run = {&timeline, submission.number()};
  if (faults && !timeline.immediate) {
    size_t next = 0;
    for (const RecordedStep& recorded : recording.runs) {
      if (!recorded.reports_faults) continue;
      timeline.expect_fault_locked(submission.number(), {recorded.op, recorded.indices, faults->at(next++)}, faults);
    }
  }
  size_t next_fault = 0;
  for (size_t section = 0, i = 0; section <= recording.other_work.size(); ++section) {
    if (section > 0) submission.check(recording.other_work[section - 1].work->submit(timeline, submission.number()));
    if (is_native) {
      run_native(graph, graph.native[section], timeline, submission);
      continue;
    }
    for (const size_t end = section_end(recording, section); i < end; ++i) {
      const RecordedStep& recorded = recording.runs[i];
      const compute_plugin_operand fault =
          faults && recorded.reports_faults ? faults->operand(next_fault++) : compute_plugin_operand{};
      run_step(graph, recorded, fault, memory.get(), timeline, submission);
    }
  }
  if (Work* const work = submission.observed()) [[unlikely]]
    tell_of_graph(*work, recording, is_native);
  if (faults && timeline.immediate) {
    for (size_t i = 0, next = 0; i < recording.runs.size(); ++i) {
      if (!recording.runs[i].reports_faults) continue;
      compute_plugin_fault& fault = *faults->at(next++);
      if (fault.code == COMPUTE_PLUGIN_FAULT_NONE) continue;
      const Error error =
          fault_error(recording.runs[i].op, recording.runs[i].indices.get(), std::exchange(fault, {}), graph.device);
      submission.spoil(error);
      throw error;
    }
  }
  recording.has_values();
  for (Plan* plan : recording.plans) plan->count_run(timeline);
  graph.device.counters.ops_run.fetch_add(static_cast<int64_t>(recording.plans.size()), std::memory_order_relaxed);
}

}  // namespace

void finish_graph(compute_graph& graph) {
  settle_block(graph);
  make_native(graph);
}

void run_graph(compute_graph& graph, Timeline& timeline) {
  const std::lock_guard order(graph.lock);
  const Recording& recording = *graph.recording;
  if (recording.is_empty()) return;
  if (recording.other_work.empty()) return submit_graph(graph, timeline);
  const auto cancel = [&](const Error& error) {
    Error told = error;
    for (const RecordedWorkPlace& place : recording.other_work) told = place.work->cancel(told);
    return told;
  };
  try {
    for (const RecordedWorkPlace& place : recording.other_work) place.work->prepare();
    submit_graph(graph, timeline);
  } catch (const Error& error) {
    throw cancel(error);
  } catch (...) {
    throw cancel(Error::adopt(current_exception_to_error()));
  }
}

}  // namespace compute

compute_graph::~compute_graph() {
  if (native.empty() && !faults && !run_memory && recording->other_work.empty()) return;
  if (last_run.timeline != nullptr && !last_run.timeline->wait_quietly(last_run.number)) return;
  if (device.health.load() != COMPUTE_HEALTH_FORKED) compute::release_native(*this);
}
