// SPDX-License-Identifier: Apache-2.0
// The kernels of attention for few queries of many keys, such as those of a token behind a long text.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

bool suits_attention_few(const Op& op, const Dialect& dialect);
BuiltKernels build_attention_few(const Op& op, const Dialect& dialect, bool with_text);

}  // namespace compute::common
