// SPDX-License-Identifier: Apache-2.0
// The primitives of this room: gathers and scatters.
// A build function returns kernels and launches, with their text if it is asked for.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

BuiltKernels build_gather(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_scatter(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_take_grad(const Op& op, const Dialect& dialect, bool with_text);

/// The strides of a tensor of this shape in row-major order: the position in it as an offset.
std::vector<int64_t> row_major(std::span<const int64_t> shape);

constexpr int64_t kSteps = 4;  // elements that an item of a GPU has in flight, if they fill the device
int64_t choose_steps(int64_t vectors, const Dialect& dialect);

/// Why the kernel of gather_at and gather_nd is not for this op.
std::optional<Refusal> refuse_several_indices(const Op& op, const Dialect& dialect);

/// Why the kernels of take_grad are not for this op.
std::optional<Refusal> refuse_take_grad(const Op& op, const Dialect& dialect);

}  // namespace compute::common
