// SPDX-License-Identifier: Apache-2.0
#include "core/ops/shapes.hpp"

#include <algorithm>
#include <cassert>
#include <string>

#include "core/base/error.hpp"
#include "core/base/strides.hpp"

namespace compute {

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

int64_t element_count(std::string_view op, std::span<const int64_t> shape, int64_t element_size) {
  // An extent of 0 makes the size 0, however large the others are; strides are still products of extents.
  int64_t count = element_size;
  bool overflow = false;
  for (const int64_t extent : shape) {
    if (extent < 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  std::string(op) + ": shape " + shape_text(shape) + " has a negative extent");
    }
    overflow = __builtin_mul_overflow(count, std::max<int64_t>(extent, 1), &count) || overflow;
  }
  if (overflow) {
    throw Error(COMPUTE_ERROR_OUT_OF_RANGE, std::string(op) + ": the size of shape " + shape_text(shape) +
                                                " with elements of " + std::to_string(element_size) +
                                                " bytes does not fit in int64");
  }
  return has_elements(shape) ? count / element_size : 0;
}

int64_t element_count(std::span<const int64_t> shape) noexcept {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

bool has_elements(std::span<const int64_t> shape) noexcept {
  return std::find(shape.begin(), shape.end(), 0) == shape.end();
}

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  row_major_strides(shape, strides.data());
  return strides;
}

std::vector<int64_t> broadcast_shapes(std::string_view op, std::span<const OperandDesc> operands) {
  std::vector<int64_t> shape;
  for (const OperandDesc& operand : operands) {
    if (operand.is_scalar || operand.dtype == COMPUTE_DTYPE_NONE) continue;
    const std::span<const int64_t> other = operand.extents();
    std::vector<int64_t> both(std::max(shape.size(), other.size()), 1);
    const size_t mine = both.size() - shape.size(), theirs = both.size() - other.size();
    for (size_t i = 0; i < both.size(); ++i) {
      const int64_t a = i < mine ? 1 : shape[i - mine], b = i < theirs ? 1 : other[i - theirs];
      if (a != b && a != 1 && b != 1) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(op) + ": shapes " + shape_text(shape) + " and " +
                                                        shape_text(other) + " do not broadcast")
            .with_argument(static_cast<int32_t>(&operand - operands.data()));
      }
      both[i] = a == 1 ? b : a;
    }
    shape = std::move(both);
  }
  return shape;
}

std::vector<int64_t> broadcast_strides(const OperandDesc& operand, std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  const size_t missing = shape.size() - static_cast<size_t>(operand.rank);
  for (size_t i = missing; i < shape.size(); ++i) {
    if (operand.shape[i - missing] == shape[i]) strides[i] = operand.strides[i - missing];
  }
  return strides;
}

int32_t normalize_axis(std::string_view op, int64_t axis, int32_t rank, std::string_view attribute) {
  if (axis < -rank || axis >= rank) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(op) + ": axis " + std::to_string(axis) +
                                                    " is out of range for a tensor of rank " + std::to_string(rank))
        .with_attribute(std::string(attribute));
  }
  return static_cast<int32_t>(axis < 0 ? axis + rank : axis);
}

}  // namespace compute
