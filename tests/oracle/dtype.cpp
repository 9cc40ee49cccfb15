// SPDX-License-Identifier: Apache-2.0
#include "dtype.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

namespace compute::oracle {

namespace {

template <typename T>
T load(const void* src) {
  T x;
  std::memcpy(&x, src, sizeof x);
  return x;
}

template <typename T>
void store(void* dst, T x) {
  std::memcpy(dst, &x, sizeof x);
}

// 2^exponent, and the exponent of a finite number that is not 0. Most of a reference's time would go into ldexp and
// ilogb.
Real power(int exponent) {
#if LDBL_MANT_DIG == 64
  struct {
    uint64_t significand = uint64_t{1} << 63;
    uint64_t sign_and_exponent;
  } bits{.sign_and_exponent = static_cast<uint64_t>(exponent + 16383)};
  Real result = 0;
  std::memcpy(&result, &bits, 10);
  return result;
#else
  return std::ldexp(1.0L, exponent);
#endif
}

int exponent_of(Real x) {
#if LDBL_MANT_DIG == 64
  uint16_t bits = 0;
  std::memcpy(&bits, reinterpret_cast<const char*>(&x) + 8, 2);
  return (bits & 0x7fff) - 16383;  // -16383 for subnormal numbers, which are below those of every format
#else
  return std::ilogb(x);
#endif
}

// float16 and bfloat16 differ only in how their 15 lower bits are divided.
Real decode_half(Format format, uint16_t bits) {
  const int fraction_bits = format.precision - 1;
  const int exponent = (bits & 0x7fff) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int special = 0x7fff >> fraction_bits;
  Real magnitude;
  if (exponent == special) {
    magnitude = fraction ? std::numeric_limits<Real>::quiet_NaN() : std::numeric_limits<Real>::infinity();
  } else if (exponent == 0) {
    magnitude = static_cast<Real>(fraction) * power(format.emin - fraction_bits);
  } else {
    magnitude = static_cast<Real>(fraction + (1 << fraction_bits)) * power(exponent - 1 + format.emin - fraction_bits);
  }
  return std::copysign(magnitude, bits & 0x8000 ? -1.0L : 1.0L);
}

uint16_t encode_half(Format format, Real x) {
  const int fraction_bits = format.precision - 1;
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const auto infinity = static_cast<uint16_t>((0x7fff >> fraction_bits) << fraction_bits);
  if (std::isnan(x)) return static_cast<uint16_t>(sign | infinity | (1 << (fraction_bits - 1)));
  const Real magnitude = std::fabs(round_to(format, x));
  if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | infinity);
  if (magnitude < smallest_normal(format)) {
    return static_cast<uint16_t>(sign | static_cast<int>(magnitude * power(fraction_bits - format.emin)));
  }
  const int exponent = exponent_of(magnitude);
  const int significand = static_cast<int>(magnitude * power(fraction_bits - exponent));
  const int biased = exponent - format.emin + 1;
  return static_cast<uint16_t>(sign | (biased << fraction_bits) | (significand - (1 << fraction_bits)));
}

}  // namespace

Dtype dtype_of_name(std::string_view name) {
  for (const DtypeInfo& entry : kDtypes) {
    if (entry.name == name) return entry.id;
  }
  throw std::invalid_argument("no dtype is called " + std::string(name));
}

Dtype part(Dtype dtype) {
  if (dtype == dtype::COMPLEX64) return dtype::FLOAT32;
  if (dtype == dtype::COMPLEX128) return dtype::FLOAT64;
  return dtype;
}

Dtype computed_in(Dtype dtype) { return is_half(dtype) ? static_cast<Dtype>(dtype::FLOAT32) : dtype; }

Dtype promote(Dtype a, Dtype b) {
  if (a == b) return a;
  const Category ca = category(a), cb = category(b);
  const int64_t sa = info(a).size_bytes, sb = info(b).size_bytes;
  if (is_integer(a) && is_integer(b)) {
    if (ca == cb) return sa > sb ? a : b;
    const Dtype with_sign = ca == Category::SIGNED ? a : b;
    const int64_t needed = std::max(info(with_sign).size_bytes, 2 * (ca == Category::UNSIGNED ? sa : sb));
    for (const DtypeInfo& entry : kDtypes) {
      if (entry.category == Category::SIGNED && entry.size_bytes == needed) return entry.id;
    }
    return 0;
  }
  if (is_bool(a) || (is_integer(a) && is_inexact(b))) return b;
  if (is_bool(b) || (is_integer(b) && is_inexact(a))) return a;
  if (is_half(a) && is_half(b)) return dtype::FLOAT32;
  const bool wide = part(a) == dtype::FLOAT64 || part(b) == dtype::FLOAT64;
  if (is_complex(a) || is_complex(b)) return wide ? dtype::COMPLEX128 : dtype::COMPLEX64;
  return sa > sb ? a : b;
}

Format format(Dtype dtype) {
  switch (part(dtype)) {
    case dtype::FLOAT16:
      return {11, -14, 15};
    case dtype::BFLOAT16:
      return {8, -126, 127};
    case dtype::FLOAT32:
      return {24, -126, 127};
    case dtype::FLOAT64:
      return {53, -1022, 1023};
    default:
      throw std::invalid_argument(std::string(info(dtype).name) + " is no floating-point dtype");
  }
}

int width(Dtype dtype) { return is_bool(dtype) ? 1 : static_cast<int>(info(dtype).size_bytes * 8); }

Integer integer_min(Dtype dtype) {
  return category(dtype) == Category::SIGNED ? -(static_cast<Integer>(1) << (width(dtype) - 1)) : 0;
}

Integer integer_max(Dtype dtype) {
  const int bits = category(dtype) == Category::SIGNED ? width(dtype) - 1 : width(dtype);
  return (static_cast<Integer>(1) << bits) - 1;
}

Integer wrap(Dtype dtype, Bits x) {
  const Bits modulus = static_cast<Bits>(1) << width(dtype);
  x &= modulus - 1;
  const bool negative = category(dtype) == Category::SIGNED && (x >> (width(dtype) - 1)) != 0;
  return static_cast<Integer>(x) - (negative ? static_cast<Integer>(modulus) : 0);
}

Real largest(Format format) { return power(format.emax + 1) - power(format.emax - format.precision + 1); }
Real smallest_normal(Format format) { return power(format.emin); }
Real smallest_subnormal(Format format) { return power(format.emin - format.precision + 1); }

Real ulp(Format format, Real x) {
  int exponent = format.emin;
  if (std::isinf(x)) {
    exponent = format.emax;
  } else if (x != 0) {
    exponent = std::max(exponent_of(x), format.emin);
  }
  return power(exponent - format.precision + 1);
}

Real round_to(Format format, Real x) {
  if (!std::isfinite(x) || x == 0) return x;
  if (format.precision == 53) return static_cast<double>(x);
  if (format.precision == 24) return static_cast<float>(x);
  const Real unit = ulp(format, x);
  // Both the division and the product are exact: the unit is a power of two within the range of long double.
  const Real rounded = std::rint(x / unit) * unit;
  if (std::fabs(rounded) > largest(format)) return std::copysign(std::numeric_limits<Real>::infinity(), x);
  return rounded == 0 ? std::copysign(0.0L, x) : rounded;
}

Value decode(Dtype dtype, const void* src) {
  switch (dtype) {
    case dtype::BOOL:
      return Value::of(load<uint8_t>(src) != 0);
    case dtype::INT8:
      return Value::of(static_cast<Integer>(load<int8_t>(src)));
    case dtype::INT16:
      return Value::of(static_cast<Integer>(load<int16_t>(src)));
    case dtype::INT32:
      return Value::of(static_cast<Integer>(load<int32_t>(src)));
    case dtype::INT64:
      return Value::of(static_cast<Integer>(load<int64_t>(src)));
    case dtype::UINT8:
      return Value::of(static_cast<Integer>(load<uint8_t>(src)));
    case dtype::UINT16:
      return Value::of(static_cast<Integer>(load<uint16_t>(src)));
    case dtype::UINT32:
      return Value::of(static_cast<Integer>(load<uint32_t>(src)));
    case dtype::UINT64:
      return Value::of(static_cast<Integer>(load<uint64_t>(src)));
    case dtype::FLOAT16:
    case dtype::BFLOAT16:
      return Value::of(decode_half(format(dtype), load<uint16_t>(src)));
    case dtype::FLOAT32:
      return Value::of(static_cast<Real>(load<float>(src)));
    case dtype::FLOAT64:
      return Value::of(static_cast<Real>(load<double>(src)));
    case dtype::COMPLEX64:
      return Value::of(Complex(load<float>(src), load<float>(static_cast<const char*>(src) + 4)));
    case dtype::COMPLEX128:
      return Value::of(Complex(load<double>(src), load<double>(static_cast<const char*>(src) + 8)));
    default:
      throw std::invalid_argument("no dtype has the id " + std::to_string(dtype));
  }
}

void encode(Dtype dtype, const Value& value, void* dst) {
  switch (dtype) {
    case dtype::BOOL:
      return store<uint8_t>(dst, value.integer != 0);
    case dtype::INT8:
    case dtype::UINT8:
      return store(dst, static_cast<uint8_t>(value.integer));
    case dtype::INT16:
    case dtype::UINT16:
      return store(dst, static_cast<uint16_t>(value.integer));
    case dtype::INT32:
    case dtype::UINT32:
      return store(dst, static_cast<uint32_t>(value.integer));
    case dtype::INT64:
    case dtype::UINT64:
      return store(dst, static_cast<uint64_t>(value.integer));
    case dtype::FLOAT16:
    case dtype::BFLOAT16:
      return store(dst, encode_half(format(dtype), value.re));
    case dtype::FLOAT32:
      return store(dst, static_cast<float>(value.re));
    case dtype::FLOAT64:
      return store(dst, static_cast<double>(value.re));
    case dtype::COMPLEX64:
      store(dst, static_cast<float>(value.re));
      return store(static_cast<char*>(dst) + 4, static_cast<float>(value.im));
    case dtype::COMPLEX128:
      store(dst, static_cast<double>(value.re));
      return store(static_cast<char*>(dst) + 8, static_cast<double>(value.im));
    default:
      throw std::invalid_argument("no dtype has the id " + std::to_string(dtype));
  }
}

}  // namespace compute::oracle
