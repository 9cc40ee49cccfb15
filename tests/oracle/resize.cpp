// SPDX-License-Identifier: Apache-2.0
// References of resize and its gradient, from ONNX's definition: the weights of x's elements along each axis, and then
// every product of them. Coordinates are part of the definition: they are computed in float32, for linear and cubic of
// float64 in float64.
#include "tracked.hpp"

namespace compute::oracle {

namespace {

struct Tap {
  int64_t index;
  Tracked weight;
};

// What one element along an axis is made of.
struct Taps {
  std::vector<Tap> list;
  bool is_beyond = false;  // gets extrapolation_value
};

std::string word(const Attributes& attributes, const char* name, const char* fallback) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? fallback : found->second.text;
}

Real filter(Real x, bool is_cubic, Real a) {
  x = std::fabs(x);
  if (!is_cubic) return std::max<Real>(0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

template <class Float>
Float coordinate(const std::string& mode, int64_t i, int64_t in, int64_t out, Float scale, double start, double end) {
  const auto x = static_cast<Float>(i), half = static_cast<Float>(0.5);
  const auto extent = static_cast<double>(in), size = static_cast<double>(out);
  if (mode == "asymmetric") return x / scale;
  if (mode == "align_corners") return out == 1 ? 0 : x * static_cast<Float>(extent - 1) / static_cast<Float>(size - 1);
  if (mode == "tf_crop_and_resize") {
    if (out == 1) return static_cast<Float>(0.5 * (start + end) * (extent - 1));
    return x * static_cast<Float>((end - start) * (extent - 1)) / static_cast<Float>(size - 1) +
           static_cast<Float>(start * (extent - 1));
  }
  if (mode == "pytorch_half_pixel" && out == 1) return 0;
  Float shift = 0;
  if (mode == "half_pixel_symmetric")
    shift = static_cast<Float>(extent / 2 * (1 - size / (static_cast<double>(scale) * extent)));
  return (x + half) / scale + shift - half;
}

template <class Float>
std::vector<Taps> taps_of(const Attributes& attributes, int64_t in, int64_t out, double given_scale, double start,
                          double end) {
  const std::string mode = word(attributes, "mode", "nearest"),
                    coordinates = word(attributes, "coordinate_transformation_mode", "half_pixel"),
                    rounding = word(attributes, "nearest_mode", "round_prefer_floor");
  const auto scale = static_cast<Float>(given_scale);
  const bool is_cubic = mode == "cubic", excludes = integer_or(attributes, "exclude_outside", 0) != 0;
  const Real a = static_cast<Float>(number_or(attributes, "cubic_coeff_a", -0.75).real());
  const bool antialias = integer_or(attributes, "antialias", 0) != 0;
  const Real stretch = antialias ? std::min<Real>(1, scale) : 1, reach = (is_cubic ? 2 : 1) / stretch;
  std::vector<Taps> result;
  for (int64_t i = 0; i < out; ++i) {
    const Real x = coordinate<Float>(coordinates, i, in, out, scale, start, end);
    Taps& taps = result.emplace_back();
    taps.is_beyond = coordinates == "tf_crop_and_resize" && !(x >= 0 && x <= static_cast<Real>(in - 1));
    const auto clamped = [&](Real place) { return std::clamp<int64_t>(static_cast<int64_t>(place), 0, in - 1); };
    if (mode == "nearest") {
      const Real below = std::floor(x), part = x - below;
      const bool up = rounding == "round_prefer_floor"  ? part > 0.5L
                      : rounding == "round_prefer_ceil" ? part >= 0.5L
                                                        : rounding == "ceil" && part > 0;
      taps.list.push_back({clamped(up ? below + 1 : below), Tracked(1)});
      continue;
    }
    Sum total;
    for (Real place = std::floor(x - reach); place <= std::ceil(x + reach); place += 1) {
      const Real distance = (place - x) * stretch;
      if (std::fabs(distance) >= (is_cubic ? 2 : 1)) continue;
      if (excludes && (place < 0 || place > static_cast<Real>(in - 1))) continue;
      // The polynomial's terms are less than 16.
      const Tracked weight(filter(distance, is_cubic, a), is_cubic ? 64 : 4);
      taps.list.push_back({clamped(place), weight});
      total.add(weight);
    }
    if (!excludes && !antialias) continue;
    for (Tap& tap : taps.list) tap.weight = tap.weight / total.total();
  }
  return result;
}

struct Axis {
  size_t axis;
  std::vector<Taps> taps;  // for each element of the result
};

struct Plan {
  Shape in, out;
  std::vector<Axis> axes;

  Plan(const Array& given, const Attributes& attributes, bool is_grad) : in(given.shape()), out(given.shape()) {
    Shape axes_given;
    if (const auto found = attributes.find("axes"); found != attributes.end()) {
      axes_given = found->second.integers;
    } else {
      for (size_t i = 0; i < in.size(); ++i) axes_given.push_back(static_cast<int64_t>(i));
    }
    const Shape& extents = attributes.find(is_grad ? "shape" : "sizes")->second.integers;
    const auto reals = [&](const char* name) {
      const auto found = attributes.find(name);
      return found == attributes.end() ? std::vector<std::complex<double>>() : found->second.numbers;
    };
    const auto scales = reals("scales"), roi = reals("roi");
    for (size_t i = 0; i < axes_given.size(); ++i) {
      const auto axis = static_cast<size_t>(axes_given[i] < 0 ? axes_given[i] + given.rank() : axes_given[i]);
      (is_grad ? in : out)[axis] = extents[i];
      const double scale =
          scales.empty() ? static_cast<double>(out[axis]) / static_cast<double>(in[axis]) : scales[i].real();
      const double start = roi.empty() ? 0 : roi[i].real(), end = roi.empty() ? 1 : roi[axes_given.size() + i].real();
      const bool is_wide = given.dtype() == dtype::FLOAT64 && word(attributes, "mode", "nearest") != "nearest";
      const auto taps = is_wide ? taps_of<double> : taps_of<float>;
      axes.push_back({axis, taps(attributes, in[axis], out[axis], scale, start, end)});
    }
  }
  // Calls f(index of x, weight) for all that an element of the result is made of; false if it is beyond x.
  bool each(const Shape& index, const std::function<void(const Shape&, const Tracked&)>& f) const {
    for (const Axis& a : axes)
      if (a.taps[static_cast<size_t>(index[a.axis])].is_beyond) return false;
    Shape from = index;
    const std::function<void(size_t, const Tracked&)> go = [&](size_t i, const Tracked& weight) {
      if (i == axes.size()) return f(from, weight);
      for (const Tap& tap : axes[i].taps[static_cast<size_t>(index[axes[i].axis])].list) {
        from[axes[i].axis] = tap.index;
        go(i + 1, weight * tap.weight);
      }
    };
    go(0, Tracked(1));
    return true;
  }
};

}  // namespace

Result reference_resize(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const Plan plan(x, attributes, false);
  const std::complex<double> value = number_or(attributes, "extrapolation_value", 0);
  const Field places(plan.in);
  if (word(attributes, "mode", "nearest") == "nearest") {
    Result result;
    result.dtype = x.dtype();
    result.shape = plan.out;
    result.terms = 1;
    result.accumulator = computed_in(x.dtype());
    for_each_index(plan.out, [&](const Shape& i) {
      Element& e = result.elements.emplace_back();
      const auto take = [&](const Shape& from, const Tracked&) {
        e.value = x.at(static_cast<int64_t>(places.place(from)));
      };
      if (!plan.each(i, take)) e.value = convert(dtype::FLOAT64, x.dtype(), Value::of(static_cast<Real>(value.real())));
    });
    return result;
  }
  const Field field(x);
  Field y(plan.out);
  for_each_index(plan.out, [&](const Shape& i) {
    Sum sum;
    const auto add = [&](const Shape& from, const Tracked& weight) { sum.add(weight * field[from]); };
    y[i] = plan.each(i, add) ? sum.total() : Tracked(static_cast<Real>(value.real()), 0);
  });
  return tracked_result(x.dtype(), y, computed_in(x.dtype()));
}

Result reference_resize_grad(std::span<const Array> inputs, const Attributes& attributes) {
  const Plan plan(inputs[0], attributes, true);
  const Field dy(inputs[0]);
  Field dx(plan.in);
  std::vector<Sum> sums(dx.values.size());
  for_each_index(plan.out, [&](const Shape& i) {
    plan.each(i, [&](const Shape& to, const Tracked& weight) { sums[dx.place(to)].add(weight * dy[i]); });
  });
  for (size_t i = 0; i < sums.size(); ++i) dx.values[i] = sums[i].total();
  return tracked_result(inputs[0].dtype(), dx, computed_in(inputs[0].dtype()));
}

}  // namespace compute::oracle
