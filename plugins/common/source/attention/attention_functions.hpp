// SPDX-License-Identifier: Apache-2.0
// What the kernels of attention and its gradient share in CUDA C for matrix units. See template.hpp for the words that
// begin with $.
#pragma once

#include <string_view>

namespace compute::common {

// The device's power of 2, a value of another item of the warp, and a sum over four neighbours.
inline constexpr std::string_view kAttentionLanes = R"(
COMPUTE_FUNCTION f32 compute_exp2(f32 x) {
  f32 r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
COMPUTE_FUNCTION f32 compute_of_lanes(f32 x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
COMPUTE_FUNCTION f32 compute_sum_of_quad(f32 x) {
  x += compute_of_lanes(x, 1);
  return x + compute_of_lanes(x, 2);
}
)";

// For halves.
inline constexpr std::string_view kAttentionFunctions = R"(
COMPUTE_FUNCTION u32 compute_shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
// 16 bytes, or zeros.
COMPUTE_FUNCTION void compute_copy_async(u32 to, const void* from, bool exists) {
  const int bytes = exists ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
COMPUTE_FUNCTION void compute_copies_begin() { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define COMPUTE_COPIES_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
COMPUTE_FUNCTION void compute_load_matrices(u32* r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
COMPUTE_FUNCTION void compute_load_transposed(u32* r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
COMPUTE_FUNCTION void compute_multiply_add(f32* c, const u32* a, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.$half_type.$half_type.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
COMPUTE_FUNCTION u32 compute_pack(f32 low, f32 high) {
  u32 r;
  asm("cvt.rn.$half_type" "x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
)";

}  // namespace compute::common
