// SPDX-License-Identifier: Apache-2.0
// The primitives of this room: reductions, rows and pools.
// A build function returns kernels and launches, with their text if it is asked for.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

BuiltKernels build_pooling(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_reduce(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_arg_reduce(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_row(const Op& op, const Dialect& dialect, bool with_text);

/// Why the kernel of row is not for this op, whose expressions are supported.
std::optional<Refusal> refuse_row_shape(const Op& op, const Dialect& dialect);

}  // namespace compute::common
