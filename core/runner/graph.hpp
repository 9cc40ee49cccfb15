// SPDX-License-Identifier: Apache-2.0
// Graphs: a recorded list of runs, submitted as one.
#pragma once

#include <compute/compute.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/memory/buffer.hpp"
#include "core/memory/fault_records.hpp"
#include "core/process/handle.hpp"
#include "core/runner/recording.hpp"
#include "core/runner/run_memory.hpp"

struct compute_graph : compute::Handle<compute::HandleKind::kGraph> {
  explicit compute_graph(compute::Device& device) : device(device) {}
  ~compute_graph();

  compute::Device& device;
  std::unique_ptr<compute::Recording> recording;
  compute::BufferReference block;                    // temporaries
  std::shared_ptr<compute::FaultRecords> faults;     // of `native`: one for each plan that reports them, in order
  std::shared_ptr<compute::RunMemory> run_memory;    // of `native`
  compute::Lock lock;                                // orders runs; guards the values below
  std::vector<std::array<uint8_t, 16>> slot_values;  // by recorded slot, in the dtype of its scalar
  // The plugin's executables, one for the runs before each piece of other work, and one for the last runs. 0: no runs.
  std::vector<uint64_t> native;
  compute::Access last_run;
};

namespace compute {

// Makes everything that a recording needs to run: memory for temporaries, fault records, the plugin's executable.
void finish_graph(compute_graph& graph);

void run_graph(compute_graph& graph, Timeline& timeline);

}  // namespace compute
