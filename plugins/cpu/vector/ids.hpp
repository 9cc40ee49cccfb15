// SPDX-License-Identifier: Apache-2.0
// The ids that index tables of kernels. Included by code of every instruction set, so it contains no functions and
// nothing of the standard library.
#pragma once

#include <stdint.h>

namespace compute::cpu {

/// kId_add and so on: the ids of intrinsics.def, which increase from row to row, and one more than the last.
enum IntrinsicId : int32_t {
#define COMPUTE_INTRINSIC(id, name, ...) kId_##name = id,
#include "compute/intrinsics.def"
#undef COMPUTE_INTRINSIC
  kIntrinsicLimit
};

/// kDtype_float32 and so on: the ids of dtypes.def, in the same way.
enum DtypeId : int32_t {
#define COMPUTE_DTYPE(id, name, ...) kDtype_##name = id,
#include "compute/dtypes.def"
#undef COMPUTE_DTYPE
  kDtypeLimit
};

}  // namespace compute::cpu
