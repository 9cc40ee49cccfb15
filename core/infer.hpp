// SPDX-License-Identifier: Apache-2.0
// Inference: from the operands of a call to the shapes and dtypes of its outputs, with the text of every refusal.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expression.hpp"
#include "core/schema.hpp"

namespace compute {

// An operand as inference sees it. The pointers are the caller's and valid during the call.
struct OperandDesc {
  compute_dtype dtype = COMPUTE_DTYPE_NONE;  // NONE: an optional input that was not given
  int32_t rank = 0;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;  // elements
  bool is_scalar = false;            // a host scalar, given by value: rank 0, no memory
  bool weak = false;                 // only with is_scalar

  std::span<const int64_t> extents() const noexcept { return {shape, static_cast<size_t>(rank)}; }
};

struct OpCall {
  const OpSchema& schema;
  const Attributes& attributes;
  std::span<const OperandDesc> inputs;
};

// A user's expression over operands: the template's inputs, then its scalars (is_scalar is implied for those).
struct MapCall {
  const ExpressionTemplate& expression;
  std::span<const OperandDesc> operands;
  std::span<const compute_dtype> wanted = {};  // dtype per output, NONE where none is wanted; empty: none at all
  std::span<const int64_t> wanted_shape = {};  // index space of an expression without inputs
};

struct OutputDesc {
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
  std::vector<int64_t> shape;
};

// Throws INVALID_ARGUMENT (OUT_OF_RANGE for sizes that do not fit) as in "add: shapes [2,3] and [4,3] do not
// broadcast".
std::vector<OutputDesc> infer(const OpCall& call);
std::vector<OutputDesc> infer(const MapCall& call);

// ---- Elementwise ops ------------------------------------------------------------------------------------------------

struct RowTypes {
  compute_dtype common = COMPUTE_DTYPE_NONE;  // to which the operands are converted; of where: those after the first
  compute_dtype output = COMPUTE_DTYPE_NONE;
};

// Throws INVALID_ARGUMENT as in "exp: x is int32; exp takes floating-point and complex dtypes; cast it (cast(x,
// float32))".
RowTypes row_types(const OpSchema& schema, std::span<const OperandDesc> operands);
// The row's expression over operands of these dtypes.
TypedExpression type_row(const OpSchema& schema, std::span<const OperandDesc> operands, const RowTypes& types);

// ---- What the rules of the ops share --------------------------------------------------------------------------------

std::string shape_text(std::span<const int64_t> shape);  // "[2,3]"
// The product; throws OUT_OF_RANGE if it, or it times `element_size`, does not fit in int64_t.
int64_t element_count(std::string_view op, std::span<const int64_t> shape, int64_t element_size = 1);
int64_t element_count(std::span<const int64_t> shape) noexcept;  // of a shape that is known to fit
bool has_elements(std::span<const int64_t> shape) noexcept;
std::vector<int64_t> row_major_strides(std::span<const int64_t> shape);
// The broadcast shape of the operands; scalars and absent operands do not count.
std::vector<int64_t> broadcast_shapes(std::string_view op, std::span<const OperandDesc> operands);
// The strides of `operand` seen as `shape`, to which it broadcasts: 0 along repeated axes.
std::vector<int64_t> broadcast_strides(const OperandDesc& operand, std::span<const int64_t> shape);
// An axis in [-rank, rank) as one in [0, rank). Throws INVALID_ARGUMENT.
int32_t normalize_axis(std::string_view op, int64_t axis, int32_t rank);

}  // namespace compute
