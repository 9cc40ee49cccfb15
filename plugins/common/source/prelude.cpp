// SPDX-License-Identifier: Apache-2.0
// The portable dialect: what its words are in CUDA C and in OpenCL C.
#include "plugins/common/source/generator.hpp"

namespace compute::common {
namespace {

constexpr const char* kCuda = R"(
#define COMPUTE_CUDA 1
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef float2 c64;
typedef double2 c128;
#define COMPUTE_KERNEL extern "C" __global__ void
#define COMPUTE_FUNCTION static __device__ __forceinline__
#define COMPUTE_GLOBAL
#define COMPUTE_LOCAL __shared__
#define COMPUTE_LOCAL_POINTER
#define COMPUTE_CONSTANT static __device__ const
#define COMPUTE_BARRIER() __syncthreads()
#if __CUDA_ARCH__ >= 900
#define COMPUTE_WAIT_FOR_KERNELS() asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define COMPUTE_WAIT_FOR_KERNELS()
#endif
#define COMPUTE_FENCE() __threadfence()
#define COMPUTE_LOCAL_ID(d) ((i32)((d) == 0 ? threadIdx.x : (d) == 1 ? threadIdx.y : threadIdx.z))
#define COMPUTE_GROUP_ID(d) ((i64)((d) == 0 ? blockIdx.x : (d) == 1 ? blockIdx.y : blockIdx.z))
#define COMPUTE_GROUP_SIZE(d) ((i32)((d) == 0 ? blockDim.x : (d) == 1 ? blockDim.y : blockDim.z))
#define COMPUTE_GROUP_COUNT(d) ((i64)((d) == 0 ? gridDim.x : (d) == 1 ? gridDim.y : gridDim.z))
#define COMPUTE_I64(x) x##LL
#define COMPUTE_U64(x) x##ULL
#define COMPUTE_C64(re, im) make_float2(re, im)
#define COMPUTE_C128(re, im) make_double2(re, im)
#define COMPUTE_AS_F32(x) __int_as_float(x)
#define COMPUTE_AS_I32(x) __float_as_int(x)
#define COMPUTE_AS_F64(x) __longlong_as_double(x)
#define COMPUTE_AS_I64(x) __double_as_longlong(x)
#define COMPUTE_MUL_HIGH_U32(x, y) __umulhi(x, y)
#define COMPUTE_MUL_HIGH_I64(x, y) __mul64hi(x, y)
#define COMPUTE_MUL_HIGH_U64(x, y) __umul64hi(x, y)
#define COMPUTE_CLZ64(x) ((i32)__clzll((i64)(x)))
#define COMPUTE_ATOMIC_ADD_I32(p, x) atomicAdd((i32*)(p), x)
#define COMPUTE_ATOMIC_MIN_I32(p, x) atomicMin((i32*)(p), x)
#define COMPUTE_ATOMIC_MAX_I32(p, x) atomicMax((i32*)(p), x)
#define COMPUTE_ATOMIC_LOAD_U32(p) (*(p))
#define COMPUTE_ATOMIC_LOAD_U64(p) (*(p))
#define COMPUTE_ATOMIC_CAS_U32(p, old, x) atomicCAS((u32*)(p), old, x)
#define COMPUTE_ATOMIC_CAS_U64(p, old, x) atomicCAS((u64*)(p), old, x)
#define COMPUTE_ATOMIC_ADD_F32(p, x) atomicAdd(p, x)
typedef uint2 compute_w8;
typedef uint4 compute_w16;
COMPUTE_FUNCTION f32 compute_from_f16(u16 x) {
  f32 r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x));
  return r;
}
COMPUTE_FUNCTION u16 compute_to_f16(f32 x) {
  u16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}
)";

constexpr const char* kOpencl = R"(
#define COMPUTE_OPENCL 1
#pragma OPENCL FP_CONTRACT OFF
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
typedef float2 c64;
#define COMPUTE_KERNEL __kernel void
#define COMPUTE_FUNCTION static inline
#define COMPUTE_GLOBAL __global
#define COMPUTE_LOCAL __local
#define COMPUTE_LOCAL_POINTER __local
#define COMPUTE_CONSTANT __constant
#define COMPUTE_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define COMPUTE_WAIT_FOR_KERNELS()
#define COMPUTE_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#define COMPUTE_LOCAL_ID(d) ((i32)get_local_id(d))
#define COMPUTE_GROUP_ID(d) ((i64)get_group_id(d))
#define COMPUTE_GROUP_SIZE(d) ((i32)get_local_size(d))
#define COMPUTE_GROUP_COUNT(d) ((i64)get_num_groups(d))
#define COMPUTE_I64(x) x##L
#define COMPUTE_U64(x) x##UL
#define COMPUTE_C64(re, im) ((float2)(re, im))
#define COMPUTE_AS_F32(x) as_float((int)(x))
#define COMPUTE_AS_I32(x) as_int((float)(x))
#define COMPUTE_MUL_HIGH_U32(x, y) mul_hi((uint)(x), (uint)(y))
#define COMPUTE_MUL_HIGH_I64(x, y) mul_hi((long)(x), (long)(y))
#define COMPUTE_MUL_HIGH_U64(x, y) mul_hi((ulong)(x), (ulong)(y))
#define COMPUTE_CLZ64(x) ((i32)clz((ulong)(x)))
#define COMPUTE_ATOMIC_ADD_I32(p, x) atomic_add(p, x)
#define COMPUTE_ATOMIC_MIN_I32(p, x) atomic_min(p, x)
#define COMPUTE_ATOMIC_MAX_I32(p, x) atomic_max(p, x)
#define COMPUTE_ATOMIC_LOAD_U32(p) atomic_add(p, 0u)
#define COMPUTE_ATOMIC_LOAD_U64(p) atom_add(p, 0ul)
#define COMPUTE_ATOMIC_CAS_U32(p, old, x) atomic_cmpxchg(p, old, x)
#define COMPUTE_ATOMIC_CAS_U64(p, old, x) atom_cmpxchg(p, old, x)
typedef uint2 compute_w8;
typedef uint4 compute_w16;
)";

constexpr const char* kOpenclFp64 = R"(
#if __OPENCL_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef double f64;
typedef double2 c128;
#define COMPUTE_C128(re, im) ((double2)(re, im))
#define COMPUTE_AS_F64(x) as_double((long)(x))
#define COMPUTE_AS_I64(x) as_long((double)(x))
)";

constexpr const char* kOpenclInt64Atomics = R"(
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
)";

constexpr const char* kOpenclHalf = R"(
COMPUTE_FUNCTION f32 compute_from_f16(u16 x) { return vload_half(0, (const half*)&x); }
COMPUTE_FUNCTION u16 compute_to_f16(f32 x) {
  u16 r;
  vstore_half_rte(x, 0, (half*)&r);
  return r;
}
)";

// By bits, for devices without vload_half.
constexpr const char* kHalfByBits = R"(
COMPUTE_FUNCTION f32 f16_to_f32(u16 x) {
  const u32 sign = (u32)(x & 0x8000) << 16, magnitude = x & 0x7fff;
  if (magnitude >= 0x7c00)
    return COMPUTE_AS_F32(sign | 0x7f800000 | magnitude << 13 | (magnitude > 0x7c00 ? 0x00400000 : 0));
  const f32 finite = COMPUTE_AS_F32(magnitude << 13) * 0x1p112f;
  return COMPUTE_AS_F32(COMPUTE_AS_I32(finite) | sign);
}
COMPUTE_FUNCTION u16 f32_to_f16(f32 x) {
  const u32 bits = (u32)COMPUTE_AS_I32(x), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  u32 r;
  if (magnitude > 0x7f800000) r = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  else if (magnitude >= 0x477ff000) r = 0x7c00;
  else if (magnitude < 0x38800000) r = (u32)COMPUTE_AS_I32(COMPUTE_AS_F32(magnitude) + 0.5f) - 0x3f000000;
  else r = (magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000) >> 13;
  return (u16)(r | sign);
}
)";

// NVIDIA's conversions make one NaN of all, so the sign is put in place.
constexpr const char* kHalfBySign = R"(
COMPUTE_FUNCTION f32 f16_to_f32(u16 x) {
  return COMPUTE_AS_F32(COMPUTE_AS_I32(compute_from_f16(x)) | (i32)((u32)(x & 0x8000) << 16));
}
COMPUTE_FUNCTION u16 f32_to_f16(f32 x) {
  return (u16)(compute_to_f16(x) | (((u32)COMPUTE_AS_I32(x) >> 16) & 0x8000));
}
)";

// What both languages have.
constexpr const char* kShared = R"(
#define COMPUTE_GLOBAL_ID(d) (COMPUTE_GROUP_ID(d) * COMPUTE_GROUP_SIZE(d) + COMPUTE_LOCAL_ID(d))
COMPUTE_FUNCTION f32 bf16_to_f32(u16 x) { return COMPUTE_AS_F32((i32)((u32)x << 16)); }
COMPUTE_FUNCTION u16 f32_to_bf16(f32 x) {
  const u32 bits = (u32)COMPUTE_AS_I32(x);
  if (x != x) return (u16)((bits | 0x00400000) >> 16);
  return (u16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
)";

}  // namespace

std::string portable_prelude(const Dialect& dialect) {
  std::string text;
  if (dialect.language == Language::kCudaC) {
    text += kCuda;
    text += kHalfBySign;
  } else {
    text += kOpencl;
    if (dialect.has_fp64) text += kOpenclFp64;
    if (dialect.has_int64_atomics) text += kOpenclInt64Atomics;
    if (dialect.has_half_io) {
      text += kOpenclHalf;
      text += kHalfBySign;
    } else {
      text += kHalfByBits;
    }
  }
  text += kShared;
  return text;
}

std::vector<std::string> compile_options(const Dialect& dialect) {
  // Every node rounds once: no contraction. Division and square root are correctly rounded, subnormals count.
  if (dialect.language == Language::kCudaC) {
    return {"--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"};
  }
  std::vector<std::string> options = {"-cl-std=CL1.2"};
  if (dialect.has_rounded_division) options.push_back("-cl-fp32-correctly-rounded-divide-sqrt");
  return options;
}

}  // namespace compute::common
