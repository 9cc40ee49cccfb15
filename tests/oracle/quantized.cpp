// SPDX-License-Identifier: Apache-2.0
// quantize, dequantize and quantized_matmul, from the layout of packed numbers. What the first two compute in float32
// is computed in float here: these results are exact.
#include <algorithm>
#include <cmath>

#include "tracked.hpp"

namespace compute::oracle {

namespace {

float number(const Array& x, int64_t position) { return static_cast<float>(x.at(position).re); }
float rounded(Dtype dtype, float x) { return static_cast<float>(round_to(format(dtype), x)); }

struct Packing {
  int64_t bits, group, k;

  Packing(const Attributes& attributes, int64_t k)
      : bits(integer_or(attributes, "bits", 4)), group(integer_or(attributes, "group_size", 32)), k(k) {}

  int64_t bytes() const { return (k + 31) / 32 * 4 * bits; }
  int64_t groups() const { return (k + group - 1) / group; }
  float levels() const { return static_cast<float>((1 << bits) - 1); }
  float middle() const { return static_cast<float>(1 << (bits - 1)); }
  // The byte of element i in a row, and how far its bits are shifted in it.
  int64_t byte(int64_t i) const { return bits == 8 ? i : i / 32 * 16 + i % 16; }
  int shift(int64_t i) const { return bits == 8 ? 0 : static_cast<int>(i / 16 % 2 * 4); }
};

// scale q + offset, computed in T.
template <class T>
struct Weight {
  T value, part, offset;
};

// Rows of packed numbers: packed, scales and offsets? are the inputs from `first` on.
class Weights {
 public:
  Weights(std::span<const Array> inputs, size_t first, const Packing& packing)
      : packed_(inputs[first]),
        scales_(inputs[first + 1]),
        offsets_(is_given(inputs, first + 2) ? inputs[first + 2] : Array()),
        has_offsets_(is_given(inputs, first + 2)),
        packing_(packing) {}

  template <class T>
  Weight<T> at(int64_t row, int64_t i) const {
    const auto byte = static_cast<int>(packed_.at(row * packing_.bytes() + packing_.byte(i)).integer);
    const auto q = static_cast<T>(byte >> packing_.shift(i) & ((1 << packing_.bits) - 1));
    const int64_t group = row * packing_.groups() + i / packing_.group;
    const auto scale = static_cast<T>(scales_.at(group).re), middle = static_cast<T>(packing_.middle());
    if (!has_offsets_) return {scale * (q - middle), scale * q, -middle * scale};
    const T part = scale * q, offset = static_cast<T>(offsets_.at(group).re);
    return {part + offset, part, offset};
  }

 private:
  Array packed_, scales_, offsets_;
  bool has_offsets_;
  Packing packing_;
};

Result made(Dtype dtype, Shape shape, int64_t last) {
  shape.back() = last;
  Result result;
  result.dtype = dtype;
  result.shape = shape;
  result.elements.resize(static_cast<size_t>(element_count(shape)));
  return result;
}

}  // namespace

Result reference_dequantize(std::span<const Array> inputs, const Attributes& attributes) {
  const Shape& shape = inputs[0].shape();
  const int64_t size = integer_or(attributes, "size", 0);
  const Packing packing(attributes, size > 0 ? size : shape.back() / (4 * integer_or(attributes, "bits", 4)) * 32);
  const Weights weights(inputs, 0, packing);
  const auto dtype = static_cast<Dtype>(integer_or(attributes, "dtype", inputs[1].dtype()));
  Result result = made(dtype, shape, packing.k);
  for (size_t i = 0; i < result.elements.size(); ++i) {
    const auto position = static_cast<int64_t>(i);
    const int64_t row = position / packing.k, column = position % packing.k;
    const Real value = dtype == dtype::FLOAT64 ? Real{weights.at<double>(row, column).value}
                                               : Real{weights.at<float>(row, column).value};
    result.elements[i] = {Value::of(value), kSigns};
  }
  return result;
}

Result reference_quantize(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const Packing packing(attributes, x.shape().back());
  const bool symmetric = integer_or(attributes, "symmetric", 0) != 0;
  const auto dtype =
      static_cast<Dtype>(integer_or(attributes, "dtype", x.dtype() == dtype::FLOAT64 ? dtype::FLOAT32 : x.dtype()));
  Result packed = made(dtype::UINT8, x.shape(), packing.bytes()), scales = made(dtype, x.shape(), packing.groups()),
         offsets = scales;
  const int64_t rows = packing.k == 0 ? 0 : x.size() / packing.k;
  for (int64_t group = 0; group < rows * packing.groups(); ++group) {
    const int64_t row = group / packing.groups(), begin = group % packing.groups() * packing.group,
                  end = std::min(begin + packing.group, packing.k);
    float least = number(x, row * packing.k + begin), greatest = least, modulus = std::fabs(least);
    for (int64_t i = begin; i < end; ++i) {
      const float value = number(x, row * packing.k + i);
      least = std::min(least, value);
      greatest = std::max(greatest, value);
      modulus = std::max(modulus, std::fabs(value));
    }
    const float scale =
        rounded(dtype, symmetric ? modulus / (packing.middle() - 1) : (greatest - least) / packing.levels());
    const float offset = rounded(dtype, symmetric ? -packing.middle() * scale : least);
    scales.elements[static_cast<size_t>(group)] = {Value::of(static_cast<Real>(scale)), kSigns};
    offsets.elements[static_cast<size_t>(group)] = {Value::of(static_cast<Real>(offset)), kSigns};
    for (int64_t i = begin; i < end; ++i) {
      const float q = std::nearbyint((number(x, row * packing.k + i) - offset) / scale);
      const int code = std::isnan(q) ? 0 : static_cast<int>(std::clamp(q, 0.0f, packing.levels()));
      packed.elements[static_cast<size_t>(row * packing.bytes() + packing.byte(i))].value.integer +=
          code << packing.shift(i);
    }
  }
  packed.more = {std::move(scales), std::move(offsets)};
  return packed;
}

Result reference_quantized_matmul(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const Dtype dtype = x.dtype();
  const int64_t k = x.shape().back(), n = inputs[1].shape()[0];
  const Weights weights(inputs, 1, Packing(attributes, k));
  std::vector<Weight<Real>> all(static_cast<size_t>(n * k));
  for (int64_t i = 0; i < n * k; ++i) all[static_cast<size_t>(i)] = weights.at<Real>(i / k, i % k);
  const Real rounding = dtype == computed_in(dtype)
                            ? 0
                            : std::ldexp(1.0L, format(computed_in(dtype)).precision - format(dtype).precision);
  Shape shape = x.shape();
  shape.back() = n;
  Field y(shape);
  const int64_t rows = k == 0 ? 0 : x.size() / k;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<Real> values;
    for (int64_t i = 0; i < k; ++i) values.push_back(x.at(row * k + i).re);
    for (int64_t j = 0; j < n; ++j) {
      Tracked& result = y.values[static_cast<size_t>(row * n + j)];
      Real moduli = 0;
      for (int64_t i = 0; i < k; ++i) {
        const Weight<Real>& weight = all[static_cast<size_t>(j * k + i)];
        const Real value = values[static_cast<size_t>(i)];
        result.value += value * weight.value;
        moduli += std::fabs(value) * (std::fabs(weight.part) + std::fabs(weight.offset));
        result.error += rounding * std::fabs(value * weight.value);
      }
      result.error += static_cast<Real>(k + 3) * moduli;
    }
  }
  Result result = tracked_result(dtype, y, computed_in(dtype));
  result.terms = 8;  // tracked_result counts in eighths
  return result;
}

}  // namespace compute::oracle
