// SPDX-License-Identifier: Apache-2.0
// What the planning and the running of a matrix product share.
#pragma once

#include <compute/plugin.h>

#include <cstdint>

namespace compute::cpu::matmul {

constexpr int64_t kAlignment = 64;  // of a task's memory
// Of an epilogue that may be applied where parts of sums are added up: on a thread's stack.
constexpr int64_t kJoinFrameBytes = 8 << 10;

inline bool is_half(compute_dtype dtype) { return dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16; }

inline int64_t ceiling(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }

}  // namespace compute::cpu::matmul
