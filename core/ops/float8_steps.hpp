// SPDX-License-Identifier: Apache-2.0
// float8 in the steps that plugins see.
#pragma once

#include <optional>

#include "core/ops/lowering.hpp"

namespace compute {

// Lets steps see float8 as bytes: operands become uint8, expressions decode and encode, and a copy that converts
// becomes a map. Returns the number of a step for which that has no meaning: those that compute with their operands
// without an expression.
std::optional<size_t> store_float8(Lowering& lowering);

}  // namespace compute
