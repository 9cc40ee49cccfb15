// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops.hpp"

namespace compute::oracle {

namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

// log(sum(exp(x))) of some elements, as a difference from the greatest.
struct Exponentials {
  Real greatest = -kInfinity;  // 0 if it is not finite
  Real sum = 0;                // of exp(x - greatest)
  Real weight = 0;             // the mean of |x - greatest|, weighted by exp(x - greatest)

  explicit Exponentials(const std::vector<Real>& terms, bool keeps_infinity) {
    bool has_nan = false;
    for (const Real x : terms) {
      has_nan = has_nan || std::isnan(x);
      greatest = std::max(greatest, x);
    }
    if (has_nan) greatest = std::numeric_limits<Real>::quiet_NaN();
    if (!keeps_infinity && !std::isfinite(greatest)) greatest = 0;
    Real moment = 0;
    for (const Real x : terms) {
      const Real e = std::exp(x - greatest);
      sum += e;
      if (e > 0) moment += e * std::fabs(x - greatest);
    }
    weight = std::isfinite(moment) && sum > 0 ? moment / sum : 0;
  }
};

// What a difference x - greatest, rounded once, adds to the relative error of its exponential, in units of u.
Real exponent_error(Real difference) { return std::isfinite(difference) ? std::fabs(difference) : 0; }

Result softmax(const Array& x, const Attributes& attributes, bool logarithm) {
  const int64_t given = integer_or(attributes, "axis", -1);
  const auto axis = static_cast<size_t>(given < 0 ? given + x.rank() : given);
  Result result;
  result.dtype = x.dtype();
  result.shape = x.shape();
  result.terms = x.shape()[axis];
  result.accumulator = computed_in(x.dtype());
  result.elements.resize(static_cast<size_t>(x.size()));
  int64_t inner = 1, outer = 1;
  for (size_t i = 0; i < x.shape().size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : x.shape()[i];
  const std::vector<Value> values = x.values();
  const int64_t extent = x.shape()[axis];
  for (int64_t row = 0; row < outer * inner; ++row) {
    const auto at = [&](int64_t i) { return static_cast<size_t>((row / inner * extent + i) * inner + row % inner); };
    std::vector<Real> terms;
    for (int64_t i = 0; i < extent; ++i) terms.push_back(values[at(i)].re);
    const Exponentials all(terms, true);
    for (int64_t i = 0; i < extent; ++i) {
      Element& e = result.elements[at(i)];
      const Real difference = terms[static_cast<size_t>(i)] - all.greatest;
      e.open = kSigns | kFlushed;
      if (logarithm) {
        e.value = Value::of(difference - std::log(all.sum));
        e.scale = exponent_error(difference) + std::fabs(std::log(all.sum)) + 1 + all.weight;
      } else {
        e.value = Value::of(std::exp(difference) / all.sum);
        e.scale = e.value.re * (2 + exponent_error(difference) + all.weight);
        e.slack = smallest_normal(format(result.accumulator));  // where exponentials are subnormal
      }
      if (!std::isfinite(e.scale)) e.scale = 0;
    }
  }
  return result;
}

}  // namespace

Result reference_softmax(std::span<const Array> inputs, const Attributes& attributes) {
  return softmax(inputs[0], attributes, false);
}
Result reference_log_softmax(std::span<const Array> inputs, const Attributes& attributes) {
  return softmax(inputs[0], attributes, true);
}

Result reference_logsumexp(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  // Kept axes first, then those that are reduced.
  std::vector<bool> reduced(x.shape().size(), true);
  if (const auto axes = attributes.find("axes"); axes != attributes.end()) {
    reduced.assign(x.shape().size(), false);
    for (const int64_t axis : axes->second.integers)
      reduced.at(static_cast<size_t>(axis < 0 ? axis + x.rank() : axis)) = true;
  }
  Result result;
  result.dtype = x.dtype();
  result.accumulator = computed_in(x.dtype());
  int64_t points = 1, results = 1;
  std::vector<int> order, gone;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    (reduced[i] ? points : results) *= x.shape()[i];
    (reduced[i] ? gone : order).push_back(axis);
    if (!reduced[i]) result.shape.push_back(x.shape()[i]);
    if (reduced[i] && integer_or(attributes, "keepdims", 0) != 0) result.shape.push_back(1);
  }
  order.insert(order.end(), gone.begin(), gone.end());
  result.terms = points;
  const std::vector<Value> values = x.permute(order).values();
  for (int64_t row = 0; row < results; ++row) {
    std::vector<Real> terms;
    for (int64_t i = 0; i < points; ++i) terms.push_back(values[static_cast<size_t>(row * points + i)].re);
    const Exponentials all(terms, false);
    Element& e = result.elements.emplace_back();
    e.value = Value::of(points == 0 ? -kInfinity : all.greatest + std::log(all.sum));
    e.scale = std::fabs(all.greatest) + std::fabs(std::log(all.sum)) + 1 + all.weight;
    if (!std::isfinite(e.scale)) e.scale = 0;
    e.open = kSigns | kFlushed;
  }
  return result;
}

}  // namespace compute::oracle
