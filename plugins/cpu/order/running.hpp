// SPDX-License-Identifier: Apache-2.0
// Running combinations of values of one dtype. Sums of floats carry more precision than their dtype has: float32 in
// float64, float64 as an unevaluated sum of two numbers (T. J. Dekker, "A floating-point technique for extending the
// available precision", 1971).
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "plugins/common/op/op.hpp"

namespace compute::cpu {

template <class T>
struct Sum {
  using Wrapped = std::make_unsigned_t<T>;
  T value = 0;
  void add(T x) { value = static_cast<T>(static_cast<Wrapped>(value) + static_cast<Wrapped>(x)); }
  void add(const Sum& other) { add(other.value); }
  T get() const { return value; }
};
template <>
struct Sum<float> {
  double value = -0.0;  // a sum of values that are all -0 is -0
  void add(float x) { value += static_cast<double>(x); }
  void add(const Sum& other) { value += other.value; }
  float get() const { return static_cast<float>(value); }
};
template <>
struct Sum<double> {
  double value = -0.0, rest = 0;
  void add(double x) {
    const double sum = value + x, part = sum - value;
    rest += (value - (sum - part)) + (x - part);
    value = sum;
  }
  void add(const Sum& other) {
    add(other.value);
    rest += other.rest;
  }
  double get() const { return rest == 0 || !std::isfinite(value) ? value : value + rest; }
};
template <class T>
struct Sum<std::complex<T>> {
  Sum<T> re, im;
  void add(std::complex<T> x) {
    re.add(x.real());
    im.add(x.imag());
  }
  void add(const Sum& other) {
    re.add(other.re);
    im.add(other.im);
  }
  std::complex<T> get() const { return {re.get(), im.get()}; }
};

template <class T>
struct Prod {
  T value = 1;
  void add(T x) {
    if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(static_cast<uint64_t>(value) * static_cast<uint64_t>(x));
    } else {
      value = value * x;
    }
  }
  void add(const Prod& other) { add(other.value); }
  T get() const { return value; }
};
template <>
struct Prod<float> {
  double value = 1;
  void add(float x) { value *= static_cast<double>(x); }
  void add(const Prod& other) { value *= other.value; }
  float get() const { return static_cast<float>(value); }
};
template <class T>
struct Prod<std::complex<T>> {
  T re = 1, im = 0;
  void add(std::complex<T> x) {
    const T a = re * x.real() - im * x.imag(), b = re * x.imag() + im * x.real();
    re = a;
    im = b;
  }
  void add(const Prod& other) { add(other.get()); }
  std::complex<T> get() const { return {re, im}; }
};

// NaN wins, and stays.
template <class T, bool Greatest>
struct Extreme {
  T value = Greatest ? lowest() : highest();
  void add(T x) { value = (Greatest ? x > value : x < value) || x != x ? (value != value ? value : x) : value; }
  void add(const Extreme& other) { add(other.value); }
  T get() const { return value; }

 private:
  static constexpr T lowest() {
    return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  }
  static constexpr T highest() {
    return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
};

// What can be combined: by kind and the accumulator's dtype. `make(Running{}, T{})` returns a value of type R.
template <class R, class Make>
R with_running(std::string_view kind, compute_dtype dtype, const Make& make) {
  const auto real = [&]<class T>(T zero) -> R {
    if (kind == "sum") return make(Sum<T>{}, zero);
    if (kind == "prod") return make(Prod<T>{}, zero);
    if (kind == "max") return make(Extreme<T, true>{}, zero);
    return make(Extreme<T, false>{}, zero);
  };
  const auto complex = [&]<class T>(T zero) -> R {
    if (kind == "sum") return make(Sum<T>{}, zero);
    return make(Prod<T>{}, zero);
  };
  switch (dtype) {
    case COMPUTE_DTYPE_INT8:
      return real(int8_t{});
    case COMPUTE_DTYPE_INT16:
      return real(int16_t{});
    case COMPUTE_DTYPE_INT32:
      return real(int32_t{});
    case COMPUTE_DTYPE_INT64:
      return real(int64_t{});
    case COMPUTE_DTYPE_UINT8:
      return real(uint8_t{});
    case COMPUTE_DTYPE_UINT16:
      return real(uint16_t{});
    case COMPUTE_DTYPE_UINT32:
      return real(uint32_t{});
    case COMPUTE_DTYPE_UINT64:
      return real(uint64_t{});
    case COMPUTE_DTYPE_FLOAT32:
      return real(float{});
    case COMPUTE_DTYPE_COMPLEX64:
      return complex(std::complex<float>{});
    case COMPUTE_DTYPE_COMPLEX128:
      return complex(std::complex<double>{});
    default:
      return real(double{});
  }
}

// Why values are not combined so; nothing if with_running knows it.
inline std::optional<common::Refusal> refuse_running(std::string_view op, std::string_view kind, compute_dtype dtype) {
  const bool is_ordered = kind == "min" || kind == "max";
  if (!is_ordered && kind != "sum" && kind != "prod") {
    return common::Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1,
                           std::string(op) + ": unknown kind \"" + std::string(kind) + "\"", ""};
  }
  const bool is_known =
      dtype != COMPUTE_DTYPE_BOOL && dtype != COMPUTE_DTYPE_FLOAT16 && dtype != COMPUTE_DTYPE_BFLOAT16;
  if (!is_known || (is_ordered && common::is_complex(dtype)))
    return common::Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, std::string(op) + ": no such accumulator", ""};
  return std::nullopt;
}

}  // namespace compute::cpu
