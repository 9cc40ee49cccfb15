// SPDX-License-Identifier: Apache-2.0
// GLSL for compute shaders (Vulkan) as a dialect: expressions and functions, not kernels as a whole, because the
// language has no pointers.
#pragma once

#include "plugins/common/source/expressions/dialect.hpp"

namespace compute::common {

/// Needs "#version 460" before the prelude, and the device's feature shaderInt64. Every function of float32 comes from
/// the library. float64 needs shaderFloat64 and has arithmetic, conversions and roundings, and no functions; see
/// missing_function(). float16 and bfloat16 are converted by integer arithmetic.
Dialect glsl_dialect(bool has_fp64);

}  // namespace compute::common
