// SPDX-License-Identifier: Apache-2.0
// Dtypes as the portable dialect spells them.
#pragma once

#include <string>
#include <string_view>

#include "plugins/common/op/op.hpp"

namespace compute::common {

/// How a dtype's values are written. `name` is both the type of a value and the suffix of its functions; float16 and
/// bfloat16 values are their bits (u16). `storage` is the type of an element in memory.
struct TypeText {
  const char* name;
  const char* value;
  const char* storage;
};

inline const TypeText& type_text(compute_dtype dtype) {
  static constexpr TypeText kTypes[kDtypeLimit] = {
      {"none", "none", "none"}, {"b", "bool", "u8"},   {"i8", "i8", "i8"},    {"i16", "i16", "i16"},
      {"i32", "i32", "i32"},    {"i64", "i64", "i64"}, {"u8", "u8", "u8"},    {"u16", "u16", "u16"},
      {"u32", "u32", "u32"},    {"u64", "u64", "u64"}, {"f16", "u16", "u16"}, {"bf16", "u16", "u16"},
      {"f32", "f32", "f32"},    {"f64", "f64", "f64"}, {"c64", "c64", "c64"}, {"c128", "c128", "c128"},
  };
  return kTypes[dtype];
}

/// The type of an element of `size` bytes where only its bits count.
inline const char* bits_storage(int32_t size) {
  switch (size) {
    case 1:
      return "u8";
    case 2:
      return "u16";
    case 4:
      return "u32";
    case 8:
      return "u64";
    default:
      return "compute_w16";
  }
}

inline bool is_float(compute_dtype dtype) { return dtype_row(dtype).category == Category::kFloat; }
inline bool is_half(compute_dtype dtype) { return dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16; }
inline bool is_signed(compute_dtype dtype) { return dtype_row(dtype).category == Category::kSigned; }
inline bool is_integer(compute_dtype dtype) {
  return is_signed(dtype) || dtype_row(dtype).category == Category::kUnsigned;
}
/// The real dtype of a complex one, else the dtype itself.
inline compute_dtype part_of(compute_dtype dtype) {
  return dtype == COMPUTE_DTYPE_COMPLEX64    ? COMPUTE_DTYPE_FLOAT32
         : dtype == COMPUTE_DTYPE_COMPLEX128 ? COMPUTE_DTYPE_FLOAT64
                                             : dtype;
}
inline compute_dtype unsigned_of(compute_dtype dtype) {
  return is_signed(dtype) ? dtype + (COMPUTE_DTYPE_UINT8 - COMPUTE_DTYPE_INT8) : dtype;
}
/// The dtype that arithmetic on values of `dtype` is done in.
inline compute_dtype computed_in(compute_dtype dtype) { return is_half(dtype) ? COMPUTE_DTYPE_FLOAT32 : dtype; }
inline bool needs_fp64(compute_dtype dtype) {
  return dtype == COMPUTE_DTYPE_FLOAT64 || dtype == COMPUTE_DTYPE_COMPLEX128;
}

/// Concatenates texts and numbers.
inline void append_text(std::string& out, std::string_view text) { out += text; }
inline void append_text(std::string& out, const char* text) { out += text; }
inline void append_text(std::string& out, char c) { out += c; }
template <class T>
requires std::is_integral_v<T>
void append_text(std::string& out, T number) { out += std::to_string(number); }
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

}  // namespace compute::common
