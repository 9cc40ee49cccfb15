// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/dialect/dialect.hpp"

namespace compute::cuda {
namespace {

using common::FunctionText;
using common::Word;

constexpr Word kTypes[] = {
    {"i8", "signed char"},   {"i16", "short"},          {"i32", "int"},          {"i64", "long long"},
    {"u8", "unsigned char"}, {"u16", "unsigned short"}, {"u32", "unsigned int"}, {"u64", "unsigned long long"},
    {"f32", "float"},        {"f64", "double"},         {"c64", "float2"},       {"c128", "double2"},
};

constexpr Word kWords[] = {
    {"COMPUTE_KERNEL", "extern \"C\" __global__ void"},
    {"COMPUTE_FUNCTION", "static __device__ __forceinline__"},
    {"COMPUTE_GLOBAL", ""},
    {"COMPUTE_LOCAL", "__shared__"},
    {"COMPUTE_OVERLOADED", ""},
    {"COMPUTE_LOCAL_POINTER", ""},
    {"COMPUTE_LOCAL_ADDRESS(p)", "((u32)__cvta_generic_to_shared(p))"},
    {"COMPUTE_CONSTANT", "static __device__ const"},
    {"COMPUTE_BARRIER()", "__syncthreads()"},
    {"COMPUTE_WAIT_FOR_KERNELS()", "asm volatile(\"griddepcontrol.wait;\" ::: \"memory\")", "if __CUDA_ARCH__ >= 900",
     ""},
    {"COMPUTE_START_KERNELS()", "asm volatile(\"griddepcontrol.launch_dependents;\")", "if __CUDA_ARCH__ >= 900", ""},
    {"COMPUTE_FENCE()", "__threadfence()"},
    {"COMPUTE_LOCAL_ID(d)", "((i32)((d) == 0 ? threadIdx.x : (d) == 1 ? threadIdx.y : threadIdx.z))"},
    {"COMPUTE_GROUP_ID(d)", "((i64)((d) == 0 ? blockIdx.x : (d) == 1 ? blockIdx.y : blockIdx.z))"},
    {"COMPUTE_GROUP_SIZE(d)", "((i32)((d) == 0 ? blockDim.x : (d) == 1 ? blockDim.y : blockDim.z))"},
    {"COMPUTE_GROUP_COUNT(d)", "((i64)((d) == 0 ? gridDim.x : (d) == 1 ? gridDim.y : gridDim.z))"},
    {"COMPUTE_I64(x)", "x##LL"},
    {"COMPUTE_U64(x)", "x##ULL"},
    {"COMPUTE_C64(re, im)", "make_float2(re, im)"},
    {"COMPUTE_C128(re, im)", "make_double2(re, im)"},
    {"COMPUTE_AS_F32(x)", "__int_as_float(x)"},
    {"COMPUTE_AS_I32(x)", "__float_as_int(x)"},
    {"COMPUTE_AS_F64(x)", "__longlong_as_double(x)"},
    {"COMPUTE_AS_I64(x)", "__double_as_longlong(x)"},
    {"COMPUTE_MUL_HIGH_U32(x, y)", "__umulhi(x, y)"},
    {"COMPUTE_MUL_HIGH_I64(x, y)", "__mul64hi(x, y)"},
    {"COMPUTE_MUL_HIGH_U64(x, y)", "__umul64hi(x, y)"},
    {"COMPUTE_CLZ64(x)", "((i32)__clzll((i64)(x)))"},
    {"COMPUTE_ATOMIC_ADD_I32(p, x)", "atomicAdd((i32*)(p), x)"},
    {"COMPUTE_ATOMIC_MIN_I32(p, x)", "atomicMin((i32*)(p), x)"},
    {"COMPUTE_ATOMIC_MAX_I32(p, x)", "atomicMax((i32*)(p), x)"},
    {"COMPUTE_ATOMIC_LOAD_U32(p)", "(*(p))"},
    {"COMPUTE_ATOMIC_LOAD_U64(p)", "(*(p))"},
    {"COMPUTE_ATOMIC_CAS_U32(p, old, x)", "atomicCAS((u32*)(p), old, x)"},
    {"COMPUTE_ATOMIC_CAS_U64(p, old, x)", "atomicCAS((u64*)(p), old, x)"},
    {"COMPUTE_ATOMIC_ADD_F32(p, x)", "atomicAdd(p, x)"},
    {"COMPUTE_ATOMIC_ADD_U64(p, x)", "atomicAdd((u64*)(p), x)"},
};

constexpr Word kVectors[] = {
    {"compute_w8", "uint2"},
    {"compute_w16", "uint4"},
};

constexpr std::string_view kHalves =
    R"(COMPUTE_FUNCTION f32 compute_from_f16(u16 x) {
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

constexpr FunctionText kFunctions[] = {
#define FUNCTION(base, classes, needs, text) {base, classes, needs, text},
#include "plugins/cuda/dialect/functions.inc"
#undef FUNCTION
};

}  // namespace

common::Dialect dialect() {
  common::Dialect dialect;
  dialect.heading = "\n#define COMPUTE_CUDA 1";
  dialect.types = kTypes;
  dialect.words = kWords;
  dialect.vectors = kVectors;
  dialect.halves = kHalves;
  dialect.to_i32 = "__float2int_rz";  // cvt of PTX saturates, and makes 0 of NaN
  dialect.to_u32 = "__float2uint_rz";
  dialect.functions = kFunctions;
  dialect.native.reset(COMPUTE_PLUGIN_INTRINSIC_EXP).reset(COMPUTE_PLUGIN_INTRINSIC_ERFC);
  dialect.has_ptx = dialect.has_warps = dialect.starts_kernels = true;
  dialect.largest_group = 1024;
  dialect.has_vendor_products = true;
  dialect.item_registers = 255;
  // With more, cuBLASLt is faster: from 3 of halves, which it multiplies with matrix units.
  dialect.few_rows = 16;
  dialect.few_rows_of_float64 = 4;
  dialect.few_rows_of_halves = 2;
  return dialect;
}

std::vector<std::string> compile_options() {
  return {"--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"};
}

}  // namespace compute::cuda
