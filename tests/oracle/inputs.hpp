// SPDX-License-Identifier: Apache-2.0
// Inputs with fixed seeds: special values, values near a function's edges, all binades, and the range where it is used.
#pragma once

#include <string_view>
#include <vector>

#include "array.hpp"

namespace compute::oracle {

/// A generator (splitmix64) that gives the same numbers for a seed with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits();
  /// In [0, bound).
  uint64_t below(uint64_t bound) { return bits() % bound; }
  /// In [0, 1), of 53 bits.
  Real unit() { return static_cast<Real>(bits() >> 11) * 0x1p-53L; }
  Real uniform(Real low, Real high) { return low + (high - low) * unit(); }

 private:
  uint64_t state_;
};

/// Zeros, infinities, NaN, subnormals, extremes, halves and neighbours of 1 for floats; the extremes and small numbers
/// for integers; all pairs of a choice of them for complex numbers.
std::vector<Value> special_values(Dtype dtype);

/// Makes the operands of an elementwise op. Same-shape operands that are long enough hold every combination of special
/// values (and of the op's edges) first; the rest is a mix of them with random values of every binade and of the op's
/// range.
class Inputs {
 public:
  explicit Inputs(uint64_t seed) : random_(seed) {}

  Array operand(std::string_view op, int index, int arity, Dtype dtype, const Shape& shape);

  /// The number of elements that hold all combinations of special values of `arity` operands.
  static int64_t combinations(std::string_view op, int arity, Dtype dtype);

  /// Uniform values in [low, high], rounded to the dtype; complex ones in both parts. Integers include the ends.
  Array uniform(Dtype dtype, const Shape& shape, Real low, Real high);
  /// As uniform, with some special values in between.
  Array with_specials(Dtype dtype, const Shape& shape, Real low, Real high);
  /// Indices in [-extent, extent), or in [0, extent).
  Array indices(Dtype dtype, const Shape& shape, int64_t extent, bool negative);
  /// Every value of a dtype of one or two bytes, bool excepted; NaN once per sign.
  static Array exhaustive(Dtype dtype);

  Random& random() { return random_; }

 private:
  Value random_value(std::string_view op, int index, Dtype dtype);

  Random random_;
};

}  // namespace compute::oracle
