// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops.hpp"

namespace compute::oracle {

namespace {

// A number attribute keeps its kind: an integer keeps all its bits.
struct Number {
  bool is_integer;
  Integer integer;
  Complex value;
};

Number number(const Attributes& attributes, std::string_view name, int64_t fallback) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return {true, fallback, static_cast<Real>(fallback)};
  if (!found->second.integers.empty()) {
    const int64_t x = found->second.integers[0];
    return {true, x, static_cast<Real>(x)};
  }
  const std::complex<double> z = found->second.numbers.at(0);
  return {false, 0, Complex(z.real(), z.imag())};
}

Result made(const Attributes& attributes, Shape shape) {
  Result result;
  result.dtype = static_cast<Dtype>(integer_or(attributes, "dtype", 0));
  result.accumulator = computed_in(result.dtype);
  result.shape = std::move(shape);
  result.elements.resize(static_cast<size_t>(element_count(result.shape)));
  return result;
}

Value converted(const Number& x, Dtype dtype) {
  if (x.is_integer && !is_inexact(dtype)) return convert(dtype::INT64, dtype, Value::of(x.integer));
  return convert(dtype::COMPLEX128, dtype, Value::of(x.value));
}

}  // namespace

Result reference_fill(std::span<const Array>, const Attributes& attributes) {
  const auto shape = attributes.find("shape");
  Result result = made(attributes, shape == attributes.end() ? Shape{} : shape->second.integers);
  const Value value = converted(number(attributes, "value", 0), result.dtype);
  for (Element& e : result.elements) e = {value, kExactParts};
  return result;
}

Result reference_eye(std::span<const Array>, const Attributes& attributes) {
  const int64_t rows = integer_or(attributes, "rows", 0), columns = integer_or(attributes, "columns", 0);
  const int64_t k = integer_or(attributes, "k", 0);
  Result result = made(attributes, {rows, columns});
  for (int64_t i = 0; i < rows * columns; ++i) {
    const int64_t one = i % columns - i / columns == k;
    result.elements[static_cast<size_t>(i)] = {
        convert(dtype::INT64, result.dtype, Value::of(static_cast<Integer>(one))), kExactParts};
  }
  return result;
}

// Floats: the product and the sum may round in float64 each, so ULPs are measured at the larger of the two terms.
Result reference_arange(std::span<const Array>, const Attributes& attributes) {
  const Number start = number(attributes, "start", 0), step = number(attributes, "step", 1);
  Result result = made(attributes, {integer_or(attributes, "size", 0)});
  for (size_t i = 0; i < result.elements.size(); ++i) {
    Element& e = result.elements[i];
    const auto n = static_cast<Integer>(i);
    if (start.is_integer && step.is_integer && !is_inexact(result.dtype)) {
      e.value = Value::of(wrap(result.dtype, static_cast<Bits>(start.integer + n * step.integer)));
      continue;
    }
    const Complex value = start.value + static_cast<Real>(i) * step.value;
    e.open = kSigns;
    if (!is_inexact(result.dtype)) {
      e.value = convert(dtype::COMPLEX128, result.dtype, Value::of(value));
      continue;
    }
    e.value = is_complex(result.dtype) ? Value::of(value) : Value::of(value.real());
    e.scale = std::max(std::hypot(start.value.real(), start.value.imag()),
                       static_cast<Real>(i) * std::hypot(step.value.real(), step.value.imag()));
  }
  return result;
}

Result reference_linspace(std::span<const Array>, const Attributes& attributes) {
  const Number start = number(attributes, "start", 0), stop = number(attributes, "stop", 0);
  const int64_t size = integer_or(attributes, "size", 0);
  const bool endpoint = integer_or(attributes, "endpoint", 1) != 0;
  Result result = made(attributes, {size});
  const auto intervals = static_cast<Real>(std::max<int64_t>(endpoint ? size - 1 : size, 1));
  for (int64_t i = 0; i < size; ++i) {
    Element& e = result.elements[static_cast<size_t>(i)];
    const bool last = endpoint && size > 1 && i == size - 1;
    const Complex value =
        last ? stop.value : start.value + (stop.value - start.value) * (static_cast<Real>(i) / intervals);
    e.open = kSigns;
    if (!is_inexact(result.dtype)) {
      e.value = convert(dtype::COMPLEX128, result.dtype, Value::of(value));
      continue;
    }
    e.value = is_complex(result.dtype) ? Value::of(value) : Value::of(value.real());
    e.scale =
        std::max(std::hypot(start.value.real(), start.value.imag()), std::hypot(stop.value.real(), stop.value.imag()));
    if (last) e.scale = 0;
  }
  return result;
}

}  // namespace compute::oracle
