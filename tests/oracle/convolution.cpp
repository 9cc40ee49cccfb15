// SPDX-License-Identifier: Apache-2.0
// Convolutions as one loop over all pairs of output and kernel elements and all pairs of channels.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "numbers.hpp"
#include "ops.hpp"

namespace compute::oracle {

namespace {

struct Geometry {
  int64_t n = 0, c_in = 0, c_out = 0, groups = 1;
  Shape input, kernel, output, strides, dilations, begin;

  int64_t each_in() const { return c_in / groups; }
  int64_t each_out() const { return c_out / groups; }
};

Shape spatial(const Array& x) { return {x.shape().begin() + 2, x.shape().end()}; }

Shape with(Shape first, const Shape& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

Shape list_or(const Attributes& attributes, std::string_view name, size_t count, int64_t fallback) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? Shape(count, fallback) : found->second.integers;
}

std::string padding_of(const Attributes& attributes) {
  const auto found = attributes.find("padding");
  return found == attributes.end() ? "explicit" : found->second.text;
}

void read_common(Geometry& g, const Attributes& attributes) {
  g.groups = integer_or(attributes, "groups", 1);
  g.strides = list_or(attributes, "strides", g.kernel.size(), 1);
  g.dilations = list_or(attributes, "dilations", g.kernel.size(), 1);
  g.begin = list_or(attributes, "pads_begin", g.kernel.size(), 0);
}

int64_t span_of(const Geometry& g, size_t axis) { return (g.kernel[axis] - 1) * g.dilations[axis] + 1; }

// From the input and the kernel.
void find_output(Geometry& g, const Attributes& attributes) {
  const Shape end = list_or(attributes, "pads_end", g.kernel.size(), 0);
  for (size_t i = 0; i < g.kernel.size(); ++i) {
    if (padding_of(attributes) == "same") {
      g.output.push_back(g.input[i] / g.strides[i] + (g.input[i] % g.strides[i] != 0));
      const int64_t needed = (g.output[i] - 1) * g.strides[i] + span_of(g, i);
      g.begin[i] = needed > g.input[i] ? (needed - g.input[i]) / 2 : 0;
    } else {
      int64_t windows = 0;
      while (windows * g.strides[i] + span_of(g, i) <= g.input[i] + g.begin[i] + end[i]) ++windows;
      g.output.push_back(windows);
    }
  }
}

// From the output and the kernel of the convolution that is transposed.
void find_input(Geometry& g, const Attributes& attributes) {
  const Shape end = list_or(attributes, "pads_end", g.kernel.size(), 0);
  const Shape more = list_or(attributes, "output_padding", g.kernel.size(), 0);
  for (size_t i = 0; i < g.kernel.size(); ++i) {
    const int64_t whole = (g.output[i] - 1) * g.strides[i] + span_of(g, i) + more[i];
    if (padding_of(attributes) == "same") {
      g.input.push_back(g.output[i] * g.strides[i]);
      g.begin[i] = whole > g.input[i] ? (whole - g.input[i]) / 2 : 0;
    } else {
      g.input.push_back(whole - g.begin[i] - end[i]);
    }
  }
}

// The row-major positions in a shape, as coordinates.
template <class F>
void for_each(const Shape& shape, const F& f) {
  const int64_t count = element_count(shape);
  Shape at(shape.size(), 0);
  for (int64_t position = 0; position < count; ++position) {
    f(position, at);
    for (size_t i = shape.size(); i-- > 0;) {
      if (++at[i] < shape[i]) break;
      at[i] = 0;
    }
  }
}

// Row-major positions of an output element, of a kernel element, and of the input element or -1 for padding.
struct Pair {
  int64_t out, tap, in;
};

// In the order of one of these.
std::vector<Pair> pairs_of(const Geometry& g, int64_t Pair::*order) {
  std::vector<Pair> pairs;
  for_each(g.output, [&](int64_t out, const Shape& out_at) {
    for_each(g.kernel, [&](int64_t tap, const Shape& tap_at) {
      int64_t in = 0;
      for (size_t i = 0; i < g.kernel.size(); ++i) {
        const int64_t at = out_at[i] * g.strides[i] + tap_at[i] * g.dilations[i] - g.begin[i];
        const bool inside = at >= 0 && at < g.input[i];
        in = in < 0 || !inside ? -1 : in * g.input[i] + at;
      }
      pairs.push_back({out, tap, in});
    });
  });
  std::ranges::stable_sort(pairs, {}, order);
  return pairs;
}

enum class Kind { kInteger, kReal, kComplex };

class Sums {
 public:
  Sums(Dtype dtype, const Shape& shape, int64_t terms)
      : kind_(is_complex(dtype)   ? Kind::kComplex
              : is_inexact(dtype) ? Kind::kReal
                                  : Kind::kInteger),
        sums_(static_cast<size_t>(element_count(shape))),
        open_(sums_.size()) {
    result_.dtype = dtype;
    result_.shape = shape;
    result_.accumulator = computed_in(dtype);
    result_.terms = terms;
    if (kind_ == Kind::kComplex) result_.roundings = 4;  // the bound of the intrinsic mul
  }

  // sums[to + pair.out] += x[from_x + pair.in] y[from_y + pair.tap] for such a choice of three positions in a pair.
  // It is fastest if pairs of one sum follow one another.
  template <int64_t Pair::*kTo, int64_t Pair::*kX, int64_t Pair::*kY>
  void add(const std::vector<Pair>& pairs, int64_t to, const Numbers& x, int64_t from_x, const Numbers& y,
           int64_t from_y) {
    const auto add = [&](const auto& add_term) {
      for (auto pair = pairs.begin(); pair != pairs.end();) {
        const int64_t own = *pair.*kTo;
        if (own < 0) {
          ++pair;
          continue;
        }
        const auto i = static_cast<size_t>(to + own);
        Sum sum = sums_[i];  // a local one, since loads and stores of long doubles take long
        for (; pair != pairs.end() && *pair.*kTo == own; ++pair) {
          const auto at_y = static_cast<size_t>(from_y + *pair.*kY);
          if (pair->in >= 0) {
            add_term(sum, static_cast<size_t>(from_x + *pair.*kX), at_y);
            continue;
          }
          // A zero of padding meets a factor, if the input is one: times an infinity or NaN it may be a NaN or
          // nothing.
          if constexpr (kX != &Pair::in) continue;
          if (!y.all_finite && !y.is_finite(at_y)) open_[i] |= kAny;
        }
        sums_[i] = sum;
      }
    };
    switch (kind_) {
      case Kind::kInteger:
        return add([&](Sum& sum, size_t i, size_t j) { sum.integer += x.integers[i] * y.integers[j]; });
      case Kind::kReal:
        return add([&](Sum& sum, size_t i, size_t j) {
          const Real term = x.re[i] * y.re[j];
          sum.re += term;
          sum.weigh(std::fabs(term));
        });
      case Kind::kComplex:
        return add([&](Sum& sum, size_t i, size_t j) {
          sum.re += x.re[i] * y.re[j] - x.im[i] * y.im[j];
          sum.im += x.re[i] * y.im[j] + x.im[i] * y.re[j];
          sum.weigh(x.moduli[i] * y.moduli[j]);
        });
    }
  }
  Dtype dtype() const { return result_.dtype; }
  void add(int64_t to, const Value& x) {
    Sum& sum = sums_[static_cast<size_t>(to)];
    sum.integer += static_cast<uint64_t>(x.integer);
    sum.re += x.re;
    sum.im += x.im;
    sum.weigh(kind_ == Kind::kComplex ? std::hypot(x.re, x.im) : std::fabs(x.re));
  }

  Result take() {
    result_.elements.resize(sums_.size());
    for (size_t i = 0; i < sums_.size(); ++i) {
      Element& e = result_.elements[i];
      const Sum& sum = sums_[i];
      if (kind_ == Kind::kInteger) {
        e.value = Value::of(wrap(result_.dtype, sum.integer));
        continue;
      }
      e.value = Value::of(Complex(sum.re, sum.im));
      e.scale = sum.moduli;
      const bool leaves_range = sum.finite > largest(format(result_.accumulator)) / 2;
      const bool complex_special = kind_ == Kind::kComplex && !std::isfinite(e.scale);
      e.open = static_cast<uint8_t>(open_[i] | kSigns | (complex_special ? kNotFinite : leaves_range ? kAny : 0));
    }
    return std::move(result_);
  }

 private:
  struct Sum {
    uint64_t integer = 0;
    Real re = 0, im = 0;
    Real moduli = 0;
    Real finite = 0;  // the moduli of terms that are neither infinite nor NaN

    void weigh(Real term) {
      moduli += term;
      if (std::isfinite(term)) finite += term;
    }
  };

  Kind kind_;
  Result result_;
  std::vector<Sum> sums_;
  std::vector<uint8_t> open_;
};

Dtype common_dtype(std::span<const Array> inputs, bool has_bias) {
  Dtype dtype = promote(inputs[0].dtype(), inputs[1].dtype());
  if (dtype != 0 && has_bias) dtype = promote(dtype, inputs[2].dtype());
  if (dtype == 0) throw std::invalid_argument("convolution: dtypes of two kinds");
  return dtype;
}

bool has_third(std::span<const Array> inputs) { return inputs.size() > 2 && inputs[2].rank() == 1; }

// f(image and channels: n, c_in, c_out, channel of the weight), for every two channels of one group.
template <class F>
void for_each_channel(const Geometry& g, const F& f) {
  for (int64_t n = 0; n < g.n; ++n) {
    for (int64_t out = 0; out < g.c_out; ++out) {
      for (int64_t in = 0; in < g.each_in(); ++in) f(n, out / g.each_out() * g.each_in() + in, out, in);
    }
  }
}

// The gradient with respect to the input, whose shape is known.
Result grad_input(const Geometry& g, std::span<const Array> inputs, bool has_bias) {
  const int64_t in_size = element_count(g.input), out_size = element_count(g.output), taps = element_count(g.kernel);
  Sums sums(common_dtype(inputs, has_bias), with({g.n, g.c_in}, g.input), g.each_out() * taps + has_bias);
  const Numbers dy(inputs[0].values(), sums.dtype()), weight(inputs[1].values(), sums.dtype());
  const std::vector<Pair> pairs = pairs_of(g, &Pair::in);
  for_each_channel(g, [&](int64_t n, int64_t c_in, int64_t c_out, int64_t each) {
    sums.add<&Pair::in, &Pair::out, &Pair::tap>(pairs, (n * g.c_in + c_in) * in_size, dy,
                                                (n * g.c_out + c_out) * out_size, weight,
                                                (c_out * g.each_in() + each) * taps);
  });
  if (has_bias) {
    const std::vector<Value> bias = inputs[2].values();
    for (int64_t i = 0; i < g.n * g.c_in * in_size; ++i) sums.add(i, bias[static_cast<size_t>(i / in_size % g.c_in)]);
  }
  return sums.take();
}

}  // namespace

Result reference_convolution(std::span<const Array> inputs, const Attributes& attributes) {
  Geometry g;
  g.n = inputs[0].shape()[0];
  g.c_in = inputs[0].shape()[1];
  g.c_out = inputs[1].shape()[0];
  g.input = spatial(inputs[0]);
  g.kernel = spatial(inputs[1]);
  read_common(g, attributes);
  find_output(g, attributes);
  const bool has_bias = has_third(inputs);
  const int64_t in_size = element_count(g.input), out_size = element_count(g.output), taps = element_count(g.kernel);
  Sums sums(common_dtype(inputs, has_bias), with({g.n, g.c_out}, g.output), g.each_in() * taps + has_bias);
  const Numbers x(inputs[0].values(), sums.dtype()), weight(inputs[1].values(), sums.dtype());
  const std::vector<Pair> pairs = pairs_of(g, &Pair::out);
  for_each_channel(g, [&](int64_t n, int64_t c_in, int64_t c_out, int64_t each) {
    sums.add<&Pair::out, &Pair::in, &Pair::tap>(pairs, (n * g.c_out + c_out) * out_size, x,
                                                (n * g.c_in + c_in) * in_size, weight,
                                                (c_out * g.each_in() + each) * taps);
  });
  if (has_bias) {
    const std::vector<Value> bias = inputs[2].values();
    for (int64_t i = 0; i < g.n * g.c_out * out_size; ++i)
      sums.add(i, bias[static_cast<size_t>(i / out_size % g.c_out)]);
  }
  return sums.take();
}

Result reference_convolution_grad_input(std::span<const Array> inputs, const Attributes& attributes) {
  Geometry g;
  g.n = inputs[0].shape()[0];
  g.c_out = inputs[0].shape()[1];
  g.kernel = spatial(inputs[1]);
  g.input = attributes.at("shape").integers;
  read_common(g, attributes);
  g.c_in = inputs[1].shape()[1] * g.groups;
  find_output(g, attributes);
  return grad_input(g, inputs, false);
}

Result reference_convolution_transpose(std::span<const Array> inputs, const Attributes& attributes) {
  Geometry g;
  g.n = inputs[0].shape()[0];
  g.c_out = inputs[0].shape()[1];
  g.output = spatial(inputs[0]);
  g.kernel = spatial(inputs[1]);
  read_common(g, attributes);
  g.c_in = inputs[1].shape()[1] * g.groups;
  find_input(g, attributes);
  return grad_input(g, inputs, has_third(inputs));
}

Result reference_convolution_grad_weight(std::span<const Array> inputs, const Attributes& attributes) {
  Geometry g;
  g.n = inputs[1].shape()[0];
  g.c_in = inputs[1].shape()[1];
  g.c_out = inputs[0].shape()[1];
  g.input = spatial(inputs[1]);
  g.kernel = attributes.at("kernel").integers;
  read_common(g, attributes);
  find_output(g, attributes);
  const int64_t in_size = element_count(g.input), out_size = element_count(g.output), taps = element_count(g.kernel);
  Sums sums(common_dtype(inputs, false), with({g.c_out, g.each_in()}, g.kernel), g.n * out_size);
  const Numbers dy(inputs[0].values(), sums.dtype()), x(inputs[1].values(), sums.dtype());
  const std::vector<Pair> pairs = pairs_of(g, &Pair::tap);
  for_each_channel(g, [&](int64_t n, int64_t c_in, int64_t c_out, int64_t each) {
    sums.add<&Pair::tap, &Pair::in, &Pair::out>(pairs, (c_out * g.each_in() + each) * taps, x,
                                                (n * g.c_in + c_in) * in_size, dy, (n * g.c_out + c_out) * out_size);
  });
  return sums.take();
}

}  // namespace compute::oracle
