// SPDX-License-Identifier: Apache-2.0
// A call, as the rules of ops see it.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/expressions/expression.hpp"
#include "core/ops/schema.hpp"

namespace compute {

// An operand, for inference. The pointers belong to the caller and are valid during the call.
struct OperandDesc {
  compute_dtype dtype = COMPUTE_DTYPE_NONE;  // NONE: an optional input that is absent
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
  std::span<const compute_dtype> wanted = {};  // of given outputs, or NONE; empty: none is given
};

// What compute_reduce does with the values of an expression.
struct MapReduction {
  const char* kind = "";  // sum, prod, min, max, all or any; immortal
  compute_dtype accumulator = COMPUTE_DTYPE_NONE;
  bool keepdims = false;
  bool over_all = true;  // all axes; else `axes`, as given
  std::vector<int64_t> axes = {};
  ExpressionTemplate after = {};  // of one input; empty: the combined value itself
};

// A user's expression over operands: the template's inputs, then its scalars (is_scalar is implied for those), then
// those of reduction->after.
struct MapCall {
  const ExpressionTemplate& expression;
  std::span<const OperandDesc> operands;
  std::span<const compute_dtype> wanted = {};  // requested dtype per output, or NONE; empty: none requested
  std::span<const int64_t> wanted_shape = {};  // index space of an expression without inputs
  const MapReduction* reduction = nullptr;     // NULL: the expression alone
};

struct OutputDesc {
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
  std::vector<int64_t> shape;
};

// The properties that follow from the operands of a MapReduction.
struct ReductionInference {
  std::vector<int64_t> shape;       // the index space
  std::vector<int64_t> kept_shape;  // with extent 1 at reduced axes
  std::vector<int64_t> axes;        // ascending
  int64_t count = 1;                // elements that make one result
  compute_dtype accumulator = COMPUTE_DTYPE_NONE;
  TypedExpression after;  // over the accumulator; where `count` is 0, over a scalar
};

// The properties that follow from a call's operands, computed once per plan.
struct Inference {
  std::vector<OutputDesc> outputs;
  TypedExpression map;  // the computation for each element, of an elementwise op or an expression; empty for other ops
  ReductionInference reduction;
};

}  // namespace compute
