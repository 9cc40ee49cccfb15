// SPDX-License-Identifier: Apache-2.0
// The primitives of this room: convolutions.
// A build function returns kernels and launches, with their text if it is asked for.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

BuiltKernels build_convolution(const Op& op, const Dialect& dialect, bool with_text);

}  // namespace compute::common
