// SPDX-License-Identifier: Apache-2.0
// Dtypes as the oracle sees them, and the wide value that it computes with.
//
// Nothing here comes from core or a plugin: it shares only the ids, names and sizes of dtypes.def with the code that it
// judges.
#pragma once

#include <cfloat>
#include <complex>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace compute::oracle {

using Dtype = int32_t;

namespace dtype {
enum : Dtype {
#define COMPUTE_DTYPE(id, name, NAME, size_bytes, category, computed_in, cuda, opencl) NAME = id,
#include "compute/dtypes.def"
#undef COMPUTE_DTYPE
};
}  // namespace dtype

enum class Category { BOOL, SIGNED, UNSIGNED, FLOAT, COMPLEX };

struct DtypeInfo {
  Dtype id;
  const char* name;
  int64_t size_bytes;
  Category category;
};

inline constexpr DtypeInfo kDtypes[] = {
#define COMPUTE_DTYPE(id, name, NAME, size_bytes, category, computed_in, cuda, opencl) \
  {id, #name, size_bytes, Category::category},
#include "compute/dtypes.def"
#undef COMPUTE_DTYPE
};

/// The entry of `dtype`; throws std::invalid_argument for an unknown id.
inline const DtypeInfo& info(Dtype dtype) {
  // Ids count from 1 in the table's order.
  constexpr auto is_in_order = [] {
    for (Dtype i = 0; i < static_cast<Dtype>(std::size(kDtypes)); ++i)
      if (kDtypes[i].id != i + 1) return false;
    return true;
  };
  static_assert(is_in_order());
  if (dtype < 1 || dtype > static_cast<Dtype>(std::size(kDtypes)))
    throw std::invalid_argument("no dtype has the id " + std::to_string(dtype));
  return kDtypes[dtype - 1];
}
Dtype dtype_of_name(std::string_view name);

inline Category category(Dtype dtype) { return info(dtype).category; }
inline bool is_bool(Dtype dtype) { return dtype == dtype::BOOL; }
inline bool is_complex(Dtype dtype) { return category(dtype) == Category::COMPLEX; }
inline bool is_float(Dtype dtype) { return category(dtype) == Category::FLOAT; }
inline bool is_inexact(Dtype dtype) { return is_float(dtype) || is_complex(dtype); }
inline bool is_integer(Dtype dtype) {
  return category(dtype) == Category::SIGNED || category(dtype) == Category::UNSIGNED;
}
/// float16 or bfloat16, which compute in float32.
inline bool is_half(Dtype dtype) { return dtype == dtype::FLOAT16 || dtype == dtype::BFLOAT16; }
/// The dtype of a complex dtype's parts; any other dtype itself.
Dtype part(Dtype dtype);
/// The dtype that expressions of `dtype` compute in, and in which sums of it are accumulated.
Dtype computed_in(Dtype dtype);
/// The common dtype. The operand of the higher kind determines it; within a kind, the array API standard does. 0 if
/// there is no common dtype.
Dtype promote(Dtype a, Dtype b);

/// Wide enough for every product of two 64-bit integers (as bits) and every 64-bit integer of either sign (as a value).
__extension__ typedef __int128 Integer;
__extension__ typedef unsigned __int128 Bits;
using Real = long double;
using Complex = std::complex<Real>;
static_assert(LDBL_MANT_DIG >= 64 && LDBL_MAX_EXP >= 16384, "the oracle needs a long double wider than float64");

/// One element of any dtype. Integers and bool use `integer`; floats `re`; complex numbers `re` and `im`.
struct Value {
  Integer integer = 0;
  Real re = 0;
  Real im = 0;

  static Value of(Integer x) { return {x, 0, 0}; }
  static Value of(bool x) { return {x ? 1 : 0, 0, 0}; }
  static Value of(Real x) { return {0, x, 0}; }
  static Value of(const Complex& x) { return {0, x.real(), x.imag()}; }
  Complex complex() const { return {re, im}; }
};

/// A binary floating-point format: `precision` bits of significand, exponents of normal numbers in [emin, emax].
struct Format {
  int precision;
  int emin;
  int emax;
};

/// The format of a float dtype, or of a complex dtype's parts.
Format format(Dtype dtype);
/// Width in bits of an integer dtype (1 for bool).
int width(Dtype dtype);
Integer integer_min(Dtype dtype);
Integer integer_max(Dtype dtype);
/// `x` modulo 2^width, in the range of `dtype`.
Integer wrap(Dtype dtype, Bits x);

Real largest(Format format);
Real smallest_normal(Format format);
Real smallest_subnormal(Format format);
/// The distance between neighbours at |x|: the subnormals' below the smallest normal number; above the largest number
/// as if exponents had no limit; at infinity the last binade's.
Real ulp(Format format, Real x);
/// `x` rounded once to nearest, ties to even, with gradual underflow; beyond the range to infinity.
Real round_to(Format format, Real x);

/// Reads and writes one element. Writing rounds floats once and wraps integers; bool is written as 0 or 1.
Value decode(Dtype dtype, const void* src);
void encode(Dtype dtype, const Value& value, void* dst);

}  // namespace compute::oracle
