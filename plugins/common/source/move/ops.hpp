// SPDX-License-Identifier: Apache-2.0
// The primitives of this room: gathers and scatters.
// A build function returns kernels and launches, with their text if it is asked for.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

BuiltKernels build_gather(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_scatter(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_take_grad(const Op& op, const Dialect& dialect, bool with_text);

/// Why the kernels of take_grad are not for this op.
std::optional<Refusal> refuse_take_grad(const Op& op, const Dialect& dialect);

}  // namespace compute::common
