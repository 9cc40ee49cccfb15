// SPDX-License-Identifier: Apache-2.0
// Ops that are ready to run.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "plugins/common/op.hpp"
#include "plugins/opencl/device.hpp"
#include "plugins/opencl/stream.hpp"

namespace compute::opencl {

// Immutable: any number of threads may run it at once.
class Plan {
 public:
  virtual ~Plan() = default;
  virtual void run(Stream& stream, const compute_plugin_run& run) const = 0;

  int64_t workspace_bytes = 0;
  int64_t kernels_compiled = 0;
  int32_t flags = 0;
  int32_t reports_faults = 0;
};

std::optional<common::Refusal> refuse(const Device& device, const common::Op& op);

// For an op that is not refused.
std::unique_ptr<Plan> prepare(Device& device, const common::Op& op);

}  // namespace compute::opencl
