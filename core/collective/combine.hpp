// SPDX-License-Identifier: Apache-2.0
// Combines the values of the ranks, in their order.
#pragma once

#include <compute/compute.h>

#include <cstdint>

namespace compute {

// Throws INVALID_ARGUMENT if `reduction` is none, or if the dtype does not have it.
void require_reduction(const char* op, int32_t reduction, compute_dtype dtype);

// dst[i] = parts[0][i] · parts[1][i] · …, where the `ranks` parts of `count` elements stand one after the other. The
// result depends on the values alone: float16 and bfloat16 are combined in float32 and rounded once.
void combine(int32_t reduction, compute_dtype dtype, const void* parts, int32_t ranks, void* dst, int64_t count);

}  // namespace compute
