// SPDX-License-Identifier: Apache-2.0
// Numbers with the error that a computation in the accumulator's precision may have: a running error analysis, with u
// for each rounding. References of ops that combine several steps are written over them.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "ops.hpp"

namespace compute::oracle {

/// A value, and the error allowed to it in units of u.
struct Tracked {
  Real value = 0;
  Real error = 0;

  Tracked() = default;
  Tracked(Real exact) : value(exact) {}  // NOLINT: implicit on purpose
  Tracked(Real v, Real e) : value(v), error(e + std::fabs(v)) {}
};

inline Tracked operator+(const Tracked& a, const Tracked& b) { return {a.value + b.value, a.error + b.error}; }
inline Tracked operator-(const Tracked& a, const Tracked& b) { return {a.value - b.value, a.error + b.error}; }
inline Tracked operator*(const Tracked& a, const Tracked& b) {
  return {a.value * b.value, std::fabs(a.value) * b.error + std::fabs(b.value) * a.error};
}
inline Tracked operator/(const Tracked& a, const Tracked& b) {
  const Real v = a.value / b.value;
  return {v, (a.error + std::fabs(v) * b.error) / std::fabs(b.value)};
}
inline Tracked exp(const Tracked& a) {
  const Real v = std::exp(a.value);
  return {v, std::fabs(v) * (a.error + 2)};
}
inline Tracked log(const Tracked& a) {
  const Real v = std::log(a.value);
  return {v, a.error / std::fabs(a.value) + 4 * std::fabs(v)};
}
inline Tracked sqrt(const Tracked& a) {
  const Real v = std::sqrt(a.value);
  return {v, v > 0 ? a.error / (2 * v) : 0};
}
/// The sum of few or many terms, in any order of blocks: (log2(n) + 8) u sum|terms| plus the errors of the terms.
class Sum {
 public:
  void add(const Tracked& term) {
    const Real next = value_ + term.value;
    lost_ += std::fabs(value_) >= std::fabs(term.value) ? (value_ - next) + term.value : (term.value - next) + value_;
    value_ = next;
    error_ += term.error;
    moduli_ += std::fabs(term.value);
    ++count_;
  }
  Tracked total() const {
    Tracked result;
    result.value = std::isfinite(value_) ? value_ + lost_ : value_;
    result.error = error_ + moduli_ * (std::log2(std::max<Real>(1, static_cast<Real>(count_))) + 8);
    return result;
  }

 private:
  Real value_ = 0, error_ = 0, moduli_ = 0, lost_ = 0;
  int64_t count_ = 0;
};
inline Tracked sum(const std::vector<Tracked>& terms) {
  Sum sum;
  for (const Tracked& term : terms) sum.add(term);
  return sum.total();
}

/// A dense row-major array of them.
struct Field {
  Shape shape;
  std::vector<Tracked> values;

  Field() = default;
  explicit Field(Shape extents) : shape(std::move(extents)) {
    int64_t size = 1;
    for (const int64_t extent : shape) size *= extent;
    values.resize(static_cast<size_t>(size));
  }
  explicit Field(const Array& x) : Field(x.shape()) {
    for (int64_t i = 0; i < x.size(); ++i) {
      const Value v = x.at(i);
      values[static_cast<size_t>(i)] = is_inexact(x.dtype()) ? v.re : static_cast<Real>(v.integer);
    }
  }
  size_t place(std::span<const int64_t> index) const {
    int64_t position = 0;
    for (size_t i = 0; i < shape.size(); ++i) position = position * shape[i] + index[i];
    return static_cast<size_t>(position);
  }
  size_t place(std::initializer_list<int64_t> index) const { return place(std::span(index.begin(), index.size())); }
  Tracked& operator[](std::span<const int64_t> index) { return values[place(index)]; }
  const Tracked& operator[](std::span<const int64_t> index) const { return values[place(index)]; }
  Tracked& operator[](std::initializer_list<int64_t> index) { return values[place(index)]; }
  const Tracked& operator[](std::initializer_list<int64_t> index) const { return values[place(index)]; }
  /// The elements from `index` on, whose last coordinate is 0.
  const Tracked* row(std::initializer_list<int64_t> index) const { return values.data() + place(index); }
};

/// Calls `f` with each index of `shape`, row-major.
inline void for_each_index(const Shape& shape, const std::function<void(const Shape&)>& f) {
  for (const int64_t extent : shape)
    if (extent == 0) return;
  Shape index(shape.size(), 0);
  for (;;) {
    f(index);
    size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

/// A result of bound log2: the errors are exactly what the judge allows, with one more rounding.
inline Result tracked_result(Dtype dtype, const Field& field, Dtype accumulator) {
  Result result;
  result.dtype = dtype;
  result.shape = field.shape;
  result.terms = 1;
  result.accumulator = accumulator;
  for (const Tracked& each : field.values) {
    Element& e = result.elements.emplace_back();
    e.value = Value::of(each.value);
    e.scale = std::isfinite(each.error) ? each.error / 8 : 0;
    e.open = kSigns | kFlushed;
  }
  return result;
}

/// Whether an optional input is there.
inline bool is_given(std::span<const Array> inputs, size_t index) {
  return index < inputs.size() && (inputs[index].rank() > 0 || inputs[index].size() > 0);
}

inline size_t axis_of(const Attributes& attributes, const char* name, int64_t fallback, size_t rank) {
  const int64_t axis = integer_or(attributes, name, fallback);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

}  // namespace compute::oracle
