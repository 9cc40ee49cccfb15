// SPDX-License-Identifier: Apache-2.0
//
// print.hpp: tensors as text, laid out as NumPy does. Include compute.hpp.
#ifndef COMPUTE_PRINT_HPP_
#define COMPUTE_PRINT_HPP_

#include <charconv>
#include <cmath>

#include "compute/ops.hpp"

namespace compute {

namespace detail {

inline constexpr int64_t kPrintedAtMost = 1000;  // a larger tensor is shown by its edges
inline constexpr int64_t kPrintedEdge = 3;       // elements at each end of an axis
inline constexpr size_t kPrintedColumns = 75;
inline constexpr int kPrintedDigits = 8;  // behind the point

// A decimal number in parts: "-1.25e-07" is "-1", "25" and "-07".
struct Decimal {
  std::string whole, fraction, exponent;
};

template <class T>
[[nodiscard]] std::string to_text(T value, std::chars_format format, std::optional<int> digits = none) {
  std::array<char, 512> text;
  const auto end = digits ? std::to_chars(text.data(), text.data() + text.size(), value, format, *digits)
                          : std::to_chars(text.data(), text.data() + text.size(), value, format);
  return {text.data(), end.ptr};
}

[[nodiscard]] inline Decimal split(std::string text) {
  Decimal parts;
  if (const size_t at = text.find('e'); at != std::string::npos) {
    parts.exponent = text.substr(at + 1);
    text.resize(at);
  }
  const size_t point = std::min(text.find('.'), text.size());
  parts.whole = text.substr(0, point);
  if (point < text.size()) parts.fraction = text.substr(point + 1);
  while (!parts.fraction.empty() && parts.fraction.back() == '0') parts.fraction.pop_back();
  return parts;
}

// Real numbers of one printed tensor: all positional, or all with an exponent, and aligned at the point.
template <class T>
class RealFormat {
 public:
  // `significand_bits`: of a 16-bit dtype whose values are given as float; else 0.
  RealFormat(std::span<const T> values, int significand_bits, bool always_signed)
      : bits_(significand_bits), always_signed_(always_signed) {
    T least = 0, greatest = 0;
    bool all_finite = true, negative_infinity = always_signed, any_finite = false;
    for (const T value : values) {
      if (!std::isfinite(value)) {
        all_finite = false;
        negative_infinity = negative_infinity || (std::isinf(value) && value < 0);
        continue;
      }
      any_finite = true;
      const T size = std::abs(value);
      if (size == 0) continue;
      if (least == 0 || size < least) least = size;
      greatest = std::max(greatest, size);
    }
    scientific_ = greatest != 0 && (greatest >= T(1e8) || least < T(1e-4) || greatest / least > T(1000));
    for (const T value : values) {
      if (!std::isfinite(value)) continue;
      const Decimal parts = parts_of(value);
      left_ = std::max(left_, parts.whole.size());
      right_ = std::max(right_, parts.fraction.size());
      exponent_ = std::max(exponent_, parts.exponent.size());
    }
    digits_ = right_;
    if (scientific_) right_ += exponent_ + 1;
    const size_t point = any_finite ? right_ + 1 : 1;
    const auto widen = [&](size_t width) { left_ = std::max(left_, width > point ? width - point : 0); };
    if (!all_finite) {
      widen(3);
      widen(negative_infinity ? 4 : 3);
    }
  }

  [[nodiscard]] std::string operator()(T value) const {
    if (!std::isfinite(value)) {
      const std::string text = std::isnan(value) ? "nan" : value < 0 ? "-inf" : always_signed_ ? "+inf" : "inf";
      return padded(text, left_ + right_ + 1);
    }
    const Decimal parts = parts_of(value);
    std::string text = padded(parts.whole, left_) + "." + parts.fraction;
    if (scientific_) {
      text += std::string(digits_ - parts.fraction.size(), '0') + "e" + parts.exponent.substr(0, 1) +
              std::string(exponent_ - parts.exponent.size(), '0') + parts.exponent.substr(1);
    } else {
      text += std::string(right_ - parts.fraction.size(), ' ');
    }
    return text;
  }

 private:
  static std::string padded(const std::string& text, size_t width) {
    return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
  }

  // The fewest digits that no other number of the dtype has, at most kPrintedDigits behind the point.
  [[nodiscard]] Decimal parts_of(T value) const {
    const std::chars_format format = scientific_ ? std::chars_format::scientific : std::chars_format::fixed;
    const T shown = bits_ == 0 ? value : shortest(value);
    Decimal parts = split(to_text(shown, format));
    if (parts.fraction.size() > kPrintedDigits) parts = split(to_text(value, format, kPrintedDigits));
    if (always_signed_ && parts.whole[0] != '-') parts.whole = "+" + parts.whole;
    return parts;
  }
  // The number with the fewest digits that rounds to `value` in `bits_` bits.
  [[nodiscard]] T shortest(T value) const {
    if (value == 0) return value;
    const T half_unit = std::ldexp(T(1), std::ilogb(value) - bits_);
    for (int digits = 0; digits < 8; ++digits) {
      const std::string text = to_text(value, std::chars_format::scientific, digits);
      T read = 0;
      std::from_chars(text.data(), text.data() + text.size(), read);
      if (std::abs(read - value) < half_unit) return read;
    }
    return value;
  }

  int bits_;
  bool always_signed_;
  bool scientific_ = false;
  size_t left_ = 0, right_ = 0, exponent_ = 0, digits_ = 0;
};

// The elements of a printed tensor as texts of one width, in row-major order.
template <class T>
[[nodiscard]] std::vector<std::string> texts_of(const std::vector<T>& values, int significand_bits) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  if constexpr (std::floating_point<T>) {
    const RealFormat<T> format(values, significand_bits, false);
    for (const T value : values) texts.push_back(format(value));
  } else if constexpr (std::integral<T>) {
    size_t width = 0;
    for (const T value : values) {
      texts.push_back(std::to_string(value));
      width = std::max(width, texts.back().size());
    }
    for (std::string& text : texts) text.insert(0, width - text.size(), ' ');
  } else {
    std::vector<typename T::value_type> real, imaginary;
    for (const T value : values) {
      real.push_back(value.real());
      imaginary.push_back(value.imag());
    }
    const RealFormat<typename T::value_type> real_format(real, 0, false), imaginary_format(imaginary, 0, true);
    for (const T value : values) {
      std::string text = imaginary_format(value.imag());
      text.insert(std::min(text.find_last_not_of(' ') + 1, text.size()), "j");
      texts.push_back(real_format(value.real()) + text);
    }
  }
  return texts;
}

// A single real number, as NumPy prints one.
template <class T>
[[nodiscard]] std::string number_text(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const T size = std::abs(value);
  const bool scientific = size != 0 && (size >= T(1e16) || size < T(1e-4));
  const Decimal parts = split(to_text(value, scientific ? std::chars_format::scientific : std::chars_format::fixed));
  if (scientific) return parts.whole + (parts.fraction.empty() ? "" : "." + parts.fraction) + "e" + parts.exponent;
  return parts.whole + "." + (parts.fraction.empty() ? "0" : parts.fraction);
}

// Brackets and line breaks around the texts of elements.
class Layout {
 public:
  // `shortened`: axes of which only the edges are among the texts.
  Layout(const std::vector<std::string>& texts, std::span<const int64_t> shape, const std::vector<bool>& shortened)
      : texts_(texts), shape_(shape), shortened_(shortened) {}

  [[nodiscard]] std::string text() { return level(0, " ", kPrintedColumns); }

 private:
  [[nodiscard]] std::string level(size_t axis, const std::string& indent, size_t columns) {
    const int64_t extent = shape_[axis], gap = shortened_[axis] ? kPrintedEdge : -1;
    std::string text, line = indent;
    if (axis + 1 < shape_.size()) {
      const std::string separator(shape_.size() - axis - 1, '\n');
      for (int64_t i = 0; i < extent; ++i) {
        if (i == gap) text += indent + "..." + separator;
        text += indent + level(axis + 1, indent + " ", columns - 1) + (i + 1 < extent ? separator : "");
      }
    } else {
      const auto add = [&](const std::string& word) {
        if (line.size() + word.size() > columns - 1 && line.size() > indent.size()) {
          text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
          line = indent;
        }
        line += word;
      };
      for (int64_t i = 0; i < extent; ++i) {
        if (i == gap) {
          add("...");
          line += ' ';
        }
        add(texts_[next_++]);
        if (i + 1 < extent) line += ' ';
      }
      text += line;
    }
    return "[" + text.substr(indent.size()) + "]";
  }

  const std::vector<std::string>& texts_;
  std::span<const int64_t> shape_;
  const std::vector<bool>& shortened_;
  size_t next_ = 0;
};

template <class T>
[[nodiscard]] std::string printed_as(const Tensor& tensor, const std::vector<bool>& shortened, int significand_bits) {
  std::vector<T> values(static_cast<size_t>(tensor.size()));
  tensor.read(values.data(), tensor.size_bytes());
  if (tensor.rank() == 0) {
    if constexpr (std::floating_point<T>) {
      if (significand_bits == 0) return number_text(values[0]);
    }
    return texts_of(values, significand_bits)[0];
  }
  const std::vector<std::string> texts = texts_of(values, significand_bits);
  return Layout(texts, tensor.shape(), shortened).text();
}

[[nodiscard]] inline std::string printed_bool(const Tensor& tensor, const std::vector<bool>& shortened) {
  std::vector<std::string> texts;
  for (const uint8_t value : tensor.to_vector<uint8_t>()) {
    texts.push_back(value != 0 ? tensor.rank() == 0 ? "True" : " True" : "False");
  }
  return tensor.rank() == 0 ? texts[0] : Layout(texts, tensor.shape(), shortened).text();
}

// The first and last elements of every axis that is long.
[[nodiscard]] inline Tensor edges_of(const Tensor& tensor, std::vector<bool>& shortened) {
  Tensor edges = tensor;
  for (int32_t axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.shape()[static_cast<size_t>(axis)] <= 2 * kPrintedEdge) continue;
    const Tensor first = edges.slice(axis, 0, kPrintedEdge), last = edges.slice(axis, -kPrintedEdge, none);
    edges = concat({first, last}, axis);
    shortened[static_cast<size_t>(axis)] = true;
  }
  return edges;
}

[[nodiscard]] inline std::string printed(const Tensor& whole) {
  if (!whole.defined()) return "<empty>";
  if (whole.size() == 0) return "[]";
  std::vector<bool> shortened(static_cast<size_t>(whole.rank()), false);
  const Tensor tensor = whole.size() > kPrintedAtMost ? edges_of(whole, shortened) : whole;
  const auto as = [&]<class T>(T, int significand_bits = 0) {
    return printed_as<T>(tensor, shortened, significand_bits);
  };
  switch (tensor.dtype().id()) {
    case COMPUTE_DTYPE_BOOL:
      return printed_bool(tensor, shortened);
    case COMPUTE_DTYPE_INT8:
      return as(int8_t{});
    case COMPUTE_DTYPE_INT16:
      return as(int16_t{});
    case COMPUTE_DTYPE_INT32:
      return as(int32_t{});
    case COMPUTE_DTYPE_INT64:
      return as(int64_t{});
    case COMPUTE_DTYPE_UINT8:
      return as(uint8_t{});
    case COMPUTE_DTYPE_UINT16:
      return as(uint16_t{});
    case COMPUTE_DTYPE_UINT32:
      return as(uint32_t{});
    case COMPUTE_DTYPE_UINT64:
      return as(uint64_t{});
    case COMPUTE_DTYPE_FLOAT16:
    case COMPUTE_DTYPE_BFLOAT16:
      return printed_as<float>(cast(tensor, float32), shortened, tensor.dtype() == float16 ? 11 : 8);
    case COMPUTE_DTYPE_FLOAT8_E4M3FN:
    case COMPUTE_DTYPE_FLOAT8_E5M2:
      return printed_as<float>(cast(tensor, float32), shortened, tensor.dtype() == float8_e5m2 ? 3 : 4);
    case COMPUTE_DTYPE_FLOAT32:
      return as(float{});
    case COMPUTE_DTYPE_FLOAT64:
      return as(double{});
    case COMPUTE_DTYPE_COMPLEX64:
      return as(std::complex<float>{});
    case COMPUTE_DTYPE_COMPLEX128:
      return as(std::complex<double>{});
    default:
      throw Error(COMPUTE_ERROR_UNSUPPORTED, "print: unknown dtype " + std::to_string(tensor.dtype().id()));
  }
}

}  // namespace detail

/// Prints the elements as NumPy does; of more than 1000 the edges. Waits for the work that writes them, and throws what
/// it failed with.
inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << detail::printed(tensor); }

}  // namespace compute

#endif  // COMPUTE_PRINT_HPP_
