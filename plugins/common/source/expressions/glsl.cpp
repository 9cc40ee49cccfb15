// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/expressions/glsl.hpp"

namespace compute::common {
namespace {

constexpr Word kGlslTypes[] = {
    {"i8", "int"},   {"i16", "int"},  {"i32", "int"},      {"i64", "int64_t"}, {"u8", "uint"},
    {"u16", "uint"}, {"u32", "uint"}, {"u64", "uint64_t"}, {"f32", "float"},   {"c64", "vec2"},
};

constexpr Word kGlslWords[] = {
    {"COMPUTE_KERNEL", "void"},
    {"COMPUTE_FUNCTION", ""},
    {"COMPUTE_LOCAL", "shared"},
    {"COMPUTE_CONSTANT", "const"},
    {"COMPUTE_BARRIER()", "barrier()"},
    {"COMPUTE_FENCE()", "memoryBarrierBuffer()"},
    {"COMPUTE_LOCAL_ID(d)", "int(gl_LocalInvocationID[d])"},
    {"COMPUTE_GROUP_ID(d)", "int64_t(gl_WorkGroupID[d])"},
    {"COMPUTE_GROUP_SIZE(d)", "int(gl_WorkGroupSize[d])"},
    {"COMPUTE_GROUP_COUNT(d)", "int64_t(gl_NumWorkGroups[d])"},
    {"COMPUTE_C64(re, im)", "vec2(re, im)"},
    {"COMPUTE_AS_F32(x)", "intBitsToFloat(int(x))"},
    {"COMPUTE_AS_I32(x)", "floatBitsToInt(float(x))"},
    {"COMPUTE_MUL_HIGH_U32(x, y)", "compute_mul_high(uint(x), uint(y))"},
    {"COMPUTE_MUL_HIGH_I64(x, y)", "compute_mul_high(int64_t(x), int64_t(y))"},
    {"COMPUTE_MUL_HIGH_U64(x, y)", "compute_mul_high(uint64_t(x), uint64_t(y))"},
    {"COMPUTE_CLZ64(x)", "compute_clz(uint64_t(x))"},
    {"to_i8(x)", "bitfieldExtract(int(x), 0, 8)"},
    {"to_i16(x)", "bitfieldExtract(int(x), 0, 16)"},
    {"to_u8(x)", "(uint(x) & 255u)"},
    {"to_u16(x)", "(uint(x) & 65535u)"},
    {"fabs(x)", "abs(x)"},
    {"rint(x)", "roundEven(x)"},
};

constexpr std::string_view kGlslFloat64 = R"(#define f64 double
#define c128 dvec2
#define COMPUTE_C128(re, im) dvec2(re, im)
#define COMPUTE_AS_F64(x) packDouble2x32(unpackUint2x32(uint64_t(x)))
#define COMPUTE_AS_I64(x) int64_t(packUint2x32(unpackDouble2x32(double(x))))
bool compute_is_nan(double x) {
  uvec2 bits = unpackDouble2x32(x);
  uint high = bits.y & 0x7fffffffu;
  return high > 0x7ff00000u || (high == 0x7ff00000u && bits.x != 0u);
}
)";

// With float16 as two bytes of a uint. The rounding of packHalf2x16 is not specified.
constexpr std::string_view kGlslHelpers =
    R"(bool compute_is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
uint compute_mul_high(uint x, uint y) {
  uint high, low;
  umulExtended(x, y, high, low);
  return high;
}
uint64_t compute_mul_high(uint64_t x, uint64_t y) {
  uint64_t a = x >> 32, b = x & 0xfffffffful, c = y >> 32, d = y & 0xfffffffful;
  uint64_t bd = b * d, ad = a * d, bc = b * c, middle = (bd >> 32) + (ad & 0xfffffffful) + (bc & 0xfffffffful);
  return a * c + (ad >> 32) + (bc >> 32) + (middle >> 32);
}
int64_t compute_mul_high(int64_t x, int64_t y) {
  uint64_t high = compute_mul_high(uint64_t(x), uint64_t(y));
  if (x < 0l) high -= uint64_t(y);
  if (y < 0l) high -= uint64_t(x);
  return int64_t(high);
}
int compute_clz(uint64_t x) {
  uvec2 words = unpackUint2x32(x);
  return words.y != 0u ? 31 - findMSB(words.y) : 63 - findMSB(words.x);
}
float compute_from_f16(uint x) {
  uint magnitude = x & 0x7fffu;
  if (magnitude >= 0x7c00u) return uintBitsToFloat(0x7f800000u | (magnitude << 13));
  if (magnitude < 0x0400u) return float(magnitude) * 5.9604644775390625e-08f;
  return uintBitsToFloat((magnitude << 13) + 0x38000000u);
}
uint compute_to_f16(float x) {
  uint magnitude = floatBitsToUint(x) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  if (magnitude >= 0x477ff000u) return 0x7c00u;
  if (magnitude >= 0x38800000u) return (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  precise float sum = uintBitsToFloat(magnitude) + 0.5f;
  return floatBitsToUint(sum) - 0x3f000000u;
}
)";

constexpr FunctionText kGlslFunctions[] = {
    {"sign", "f", "", R"(
COMPUTE_FUNCTION $T sign_$t($T x) { return x > 0 ? ($T)1 : x < 0 ? ($T)-1 : x; }
)"},
};

}  // namespace

Dialect glsl_dialect(bool has_fp64) {
  Dialect dialect;
  dialect.heading = has_fp64 ? "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"
                               "#extension GL_EXT_shader_explicit_arithmetic_types_float64 : require"
                             : "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require";
  dialect.types = kGlslTypes;
  dialect.words = kGlslWords;
  dialect.float64 = kGlslFloat64;
  dialect.halves = kGlslHelpers;
  dialect.functions = kGlslFunctions;
  dialect.has_pointers = dialect.has_typedefs = dialect.has_prefix_casts = false;
  dialect.has_hex_floats = dialect.has_bool_arithmetic = dialect.has_c_math = false;
  dialect.precise = "precise";
  dialect.u64_suffix = "ul";
  dialect.f64_suffix = "lf";
  dialect.native = Intrinsics()
                       .set(COMPUTE_PLUGIN_INTRINSIC_FLOOR)
                       .set(COMPUTE_PLUGIN_INTRINSIC_CEIL)
                       .set(COMPUTE_PLUGIN_INTRINSIC_TRUNC)
                       .set(COMPUTE_PLUGIN_INTRINSIC_ROUND);
  dialect.native_wide = dialect.native;
  dialect.native_wide.set(COMPUTE_PLUGIN_INTRINSIC_SQRT).set(COMPUTE_PLUGIN_INTRINSIC_DIV);
  dialect.has_fp64 = has_fp64;
  dialect.has_int64_atomics = false;
  return dialect;
}

}  // namespace compute::common
