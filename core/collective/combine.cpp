// SPDX-License-Identifier: Apache-2.0
#include "core/collective/combine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <complex>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/expressions/dtype.hpp"

namespace compute {
namespace {

struct Float16 {
  uint16_t bits;
  operator float() const noexcept { return half_to_float(bits); }
  static Float16 from(float value) noexcept { return {float_to_half(value)}; }
};
struct Bfloat16 {
  uint16_t bits;
  operator float() const noexcept { return bfloat16_to_float(bits); }
  static Bfloat16 from(float value) noexcept { return {float_to_bfloat16(value)}; }
};

template <class T>
constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;
// Integers wrap, which only unsigned ones do in C++.
template <class T, class = void>
struct Computed {
  using Type = T;
};
template <class T>
struct Computed<T, std::enable_if_t<std::is_integral_v<T>>> {
  using Type = std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int32_t, T>>;
};
template <class T>
struct Computed<T, std::enable_if_t<is_half<T>>> {
  using Type = float;
};

// In place, with the accumulator on the left.
struct Sum {
  template <class T>
  static T of(T a, T b) noexcept {
    return a + b;
  }
};
struct Product {
  template <class T>
  static T of(T a, T b) noexcept {
    return a * b;
  }
  template <class T>
  static std::complex<T> of(std::complex<T> a, std::complex<T> b) noexcept {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};
struct Least {
  template <class T>
  static T of(T a, T b) noexcept {
    return a < b || a != a ? a : b;
  }
};
struct Greatest {
  template <class T>
  static T of(T a, T b) noexcept {
    return a > b || a != a ? a : b;
  }
};

constexpr int64_t kBlock = 1024;  // elements whose accumulators stay in the first-level cache

template <class T, class Combination>
void fold(const void* parts, int32_t ranks, void* dst, int64_t count, bool mean) {
  // Comparisons need the sign; sums and products of integers wrap.
  constexpr bool compares = std::is_same_v<Combination, Least> || std::is_same_v<Combination, Greatest>;
  using Wide = std::conditional_t<compares && std::is_integral_v<T>, T, typename Computed<T>::Type>;
  const auto* src = static_cast<const T*>(parts);
  auto* out = static_cast<T*>(dst);
  std::array<Wide, kBlock> sums;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    for (int64_t i = 0; i < size; ++i) sums[static_cast<size_t>(i)] = static_cast<Wide>(src[begin + i]);
    for (int32_t rank = 1; rank < ranks; ++rank) {
      const T* const part = src + rank * count + begin;
      for (int64_t i = 0; i < size; ++i) {
        Wide& sum = sums[static_cast<size_t>(i)];
        sum = Combination::of(sum, static_cast<Wide>(part[i]));
      }
    }
    if constexpr (!std::is_integral_v<T>) {
      using Scale = decltype(std::abs(Wide{}));
      if (mean)
        for (int64_t i = 0; i < size; ++i) sums[static_cast<size_t>(i)] /= static_cast<Scale>(ranks);
    }
    for (int64_t i = 0; i < size; ++i) {
      if constexpr (is_half<T>) {
        out[begin + i] = T::from(sums[static_cast<size_t>(i)]);
      } else {
        out[begin + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
      }
    }
  }
}

template <class T>
void fold_by(int32_t reduction, const void* parts, int32_t ranks, void* dst, int64_t count) {
  switch (reduction) {
    case COMPUTE_REDUCTION_PROD:
      return fold<T, Product>(parts, ranks, dst, count, false);
    case COMPUTE_REDUCTION_MIN:
    case COMPUTE_REDUCTION_MAX:
      if constexpr (!std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>) {
        return reduction == COMPUTE_REDUCTION_MIN ? fold<T, Least>(parts, ranks, dst, count, false)
                                                  : fold<T, Greatest>(parts, ranks, dst, count, false);
      }
      return;
    default:
      return fold<T, Sum>(parts, ranks, dst, count, reduction == COMPUTE_REDUCTION_MEAN);
  }
}

}  // namespace

void require_reduction(const char* op, int32_t reduction, compute_dtype dtype) {
  constexpr const char* kNames[] = {"sum", "prod", "min", "max", "mean"};
  if (reduction < COMPUTE_REDUCTION_SUM || reduction > COMPUTE_REDUCTION_MEAN) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}: reduction {} is not one that collectives have", op, reduction));
  }
  if (is_float8(dtype)) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}: x is {}; cast it (cast(x, float32))", op, dtype_name(dtype)));
  }
  const bool is_order = reduction == COMPUTE_REDUCTION_MIN || reduction == COMPUTE_REDUCTION_MAX;
  const bool is_inexact = is_float(dtype) || is_complex(dtype);
  if ((is_order && is_complex(dtype)) || (reduction == COMPUTE_REDUCTION_MEAN && !is_inexact)) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}: {} is not defined for {}", op, kNames[reduction - 1], dtype_name(dtype)));
  }
}

void combine(int32_t reduction, compute_dtype dtype, const void* parts, int32_t ranks, void* dst, int64_t count) {
  switch (dtype) {
    case COMPUTE_DTYPE_BOOL:  // any byte but 0 is true; the result is 0 or 1
      for (int64_t i = 0; i < count; ++i) {
        const auto* const first = static_cast<const uint8_t*>(parts) + i;
        const bool is_or = reduction == COMPUTE_REDUCTION_SUM || reduction == COMPUTE_REDUCTION_MAX;
        bool value = *first != 0;
        for (int32_t rank = 1; rank < ranks; ++rank) {
          const bool next = first[rank * count] != 0;
          value = is_or ? value || next : value && next;
        }
        static_cast<uint8_t*>(dst)[i] = value ? 1 : 0;
      }
      return;
    case COMPUTE_DTYPE_INT8:
      return fold_by<int8_t>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_INT16:
      return fold_by<int16_t>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_INT32:
      return fold_by<int32_t>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_INT64:
      return fold_by<int64_t>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_UINT8:
      return fold_by<uint8_t>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_UINT16:
      return fold_by<uint16_t>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_UINT32:
      return fold_by<uint32_t>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_UINT64:
      return fold_by<uint64_t>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_FLOAT16:
      return fold_by<Float16>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_BFLOAT16:
      return fold_by<Bfloat16>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_FLOAT32:
      return fold_by<float>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_FLOAT64:
      return fold_by<double>(reduction, parts, ranks, dst, count);
    case COMPUTE_DTYPE_COMPLEX64:
      return fold_by<std::complex<float>>(reduction, parts, ranks, dst, count);
    default:
      return fold_by<std::complex<double>>(reduction, parts, ranks, dst, count);
  }
}

}  // namespace compute
