// SPDX-License-Identifier: Apache-2.0
// Prepared ops.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "plugins/common/op/op.hpp"
#include "plugins/common/table/slots.hpp"
#include "plugins/opencl/device.hpp"
#include "plugins/opencl/stream.hpp"

namespace compute::opencl {

// Immutable: any number of threads may run it at once.
class Plan : public common::PlanAnswer {
 public:
  virtual ~Plan() = default;
  virtual void run(const compute_plugin_run& run, Stream& stream) const = 0;
};

std::optional<common::Refusal> refuse(const Device& device, const common::Op& op);

// By generated kernels; `op` is one that they take.
std::unique_ptr<Plan> prepare_generated(Device& device, const common::Op& op);

common::PlanOrRefusal<Plan> prepare(Device& device, const common::Op& op);

}  // namespace compute::opencl
