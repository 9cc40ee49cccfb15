// SPDX-License-Identifier: Apache-2.0
// Kernels for ops, as source text in the portable dialect, and how to launch them.
//
//   LaunchPlan plan = plan_launches(op, dialect);  // op_prepare; no text is made, some microseconds
//   for (const Launch& launch : plan.launches) {
//     if (!cache.has(launch.key)) compile(kernel_source(op, dialect, launch));
//   }
//
// and plan_run is, per launch: bind launch.pointers, patch a copy of launch.block, launch groups × group_size.
#pragma once

#include <optional>

#include "plugins/common/op/op.hpp"
#include "plugins/common/source/builder/launch.hpp"
#include "plugins/common/source/expressions/prelude.hpp"

namespace compute::common {

/// Why `op` is refused; nothing if plan_launches succeeds. Ops: map, copy, reduce, gather, scatter, contraction,
/// convolution and its gradients, arg_reduce, row, scan, segmented_reduce, sort; by their own names attention,
/// attention_grad, nonzero, quantized_matmul, random_permutation, searchsorted, take_grad, top_k, unique, the
/// optimisers, and the pools and the gradients of pools that steps of core do worse.
std::optional<Refusal> refuse_op(const Op& op, const Dialect& dialect);

/// How to run `op`, which must not be refused.
LaunchPlan plan_launches(const Op& op, const Dialect& dialect);

/// The text of the kernel of one of the launches that plan_launches(op, dialect) returned.
KernelSource kernel_source(const Op& op, const Dialect& dialect, const Launch& launch);

}  // namespace compute::common
