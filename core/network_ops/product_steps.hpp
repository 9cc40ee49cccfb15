// SPDX-License-Identifier: Apache-2.0
// Products of matrices as steps, for ops that consist of them.
#pragma once

#include "core/ops/steps.hpp"

namespace compute {

// x [..., k] and y [..., n] with their leading axes as one, if both can be seen so; of vectors with one new axis.
void collapse_rows(StepOperand& x, StepOperand& y);
// y [..., m, n] = x [..., m, k] weight [..., k, n] + bias [..., m, n], which may be absent, as one contraction.
void add_contraction(Steps& steps, const StepOperand& x, const StepOperand& weight, const StepOperand& bias,
                     const StepOperand& y);
// The same without a bias, as sums of products.
void add_sums(Steps& steps, const StepOperand& x, const StepOperand& weight, const StepOperand& y);

}  // namespace compute
