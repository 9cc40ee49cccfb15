// SPDX-License-Identifier: Apache-2.0
// Shapes and strides of operands, with the text of every refusal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/op_call.hpp"

namespace compute {

std::string shape_text(std::span<const int64_t> shape);  // "[2,3]"
// The product; throws OUT_OF_RANGE if it, or its product with `element_size`, does not fit in int64_t.
int64_t element_count(std::string_view op, std::span<const int64_t> shape, int64_t element_size = 1);
int64_t element_count(std::span<const int64_t> shape) noexcept;  // of a shape that is known to fit
bool has_elements(std::span<const int64_t> shape) noexcept;
std::vector<int64_t> row_major_strides(std::span<const int64_t> shape);
// The broadcast shape of the operands; scalars and absent operands are ignored.
std::vector<int64_t> broadcast_shapes(std::string_view op, std::span<const OperandDesc> operands);
// The strides of `operand` broadcast to `shape`: 0 along repeated axes.
std::vector<int64_t> broadcast_strides(const OperandDesc& operand, std::span<const int64_t> shape);
// Converts an axis in [-rank, rank) to one in [0, rank). Throws INVALID_ARGUMENT.
int32_t normalize_axis(std::string_view op, int64_t axis, int32_t rank, std::string_view attribute = "axis");

}  // namespace compute
