// SPDX-License-Identifier: Apache-2.0
// The primitives scan and sort as parts of decompositions, and their replacements if a plugin lacks them.
#pragma once

#include <cstdint>

#include "core/ops/steps.hpp"

namespace compute {

// Which of the two a plugin runs. A rule's alternatives try all of them in this order: both, scan alone, sort alone,
// none.
struct NativeParts {
  bool scan = true;
  bool sort = true;
};
inline constexpr int32_t kPartAlternatives = 4;
NativeParts native_parts(int32_t alternative);

struct Scan {
  const char* kind;           // sum, prod, min or max; immortal
  compute_dtype accumulator;  // x is converted to it, and results from it
  int32_t axis = 0;
  bool exclusive = false;
  bool reverse = false;
};
// x and y have one shape.
void scan(Steps& steps, const Scan& scan, const StepOperand& x, const StepOperand& y, bool is_native);

// The shape of the first input.
std::vector<int64_t> shape_of(const OpCall& call);

// A stable sort along `axis`, NaN last. `values` (of x's dtype) or `indices` (int64) may be absent, but not both.
void sort(Steps& steps, const StepOperand& x, int32_t axis, bool descending, const StepOperand& values,
          const StepOperand& indices, bool is_native);

// The value that `kind` leaves every other unchanged with.
ScalarBits identity_of(const char* kind, compute_dtype dtype);

// Sets positions to those along `axis`.
void fill_with_positions(Steps& steps, const StepOperand& positions, int32_t axis);

}  // namespace compute
