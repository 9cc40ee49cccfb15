// SPDX-License-Identifier: Apache-2.0
// How the kernels of reduce and row combine values.
#pragma once

#include <string>
#include <string_view>

#include "plugins/common/source/expressions/functions.hpp"
#include "plugins/common/source/expressions/types.hpp"

namespace compute::common {

enum class Combination { sum, prod, min, max, all, any, unknown };

Combination combination_of(std::string_view name);

/// The value that changes no other one of `dtype`, as text.
std::string identity_text(Combination kind, compute_dtype dtype);

/// `x` and `y` combined, as text.
std::string combine_text(Combination kind, compute_dtype dtype, const std::string& x, const std::string& y,
                         Functions& functions);

/// Whether work items compensate for the rounding errors of a sum.
inline bool is_compensated_sum(Combination kind, compute_dtype dtype) {
  return kind == Combination::sum && is_float(part_of(dtype));
}

}  // namespace compute::common
