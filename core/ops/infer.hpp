// SPDX-License-Identifier: Apache-2.0
// Inference: from the operands of a call to the shapes and dtypes of its outputs, with the text of every refusal.
#pragma once

#include <vector>

#include "core/ops/op_call.hpp"

namespace compute {

// Throws INVALID_ARGUMENT (OUT_OF_RANGE for sizes that are too large), for example "add: shapes [2,3] and [4,3] do not
// broadcast".
Inference infer(const OpCall& call);
Inference infer(const MapCall& call);
Inference infer_map_reduction(const MapCall& call);  // of a call with a reduction

}  // namespace compute
