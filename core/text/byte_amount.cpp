// SPDX-License-Identifier: Apache-2.0
#include "core/text/byte_amount.hpp"

#include <charconv>
#include <cmath>
#include <system_error>

#include "core/text/ascii.hpp"
#include "core/text/printable.hpp"

namespace compute {

int64_t ByteAmount::of(int64_t total_bytes) const {
  return fraction > 0 ? static_cast<int64_t>(fraction * static_cast<double>(total_bytes)) : size_bytes;
}

std::optional<ByteAmount> parse_byte_amount(std::string_view text, std::string* out_reason) {
  const auto refuse = [&](const std::string& why) -> std::optional<ByteAmount> {
    *out_reason = in_quotes(text) + why;
    return std::nullopt;
  };
  double number = 0;
  const char* end = text.data() + text.size();
  // from_chars takes "inf", "nan" and signs too; the first character settles that
  if (text.empty() || !is_digit(text.front()))
    return refuse(" is not a size; expected a value such as 4G, 512M or 30%");
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc()) return refuse(" is too large");
  const std::string unit = to_lower({rest, static_cast<size_t>(end - rest)});
  ByteAmount result;
  if (unit == "%") {
    if (!(number > 0 && number <= 100)) return refuse(" is outside (0%, 100%]");
    result.fraction = number / 100;
    return result;
  }
  static constexpr std::string_view kUnits = "kmgt";
  int exponent = 0;
  if (!unit.empty() && unit != "b") {
    const size_t place = kUnits.find(unit.front());
    const std::string_view tail = std::string_view(unit).substr(1);
    if (place == std::string_view::npos || (!tail.empty() && tail != "b" && tail != "ib")) {
      return refuse(" is not a size; the units are K, M, G, T and %");
    }
    exponent = 10 * static_cast<int>(place + 1);
  }
  const std::string_view digits(text.data(), static_cast<size_t>(rest - text.data()));
  if (unit.empty() && digits.find('.') != std::string_view::npos) {
    if (!(number > 0 && number <= 1)) return refuse(" is not a fraction in (0, 1]; a number of bytes must be whole");
    result.fraction = number;
    return result;
  }
  if (exponent == 0) {
    // read again as an integer: exact beyond 2^53
    const auto [last, whole_error] = std::from_chars(text.data(), end, result.size_bytes);
    if (whole_error != std::errc()) return refuse(" is too large");
    if (last != rest) return refuse(" is not a whole number of bytes");
    return result;
  }
  const double size_bytes = std::ldexp(number, exponent);
  if (!(size_bytes < 0x1p63)) return refuse(" is too large");
  result.size_bytes = static_cast<int64_t>(size_bytes);
  return result;
}

}  // namespace compute
