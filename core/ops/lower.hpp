// SPDX-License-Identifier: Apache-2.0
// Decomposition: from a checked call to a list of steps for a plugin.
#pragma once

#include <cstdint>
#include <optional>

#include "core/ops/lowering.hpp"
#include "core/ops/op_call.hpp"

namespace compute {

// The ways to run a call, best first: `alternative` counts 0, 1, …; nothing if there are no more. Core uses the first
// one whose steps the plugin all supports. The last one consists of required primitives only. Temporaries are laid
// out.
//
// For an op that plugins may implement as a whole, alternative 0 is one step with the op's own name, the call's tensors
// and attributes, and its run-time attributes as scalars (is_composite).
//
// A composition has only the first alternative.
std::optional<Lowering> lower(const OpCall& call, const Inference& inference, const LoweringTarget& target,
                              int32_t alternative);

// The ways to run a composition. `alternatives` has one for each call of it that composed_call_count counts; nothing if
// one of them has no more. Step::call says which call a step belongs to.
std::optional<Lowering> lower_composition(const OpCall& call, const LoweringTarget& target,
                                          std::span<const int32_t> alternatives);

// One map step; of a call with a reduction one reduce step. Scalar sources of kind kOperand number MapCall::operands.
Lowering lower(const MapCall& call, const Inference& inference, const LoweringTarget& target);
Lowering lower_map_reduction(const MapCall& call, const Inference& inference, const LoweringTarget& target);

}  // namespace compute
