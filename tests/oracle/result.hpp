// SPDX-License-Identifier: Apache-2.0
// What a reference returns: the wide values, and what else the judge needs.
#pragma once

#include <cstdint>
#include <vector>

#include "array.hpp"

namespace compute::oracle {

/// What the standard (or the table's row) leaves open about one element.
enum Open : uint8_t {
  kReSign = 1,  // the sign of the real part (or of a real result), where that is zero, infinite or NaN
  kImSign = 2,  // the same of the imaginary part
  kSigns = 3,
  kAnyRe = 4,        // the real part altogether
  kAnyIm = 8,        // the imaginary part altogether
  kAny = 12,         // the whole element
  kNotFinite = 16,   // any value with an infinite or NaN part
  kOneUlp = 32,      // one ULP in addition to the bound
  kExactParts = 64,  // a complex result that is correctly rounded part by part, whatever the row's bound
  kFlushed = 128,    // zero for a part that is subnormal in the computed dtype
};

struct Element {
  Value value;
  uint8_t open = 0;
  Real scale = 0;  // elementwise: ULPs are those at max(|value|, scale). Adding ops: the sum of the terms' moduli
  Real slack = 0;  // an absolute error allowed in addition to the bound
};

struct Result {
  Dtype dtype = dtype::FLOAT32;
  Shape shape;
  std::vector<Element> elements;  // row-major
  /// Adding ops: the number of terms of an element, and the dtype in which they are accumulated.
  int64_t terms = 0;
  Dtype accumulator = dtype::FLOAT32;
  /// How many u of the accumulator one term may err by: more than 1 where each term takes a complex product.
  Real roundings = 1;
  /// The outputs after the first, of an op with several.
  std::vector<Result> more = {};
  /// For devices that flush: the elements that follow from operands whose subnormal numbers are zero. They are right
  /// too. Empty: no operand has such a number.
  std::vector<Element> flushed = {};
};

}  // namespace compute::oracle
