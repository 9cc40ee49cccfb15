// SPDX-License-Identifier: Apache-2.0
// The primitives of this room: elementwise expressions, copies and optimisers.
// A build function returns kernels and launches, with their text if it is asked for.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

BuiltKernels build_map(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_copy(const Op& op, const Dialect& dialect, bool with_text);

/// Whether build_copy or build_map moves complex elements part by part, as their addresses require.
bool moves_parts(const Op& op);
BuiltKernels build_optimizer(const Op& op, const Dialect& dialect, bool with_text);

/// Why the kernels of optimisers are not for this op.
std::optional<Refusal> refuse_optimizer(const Op& op, const Dialect& dialect);

}  // namespace compute::common
