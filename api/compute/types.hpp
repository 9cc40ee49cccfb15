// SPDX-License-Identifier: Apache-2.0
//
// types.hpp: dtypes, and the types of parameters. Include compute.hpp.
//
// Parameters convert from what a program would write, and from nothing that changes its meaning: a bool is no integer,
// an integer is no bool, a floating-point number is no extent.
#ifndef COMPUTE_TYPES_HPP_
#define COMPUTE_TYPES_HPP_

#include <chrono>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <ostream>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "compute/error.hpp"

namespace compute {

/// An argument that is left out: sum(x, all_axes, true, none), slice(2, none).
inline constexpr std::nullopt_t none = std::nullopt;

/// A dtype: compute::float32, or COMPUTE_DTYPE_FLOAT32.
class DType {
 public:
  /// No dtype.
  constexpr DType() noexcept = default;
  constexpr DType(std::nullopt_t) noexcept {}  // NOLINT: implicit on purpose
  /// One of the constants COMPUTE_DTYPE_.
  template <std::same_as<decltype(COMPUTE_DTYPE_NONE)> T>
  constexpr DType(T id) noexcept : id_(id) {}  // NOLINT: implicit on purpose
  constexpr explicit DType(compute_dtype id) noexcept : id_(id) {}
  /// The dtype with this name; NOT_FOUND if there is none.
  [[nodiscard]] static DType named(const char* name) {
    DType dtype;
    check(compute_dtype_from_name(name, &dtype.id_));
    return dtype;
  }

  [[nodiscard]] constexpr compute_dtype id() const noexcept { return id_; }
  /// "float32"; "" for a number that is no dtype.
  [[nodiscard]] std::string_view name() const noexcept { return compute_dtype_name(id_); }
  /// Bytes of an element; 0 for a number that is no dtype.
  [[nodiscard]] int64_t size() const noexcept { return compute_dtype_size(id_); }

  friend constexpr bool operator==(DType a, DType b) noexcept { return a.id_ == b.id_; }
  friend std::ostream& operator<<(std::ostream& out, DType dtype) { return out << dtype.name(); }

 private:
  compute_dtype id_ = COMPUTE_DTYPE_NONE;
};

inline constexpr DType bool_{COMPUTE_DTYPE_BOOL};
inline constexpr DType int8{COMPUTE_DTYPE_INT8};
inline constexpr DType int16{COMPUTE_DTYPE_INT16};
inline constexpr DType int32{COMPUTE_DTYPE_INT32};
inline constexpr DType int64{COMPUTE_DTYPE_INT64};
inline constexpr DType uint8{COMPUTE_DTYPE_UINT8};
inline constexpr DType uint16{COMPUTE_DTYPE_UINT16};
inline constexpr DType uint32{COMPUTE_DTYPE_UINT32};
inline constexpr DType uint64{COMPUTE_DTYPE_UINT64};
inline constexpr DType float16{COMPUTE_DTYPE_FLOAT16};
inline constexpr DType bfloat16{COMPUTE_DTYPE_BFLOAT16};
inline constexpr DType float32{COMPUTE_DTYPE_FLOAT32};
inline constexpr DType float64{COMPUTE_DTYPE_FLOAT64};
inline constexpr DType complex64{COMPUTE_DTYPE_COMPLEX64};
inline constexpr DType complex128{COMPUTE_DTYPE_COMPLEX128};
inline constexpr DType float8_e4m3fn{COMPUTE_DTYPE_FLOAT8_E4M3FN};
inline constexpr DType float8_e5m2{COMPUTE_DTYPE_FLOAT8_E5M2};

namespace detail {

template <class T, class... Types>
inline constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

// The standard integer types; neither bool nor a character type, but int8_t and uint8_t, which are those.
template <class T>
inline constexpr bool is_integer = is_one_of<T, signed char, short, int, long, long long, unsigned char, unsigned short,
                                             unsigned int, unsigned long, unsigned long long>;

template <class T>
constexpr DType dtype_of_type() noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return sizeof(bool) == 1 ? bool_ : DType();
  } else if constexpr (is_integer<T>) {
    constexpr bool is_signed = std::is_signed_v<T>;
    switch (sizeof(T)) {
      case 1:
        return is_signed ? int8 : uint8;
      case 2:
        return is_signed ? int16 : uint16;
      case 4:
        return is_signed ? int32 : uint32;
      default:
        return is_signed ? int64 : uint64;
    }
  } else if constexpr (std::is_same_v<T, float>) {
    return float32;
  } else if constexpr (std::is_same_v<T, double>) {
    return float64;
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return complex64;
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return complex128;
  } else {
    return DType();
  }
}

}  // namespace detail

/// The dtype of a C++ type: compute::dtype_of<float>. A program may specialize it for a type of its own, such as a
/// 16-bit float.
template <class T>
inline constexpr DType dtype_of = detail::dtype_of_type<T>();

/// A C++ type that a dtype stands for.
template <class T>
concept Element = (dtype_of<T>.id() != compute_dtype{0});

/// An integer, but no bool.
template <class T>
concept IntegerType = detail::is_integer<T>;

/// A real number, but no bool.
template <class T>
concept RealType = IntegerType<T> || std::floating_point<T>;

/// What std::vector keeps as an array: every element type but bool.
template <class T>
concept ArrayElement = Element<T> && !std::same_as<T, bool>;

/// An element type that may be const.
template <class T>
concept MemoryElement = Element<std::remove_const_t<T>>;

namespace detail {

// A container whose elements of type T lie one after another.
template <class R, class T>
concept ListOf =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && std::same_as<std::ranges::range_value_t<R>, T>;

}  // namespace detail

/// An int64 as a parameter, from any integer. OUT_OF_RANGE for one that does not fit.
class Integer {
 public:
  template <IntegerType T>
  constexpr Integer(T value) : value_(static_cast<int64_t>(value)) {  // NOLINT: implicit on purpose
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      if (value_ < 0) throw Error(COMPUTE_ERROR_OUT_OF_RANGE, std::to_string(value) + " does not fit in int64");
    }
  }
  [[nodiscard]] constexpr int64_t value() const noexcept { return value_; }

 private:
  int64_t value_;
};

/// A bool as a parameter, from nothing but a bool.
class Flag {
 public:
  template <std::same_as<bool> T>
  constexpr Flag(T value) noexcept : value_(value) {}  // NOLINT: implicit on purpose
  [[nodiscard]] constexpr bool value() const noexcept { return value_; }

 private:
  bool value_;
};

/// A double as a parameter, from any real number but a bool.
class Real {
 public:
  template <RealType T>
  constexpr Real(T value) noexcept : value_(static_cast<double>(value)) {}  // NOLINT: implicit on purpose
  [[nodiscard]] constexpr double value() const noexcept { return value_; }

 private:
  double value_;
};

/// A number whose kind is that of the C++ type; none: the default of the attribute that it is given for.
class Number {
 public:
  constexpr Number(std::nullopt_t) noexcept {}  // NOLINT: implicit on purpose
  template <IntegerType T>
  constexpr Number(T value) {  // NOLINT: implicit on purpose
    number_.kind = COMPUTE_KIND_INT64;
    number_.integer = Integer(value).value();
  }
  template <std::floating_point T>
  constexpr Number(T value) noexcept {  // NOLINT: implicit on purpose
    number_.kind = COMPUTE_KIND_FLOAT64;
    number_.real = static_cast<double>(value);
  }
  template <std::floating_point T>
  constexpr Number(std::complex<T> value) noexcept {  // NOLINT: implicit on purpose
    number_.kind = COMPUTE_KIND_COMPLEX128;
    number_.real = static_cast<double>(value.real());
    number_.imaginary = static_cast<double>(value.imag());
  }
  [[nodiscard]] constexpr const compute_number& get() const noexcept { return number_; }

 private:
  compute_number number_{};
};

/// A list as a parameter: an initializer list, a vector, an array, a span. Not kept beyond the call.
template <class T>
class List {
 public:
  constexpr List() noexcept = default;
  constexpr List(std::initializer_list<T> values) noexcept  // NOLINT: implicit on purpose
      : values_(values.begin(), values.size()) {}
  template <detail::ListOf<T> R>
  constexpr List(const R& values) noexcept  // NOLINT: implicit on purpose
      : values_(std::ranges::data(values), std::ranges::size(values)) {}

  [[nodiscard]] constexpr const T* data() const noexcept { return values_.data(); }
  [[nodiscard]] constexpr size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] constexpr auto begin() const noexcept { return values_.begin(); }
  [[nodiscard]] constexpr auto end() const noexcept { return values_.end(); }
  [[nodiscard]] constexpr const T& operator[](size_t index) const noexcept { return values_[index]; }

 private:
  std::span<const T> values_;
};

/// Extents in elements, outermost first.
using Shape = std::vector<int64_t>;

struct AllAxes {};
/// Every axis: sum(x, all_axes, true).
inline constexpr AllAxes all_axes{};

/// Axes as a parameter: a number, a list of numbers, all_axes. Negative ones count from the end. An empty list is
/// no axis, and {} does not compile, since it could mean either.
class Axes {
 public:
  Axes() = delete;
  constexpr Axes(AllAxes) noexcept {}  // NOLINT: implicit on purpose
  template <IntegerType T>
  constexpr Axes(T axis) : one_(Integer(axis).value()), kind_(Kind::kOne) {}  // NOLINT: implicit on purpose
  constexpr Axes(std::initializer_list<int64_t> axes) noexcept                // NOLINT: implicit on purpose
      : list_(axes.begin(), axes.size()), kind_(Kind::kList) {}
  template <detail::ListOf<int64_t> R>
  constexpr Axes(const R& axes) noexcept  // NOLINT: implicit on purpose
      : list_(std::ranges::data(axes), std::ranges::size(axes)), kind_(Kind::kList) {}

  /// NULL for all axes; never NULL for a list.
  [[nodiscard]] constexpr const int64_t* data() const noexcept {
    if (kind_ == Kind::kAll) return nullptr;
    return kind_ == Kind::kOne || list_.empty() ? &one_ : list_.data();
  }
  [[nodiscard]] constexpr int64_t count() const noexcept {
    return kind_ == Kind::kOne ? 1 : static_cast<int64_t>(list_.size());
  }

 private:
  enum class Kind : uint8_t { kAll, kOne, kList };

  int64_t one_ = 0;
  std::span<const int64_t> list_;
  Kind kind_ = Kind::kAll;
};

/// The form of a report.
enum class Format : int32_t { text = COMPUTE_FORMAT_TEXT, json = COMPUTE_FORMAT_JSON };

namespace detail {

// Nanoseconds of a limit of time, rounded up; without a limit where it does not fit.
template <class Rep, class Period>
[[nodiscard]] constexpr int64_t timeout_ns(std::chrono::duration<Rep, Period> timeout) {
  const long double count = std::chrono::duration<long double, std::nano>(timeout).count();
  if (count != count) throw_invalid("the timeout is not a number");
  if (count >= 0x1p63L) return COMPUTE_TIMEOUT_NONE;
  if (count <= -0x1p63L) return std::numeric_limits<int64_t>::min();
  const auto whole = static_cast<int64_t>(count);
  return static_cast<long double>(whole) < count ? whole + 1 : whole;
}

// Calls a two-call query of compute.h for all of its structs.
template <class T, class F>
[[nodiscard]] std::vector<T> list_of(F&& query) {
  int64_t count = 0;
  check(query(static_cast<T*>(nullptr), int64_t{0}, &count));
  std::vector<T> all(static_cast<size_t>(count));
  if (count > 0) {
    all[0].struct_size = sizeof(T);
    check(query(all.data(), static_cast<int64_t>(all.size()), &count));
    if (count < static_cast<int64_t>(all.size())) all.resize(static_cast<size_t>(count));
  }
  return all;
}

}  // namespace detail

/// How collectives combine the values of the ranks, and reduce the values of an expression.
enum class Reduction : int32_t {
  sum = COMPUTE_REDUCTION_SUM,
  prod = COMPUTE_REDUCTION_PROD,
  min = COMPUTE_REDUCTION_MIN,
  max = COMPUTE_REDUCTION_MAX,
  mean = COMPUTE_REDUCTION_MEAN,  ///< collectives only
  all = COMPUTE_REDUCTION_ALL,    ///< reduce only
  any = COMPUTE_REDUCTION_ANY     ///< reduce only
};

}  // namespace compute

#endif  // COMPUTE_TYPES_HPP_
