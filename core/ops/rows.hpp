// SPDX-License-Identifier: Apache-2.0
// Elementwise ops and maps: the dtypes of a row's operands and result, and its typed expression.
#pragma once

#include <span>
#include <vector>

#include "core/ops/op_call.hpp"

namespace compute {

struct RowTypes {
  compute_dtype common = COMPUTE_DTYPE_NONE;  // to which the operands are converted (of where: those after the first)
  compute_dtype output = COMPUTE_DTYPE_NONE;
};

// Throws INVALID_ARGUMENT, for example "exp: x is int32; exp takes floating-point and complex dtypes; cast it (cast(x,
// float32))".
RowTypes row_types(const OpSchema& schema, std::span<const OperandDesc> operands);
// The row's expression over operands of these dtypes.
TypedExpression type_row(const OpSchema& schema, std::span<const OperandDesc> operands, const RowTypes& types);

std::vector<LeafDesc> map_leaves(const MapCall& call);

}  // namespace compute
