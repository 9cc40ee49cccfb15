// SPDX-License-Identifier: Apache-2.0
// float8 as the oracle sees it: the numbers of all codes by their definition, and rounding by a search among them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/oracle/dtype.hpp"

namespace compute::oracle {

struct Float8 {
  Dtype id;
  const char* name;
  int mantissa;
  int bias;
  bool has_infinity;

  /// The code of the greatest number.
  int last() const { return has_infinity ? (1 << 7) - (1 << mantissa) - 1 : 126; }
  uint8_t nan() const { return has_infinity ? 0x7e : 0x7f; }

  Real value(int code) const {
    const int magnitude = code & 0x7f, exponent = magnitude >> mantissa, fraction = magnitude % (1 << mantissa);
    Real x = exponent == 0 ? std::ldexp(static_cast<Real>(fraction), 1 - bias - mantissa)
                           : std::ldexp(static_cast<Real>(fraction + (1 << mantissa)), exponent - bias - mantissa);
    if (magnitude > last()) {
      x = has_infinity && magnitude == last() + 1 ? std::numeric_limits<Real>::infinity()
                                                  : std::numeric_limits<Real>::quiet_NaN();
    }
    return std::copysign(x, code & 0x80 ? -1.0L : 1.0L);
  }

  /// To nearest, ties to the even code, as if the numbers went on after the last one; what is rounded to one of those
  /// is infinity, or NaN.
  uint8_t code(Real x) const {
    const auto sign = static_cast<uint8_t>(std::signbit(x) ? 0x80 : 0);
    if (std::isnan(x)) return sign | nan();
    const Real size = std::fabs(x), step = value(last()) - value(last() - 1);
    int below = 0;
    while (below < last() && value(below + 1) <= size) ++below;
    const Real next = below == last() ? value(below) + step : value(below + 1);
    const Real up = next - size, down = size - value(below);
    int found = down < up || (down == up && below % 2 == 0) ? below : below + 1;
    if (size >= next) found = below + 1;
    if (found > last()) found = has_infinity ? last() + 1 : nan();
    return static_cast<uint8_t>(sign | found);
  }
};

inline constexpr Float8 kE4m3fn{16, "float8_e4m3fn", 3, 7, false};
inline constexpr Float8 kE5m2{17, "float8_e5m2", 2, 15, true};

}  // namespace compute::oracle
