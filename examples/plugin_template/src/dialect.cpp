// SPDX-License-Identifier: Apache-2.0
#include "dialect.hpp"

namespace acme {
namespace {

using compute::common::Dialect;
using compute::common::Word;

// TODO: the types and words of the vendor's language.
constexpr Word kTypes[] = {
    {"i8", "signed char"},
    {"i16", "short"},
    {"i32", "int"},
    {"i64", "long long"},
    {"u8", "unsigned char"},
    {"u16", "unsigned short"},
    {"u32", "unsigned int"},
    {"u64", "unsigned long long"},
    {"f32", "float"},
    {"f64", "double"},
    {"c64", "struct { f32 x, y; }"},
    {"c128", "struct { f64 x, y; }"},
};

constexpr Word kWords[] = {
    {"bool", "_Bool"},
    {"COMPUTE_FUNCTION", "static inline"},
    {"COMPUTE_I64(x)", "x##LL"},
    {"COMPUTE_U64(x)", "x##ULL"},
    {"COMPUTE_C64(re, im)", "((c64){re, im})"},
    {"COMPUTE_C128(re, im)", "((c128){re, im})"},
    {"COMPUTE_AS_F32(x)", "acme_as_f32((i32)(x))"},
    {"COMPUTE_AS_I32(x)", "acme_as_i32(x)"},
    {"COMPUTE_AS_F64(x)", "acme_as_f64((i64)(x))"},
    {"COMPUTE_AS_I64(x)", "acme_as_i64(x)"},
    {"COMPUTE_MUL_HIGH_U32(x, y)", "((u32)(((u64)(u32)(x) * (u32)(y)) >> 32))"},
    {"COMPUTE_MUL_HIGH_I64(x, y)", "((i64)(((__int128)(i64)(x) * (i64)(y)) >> 64))"},
    {"COMPUTE_MUL_HIGH_U64(x, y)", "((u64)(((unsigned __int128)(u64)(x) * (u64)(y)) >> 64))"},
    {"COMPUTE_CLZ64(x)", "__builtin_clzll((u64)(x))"},
};

constexpr std::string_view kFunctions = R"(
static inline f32 acme_as_f32(i32 x) { union { i32 i; f32 f; } u = {.i = x}; return u.f; }
static inline i32 acme_as_i32(f32 x) { union { i32 i; f32 f; } u = {.f = x}; return u.i; }
static inline f64 acme_as_f64(i64 x) { union { i64 i; f64 f; } u = {.i = x}; return u.f; }
static inline i64 acme_as_i64(f64 x) { union { i64 i; f64 f; } u = {.f = x}; return u.i; }
static inline f64 rsqrt(f64 x) { return 1 / sqrt(x); }
)";

Dialect make() {
  Dialect dialect;
  dialect.heading = "#include <math.h>";
  dialect.types = kTypes;
  dialect.words = kWords;
  dialect.float64 = kFunctions;
  // Functions of float32 are C's of float64, so they keep their bounds. TODO: reset() the intrinsics whose functions
  // exceed the bounds of compute/intrinsics.def: the library's are used then.
  dialect.has_half_io = false;  // float16 is converted by integer arithmetic
  return dialect;
}

}  // namespace

const Dialect& dialect() {
  static const Dialect& one = *new Dialect(make());
  return one;
}

}  // namespace acme
