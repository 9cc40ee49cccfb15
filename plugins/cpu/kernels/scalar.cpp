// SPDX-License-Identifier: Apache-2.0
// The table's entries that have no vector form: transcendental complex functions by the C library. Compiled for the
// baseline ISA.
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "plugins/cpu/kernels/sets.hpp"

namespace compute::cpu {
namespace {

// ---- float16 and bfloat16 -------------------------------------------------------------------------------------------

struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

template <typename To, typename From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

float to_float(Bfloat16 x) { return bits_as<float>(uint32_t(x.bits) << 16); }
float to_float(Float16 x) {
  const uint32_t sign = uint32_t(x.bits & 0x8000) << 16, magnitude = x.bits & 0x7fff;
  if (magnitude >= 0x7c00) {
    const uint32_t quiet = magnitude > 0x7c00 ? 0x00400000 : 0;
    return bits_as<float>(sign | 0x7f800000 | magnitude << 13 | quiet);
  }
  const float finite = bits_as<float>(magnitude << 13) * 0x1p112f;
  return bits_as<float>(bits_as<uint32_t>(finite) | sign);
}

// ---- complex --------------------------------------------------------------------------------------------------------

template <typename T>
using Complex = std::complex<T>;
using Wide = std::complex<double>;
using Widest = std::complex<long double>;

// long double is computed in x87, whose modes and flags are the thread's: round to nearest in all 64 bits here, and as
// it was afterwards.
class ExtendedPrecision {
#if defined(__x86_64__)
 public:
  ExtendedPrecision() { asm volatile("fnstenv %0\n\tfninit" : "=m"(state_) : : "memory"); }
  ExtendedPrecision(const ExtendedPrecision&) = delete;
  ExtendedPrecision& operator=(const ExtendedPrecision&) = delete;
  ~ExtendedPrecision() { asm volatile("fldenv %0" : : "m"(state_) : "memory"); }

 private:
  struct {
    uint32_t words[7];
  } state_;
#endif
};

// complex64 is computed in complex128 and rounded once.
template <typename T, Wide (*function)(Wide)>
void complex_unary(const void* const* x, const int64_t* steps, void* out, int64_t n) {
  [[maybe_unused]] const ExtendedPrecision precision;
  const Complex<T>* a = static_cast<const Complex<T>*>(x[0]);
  Complex<T>* o = static_cast<Complex<T>*>(out);
  for (int64_t i = 0; i < n; ++i) o[i] = Complex<T>(function(Wide(a[i * steps[0]])));
}

// Functions for which the C library's complex64 version is within the bound; others compute in complex128.
template <typename T, Complex<T> (*function)(const Complex<T>&)>
void complex_direct(const void* const* x, const int64_t* steps, void* out, int64_t n) {
  const Complex<T>* a = static_cast<const Complex<T>*>(x[0]);
  Complex<T>* o = static_cast<Complex<T>*>(out);
  for (int64_t i = 0; i < n; ++i) o[i] = function(a[i * steps[0]]);
}

Wide log2_of(Wide z) {
  const Widest r = std::log(Widest(z));
  return Wide(r / std::log(2.0L));
}
Wide log10_of(Wide z) {
  const Widest r = std::log(Widest(z));
  return Wide(r / std::log(10.0L));
}
// exp(x) (cos y + i sin y) - 1 with cos y = 1 - 2 sin(y / 2)^2; the real part for a zero is +0, as the array API
// standard has it
Wide expm1_of(Wide z) {
  const double x = z.real(), y = z.imag();
  if (y == 0) return {x == 0 ? 0 : std::expm1(x), y};
  if (!std::isfinite(x) || !std::isfinite(y) || x > 700) {
    const Wide r = std::exp(z);
    return {r.real() - 1, r.imag()};
  }
  const double half = std::sin(y / 2);
  return {std::expm1(x) * std::cos(y) - 2 * half * half, std::exp(x) * std::sin(y)};
}
// log|1 + z| = log1p(x (2 + x) + y^2) / 2, whose argument is exact enough in more bits than z has
Wide log1p_of(Wide z) {
  const long double x = z.real(), y = z.imag();
  if (!std::isfinite(z.real()) || !std::isfinite(z.imag()) || std::fabs(z.real()) > 0.5 || std::fabs(z.imag()) > 0.5)
    return Wide(std::log(Widest(1 + x, y)));
  return {double(std::log1p(x * (2 + x) + y * y) / 2), double(std::atan2(y, 1 + x))};
}
Wide asin_of(Wide z) { return std::asin(z); }
Wide acos_of(Wide z) { return std::acos(z); }
Wide atan_of(Wide z) { return std::atan(z); }
Wide asinh_of(Wide z) { return std::asinh(z); }
Wide acosh_of(Wide z) { return std::acosh(z); }
Wide atanh_of(Wide z) { return std::atanh(z); }
Wide sign_of(Wide z) {
  const double x = z.real(), y = z.imag();
  if (x == 0 && y == 0) return 0;
  if (std::isnan(x) || std::isnan(y))
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  if (std::isinf(x) || std::isinf(y)) {  // the direction that the infinite parts give
    const double re = std::isinf(x) ? std::copysign(1.0, x) : std::copysign(0.0, x);
    const double im = std::isinf(y) ? std::copysign(1.0, y) : std::copysign(0.0, y);
    return Wide(re, im) / std::hypot(re, im);
  }
  const int exponent = std::ilogb(std::fmax(std::fabs(x), std::fabs(y)));
  const double a = std::scalbn(x, -exponent), b = std::scalbn(y, -exponent);
  const double modulus = std::hypot(a, b);
  return {a / modulus, b / modulus};
}

template <typename T>
void complex_pow(const void* const* x, const int64_t* steps, void* out, int64_t n) {
  [[maybe_unused]] const ExtendedPrecision precision;
  const Complex<T>* a = static_cast<const Complex<T>*>(x[0]);
  const Complex<T>* b = static_cast<const Complex<T>*>(x[1]);
  Complex<T>* o = static_cast<Complex<T>*>(out);
  // The error of exp(y log x) grows with |y log x|, so that is computed in the wider type.
  using More = std::conditional_t<sizeof(T) == 4, Wide, Widest>;
  for (int64_t i = 0; i < n; ++i) {
    const More p(a[i * steps[0]]), q(b[i * steps[1]]);
    const More square = q == More(2) ? p * p : More(0);
    if (q == More(0)) {
      o[i] = 1;
    } else if (q == More(2) && std::isfinite(square.real()) && std::isfinite(square.imag())) {
      o[i] = Complex<T>(square);
    } else if (p == More(0)) {
      const bool vanishes = q.real() > 0;
      const T nan = std::numeric_limits<T>::quiet_NaN();
      o[i] = vanishes                        ? Complex<T>(0)
             : q.imag() == 0 && q.real() < 0 ? Complex<T>(std::numeric_limits<T>::infinity(), nan)
                                             : Complex<T>(nan, nan);
    } else {
      o[i] = Complex<T>(std::exp(q * std::log(p)));
    }
  }
}

template <typename T, bool Equal>
void complex_equal(const void* const* x, const int64_t* steps, void* out, int64_t n) {
  const Complex<T>* a = static_cast<const Complex<T>*>(x[0]);
  const Complex<T>* b = static_cast<const Complex<T>*>(x[1]);
  for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(out)[i] = (a[i * steps[0]] == b[i * steps[1]]) == Equal;
}
template <typename T, bool (*test)(T, T)>
void complex_test(const void* const* x, const int64_t* steps, void* out, int64_t n) {
  const Complex<T>* a = static_cast<const Complex<T>*>(x[0]);
  for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(out)[i] = test(a[i * steps[0]].real(), a[i * steps[0]].imag());
}
template <typename T>
bool either_nan(T re, T im) {
  return re != re || im != im;
}
template <typename T>
bool either_infinite(T re, T im) {
  return std::isinf(re) || std::isinf(im);
}
template <typename T>
bool both_finite(T re, T im) {
  return std::isfinite(re) && std::isfinite(im);
}
template <typename T>
bool either_nonzero(T re, T im) {
  return re != 0 || im != 0;
}

void select_complex128(const void* const* x, const int64_t* steps, void* out, int64_t n) {
  const uint8_t* condition = static_cast<const uint8_t*>(x[0]);
  const Wide* a = static_cast<const Wide*>(x[1]);
  const Wide* b = static_cast<const Wide*>(x[2]);
  for (int64_t i = 0; i < n; ++i)
    static_cast<Wide*>(out)[i] = condition[i * steps[0]] ? a[i * steps[1]] : b[i * steps[2]];
}

template <typename T>
void truth_to_complex(const void* const* x, const int64_t* steps, void* out, int64_t n) {
  const auto* a = static_cast<const uint8_t*>(x[0]);
  T* o = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    o[2 * i] = a[i * steps[0]] != 0 ? 1 : 0;
    o[2 * i + 1] = 0;
  }
}
template <typename S, typename T>
void real_to_complex(const void* const* x, const int64_t* steps, void* out, int64_t n) {
  const S* __restrict__ a = static_cast<const S*>(x[0]);
  T* __restrict__ o = static_cast<T*>(out);
  const auto convert = [&](int64_t step) {
    for (int64_t i = 0; i < n; ++i) {
      const S value = a[i * step];
      if constexpr (std::is_same_v<S, Float16> || std::is_same_v<S, Bfloat16>)
        o[2 * i] = T(to_float(value));
      else
        o[2 * i] = T(value);
      o[2 * i + 1] = 0;
    }
  };
  steps[0] == 1 ? convert(1) : convert(steps[0]);  // the first becomes vectors
}
template <typename S, typename T>
void complex_to_complex(const void* const* x, const int64_t* steps, void* out, int64_t n) {
  const Complex<S>* a = static_cast<const Complex<S>*>(x[0]);
  for (int64_t i = 0; i < n; ++i) static_cast<Complex<T>*>(out)[i] = Complex<T>(a[i * steps[0]]);
}

// By the intrinsics' names: those that have no vector form.
template <typename T>
struct ComplexBlocks {
  static constexpr BlockFunction sign = &complex_unary<T, sign_of>;
  static constexpr BlockFunction pow = &complex_pow<T>;
  static constexpr BlockFunction eq = &complex_equal<T, true>;
  static constexpr BlockFunction ne = &complex_equal<T, false>;
  static constexpr BlockFunction sqrt = &complex_direct<T, std::sqrt<T>>;
  static constexpr BlockFunction exp = &complex_direct<T, std::exp<T>>;
  static constexpr BlockFunction expm1 = &complex_unary<T, expm1_of>;
  static constexpr BlockFunction log = &complex_direct<T, std::log<T>>;
  static constexpr BlockFunction log1p = &complex_unary<T, log1p_of>;
  static constexpr BlockFunction log2 = &complex_unary<T, log2_of>;
  static constexpr BlockFunction log10 = &complex_unary<T, log10_of>;
  static constexpr BlockFunction sin = &complex_direct<T, std::sin<T>>;
  static constexpr BlockFunction cos = &complex_direct<T, std::cos<T>>;
  static constexpr BlockFunction tan = &complex_direct<T, std::tan<T>>;
  static constexpr BlockFunction asin = &complex_unary<T, asin_of>;
  static constexpr BlockFunction acos = &complex_unary<T, acos_of>;
  static constexpr BlockFunction atan = &complex_unary<T, atan_of>;
  static constexpr BlockFunction sinh = &complex_direct<T, std::sinh<T>>;
  static constexpr BlockFunction cosh = &complex_direct<T, std::cosh<T>>;
  static constexpr BlockFunction tanh = &complex_direct<T, std::tanh<T>>;
  static constexpr BlockFunction asinh = &complex_unary<T, asinh_of>;
  static constexpr BlockFunction acosh = &complex_unary<T, acosh_of>;
  static constexpr BlockFunction atanh = &complex_unary<T, atanh_of>;
  static constexpr BlockFunction isnan = &complex_test<T, either_nan<T>>;
  static constexpr BlockFunction isinf = &complex_test<T, either_infinite<T>>;
  static constexpr BlockFunction isfinite = &complex_test<T, both_finite<T>>;
};

template <typename T>
void fill_complex(BlockKernels* table, int dtype) {
#define COMPUTE_INTRINSIC(id, name, ...) \
  if constexpr (requires { ComplexBlocks<T>::name; }) table->calls[id][dtype] = ComplexBlocks<T>::name;
#include "compute/intrinsics.def"
#undef COMPUTE_INTRINSIC
  auto& converts = table->converts;
  converts[kDtype_bool][dtype] = &truth_to_complex<T>;
  converts[kDtype_uint8][dtype] = &real_to_complex<uint8_t, T>;
  converts[kDtype_int8][dtype] = &real_to_complex<int8_t, T>;
  converts[kDtype_int16][dtype] = &real_to_complex<int16_t, T>;
  converts[kDtype_int32][dtype] = &real_to_complex<int32_t, T>;
  converts[kDtype_int64][dtype] = &real_to_complex<int64_t, T>;
  converts[kDtype_uint16][dtype] = &real_to_complex<uint16_t, T>;
  converts[kDtype_uint32][dtype] = &real_to_complex<uint32_t, T>;
  converts[kDtype_uint64][dtype] = &real_to_complex<uint64_t, T>;
  converts[kDtype_float16][dtype] = &real_to_complex<Float16, T>;
  converts[kDtype_bfloat16][dtype] = &real_to_complex<Bfloat16, T>;
  converts[kDtype_float32][dtype] = &real_to_complex<float, T>;
  converts[kDtype_float64][dtype] = &real_to_complex<double, T>;
  converts[dtype][kDtype_bool] = &complex_test<T, either_nonzero<T>>;
  converts[dtype][kDtype_complex64] = &complex_to_complex<T, float>;
  converts[dtype][kDtype_complex128] = &complex_to_complex<T, double>;
}

}  // namespace

void fill_scalar(BlockKernels* table) {
  fill_complex<float>(table, kDtype_complex64);
  fill_complex<double>(table, kDtype_complex128);
  table->calls[kId_where][kDtype_complex128] = &select_complex128;
}

}  // namespace compute::cpu
