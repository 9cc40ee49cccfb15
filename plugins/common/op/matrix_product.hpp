// SPDX-License-Identifier: Apache-2.0
// A contraction in the terms of BLAS: matrices with leading dimensions and flags, for every point of a batch.
#pragma once

#include <cstdint>

#include "plugins/common/op/layout.hpp"
#include "plugins/common/op/op.hpp"

namespace compute::common {

/// The operands of a product, in the order of MatrixProduct's arrays.
enum { kA, kB, kC, kAddend, kOperands };

/// A matrix as columns that are `leading` elements apart or, if transposed, as such rows.
struct PlacedMatrix {
  bool transposed = false;
  int64_t leading = 1;
};

/// A contraction in column-major terms: c [m, n] = a [m, k] · b [k, n], for every point of the batch. a and b are the
/// op's operands in either order.
struct MatrixProduct {
  int64_t m = 0, n = 0, k = 0;
  int64_t row[kOperands] = {}, column[kOperands] = {};  // strides
  bool has_addend = false;
  LoopNest batch;  // strides and offsets in elements
  PlacedMatrix placed[kOperands];
  int32_t argument[kOperands] = {0, 1, -1, 2};  // of the op

  int64_t batches() const;
};

/// Whether the contraction `op` has its optional input: 2 is the addend, 3 the bias.
bool is_given(const Op& op, int32_t input);

/// Why the expressions of `op` are not one epilogue over its result alone; nothing if they are, or if there are none.
std::optional<Refusal> refuse_epilogue(const Op& op);

/// For a contraction whose operands have at least two axes.
MatrixProduct read_product(const Op& op);

/// Finds the orientation and the flags with which c consists of columns. Returns the operand whose strides cannot be
/// expressed by a leading dimension, or -1. Loop 0 of the batch, if any, is then the longest loop without negative
/// strides, which the library can run; the host runs the other loops.
int place_operands(MatrixProduct& product);

}  // namespace compute::common
