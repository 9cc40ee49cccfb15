// SPDX-License-Identifier: Apache-2.0
// Decomposition: from a checked call to a list of steps that plugins are asked for.
#pragma once

#include <cstdint>
#include <optional>

#include "core/ops/lowering.hpp"
#include "core/ops/op_call.hpp"

namespace compute {

// The ways to run a call, best first: `alternative` counts 0, 1, …; nothing once there are no more. The first one whose
// every step the plugin supports is taken; the last one consists of required primitives alone. Temporaries are laid
// out.
//
// For an op that plugins may take over, alternative 0 is one step under the op's own name, with the call's own tensors
// and attributes and its run-time attributes as scalars (is_composite).
std::optional<Lowering> lower(const OpCall& call, const Inference& inference, const LoweringTarget& target,
                              int32_t alternative);

// One map step; of a call with a reduction one reduce step. Scalar sources of kind kOperand number MapCall::operands.
Lowering lower(const MapCall& call, const Inference& inference, const LoweringTarget& target);
Lowering lower_map_reduction(const MapCall& call, const Inference& inference, const LoweringTarget& target);

// Places temporaries into one block so that only those whose lives overlap have memory of their own: from the first
// step that names one to the last. Offsets are multiples of `alignment`.
void layout_temporaries(Lowering& lowering, int64_t alignment = 256);

}  // namespace compute
