// SPDX-License-Identifier: Apache-2.0
// attention and attention_grad of float16 and bfloat16 by wgmma, which multiplies halves and adds up float32.
#pragma once

#include "plugins/common/source/attention/attention_tiles.hpp"

namespace compute::common {

/// Adds a kernel.
void add_attention_half_units(const Op& op, const Dialect& dialect, AttentionPart part, bool with_text,
                              BuiltKernels& built);

}  // namespace compute::common
