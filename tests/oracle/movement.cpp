// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "ops.hpp"

namespace compute::oracle {

namespace {

Result unchanged(Dtype dtype, Shape shape) {
  Result result;
  result.dtype = dtype;
  result.accumulator = computed_in(dtype);
  result.shape = std::move(shape);
  result.elements.resize(static_cast<size_t>(element_count(result.shape)));
  return result;
}

size_t axis_of(const Attributes& attributes, int64_t fallback, int rank) {
  const int64_t axis = integer_or(attributes, "axis", fallback);
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

Shape indices_of(int64_t position, const Shape& shape) {
  Shape indices(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    indices[i] = position % shape[i];
    position /= shape[i];
  }
  return indices;
}

int64_t position_of(const Shape& indices, const Shape& shape) {
  int64_t position = 0;
  for (size_t i = 0; i < shape.size(); ++i) position = position * shape[i] + indices[i];
  return position;
}

int64_t counted(Integer index, int64_t extent) {
  if (index < -extent || index >= extent) throw std::invalid_argument("index out of range");
  return static_cast<int64_t>(index < 0 ? index + extent : index);
}

Dtype promoted(std::span<const Array> inputs) {
  Dtype dtype = inputs[0].dtype();
  for (const Array& x : inputs) dtype = promote(dtype, x.dtype());
  return dtype;
}

}  // namespace

Value convert(Dtype from, Dtype to, const Value& value) {
  if (from == to) return value;
  if (is_bool(to)) return Value::of(is_inexact(from) ? value.re != 0 || value.im != 0 : value.integer != 0);
  if (is_integer(to)) {
    if (!is_inexact(from)) return Value::of(wrap(to, static_cast<Bits>(value.integer)));
    if (std::isnan(value.re)) return {};
    // The limits are compared as long double, which holds every 64-bit integer.
    const Real x = std::trunc(value.re);
    if (x <= static_cast<Real>(integer_min(to))) return Value::of(integer_min(to));
    if (x >= static_cast<Real>(integer_max(to))) return Value::of(integer_max(to));
    return Value::of(static_cast<Integer>(x));
  }
  const Real re = is_inexact(from) ? value.re : static_cast<Real>(value.integer);
  const Format f = format(to);
  return {0, round_to(f, re), is_complex(to) ? round_to(f, value.im) : 0};
}

Result reference_cast(std::span<const Array> inputs, const Attributes& attributes) {
  const auto dtype = static_cast<Dtype>(integer_or(attributes, "dtype", 0));
  Result result = unchanged(dtype, inputs[0].shape());
  for (int64_t i = 0; i < inputs[0].size(); ++i) {
    result.elements[static_cast<size_t>(i)] = {convert(inputs[0].dtype(), dtype, inputs[0].at(i)), kExactParts};
  }
  return result;
}

Result reference_copy(std::span<const Array> inputs, const Attributes&) {
  return reference_cast(inputs, {{"dtype", Attribute(int64_t{inputs[0].dtype()})}});
}

Result reference_concat(std::span<const Array> inputs, const Attributes& attributes) {
  const size_t axis = axis_of(attributes, 0, inputs[0].rank());
  Shape shape = inputs[0].shape();
  shape.at(axis) = 0;
  for (const Array& x : inputs) shape[axis] += x.shape()[axis];
  Result result = unchanged(promoted(inputs), shape);
  int64_t start = 0;
  for (const Array& x : inputs) {
    for (int64_t i = 0; i < x.size(); ++i) {
      Shape indices = indices_of(i, x.shape());
      indices[axis] += start;
      result.elements[static_cast<size_t>(position_of(indices, shape))] = {convert(x.dtype(), result.dtype, x.at(i)),
                                                                           kExactParts};
    }
    start += x.shape()[axis];
  }
  return result;
}

Result reference_stack(std::span<const Array> inputs, const Attributes& attributes) {
  const size_t axis = axis_of(attributes, 0, inputs[0].rank() + 1);
  std::vector<Array> expanded;
  for (const Array& x : inputs) expanded.push_back(x.expand(static_cast<int>(axis)));
  return reference_concat(expanded, {{"axis", Attribute(static_cast<int64_t>(axis))}});
}

Result reference_take(std::span<const Array> inputs, const Attributes& attributes) {
  const Array &x = inputs[0], &indices = inputs[1];
  const size_t axis = axis_of(attributes, 0, x.rank());
  const auto split = static_cast<std::ptrdiff_t>(axis);
  Shape shape(x.shape().begin(), x.shape().begin() + split);
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), x.shape().begin() + split + 1, x.shape().end());
  Result result = unchanged(x.dtype(), shape);
  for (size_t i = 0; i < result.elements.size(); ++i) {
    const Shape at = indices_of(static_cast<int64_t>(i), shape);
    const auto middle = at.begin() + split, end = middle + indices.rank();
    Shape from(at.begin(), middle);
    from.push_back(counted(indices.at(position_of(Shape(middle, end), indices.shape())).integer, x.shape()[axis]));
    from.insert(from.end(), end, at.end());
    result.elements[i] = {x.at(position_of(from, x.shape())), kExactParts};
  }
  return result;
}

Result reference_take_along_axis(std::span<const Array> inputs, const Attributes& attributes) {
  const size_t axis = axis_of(attributes, -1, inputs[0].rank());
  Array x = inputs[0], indices = inputs[1];
  // Both broadcast over the other axes.
  Shape other_x = x.shape(), other_indices = indices.shape();
  other_x.at(axis) = other_indices.at(axis) = 1;
  Shape shape = broadcast(other_x, other_indices), shape_x = shape;
  shape[axis] = indices.shape()[axis];
  shape_x[axis] = x.shape()[axis];
  x = x.broadcast_to(shape_x);
  indices = indices.broadcast_to(shape);
  Result result = unchanged(x.dtype(), shape);
  for (size_t i = 0; i < result.elements.size(); ++i) {
    Shape from = indices_of(static_cast<int64_t>(i), shape);
    from[axis] = counted(indices.at(static_cast<int64_t>(i)).integer, shape_x[axis]);
    result.elements[i] = {x.at(position_of(from, shape_x)), kExactParts};
  }
  return result;
}

Result reference_roll(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const size_t axis = axis_of(attributes, -1, x.rank());
  const int64_t shift = integer_or(attributes, "shift", 0);
  Result result = unchanged(x.dtype(), x.shape());
  for (int64_t i = 0; i < x.size(); ++i) {
    Shape to = indices_of(i, x.shape());
    const int64_t extent = x.shape()[axis];
    to[axis] = ((to[axis] + shift) % extent + extent) % extent;
    result.elements[static_cast<size_t>(position_of(to, x.shape()))] = {x.at(i), kExactParts};
  }
  return result;
}

Result reference_repeat(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const size_t axis = axis_of(attributes, -1, x.rank());
  const int64_t repeats = integer_or(attributes, "repeats", 1);
  Shape shape = x.shape();
  shape[axis] *= repeats;
  Result result = unchanged(x.dtype(), shape);
  for (size_t i = 0; i < result.elements.size(); ++i) {
    Shape from = indices_of(static_cast<int64_t>(i), shape);
    from[axis] /= repeats;
    result.elements[i] = {x.at(position_of(from, x.shape())), kExactParts};
  }
  return result;
}

Result reference_tile(std::span<const Array> inputs, const Attributes& attributes) {
  Shape counts = attributes.find("repetitions")->second.integers, shape = inputs[0].shape();
  while (counts.size() < shape.size()) counts.insert(counts.begin(), 1);
  while (shape.size() < counts.size()) shape.insert(shape.begin(), 1);
  const Shape tile = shape;
  for (size_t i = 0; i < shape.size(); ++i) shape[i] *= counts[i];
  Result result = unchanged(inputs[0].dtype(), shape);
  for (size_t i = 0; i < result.elements.size(); ++i) {
    Shape from = indices_of(static_cast<int64_t>(i), shape);
    for (size_t k = 0; k < from.size(); ++k) from[k] %= tile[k];
    result.elements[i] = {inputs[0].at(position_of(from, tile)), kExactParts};
  }
  return result;
}

// ONNX ScatterElements. With repeated indices "set" keeps the last update in row-major order, which a device promises
// only with deterministic = 1. Sums and products are judged by the number of updates, the first term being x itself.
Result reference_scatter(std::span<const Array> inputs, const Attributes& attributes) {
  const Array &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
  const size_t axis = axis_of(attributes, 0, x.rank());
  const auto found = attributes.find("reduction");
  const std::string reduction = found == attributes.end() ? "set" : found->second.text;
  Result result = unchanged(x.dtype(), x.shape());
  if (reduction == "mul" && is_complex(x.dtype())) result.roundings = 4;  // the bound of the intrinsic mul
  std::vector<int64_t> terms(result.elements.size(), 1);
  for (int64_t i = 0; i < x.size(); ++i) {
    Element& e = result.elements[static_cast<size_t>(i)];
    e.value = x.at(i);
    e.scale = std::hypot(e.value.re, e.value.im);
    e.open = kExactParts;
  }
  for (int64_t i = 0; i < updates.size(); ++i) {
    Shape to = indices_of(i, updates.shape());
    to[axis] = counted(indices.at(i).integer, x.shape()[axis]);
    const auto position = static_cast<size_t>(position_of(to, x.shape()));
    Element& e = result.elements[position];
    const Value u = updates.at(i);
    const Real modulus = std::hypot(u.re, u.im);
    ++terms[position];
    if (reduction == "set") {
      e.value = u;
    } else if (reduction == "add") {
      e.value.integer = wrap(x.dtype(), static_cast<Bits>(e.value.integer) + static_cast<Bits>(u.integer));
      e.value.re += u.re;
      e.value.im += u.im;
      e.scale += modulus;
      e.open = kSigns;
    } else if (reduction == "mul") {
      e.value.integer = wrap(x.dtype(), static_cast<Bits>(e.value.integer) * static_cast<Bits>(u.integer));
      const Complex z = e.value.complex();
      e.value.re = is_complex(x.dtype()) ? z.real() * u.re - z.imag() * u.im : z.real() * u.re;
      e.value.im = is_complex(x.dtype()) ? z.real() * u.im + z.imag() * u.re : 0;
      e.scale = std::hypot(e.value.re, e.value.im);
      e.open = kSigns;
    } else {
      const bool greatest = reduction == "max";
      e.open |= kSigns;
      if (is_float(x.dtype())) {
        if (std::isnan(u.re) || (greatest ? u.re > e.value.re : u.re < e.value.re)) e.value.re = u.re;
      } else if (greatest ? u.integer > e.value.integer : u.integer < e.value.integer) {
        e.value.integer = u.integer;
      }
    }
  }
  for (int64_t count : terms) result.terms = std::max(result.terms, count);
  return result;
}

}  // namespace compute::oracle
