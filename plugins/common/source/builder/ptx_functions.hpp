// SPDX-License-Identifier: Apache-2.0
// Functions of devices with `has_warps` and with `has_matrix_units`, in PTX, which CUDA C and NVIDIA's OpenCL C accept
// as inline assembly. See template.hpp for the words that begin with $.
#pragma once

#include <string_view>

namespace compute::common {

/// Exchanges and votes of the 32 items of a warp, which all take part.
inline constexpr std::string_view kWarpFunctions = R"(
COMPUTE_FUNCTION u32 compute_word_of_lane(u32 x, int lane) {
  u32 r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(x), "r"(lane));
  return r;
}
// A bit for each item: its x.
COMPUTE_FUNCTION u32 compute_votes(bool x) {
  u32 r;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
               : "=r"(r) : "r"((u32)x));
  return r;
}
COMPUTE_FUNCTION int compute_bits(u32 x) {
  int r;
  asm("popc.b32 %0, %1;" : "=r"(r) : "r"(x));
  return r;
}
COMPUTE_FUNCTION void compute_warp_barrier() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
)";

/// Copies to local memory that go on while the work item does, and a load of what no other item reads.
inline constexpr std::string_view kCopyFunctions = R"(
// 16 bytes, or zeros.
COMPUTE_FUNCTION void compute_copy_async(u32 to, COMPUTE_GLOBAL const void* from, bool exists) {
  const int bytes = exists ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
COMPUTE_FUNCTION void compute_copy_word_async(u32 to, COMPUTE_GLOBAL const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
COMPUTE_FUNCTION void compute_copies_begin() { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define COMPUTE_COPIES_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
COMPUTE_FUNCTION compute_w16 compute_no_word() {
  compute_w16 r;
  r.x = r.y = r.z = r.w = 0;
  return r;
}
// Of memory that the kernel does not write. They keep their order.
COMPUTE_FUNCTION compute_w16 compute_load_word(COMPUTE_GLOBAL const void* from) {
  compute_w16 r;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(from));
  return r;
}
// The same, of what no other item reads.
COMPUTE_FUNCTION compute_w16 compute_load_once(COMPUTE_GLOBAL const void* from) {
  compute_w16 r;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(from));
  return r;
}
)";

/// Four matrices of 8 x 8 halves from local memory into the registers of a warp. Item i gives the address of row i % 8
/// of matrix i / 8.
inline constexpr std::string_view kMatrixLoads = R"(
COMPUTE_FUNCTION void compute_load_matrices(u32* r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
COMPUTE_FUNCTION void compute_load_transposed(u32* r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
)";

/// c += a b of 16 rows, 8 columns and 16 terms; `half_type` is f16 or bf16.
inline constexpr std::string_view kHalfProduct = R"(
COMPUTE_FUNCTION void compute_multiply_add(f32* c, const u32* a, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.$half_type.$half_type.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
)";

/// c += a b of 16 rows, 8 columns and 4 terms of float64, one fused multiply-add per term, and a load of an operand.
inline constexpr std::string_view kFloat64Product = R"(
COMPUTE_FUNCTION f64 compute_load_local(u32 address) {
  f64 r;
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(r) : "r"(address) : "memory");
  return r;
}
COMPUTE_FUNCTION void compute_multiply_add(f64* c, const f64* a, f64 b) {
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(a[0]), "d"(a[1]), "d"(b));
}
)";

}  // namespace compute::common
