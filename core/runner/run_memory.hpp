// SPDX-License-Identifier: Apache-2.0
// Memory that runs of plans need for their arguments.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <memory>

#include "core/devices/device.hpp"
#include "core/memory/pool.hpp"
#include "core/planner/plan.hpp"

namespace compute {

// The memory of several runs, kept until they have ended.
class RunMemory {
 public:
  // NULL if the runs need none.
  static std::shared_ptr<RunMemory> make(Device& device, const RunNeeds& all);

  RunMemory(Device& device, const RunNeeds& all);
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  // Called before submission `number` of `timeline` uses the memory.
  void used_by(Timeline& timeline, uint64_t number);

  // Sets the fields of a run that needs `own`, whose part begins at `place`.
  void give(compute_plugin_run& run, const RunNeeds& own, const RunNeeds& place) const noexcept;

 private:
  const bool is_host_;
  OwnedBlock arguments_;  // may be empty
};

}  // namespace compute
