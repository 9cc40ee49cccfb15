// SPDX-License-Identifier: Apache-2.0
// Dtypes: their table, promotion, and the conversion of single values, as bit patterns.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace compute {

enum class DtypeCategory : uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex, kFloat8, kVendor };

struct DtypeInfo {
  const char* name;  // NULL for a number that is not a dtype
  int32_t size_bytes;
  DtypeCategory category;
  compute_dtype computed_in;  // float32 for float16, bfloat16 and float8, else the dtype itself
};

inline constexpr compute_dtype kDtypeCount = 18;        // ids 1…17
inline constexpr compute_dtype kFirstVendorDtype = 64;  // up to kDtypeLimit, those of plugins
inline constexpr compute_dtype kDtypeLimit = 128;

// By id; entry 0 is all zero.
[[gnu::visibility("hidden")]] extern std::array<DtypeInfo, kDtypeLimit> dtype_table;

// Adds a dtype of a plugin permanently, and returns its number, which is the same for each call with the same name.
// Throws INVALID_ARGUMENT for an invalid size, a name of another dtype, and if there is no number left.
compute_dtype add_vendor_dtype(std::string_view name, int32_t size_bits);

bool is_dtype(compute_dtype dtype) noexcept;
// For a number that is not a dtype: all zero.
inline const DtypeInfo& dtype_info(compute_dtype dtype) noexcept {
  const auto index = static_cast<uint32_t>(dtype);
  return dtype_table[index < dtype_table.size() ? index : 0];
}
inline int64_t dtype_size(compute_dtype dtype) noexcept { return dtype_info(dtype).size_bytes; }
inline compute_dtype computed_in(compute_dtype dtype) noexcept { return dtype_info(dtype).computed_in; }
// "float32"; "dtype 99" for a number that is not a dtype.
std::string dtype_name(compute_dtype dtype);
// NONE for an unknown name.
compute_dtype dtype_from_name(std::string_view name) noexcept;

bool is_bool(compute_dtype dtype) noexcept;
bool is_integer(compute_dtype dtype) noexcept;  // signed or unsigned; bool is not one
bool is_signed_integer(compute_dtype dtype) noexcept;
bool is_unsigned_integer(compute_dtype dtype) noexcept;
bool is_float(compute_dtype dtype) noexcept;  // float8 is not one
bool is_float8(compute_dtype dtype) noexcept;
// How plugins see elements of the dtype: uint8 for float8, else the dtype itself.
inline compute_dtype stored_as(compute_dtype dtype) noexcept {
  return is_float8(dtype) ? compute_dtype{COMPUTE_DTYPE_UINT8} : dtype;
}
inline bool is_complex(compute_dtype dtype) noexcept { return dtype_info(dtype).category == DtypeCategory::kComplex; }
// 0 bool, 1 integer, 2 real, 3 complex: the order of kinds in promotion.
int kind_of(compute_dtype dtype) noexcept;
// float32 for complex64, float64 for complex128, else the dtype itself.
compute_dtype real_part_dtype(compute_dtype dtype) noexcept;
// complex128 for float64 and complex128, complex64 for the other floats; NONE for the rest.
compute_dtype complex_dtype(compute_dtype dtype) noexcept;

// The classes of intrinsics.def and ops.def.
enum class DtypeClass : uint8_t { kAny, kBool, kInteger, kBits, kReal, kFloat, kComplex, kInexact, kNumeric };

bool in_class(compute_dtype dtype, DtypeClass dtype_class) noexcept;
// "floating-point dtypes", for messages.
const char* class_description(DtypeClass dtype_class) noexcept;
// The dtype of the class to which a program could cast `dtype`; NONE if no cast keeps the meaning.
compute_dtype class_cast_hint(compute_dtype dtype, DtypeClass dtype_class) noexcept;

// Sets the levels of support for float8, element i of dtype i, by those for the dtypes that represent and compute it.
void set_float8_levels(std::vector<uint32_t>& levels);

// ---- Promotion ------------------------------------------------------------------------------------------------------

// Whether operands of different kinds promote, as of the first query: COMPUTE_PROMOTION.
bool kinds_mix();

// A dtype that takes part in promotion. A weak one adapts to the others if its kind is not higher than theirs.
struct PromotionOperand {
  compute_dtype dtype;
  bool weak = false;
  std::string_view name = {};  // for messages
  int32_t argument = -1;       // its position among the operands of a call
};

// Whether both are bool, both integers, or both real or complex: these promote in the array API standard.
bool are_of_one_kind(compute_dtype a, compute_dtype b) noexcept;
// The common dtype of both by the table of the standard, with float32 for float16 and bfloat16. NONE for two kinds, and
// for uint64 with signed integers and float8 with other floating-point dtypes.
compute_dtype promote(compute_dtype a, compute_dtype b) noexcept;

// Two operands that do not promote, and the cast that solves it.
struct PromotionFault {
  int32_t first = 0, second = 0;  // operands, in order
  compute_dtype first_dtype =
      COMPUTE_DTYPE_NONE;  // of the operand `first`: its common dtype with the operands before `second`
  int32_t cast = 0;        // the one of the two to cast
  compute_dtype target = COMPUTE_DTYPE_NONE;  // and to what
};

// The common dtype of one or more operands; NONE and *fault if there is none. If kinds mix, the strong operands of the
// highest kind determine it. A weak number of a higher kind gives its own dtype if that is an integer, else float32 or
// complex64.
compute_dtype common_dtype(std::span<const PromotionOperand> operands, PromotionFault* fault, bool mixes) noexcept;

// The same as kinds_mix() says, but throws INVALID_ARGUMENT that names `op`, two dtypes and the cast that solves it:
// "add: int64 and uint64 have no common dtype; cast one of them (cast(y, int64))".
compute_dtype result_type(std::string_view op, std::span<const PromotionOperand> operands);
// The end of a message about operands that the setting refuses; of such a message for this pair.
inline constexpr const char* kMixedRemedy = ", or set COMPUTE_PROMOTION=mixed";
const char* promotion_remedy(compute_dtype a, compute_dtype b) noexcept;

// The dtype in which operands of this common dtype are computed by an op or intrinsic that takes `wanted`: if kinds
// mix, float32 for integers and bool where it takes floating-point dtypes alone.
compute_dtype dtype_in_class(compute_dtype dtype, DtypeClass wanted, bool mixes) noexcept;

// ---- Values ---------------------------------------------------------------------------------------------------------

// The bit pattern of one value of some dtype, little-endian, zero-filled.
using ScalarBits = compute_plugin_scalar;

bool scalars_equal(const ScalarBits& a, const ScalarBits& b) noexcept;

ScalarBits scalar_from_memory(compute_dtype dtype, const void* value) noexcept;
// As `convert` does: float to integer truncates and saturates, NaN gives 0; integers wrap; to bool is x != 0; rounding
// to nearest even, once. Complex to real takes the real part; a caller that must refuse it has done so.
ScalarBits convert_scalar(const ScalarBits& bits, compute_dtype from, compute_dtype to) noexcept;
ScalarBits scalar_from_int64(int64_t value, compute_dtype to) noexcept;
ScalarBits scalar_from_uint64(uint64_t value, compute_dtype to) noexcept;
ScalarBits scalar_from_double(double value, compute_dtype to) noexcept;
ScalarBits scalar_from_complex(double real, double imaginary, compute_dtype to) noexcept;
// "1.5", "-3", "true", "1+2i": for messages.
std::string scalar_text(const ScalarBits& bits, compute_dtype dtype);

float half_to_float(uint16_t bits) noexcept;
uint16_t float_to_half(float value) noexcept;
uint16_t double_to_half(double value) noexcept;
float bfloat16_to_float(uint16_t bits) noexcept;
uint16_t float_to_bfloat16(float value) noexcept;
uint16_t double_to_bfloat16(double value) noexcept;
float e4m3fn_to_float(uint8_t bits) noexcept;
float e5m2_to_float(uint8_t bits) noexcept;
// What is too large is NaN in e4m3fn and infinity in e5m2; NaN are 0x7f and 0x7e with their sign.
uint8_t double_to_e4m3fn(double value) noexcept;
uint8_t double_to_e5m2(double value) noexcept;

}  // namespace compute
