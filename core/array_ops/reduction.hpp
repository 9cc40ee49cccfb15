// SPDX-License-Identifier: Apache-2.0
// Code that the ops that reduce over axes share.
#pragma once

#include <optional>
#include <vector>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

// The attributes axes and keepdims of a call, and the resulting shapes.
struct Reduction {
  std::vector<int64_t> axes;        // ascending
  std::vector<int64_t> kept_shape;  // with extent 1 at reduced axes: the reduce primitive's output
  std::vector<int64_t> shape;       // of the op's result
  int64_t count = 1;                // elements that make one result
};

// Throws INVALID_ARGUMENT for axes that x does not have and for duplicate axes.
Reduction read_reduction(const OpCall& call);
// The same along one axis, or along all axes if it is absent.
Reduction read_arg_reduction(const OpCall& call);
// Throws INVALID_ARGUMENT if a result would have no elements to reduce.
void refuse_empty(const OpCall& call, const Reduction& reduction);
// The op's output in the form of the reduce primitive's output, whatever keepdims is.
StepOperand reduced_output(const Steps& steps, const Reduction& reduction);

}  // namespace compute
