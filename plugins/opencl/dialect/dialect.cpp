// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/dialect/dialect.hpp"

namespace compute::opencl {
namespace {

using common::Word;

constexpr Word kTypes[] = {
    {"i8", "char"},    {"i16", "short"}, {"i32", "int"},   {"i64", "long"},  {"u8", "uchar"},
    {"u16", "ushort"}, {"u32", "uint"},  {"u64", "ulong"}, {"f32", "float"}, {"c64", "float2"},
};

constexpr Word kWords[] = {
    {"COMPUTE_KERNEL", "__kernel void"},
    {"COMPUTE_FUNCTION", "static inline"},
    {"COMPUTE_OVERLOADED", "__attribute__((overloadable))"},
    {"COMPUTE_GLOBAL", "__global"},
    {"COMPUTE_LOCAL", "__local"},
    {"COMPUTE_LOCAL_POINTER", "__local"},
    {"COMPUTE_LOCAL_ADDRESS(p)", "((u32)(u64)(p))"},
    {"COMPUTE_CONSTANT", "__constant"},
    {"COMPUTE_BARRIER()", "barrier(CLK_LOCAL_MEM_FENCE)"},
    {"COMPUTE_WAIT_FOR_KERNELS()", ""},
    {"COMPUTE_FENCE()", "asm volatile(\"membar.gl;\" ::: \"memory\")", "ifdef __NV_CL_C_VERSION",
     "mem_fence(CLK_GLOBAL_MEM_FENCE)"},
    {"COMPUTE_LOCAL_ID(d)", "((i32)get_local_id(d))"},
    {"COMPUTE_GROUP_ID(d)", "((i64)get_group_id(d))"},
    {"COMPUTE_GROUP_SIZE(d)", "((i32)get_local_size(d))"},
    {"COMPUTE_GROUP_COUNT(d)", "((i64)get_num_groups(d))"},
    {"COMPUTE_I64(x)", "x##L"},
    {"COMPUTE_U64(x)", "x##UL"},
    {"COMPUTE_C64(re, im)", "((float2)(re, im))"},
    {"COMPUTE_AS_F32(x)", "as_float((int)(x))"},
    {"COMPUTE_AS_I32(x)", "as_int((float)(x))"},
    {"COMPUTE_MUL_HIGH_U32(x, y)", "mul_hi((uint)(x), (uint)(y))"},
    {"COMPUTE_MUL_HIGH_I64(x, y)", "mul_hi((long)(x), (long)(y))"},
    {"COMPUTE_MUL_HIGH_U64(x, y)", "mul_hi((ulong)(x), (ulong)(y))"},
    {"COMPUTE_CLZ64(x)", "((i32)clz((ulong)(x)))"},
    {"COMPUTE_ATOMIC_ADD_I32(p, x)", "atomic_add(p, x)"},
    {"COMPUTE_ATOMIC_MIN_I32(p, x)", "atomic_min(p, x)"},
    {"COMPUTE_ATOMIC_MAX_I32(p, x)", "atomic_max(p, x)"},
    {"COMPUTE_ATOMIC_ADD_U64(p, x)", "atom_add(p, x)"},
    {"COMPUTE_ATOMIC_LOAD_U32(p)", "atomic_add(p, 0u)"},
    {"COMPUTE_ATOMIC_LOAD_U64(p)", "atom_add(p, 0ul)"},
    {"COMPUTE_ATOMIC_CAS_U32(p, old, x)", "atomic_cmpxchg(p, old, x)"},
    {"COMPUTE_ATOMIC_CAS_U64(p, old, x)", "atom_cmpxchg(p, old, x)"},
};

constexpr Word kVectors[] = {
    {"compute_w8", "uint2"},
    {"compute_w16", "uint4"},
};

constexpr std::string_view kFloat64 = R"(
#if __OPENCL_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef double f64;
typedef double2 c128;
#define COMPUTE_C128(re, im) ((double2)(re, im))
#define COMPUTE_AS_F64(x) as_double((long)(x))
#define COMPUTE_AS_I64(x) as_long((double)(x))
)";

constexpr std::string_view kInt64Atomics = R"(
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
)";

constexpr std::string_view kHalves = R"(
COMPUTE_FUNCTION f32 compute_from_f16(u16 x) { return vload_half(0, (const half*)&x); }
COMPUTE_FUNCTION u16 compute_to_f16(f32 x) {
  u16 r;
  vstore_half_rte(x, 0, (half*)&r);
  return r;
}
)";

}  // namespace

common::Dialect dialect() {
  common::Dialect dialect;
  dialect.heading = "\n#define COMPUTE_OPENCL 1\n#pragma OPENCL FP_CONTRACT OFF";
  dialect.types = kTypes;
  dialect.words = kWords;
  dialect.vectors = kVectors;
  dialect.float64 = kFloat64;
  dialect.int64_atomics = kInt64Atomics;
  dialect.halves = kHalves;
  dialect.native.reset(COMPUTE_PLUGIN_INTRINSIC_EXP).reset(COMPUTE_PLUGIN_INTRINSIC_ERFC);
  dialect.native_wide.reset(COMPUTE_PLUGIN_INTRINSIC_EXP);
  return dialect;
}

common::Dialect dialect_of_cores() {
  common::Dialect cores = dialect();
  cores.is_host = true;
  cores.native.set(COMPUTE_PLUGIN_INTRINSIC_EXP);  // PoCL's form keeps the bound and becomes vector code
  return cores;
}

std::vector<std::string> compile_options(const common::Dialect& dialect) {
  std::vector<std::string> options = {"-cl-std=CL1.2"};
  if (dialect.has_rounded_division) options.push_back("-cl-fp32-correctly-rounded-divide-sqrt");
  return options;
}

}  // namespace compute::opencl
