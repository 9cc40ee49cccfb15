// SPDX-License-Identifier: Apache-2.0
// What the kernels of attention and its gradient share for matrix units. See template.hpp for the words that
// begin with $.
#pragma once

#include <string>
#include <string_view>

#include "plugins/common/source/builder/ptx_functions.hpp"
#include "plugins/common/source/expressions/template.hpp"

namespace compute::common {

// The device's power of 2, a value of another item of the warp, and a sum over four neighbours.
inline constexpr std::string_view kAttentionLanes = R"(
COMPUTE_FUNCTION f32 compute_exp2(f32 x) {
  f32 r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
COMPUTE_FUNCTION f32 compute_of_lanes(f32 x, int mask) {
  f32 r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(r) : "f"(x), "r"(mask));
  return r;
}
COMPUTE_FUNCTION f32 compute_sum_of_quad(f32 x) {
  x += compute_of_lanes(x, 1);
  return x + compute_of_lanes(x, 2);
}
)";

inline constexpr std::string_view kAttentionFunctions = R"(
COMPUTE_FUNCTION u32 compute_pack(f32 low, f32 high) {
  u32 r;
  asm("cvt.rn.$half_type" "x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
)";

/// What kernels for halves use; `half_type` is f16 or bf16.
inline std::string attention_functions(std::string_view half_type) {
  return cat(kCopyFunctions, kMatrixLoads, fill(kHalfProduct, {{"half_type", half_type}}),
             fill(kAttentionFunctions, {{"half_type", half_type}}));
}

}  // namespace compute::common
