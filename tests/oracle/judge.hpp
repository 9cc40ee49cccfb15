// SPDX-License-Identifier: Apache-2.0
// Judges a device's result element by element against a reference.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "result.hpp"

namespace compute::oracle {

/// The error that an op may have.
struct Bound {
  enum Kind {
    EXACT,  // correctly rounded in the result's dtype
    ULP,    // `ulp` units of the dtype computed in; 0: correctly rounded there
    TERMS,  // n u sum|terms| and one rounding
    LOG2,   // (log2(n) + 8) u sum|terms| and one rounding
  } kind = EXACT;
  Real ulp = 0;

  /// "exact", "n", "log2", "backward" or "ulp:N"; throws std::invalid_argument for other texts.
  static Bound parse(std::string_view text);
};

struct Verdict {
  int64_t failures = 0;
  int64_t judged = 0;   // elements about which something was stated
  int64_t first = -1;   // row-major position of the first failure
  Real worst = 0;       // the greatest error as a fraction of the allowed one
  std::string message;  // the first failure in words; "" if there is none

  bool passed() const { return failures == 0; }
};

/// `actual` has to agree with `expected` in dtype and shape and, element by element, within `bound`. NaN agrees with
/// NaN, an infinity with one of the same sign, a zero with one of the same sign where the reference states the sign.
Verdict judge(const Array& actual, const Result& expected, const Bound& bound);

/// Leaves results open for devices that flush subnormal float32 numbers: zero for a subnormal result, and anything if
/// an operand of an elementwise op is subnormal.
void open_flushed(Result& expected, std::span<const Array> operands, bool is_elementwise);
/// Replaces subnormal numbers by zeros where the array is computed in float32. Whether there were any.
bool flush_subnormals(Array& array);

std::string describe(const Shape& shape);
std::string describe(Dtype dtype, const Value& value);

}  // namespace compute::oracle
