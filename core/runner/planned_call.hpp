// SPDX-License-Identifier: Apache-2.0
// A call whose plan and operands are determined.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <span>

#include "core/memory/tensor.hpp"
#include "core/ops/schema.hpp"
#include "core/planner/plan.hpp"

namespace compute {

struct PlannedCall {
  struct Place {
    Buffer* buffer = nullptr;  // NULL: no elements, or passed by value
    int64_t offset_bytes = 0;  // of the element with all indices 0, in the buffer
    bool covers = false;       // the tensor is all of its buffer
    bool made = false;         // created by this call
    int32_t alignment = 64;    // bytes, of that element; at most 64
  };
  Plan* plan = nullptr;
  Timeline* timeline = nullptr;
  std::span<const Place> inputs;
  std::span<const Place> outputs;
  std::span<Tensor* const> operands;  // the inputs' tensors, for scalars; entries may be NULL
  std::span<const RunTimeValue> run_time;
  bool makes_outputs = false;  // creates all outputs; they are released if the call fails
};

// The value of each scalar of a step.
void fill_scalars(const PlannedCall& call, const PlannedStep& step, compute_plugin_scalar* out);

// The plugin's operand for byte `offset_bytes` of a buffer.
compute_plugin_operand operand_at(const Buffer& buffer, int64_t offset_bytes) noexcept;

}  // namespace compute
