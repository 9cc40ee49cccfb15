// SPDX-License-Identifier: Apache-2.0
// What observers learn about ops.
#pragma once

#include <cstdint>
#include <span>

#include "core/observation/work.hpp"
#include "core/ops/op_call.hpp"
#include "core/runner/planned_call.hpp"
#include "core/runner/recording.hpp"

namespace compute {

// Multiplications and additions of ops whose work is not proportional to their memory; 0 for other ops.
int64_t flops_of(const OpCall& call, std::span<const OutputDesc> outputs);

// Reports an op that has been queued. Does nothing if memory runs out.
void tell_of_op(Work& work, const PlannedCall& call) noexcept;
// A graph is one piece of work, named after its ops.
void tell_of_graph(Work& work, const Recording& recording, bool is_native) noexcept;

// A launch of a kernel of the program, which counts as no op.
void tell_of_launch(Work& work, const std::string& kernel) noexcept;

}  // namespace compute
