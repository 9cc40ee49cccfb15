// SPDX-License-Identifier: Apache-2.0
#include "core/expressions/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/base/error.hpp"
#include "tests/unit/strict_promotion.hpp"

namespace compute {
namespace {

template <class T>
T as(const ScalarBits& bits) {
  T value;
  std::memcpy(&value, bits.bits, sizeof value);
  return value;
}

std::string refusal(std::vector<PromotionOperand> operands) {
  try {
    result_type("add", operands);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, COMPUTE_ERROR_INVALID_ARGUMENT);
    return error.message;
  }
  return "";
}

TEST(Dtype, TableAndNames) {
  for (compute_dtype dtype = 1; dtype < kDtypeCount; ++dtype) {
    EXPECT_TRUE(is_dtype(dtype));
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
    EXPECT_EQ(is_bool(dtype) + is_integer(dtype) + is_float(dtype) + is_complex(dtype) + is_float8(dtype), 1);
    EXPECT_EQ(computed_in(computed_in(dtype)), computed_in(dtype));
  }
  EXPECT_EQ(computed_in(COMPUTE_DTYPE_FLOAT16), COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(computed_in(COMPUTE_DTYPE_BFLOAT16), COMPUTE_DTYPE_FLOAT32);
  EXPECT_FALSE(is_dtype(0));
  EXPECT_FALSE(is_dtype(kDtypeCount));
  EXPECT_FALSE(is_dtype(-1));
  EXPECT_EQ(dtype_size(99), 0);
  EXPECT_EQ(dtype_name(99), "dtype 99");
  EXPECT_EQ(dtype_from_name("float"), COMPUTE_DTYPE_NONE);
}

// The array API standard's table, with float16 and bfloat16 below float32.
TEST(Dtype, Promotion) {
  const auto p = [](const char* a, const char* b) {
    const compute_dtype x = dtype_from_name(a), y = dtype_from_name(b), r = promote(x, y);
    EXPECT_EQ(promote(y, x), r) << a << " " << b;
    return r == COMPUTE_DTYPE_NONE ? std::string("none") : dtype_name(r);
  };
  EXPECT_EQ(p("int8", "int64"), "int64");
  EXPECT_EQ(p("uint8", "uint32"), "uint32");
  EXPECT_EQ(p("int8", "uint8"), "int16");
  EXPECT_EQ(p("int8", "uint16"), "int32");
  EXPECT_EQ(p("int16", "uint8"), "int16");
  EXPECT_EQ(p("int32", "uint32"), "int64");
  EXPECT_EQ(p("int64", "uint32"), "int64");
  EXPECT_EQ(p("int8", "uint64"), "none");
  EXPECT_EQ(p("int64", "uint64"), "none");
  EXPECT_EQ(p("float16", "bfloat16"), "float32");
  EXPECT_EQ(p("float16", "float32"), "float32");
  EXPECT_EQ(p("bfloat16", "float64"), "float64");
  EXPECT_EQ(p("float16", "complex64"), "complex64");
  EXPECT_EQ(p("float64", "complex64"), "complex128");
  EXPECT_EQ(p("complex64", "complex128"), "complex128");
  EXPECT_EQ(p("bool", "int8"), "none");
  EXPECT_EQ(p("int32", "float32"), "none");
  EXPECT_EQ(p("bool", "float32"), "none");
  for (compute_dtype a = 1; a < kDtypeCount; ++a) {
    EXPECT_EQ(promote(a, a), a);
    EXPECT_EQ(promote(a, 0), COMPUTE_DTYPE_NONE);
    for (compute_dtype b = 1; b < kDtypeCount; ++b) {
      const compute_dtype r = promote(a, b);
      if (r == COMPUTE_DTYPE_NONE) continue;
      EXPECT_EQ(promote(a, r), r);
      EXPECT_EQ(promote(b, r), r);
    }
  }
}

// Rows and columns in the order of ids.
constexpr const char* kCommon[] = {
    "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 bf f4 f8 c4 c8 q3 q2",  // bool
    "i1 i1 i2 i4 i8 i2 i4 i8 -- f2 bf f4 f8 c4 c8 q3 q2",  // int8
    "i2 i2 i2 i4 i8 i2 i4 i8 -- f2 bf f4 f8 c4 c8 q3 q2",  // int16
    "i4 i4 i4 i4 i8 i4 i4 i8 -- f2 bf f4 f8 c4 c8 q3 q2",  // int32
    "i8 i8 i8 i8 i8 i8 i8 i8 -- f2 bf f4 f8 c4 c8 q3 q2",  // int64
    "u1 i2 i2 i4 i8 u1 u2 u4 u8 f2 bf f4 f8 c4 c8 q3 q2",  // uint8
    "u2 i4 i4 i4 i8 u2 u2 u4 u8 f2 bf f4 f8 c4 c8 q3 q2",  // uint16
    "u4 i8 i8 i8 i8 u4 u4 u4 u8 f2 bf f4 f8 c4 c8 q3 q2",  // uint32
    "u8 -- -- -- -- u8 u8 u8 u8 f2 bf f4 f8 c4 c8 q3 q2",  // uint64
    "f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f4 f8 c4 c8 -- --",  // float16
    "bf bf bf bf bf bf bf bf bf f4 bf f4 f8 c4 c8 -- --",  // bfloat16
    "f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c4 c8 -- --",  // float32
    "f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c8 c8 -- --",  // float64
    "c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c8 c4 c8 -- --",  // complex64
    "c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 -- --",  // complex128
    "q3 q3 q3 q3 q3 q3 q3 q3 q3 -- -- -- -- -- -- q3 --",  // float8_e4m3fn
    "q2 q2 q2 q2 q2 q2 q2 q2 q2 -- -- -- -- -- -- -- q2",  // float8_e5m2
};

std::string short_name(compute_dtype dtype) {
  constexpr const char* kShort[] = {"--", "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4",
                                    "u8", "f2", "bf", "f4", "f8", "c4", "c8", "q3", "q2"};
  return kShort[dtype];
}

TEST(Dtype, EveryPairHasItsCommonDtype) {
  static_assert(std::size(kCommon) == kDtypeCount - 1);
  for (compute_dtype a = 1; a < kDtypeCount; ++a) {
    for (compute_dtype b = 1; b < kDtypeCount; ++b) {
      const std::string expected(kCommon[a - 1] + 3 * (b - 1), 2);
      const PromotionOperand pair[] = {{a}, {b}};
      PromotionFault fault;
      EXPECT_EQ(short_name(common_dtype(pair, &fault, true)), expected) << dtype_name(a) << " " << dtype_name(b);
      const compute_dtype strict = common_dtype(pair, &fault, false);
      EXPECT_EQ(short_name(strict), are_of_one_kind(a, b) ? expected : "--") << dtype_name(a) << " " << dtype_name(b);
      // A third operand gives the same wherever it stands.
      for (compute_dtype c = 1; c < kDtypeCount; ++c) {
        const PromotionOperand first[] = {{c}, {a}, {b}}, last[] = {{a}, {b}, {c}};
        EXPECT_EQ(common_dtype(first, &fault, true), common_dtype(last, &fault, true));
      }
    }
  }
}

TEST(Dtype, LowerKindsDoNotTakePart) {
  const auto r = [](std::vector<PromotionOperand> operands) { return result_type("add", operands); };
  EXPECT_EQ(r({{COMPUTE_DTYPE_INT64}, {COMPUTE_DTYPE_UINT64}, {COMPUTE_DTYPE_FLOAT16}}), COMPUTE_DTYPE_FLOAT16);
  EXPECT_EQ(r({{COMPUTE_DTYPE_INT64}, {COMPUTE_DTYPE_COMPLEX64}, {COMPUTE_DTYPE_FLOAT64}}), COMPUTE_DTYPE_COMPLEX128);
  EXPECT_EQ(r({{COMPUTE_DTYPE_BOOL}, {COMPUTE_DTYPE_INT8}, {COMPUTE_DTYPE_BOOL}}), COMPUTE_DTYPE_INT8);
  EXPECT_EQ(dtype_in_class(COMPUTE_DTYPE_INT64, DtypeClass::kInexact, true), COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(dtype_in_class(COMPUTE_DTYPE_BOOL, DtypeClass::kFloat, true), COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(dtype_in_class(COMPUTE_DTYPE_FLOAT16, DtypeClass::kFloat, true), COMPUTE_DTYPE_FLOAT16);
  EXPECT_EQ(dtype_in_class(COMPUTE_DTYPE_COMPLEX64, DtypeClass::kFloat, true), COMPUTE_DTYPE_COMPLEX64);
  EXPECT_EQ(dtype_in_class(COMPUTE_DTYPE_INT64, DtypeClass::kReal, true), COMPUTE_DTYPE_INT64);
  EXPECT_EQ(dtype_in_class(COMPUTE_DTYPE_INT64, DtypeClass::kInexact, false), COMPUTE_DTYPE_INT64);
}

TEST(Dtype, WeakOperandsAdapt) {
  const auto r = [](std::vector<PromotionOperand> operands) { return result_type("add", operands); };
  EXPECT_EQ(r({{COMPUTE_DTYPE_INT8}, {COMPUTE_DTYPE_INT64, true}}), COMPUTE_DTYPE_INT8);
  EXPECT_EQ(r({{COMPUTE_DTYPE_FLOAT64, true}, {COMPUTE_DTYPE_FLOAT16}}), COMPUTE_DTYPE_FLOAT16);
  EXPECT_EQ(r({{COMPUTE_DTYPE_INT64, true}, {COMPUTE_DTYPE_COMPLEX64}}), COMPUTE_DTYPE_COMPLEX64);
  EXPECT_EQ(r({{COMPUTE_DTYPE_FLOAT32}, {COMPUTE_DTYPE_COMPLEX128, true}}), COMPUTE_DTYPE_COMPLEX64);
  EXPECT_EQ(r({{COMPUTE_DTYPE_FLOAT64}, {COMPUTE_DTYPE_COMPLEX64, true}}), COMPUTE_DTYPE_COMPLEX128);
  EXPECT_EQ(r({{COMPUTE_DTYPE_INT8}, {COMPUTE_DTYPE_INT64, true}, {COMPUTE_DTYPE_INT16}}), COMPUTE_DTYPE_INT16);
  EXPECT_EQ(r({{COMPUTE_DTYPE_INT64, true}, {COMPUTE_DTYPE_FLOAT32, true}}), COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(r({{COMPUTE_DTYPE_FLOAT32, true}, {COMPUTE_DTYPE_INT64, true}}), COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(r({{COMPUTE_DTYPE_UINT64, true}, {COMPUTE_DTYPE_INT64, true}}), COMPUTE_DTYPE_INT64);
  EXPECT_EQ(r({{COMPUTE_DTYPE_BOOL, true}, {COMPUTE_DTYPE_BOOL}}), COMPUTE_DTYPE_BOOL);
  // Of a higher kind than every array.
  EXPECT_EQ(r({{COMPUTE_DTYPE_INT64}, {COMPUTE_DTYPE_FLOAT64, true}}), COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(r({{COMPUTE_DTYPE_FLOAT16, true}, {COMPUTE_DTYPE_UINT8}}), COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(r({{COMPUTE_DTYPE_BOOL}, {COMPUTE_DTYPE_COMPLEX128, true}}), COMPUTE_DTYPE_COMPLEX64);
  EXPECT_EQ(r({{COMPUTE_DTYPE_BOOL}, {COMPUTE_DTYPE_INT64, true}}), COMPUTE_DTYPE_INT64);
  EXPECT_EQ(r({{COMPUTE_DTYPE_BOOL}, {COMPUTE_DTYPE_INT64, true}, {COMPUTE_DTYPE_FLOAT64, true}}),
            COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(r({{COMPUTE_DTYPE_INT8}, {COMPUTE_DTYPE_BOOL, true}}), COMPUTE_DTYPE_INT8);
  EXPECT_EQ(r({{COMPUTE_DTYPE_BOOL, true}, {COMPUTE_DTYPE_INT64, true}}), COMPUTE_DTYPE_INT64);
  EXPECT_EQ(r({{COMPUTE_DTYPE_FLOAT64, true}, {COMPUTE_DTYPE_BOOL, true}}), COMPUTE_DTYPE_FLOAT64);
}

TEST(Dtype, RefusalsNameTheCast) {
  EXPECT_EQ(refusal({{COMPUTE_DTYPE_INT8, false, "x"}, {COMPUTE_DTYPE_UINT64, false, "y"}}),
            "add: int8 and uint64 have no common dtype; cast one of them (cast(y, int64))");
}

TEST(Dtype, StrictRefusalsNameTheCast) {
  COMPUTE_REQUIRE_STRICT_PROMOTION();
  EXPECT_EQ(refusal({{COMPUTE_DTYPE_INT32, false, "x"}, {COMPUTE_DTYPE_FLOAT32, false, "y"}}),
            "add: int32 and float32 have no common dtype; cast one of them (cast(x, float32)), or set "
            "COMPUTE_PROMOTION=mixed");
  EXPECT_EQ(refusal({{COMPUTE_DTYPE_FLOAT64, false, "x"}, {COMPUTE_DTYPE_BOOL, false, "y"}}),
            "add: float64 and bool have no common dtype; cast one of them (cast(y, float64)), or set "
            "COMPUTE_PROMOTION=mixed");
  EXPECT_EQ(refusal({{COMPUTE_DTYPE_INT8, false, "x"}, {COMPUTE_DTYPE_UINT64, false, "y"}}),
            "add: int8 and uint64 have no common dtype; cast one of them (cast(y, int64))");
  EXPECT_EQ(refusal({{COMPUTE_DTYPE_INT32, false, "x"}, {COMPUTE_DTYPE_FLOAT64, true, "y"}}),
            "add: int32 and the number float64 have no common dtype; cast one of them (cast(x, float32)), or set "
            "COMPUTE_PROMOTION=mixed");
  EXPECT_EQ(refusal({{COMPUTE_DTYPE_BOOL, false, "x"}, {COMPUTE_DTYPE_INT64, true, "y"}}),
            "add: bool and the number int64 have no common dtype; cast one of them (cast(x, int64)), or set "
            "COMPUTE_PROMOTION=mixed");
}

TEST(Dtype, HalfRoundsToNearestEven) {
  for (uint32_t i = 0; i < 0x7c00; ++i) {
    const auto low = static_cast<uint16_t>(i), high = static_cast<uint16_t>(i + 1);
    const double a = half_to_float(low), b = i + 1 == 0x7c00 ? 65536 : static_cast<double>(half_to_float(high));
    ASSERT_LT(a, b);
    ASSERT_EQ(double_to_half(a), low);
    ASSERT_EQ(double_to_half(-a), low | 0x8000);
    const double middle = a + (b - a) / 2;
    ASSERT_EQ(double_to_half(middle), i % 2 == 0 ? low : high);
    ASSERT_EQ(double_to_half(std::nextafter(middle, 0.0)), low);
    ASSERT_EQ(double_to_half(std::nextafter(middle, 1e9)), high);
  }
  EXPECT_EQ(double_to_half(1e300), 0x7c00);
  EXPECT_EQ(double_to_half(-std::numeric_limits<double>::infinity()), 0xfc00);
  EXPECT_EQ(double_to_half(1e-300), 0);
  EXPECT_EQ(double_to_half(-1e-300), 0x8000);
  EXPECT_TRUE(std::isnan(half_to_float(double_to_half(std::nan("")))));
  EXPECT_TRUE(std::isnan(half_to_float(0xfe00)));
  EXPECT_EQ(half_to_float(1), std::ldexp(1.0f, -24));
}

TEST(Dtype, BfloatRoundsToNearestEven) {
  for (uint32_t i = 0; i < 0x7f80; ++i) {
    const auto low = static_cast<uint16_t>(i), high = static_cast<uint16_t>(i + 1);
    const double a = bfloat16_to_float(low),
                 b = i + 1 == 0x7f80 ? std::ldexp(1.0, 128) : static_cast<double>(bfloat16_to_float(high));
    ASSERT_EQ(double_to_bfloat16(a), low);
    const double middle = a + (b - a) / 2;
    ASSERT_EQ(double_to_bfloat16(middle), i % 2 == 0 ? low : high);
    ASSERT_EQ(double_to_bfloat16(std::nextafter(middle, 0.0)), low);
    ASSERT_EQ(double_to_bfloat16(std::nextafter(middle, 1e300)), high);
  }
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::nanf("")))));
}

TEST(Dtype, FloatsTruncateAndSaturate) {
  const auto to = [](double value, compute_dtype dtype) { return scalar_from_double(value, dtype); };
  EXPECT_EQ(as<int8_t>(to(-128.9, COMPUTE_DTYPE_INT8)), -128);
  EXPECT_EQ(as<int8_t>(to(300, COMPUTE_DTYPE_INT8)), 127);
  EXPECT_EQ(as<uint8_t>(to(-5, COMPUTE_DTYPE_UINT8)), 0);
  EXPECT_EQ(as<uint8_t>(to(255.99, COMPUTE_DTYPE_UINT8)), 255);
  EXPECT_EQ(as<int64_t>(to(9.3e18, COMPUTE_DTYPE_INT64)), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(as<int64_t>(to(-std::ldexp(1.0, 63), COMPUTE_DTYPE_INT64)), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(as<uint64_t>(to(std::ldexp(1.0, 64), COMPUTE_DTYPE_UINT64)), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(as<uint64_t>(to(std::ldexp(1.0, 63), COMPUTE_DTYPE_UINT64)), uint64_t{1} << 63);
  EXPECT_EQ(as<int32_t>(to(std::nan(""), COMPUTE_DTYPE_INT32)), 0);
  EXPECT_EQ(as<int32_t>(to(-std::numeric_limits<double>::infinity(), COMPUTE_DTYPE_INT32)),
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(as<uint8_t>(to(std::nan(""), COMPUTE_DTYPE_BOOL)), 1);
  EXPECT_EQ(as<uint8_t>(to(-0.0, COMPUTE_DTYPE_BOOL)), 0);
}

TEST(Dtype, IntegersWrap) {
  EXPECT_EQ(as<int8_t>(scalar_from_int64(200, COMPUTE_DTYPE_INT8)), -56);
  EXPECT_EQ(as<uint16_t>(scalar_from_int64(-1, COMPUTE_DTYPE_UINT16)), 65535);
  EXPECT_EQ(as<uint64_t>(scalar_from_int64(std::numeric_limits<int64_t>::min(), COMPUTE_DTYPE_UINT64)),
            uint64_t{1} << 63);
  EXPECT_EQ(as<double>(scalar_from_uint64(std::numeric_limits<uint64_t>::max(), COMPUTE_DTYPE_FLOAT64)),
            18446744073709551616.0);
  EXPECT_EQ(as<double>(scalar_from_int64(std::numeric_limits<int64_t>::min(), COMPUTE_DTYPE_FLOAT64)),
            -9223372036854775808.0);
}

TEST(Dtype, LargeIntegersRoundOnce) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t value = random() >> (random() % 64);
    ASSERT_EQ(as<float>(scalar_from_uint64(value, COMPUTE_DTYPE_FLOAT32)), static_cast<float>(value)) << value;
    ASSERT_EQ(as<double>(scalar_from_uint64(value, COMPUTE_DTYPE_FLOAT64)), static_cast<double>(value)) << value;
    ASSERT_EQ(as<float>(scalar_from_int64(static_cast<int64_t>(value), COMPUTE_DTYPE_FLOAT32)),
              static_cast<float>(static_cast<int64_t>(value)));
  }
  // 2^53 + 2^45 + 1 lies just above the middle of two bfloat16 numbers; by way of float64 it would lie on it.
  const uint64_t above = (uint64_t{1} << 62) + (uint64_t{1} << 54) + 1;
  EXPECT_EQ(as<uint16_t>(scalar_from_uint64(above, COMPUTE_DTYPE_BFLOAT16)), 0x5e81);
}

TEST(Dtype, EveryConversionKeepsSmallNumbers) {
  for (compute_dtype from = 1; from < kDtypeCount; ++from) {
    for (compute_dtype to = 1; to < kDtypeCount; ++to) {
      for (const int64_t value : {0, 1}) {
        const ScalarBits start = scalar_from_int64(value, from);
        const ScalarBits there = convert_scalar(start, from, to);
        EXPECT_TRUE(scalars_equal(there, scalar_from_int64(value, to))) << dtype_name(from) << " " << dtype_name(to);
      }
    }
  }
  const ScalarBits z = scalar_from_complex(0, 2, COMPUTE_DTYPE_COMPLEX64);
  EXPECT_EQ(as<uint8_t>(convert_scalar(z, COMPUTE_DTYPE_COMPLEX64, COMPUTE_DTYPE_BOOL)), 1);
}

// The value of a code by its definition.
double value_of_float8(uint8_t code, int mantissa, int bias, bool has_infinity) {
  const int exponent = (code & 0x7f) >> mantissa, fraction = code & ((1 << mantissa) - 1);
  const double sign = code & 0x80 ? -1 : 1;
  if (has_infinity && exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::copysign(NAN, sign);
  if (!has_infinity && (code & 0x7f) == 0x7f) return std::copysign(NAN, sign);
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias - mantissa)
                       : sign * std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
}

TEST(Dtype, Float8) {
  for (const bool e5m2 : {false, true}) {
    const compute_dtype dtype = e5m2 ? COMPUTE_DTYPE_FLOAT8_E5M2 : COMPUTE_DTYPE_FLOAT8_E4M3FN;
    const auto value = [&](int code) {
      return value_of_float8(static_cast<uint8_t>(code), e5m2 ? 2 : 3, e5m2 ? 15 : 7, e5m2);
    };
    const auto code = [&](double x) { return as<uint8_t>(scalar_from_double(x, dtype)); };
    const int most = e5m2 ? 0x7b : 0x7e, over = e5m2 ? 0x7c : 0x7f, nan = e5m2 ? 0x7e : 0x7f;
    for (int i = 0; i < 256; ++i) {
      ScalarBits bits{};
      bits.bits[0] = static_cast<uint8_t>(i);
      const float wide = as<float>(convert_scalar(bits, dtype, COMPUTE_DTYPE_FLOAT32));
      const double expected = value(i);
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(wide) && std::signbit(wide) == std::signbit(expected)
                                       : static_cast<double>(wide) == expected && std::signbit(wide) == (i >= 128))
          << i;
      EXPECT_EQ(code(expected), std::isnan(expected) ? (i & 0x80) | nan : i);
    }
    // Between two neighbours the nearer one, and in the middle the even one.
    for (int i = 0; i < most; ++i) {
      const double low = value(i), high = value(i + 1), middle = (low + high) / 2;
      for (const int sign : {0, 0x80}) {
        const double s = sign ? -1 : 1;
        EXPECT_EQ(code(s * middle), sign | (i % 2 == 0 ? i : i + 1));
        EXPECT_EQ(code(s * std::nextafter(middle, 0)), sign | i);
        EXPECT_EQ(code(s * std::nextafter(middle, 1e9)), sign | (i + 1));
      }
    }
    const double last = value(most), half = (last - value(most - 1)) / 2;
    EXPECT_EQ(code(last + half), most % 2 == 0 ? most : over);
    EXPECT_EQ(code(std::nextafter(last + half, 0)), most);
    EXPECT_EQ(code(std::nextafter(last + half, 1e9)), over);
    EXPECT_EQ(code(-1e300), 0x80 | over);
    EXPECT_EQ(code(HUGE_VAL), over);
    EXPECT_EQ(code(5e-324), 0);
    EXPECT_EQ(as<uint8_t>(scalar_from_int64(INT64_MIN, dtype)), 0x80 | over);
    EXPECT_EQ(scalar_text(scalar_from_double(1.5, dtype), dtype), "1.5");
  }
  EXPECT_EQ(refusal({{COMPUTE_DTYPE_FLOAT32, false, "x"}, {COMPUTE_DTYPE_FLOAT8_E5M2, false, "y"}}),
            "add: float32 and float8_e5m2 have no common dtype; cast one of them (cast(y, float32))");
  EXPECT_EQ(refusal({{COMPUTE_DTYPE_FLOAT8_E4M3FN, false, "x"}, {COMPUTE_DTYPE_FLOAT8_E5M2, false, "y"}}),
            "add: float8_e4m3fn and float8_e5m2 have no common dtype; cast one of them (cast(x, float32))");
}

TEST(Dtype, ScalarText) {
  EXPECT_EQ(scalar_text(scalar_from_double(1.5, COMPUTE_DTYPE_FLOAT16), COMPUTE_DTYPE_FLOAT16), "1.5");
  EXPECT_EQ(scalar_text(scalar_from_double(0.1, COMPUTE_DTYPE_FLOAT32), COMPUTE_DTYPE_FLOAT32), "0.1");
  EXPECT_EQ(scalar_text(scalar_from_double(0.1, COMPUTE_DTYPE_FLOAT64), COMPUTE_DTYPE_FLOAT64), "0.1");
  EXPECT_EQ(scalar_text(scalar_from_int64(-3, COMPUTE_DTYPE_INT8), COMPUTE_DTYPE_INT8), "-3");
  EXPECT_EQ(scalar_text(scalar_from_uint64(UINT64_MAX, COMPUTE_DTYPE_UINT64), COMPUTE_DTYPE_UINT64),
            "18446744073709551615");
  EXPECT_EQ(scalar_text(scalar_from_int64(1, COMPUTE_DTYPE_BOOL), COMPUTE_DTYPE_BOOL), "true");
  EXPECT_EQ(scalar_text(scalar_from_complex(1, -2, COMPUTE_DTYPE_COMPLEX64), COMPUTE_DTYPE_COMPLEX64), "1-2i");
}

// In a process of its own: a dtype that is added stays.
TEST(VendorDtypes, AreStorageAlone) {
  const auto refusal = [](const char* name, int32_t size_bits) -> std::string {
    try {
      add_vendor_dtype(name, size_bits);
      return "";
    } catch (const Error& error) {
      return error.message;
    }
  };
  for (const int32_t bits : {0, 4, 7, 24, 256, -8})
    EXPECT_EQ(refusal("acme_a", bits),
              "dtype \"acme_a\": its elements have " + std::to_string(bits) + " bits, not 8, 16, 32, 64 or 128");
  EXPECT_EQ(refusal("float32", 32), "dtype \"float32\": the name is in use");
  EXPECT_FALSE(is_dtype(64));
  EXPECT_EQ(add_vendor_dtype("acme_a", 32), 64);
  EXPECT_EQ(add_vendor_dtype("acme_a", 32), 64) << "the same once more";
  EXPECT_EQ(add_vendor_dtype("other_b", 8), 65);
  EXPECT_EQ(refusal("acme_a", 64), "dtype \"acme_a\": the name is in use");
  EXPECT_EQ(dtype_from_name("acme_a"), 64);
  EXPECT_EQ(dtype_name(64), "acme_a");
  EXPECT_EQ(dtype_size(64), 4);
  EXPECT_TRUE(in_class(64, DtypeClass::kAny));
  EXPECT_FALSE(in_class(64, DtypeClass::kNumeric));
  EXPECT_EQ(promote(64, 64), 64);
  EXPECT_EQ(promote(64, 65), COMPUTE_DTYPE_NONE);
  EXPECT_EQ(promote(64, COMPUTE_DTYPE_FLOAT32), COMPUTE_DTYPE_NONE);
  PromotionFault fault;
  const PromotionOperand with_number[] = {{64}, {COMPUTE_DTYPE_INT64, true}};
  EXPECT_EQ(common_dtype(with_number, &fault, true), COMPUTE_DTYPE_NONE);
  for (int dtype = 66; dtype < 128; ++dtype) EXPECT_EQ(add_vendor_dtype("acme_" + std::to_string(dtype), 128), dtype);
  EXPECT_EQ(refusal("acme_more", 8), "dtype \"acme_more\": all numbers are taken");
}

}  // namespace
}  // namespace compute
