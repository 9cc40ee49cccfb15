// SPDX-License-Identifier: Apache-2.0
// What compute/intrinsics.def says of conversions, bool and integers, one line each; real and complex numbers are in
// inexact.cpp.
#include "listing.hpp"

namespace minimal {
namespace {

// ---- Conversions ----------------------------------------------------------------------------------------------------

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (Complex<To>) {
    using Part = typename To::value_type;
    if constexpr (Complex<From>) {
      return {static_cast<Part>(x.real()), static_cast<Part>(x.imag())};
    } else {
      return {convert<Part>(x), Part{0}};
    }
  } else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (Complex<From>) {
      return x != From{};
    } else {
      return static_cast<long double>(x) != 0;
    }
  } else if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    return static_cast<To>(x);
  } else if constexpr (std::is_integral_v<To>) {
    constexpr long double kLeast = std::numeric_limits<To>::min();
    constexpr long double kGreatest = std::numeric_limits<To>::max();
    const long double wide = static_cast<long double>(x);
    if (std::isnan(wide)) return 0;
    return wide <= kLeast      ? std::numeric_limits<To>::min()
           : wide >= kGreatest ? std::numeric_limits<To>::max()
                               : static_cast<To>(wide);
  } else {
    return static_cast<To>(static_cast<long double>(x));
  }
}

Function find_conversion(int32_t from, int32_t to) {
  return with_type(from, [to](auto source) {
    return with_type(to, [](auto destination) -> Function {
      using From = decltype(source);
      using To = decltype(destination);
      if constexpr (Complex<From> && !Complex<To> && !std::is_same_v<To, bool>) {
        return nullptr;
      } else {
        return unary<From>([](From x) { return convert<To>(x); });
      }
    });
  });
}

// ---- Bool and integers ----------------------------------------------------------------------------------------------

Function find_bool(int32_t intrinsic) {
  switch (intrinsic) {
    case COMPUTE_INTRINSIC_BIT_AND:
      return binary<bool>([](bool x, bool y) { return x && y; });
    case COMPUTE_INTRINSIC_BIT_OR:
      return binary<bool>([](bool x, bool y) { return x || y; });
    case COMPUTE_INTRINSIC_BIT_XOR:
      return binary<bool>([](bool x, bool y) { return x != y; });
    case COMPUTE_INTRINSIC_BIT_NOT:
      return unary<bool>([](bool x) { return !x; });
    default:
      return find_comparison<bool>(intrinsic);
  }
}

template <Integer T>
T floor_divide(T x, T y) {
  if (y == 0) return 0;
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(-static_cast<uint64_t>(x));
  return static_cast<T>(x / y - (x % y != 0 && (x < 0) != (y < 0)));
}

template <Integer T>
T power(T x, T y) {
  if (y < 0) return x == 1 ? 1 : x == static_cast<T>(-1) ? (y % 2 == 0 ? 1 : x) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(x);
  for (auto exponent = static_cast<uint64_t>(y); exponent != 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return static_cast<T>(result);
}

template <Integer T>
T multiply_high(T x, T y) {
  __extension__ using Product = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<T>((Product{x} * Product{y}) >> (8 * sizeof(T)));
}

template <Integer T>
Function find_integer(int32_t intrinsic) {
  using U = uint64_t;  // wraps, and so does the conversion back
  switch (intrinsic) {
    case COMPUTE_INTRINSIC_ADD:
      return binary<T>([](T x, T y) { return static_cast<T>(U(x) + U(y)); });
    case COMPUTE_INTRINSIC_SUB:
      return binary<T>([](T x, T y) { return static_cast<T>(U(x) - U(y)); });
    case COMPUTE_INTRINSIC_MUL:
      return binary<T>([](T x, T y) { return static_cast<T>(U(x) * U(y)); });
    case COMPUTE_INTRINSIC_FLOOR_DIV:
      return binary<T>([](T x, T y) { return floor_divide(x, y); });
    case COMPUTE_INTRINSIC_MOD:
      return binary<T>([](T x, T y) { return y == 0 ? T{0} : static_cast<T>(U(x) - U(floor_divide(x, y)) * U(y)); });
    case COMPUTE_INTRINSIC_MUL_HIGH:
      return binary<T>([](T x, T y) { return multiply_high(x, y); });
    case COMPUTE_INTRINSIC_POW:
      return binary<T>([](T x, T y) { return power(x, y); });
    case COMPUTE_INTRINSIC_NEG:
      return unary<T>([](T x) { return static_cast<T>(-U(x)); });
    case COMPUTE_INTRINSIC_ABS:
      return unary<T>([](T x) { return static_cast<T>(x < 0 ? -U(x) : U(x)); });
    case COMPUTE_INTRINSIC_SIGN:
      return unary<T>([](T x) { return static_cast<T>((x > 0) - (x < 0)); });
    case COMPUTE_INTRINSIC_MIN:
      return binary<T>([](T x, T y) { return std::min(x, y); });
    case COMPUTE_INTRINSIC_MAX:
      return binary<T>([](T x, T y) { return std::max(x, y); });
    case COMPUTE_INTRINSIC_BIT_AND:
      return binary<T>([](T x, T y) { return static_cast<T>(x & y); });
    case COMPUTE_INTRINSIC_BIT_OR:
      return binary<T>([](T x, T y) { return static_cast<T>(x | y); });
    case COMPUTE_INTRINSIC_BIT_XOR:
      return binary<T>([](T x, T y) { return static_cast<T>(x ^ y); });
    case COMPUTE_INTRINSIC_BIT_NOT:
      return unary<T>([](T x) { return static_cast<T>(~x); });
    case COMPUTE_INTRINSIC_SHL:
      return binary<T>([](T x, T y) { return U(y) < 8 * sizeof(T) ? static_cast<T>(U(x) << y) : T{0}; });
    case COMPUTE_INTRINSIC_SHR:
      return binary<T>([](T x, T y) { return static_cast<T>(U(y) < 8 * sizeof(T) ? x >> y : x < 0 ? -1 : 0); });
    case COMPUTE_INTRINSIC_FLOOR:
    case COMPUTE_INTRINSIC_CEIL:
    case COMPUTE_INTRINSIC_TRUNC:
    case COMPUTE_INTRINSIC_ROUND:
    case COMPUTE_INTRINSIC_CONJ:
      return unary<T>([](T x) { return x; });
    case COMPUTE_INTRINSIC_ISNAN:
    case COMPUTE_INTRINSIC_ISINF:
      return unary<T>([](T) { return false; });
    case COMPUTE_INTRINSIC_ISFINITE:
      return unary<T>([](T) { return true; });
    default:
      return find_comparison<T>(intrinsic);
  }
}

}  // namespace

Function find_function(int32_t intrinsic, int32_t operand_dtype, int32_t result_dtype) {
  if (!is_dtype(operand_dtype) || !is_dtype(result_dtype)) return nullptr;
  switch (intrinsic) {
    case COMPUTE_INTRINSIC_CONVERT:
      return find_conversion(operand_dtype, result_dtype);
    case COMPUTE_INTRINSIC_BITCAST:
      return [](const Value& x, const Value&, const Value&) { return x; };
    case COMPUTE_INTRINSIC_WHERE:
      return [](const Value& x, const Value& y, const Value& z) { return x.as<bool>() ? y : z; };
  }
  return with_type(operand_dtype, [intrinsic](auto operand) -> Function {
    using T = decltype(operand);
    if constexpr (std::is_same_v<T, bool>) return find_bool(intrinsic);
    if constexpr (Integer<T>) return find_integer<T>(intrinsic);
    if constexpr (Real<T>) return find_real<T>(intrinsic);
    if constexpr (Complex<T>) return find_complex<T>(intrinsic);
    return nullptr;
  });
}

}  // namespace minimal
