// SPDX-License-Identifier: Apache-2.0
// Expressions over float8 as expressions over its bytes.
#pragma once

#include "core/expressions/expression.hpp"

namespace compute {

// The same expression with uint8 in place of float8 in inputs, scalars, constants and outputs, and with the nodes that
// decode and encode in place of conversions. They use integers of 32 bits and float32, and float64 where that is
// converted. The slots of scalars keep their dtypes and order. An expression without float8 is returned as it is.
TypedExpression with_float8_as_bytes(const TypedExpression& expression);
// One that converts input 0. One of the dtypes is float8.
TypedExpression float8_conversion(compute_dtype from, compute_dtype to);

}  // namespace compute
