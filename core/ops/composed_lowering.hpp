// SPDX-License-Identifier: Apache-2.0
// The lowering of a composition: the lowerings of its calls in sequence, with intermediate results as temporaries.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/ops/lowering.hpp"
#include "core/ops/op_call.hpp"

namespace compute {

// lower() of decompose.hpp.
using LowerCall = std::optional<Lowering> (*)(const OpCall& call, const Inference& inference,
                                              const LoweringTarget& target, int32_t alternative);

// `alternatives` has an entry per call that composed_call_count counts; nothing if one of the calls has no such
// alternative. Step::call says which call a step belongs to. Temporaries have no places yet.
std::optional<Lowering> join_lowerings(const OpCall& call, const LoweringTarget& target,
                                       std::span<const int32_t> alternatives, LowerCall lower);

}  // namespace compute
