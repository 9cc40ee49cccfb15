// SPDX-License-Identifier: Apache-2.0
// attention and attention_grad by wgmma. Of float32 by units that multiply TF32, see matrix_units.hpp: a group whose
// numbers do not suit the units is computed again by the kernels of attention_tiles.hpp. Of halves by the kernels of
// attention_half_units.hpp.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

/// Whether these kernels are for the op, which refuse_attention_tiles does not refuse.
bool suits_attention_units(const Op& op, const Dialect& dialect);

BuiltKernels build_attention_units(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_attention_grad_units(const Op& op, const Dialect& dialect, bool with_text);

}  // namespace compute::common
