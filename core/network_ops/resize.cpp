// SPDX-License-Identifier: Apache-2.0
// resize and its gradient, one axis after the other: of nearest elements views where they suffice, else a gather; of
// linear and cubic a gather of the elements that a filter covers, and their weighted sums.
#include <algorithm>
#include <cmath>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"
#include "core/text/printable.hpp"

namespace compute {

namespace {

enum class Mode { kNearest, kLinear, kCubic };
enum class Coordinates { kHalfPixel, kHalfPixelSymmetric, kPytorchHalfPixel, kAlignCorners, kAsymmetric, kCrop };
enum class Rounding { kPreferFloor, kPreferCeil, kFloor, kCeil };

// Coordinate i is ((i + half) * factor) / divisor + shift - half, in this order, where half is 0 or 1 / 2.
struct Axis {
  int32_t axis;
  int64_t in, out;
  double scale;
  double factor, divisor, shift;
  bool is_half;
};

struct Resize {
  Mode mode;
  Coordinates coordinates;
  Rounding rounding;
  double cubic_a;
  bool exclude_outside, antialias;
  compute_dtype computed_coordinates;          // float32 or float64
  std::vector<Axis> axes;                      // those that change
  std::vector<int64_t> in, out;                // the whole shapes
  compute_dtype places = COMPUTE_DTYPE_INT32;  // of elements along an axis, in tables
};

template <class Enum, size_t N>
Enum read_word(const OpCall& call, const char* name, const char* const (&words)[N]) {
  const std::string_view given = call.attributes.string(attribute_index(call, name));
  std::string known;
  for (size_t i = 0; i < N; ++i) {
    if (given == words[i]) return static_cast<Enum>(i);
    known += (i > 0 ? ", " : "") + std::string(words[i]);
  }
  refuse_attribute(call, name, std::string(name) + " is " + in_quotes(given) + ", not one of " + known);
}

std::vector<double> read_reals(const OpCall& call, const char* name, size_t count) {
  const int32_t index = attribute_index(call, name);
  if (!call.attributes.has(index)) return {};
  std::vector<double> values = call.attributes.float64_list(index);
  if (values.size() != count || !std::ranges::all_of(values, [](double x) { return std::isfinite(x); })) {
    refuse_attribute(call, name,
                     std::string(name) + " has " + std::to_string(values.size()) + " entries; expected " +
                         std::to_string(count) + " finite numbers");
  }
  return values;
}

// A number as coordinates are computed with it.
double rounded(double x, compute_dtype dtype) {
  return dtype == COMPUTE_DTYPE_FLOAT64 ? x : static_cast<double>(static_cast<float>(x));
}

template <class Real>
Real coordinate_of(const Axis& a, int64_t i) {
  const Real half = a.is_half ? Real{0.5} : Real{0};
  const Real x = (static_cast<Real>(i) + half) * static_cast<Real>(a.factor) / static_cast<Real>(a.divisor);
  return x + static_cast<Real>(a.shift) - half;
}

double coordinate(const Resize& r, const Axis& a, int64_t i) {
  return r.computed_coordinates == COMPUTE_DTYPE_FLOAT64 ? coordinate_of<double>(a, i)
                                                         : static_cast<double>(coordinate_of<float>(a, i));
}

int64_t nearest(const Resize& r, const Axis& a, int64_t i) {
  const double x = coordinate(r, a, i), below = std::floor(x), part = x - below;
  const bool up = r.rounding == Rounding::kPreferFloor  ? part > 0.5
                  : r.rounding == Rounding::kPreferCeil ? part >= 0.5
                                                        : r.rounding == Rounding::kCeil && part > 0;
  return std::clamp<int64_t>(static_cast<int64_t>(below) + (up ? 1 : 0), 0, a.in - 1);
}

bool is_identity(const Resize& r, const Axis& a) {
  if (a.in != a.out) return false;
  for (int64_t i = 0; i < a.in; ++i)
    if (r.mode == Mode::kNearest ? nearest(r, a, i) != i : coordinate(r, a, i) != static_cast<double>(i)) return false;
  return true;
}

Axis read_axis(const OpCall& call, const Resize& r, int32_t axis, int64_t in, int64_t out, double scale, double start,
               double end) {
  const auto as_computed = [&](double x) { return rounded(x, r.computed_coordinates); };
  const auto extent = static_cast<double>(in), size = static_cast<double>(out);
  Axis a{axis, in, out, as_computed(scale), 1, as_computed(scale), 0, false};
  switch (r.coordinates) {
    case Coordinates::kAsymmetric:
      break;
    case Coordinates::kHalfPixelSymmetric:
      a.shift = as_computed(extent / 2 * (1 - size / (a.scale * extent)));
      [[fallthrough]];
    case Coordinates::kHalfPixel:
      a.is_half = true;
      break;
    case Coordinates::kPytorchHalfPixel:
      a.is_half = out > 1;
      a.factor = out > 1 ? 1 : 0;
      break;
    case Coordinates::kAlignCorners:
      a.factor = out > 1 ? extent - 1 : 0;
      a.divisor = out > 1 ? size - 1 : 1;
      break;
    case Coordinates::kCrop:
      a.shift = as_computed(out > 1 ? start * (extent - 1) : 0.5 * (start + end) * (extent - 1));
      a.factor = as_computed(out > 1 ? (end - start) * (extent - 1) : 0);
      a.divisor = out > 1 ? size - 1 : 1;
      break;
  }
  if (!(a.scale > 0)) refuse_attribute(call, "scales", "scales must be greater than 0");
  // The filter covers 1 / scale elements.
  if (r.antialias && a.scale * extent * 16 < size)
    refuse_attribute(call, "scales", "scales are too small for the sizes, with antialias");
  return a;
}

// `name` are the extents of the other tensor along the axes: sizes of resize, where the input is x, and shape of
// resize_grad, where it is dy.
Resize read_resize(const OpCall& call, const char* name) {
  Resize r{};
  r.mode = read_word<Mode>(call, "mode", {"nearest", "linear", "cubic"});
  r.coordinates = read_word<Coordinates>(call, "coordinate_transformation_mode",
                                         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                          "asymmetric", "tf_crop_and_resize"});
  r.rounding = read_word<Rounding>(call, "nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  r.cubic_a = call.attributes.float64(attribute_index(call, "cubic_coeff_a"));
  r.exclude_outside = flag_attribute(call, "exclude_outside");
  r.antialias = flag_attribute(call, "antialias");
  const compute_dtype dtype = call.inputs[0].dtype;
  r.computed_coordinates =
      r.mode != Mode::kNearest && dtype == COMPUTE_DTYPE_FLOAT64 ? COMPUTE_DTYPE_FLOAT64 : COMPUTE_DTYPE_FLOAT32;

  const bool is_grad = std::string_view(name) == "shape";
  const std::span<const int64_t> shape = call.inputs[0].extents();
  std::vector<int32_t> axes;
  if (const int32_t index = attribute_index(call, "axes"); call.attributes.has(index)) {
    for (int64_t axis : call.attributes.int64_list(index)) {
      const auto rank = static_cast<int64_t>(shape.size());
      if (axis < -rank || axis >= rank)
        refuse_attribute(call, "axes", "axis " + std::to_string(axis) + " is not one of " + shape_text(shape));
      axis += axis < 0 ? rank : 0;
      if (std::ranges::find(axes, static_cast<int32_t>(axis)) != axes.end())
        refuse_attribute(call, "axes", "axis " + std::to_string(axis) + " is given twice");
      axes.push_back(static_cast<int32_t>(axis));
    }
  } else {
    for (size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<int32_t>(i));
  }
  const std::span<const int64_t> given = call.attributes.int64_list(attribute_index(call, name));
  if (given.size() != axes.size() || std::ranges::any_of(given, [](int64_t n) { return n < 0; })) {
    refuse_attribute(call, name,
                     std::string(name) + " is " + shape_text(given) + "; expected one extent for each of " +
                         std::to_string(axes.size()) + " axes");
  }
  const std::vector<double> scales = read_reals(call, "scales", axes.size()),
                            roi = read_reals(call, "roi", 2 * axes.size());
  r.in.assign(shape.begin(), shape.end());
  r.out = r.in;
  for (size_t i = 0; i < axes.size(); ++i) (is_grad ? r.in : r.out)[static_cast<size_t>(axes[i])] = given[i];
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<size_t>(axes[i]);
    const int64_t in = r.in[at], out = r.out[at];
    if (in == 0 && out > 0)
      refuse(call, "axis " + std::to_string(at) + " of x has no elements; its size cannot be " + std::to_string(out),
             0);
    if (in == 0 || out == 0) continue;
    const double scale = scales.empty() ? static_cast<double>(out) / static_cast<double>(in) : scales[i];
    const Axis axis =
        read_axis(call, r, axes[i], in, out, scale, roi.empty() ? 0 : roi[i], roi.empty() ? 1 : roi[axes.size() + i]);
    if (!is_identity(r, axis)) r.axes.push_back(axis);
  }
  return r;
}

// ---- Texts ----------------------------------------------------------------------------------------------------------

// "x = …; ", the coordinate of index(`place`).
StepExpression coordinate_text(const Resize& r, const Axis& a, int32_t place) {
  const auto number = [&](double value) {
    const compute_dtype dtype = r.computed_coordinates;
    return ScalarTerm{{ScalarSource::kValue, 0, dtype, scalar_from_double(value, dtype)}, {dtype, false, true}};
  };
  StepExpression result;
  result.text = "p = convert(index(" + std::to_string(place) + "), " + dtype_name(r.computed_coordinates) + "); x = ";
  result.text += a.is_half ? "(p + 0.5) * factor / divisor + shift - 0.5; " : "p * factor / divisor + shift; ";
  result.scalars = {number(a.factor).named("factor"), number(a.divisor).named("divisor"),
                    number(a.shift).named("shift")};
  return result;
}

std::string absolute_weight(const Resize& r, const std::string& distance) {
  const std::string d = "d = abs(" + distance + "); ";
  if (r.mode == Mode::kLinear) return d + "w = max(1 - d, 0); ";
  return d +
         "w = where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, "
         "where(d < 2, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, 0)); ";
}

// ---- Tables ---------------------------------------------------------------------------------------------------------

// For each of `taps` and each element along the axis, the element of x and its weight: [taps, out].
struct Table {
  int64_t taps;
  StepOperand indices, weights;  // of nearest elements no weights
};

Table nearest_table(Steps& steps, const Resize& r, const Axis& a) {
  StepExpression text = coordinate_text(r, a, 1);
  text.text += "below = floor(x); part = x - below; ";
  constexpr const char* kUp[] = {"part > 0.5", "part >= 0.5", "part < 0", "part > 0"};
  text.text += "convert(max(min(where(" + std::string(kUp[static_cast<size_t>(r.rounding)]) +
               ", below + 1, below), last), 0), " + dtype_name(r.places) + ")";
  text.scalars.push_back(extent_term(a.in - 1).named("last"));
  const int64_t extents[] = {1, a.out};
  const StepOperand indices = steps.temporary(r.places, extents);
  steps.map(text, {}, indices);
  return {1, indices, {}};
}

Table filter_table(Steps& steps, const Resize& r, const Axis& a, compute_dtype computed) {
  const double support = r.mode == Mode::kLinear ? 1 : 2;
  const double stretch = r.antialias ? std::min(a.scale, 1.0) : 1;
  const int64_t first = static_cast<int64_t>(std::floor(-support / stretch)) + 1, taps = 2 - 2 * first;
  const bool is_normalised = r.antialias || r.exclude_outside;
  StepExpression text = coordinate_text(r, a, 1);
  const std::string real = dtype_name(r.computed_coordinates);
  const auto number = [&](double value) {
    return ScalarTerm{
        {ScalarSource::kValue, 0, r.computed_coordinates, scalar_from_double(value, r.computed_coordinates)},
        {r.computed_coordinates, false, true}};
  };
  text.text += "below = floor(x); k = convert(index(0) + first, " + real + "); ";
  text.scalars.push_back(extent_term(first).named("first"));
  text.text += absolute_weight(r, stretch < 1 ? "(k - (x - below)) * stretch" : "k - (x - below)");
  if (stretch < 1) text.scalars.push_back(number(stretch).named("stretch"));
  if (r.mode == Mode::kCubic) text.scalars.push_back(number(r.cubic_a).named("a"));
  text.text += "place = below + k; inside = max(min(place, last), 0); ";
  text.scalars.push_back(extent_term(a.in - 1).named("last"));
  text.text +=
      "convert(inside, " + dtype_name(r.places) + "); " + (r.exclude_outside ? "where(inside == place, w, 0)" : "w");
  const int64_t extents[] = {taps, a.out}, total[] = {1, a.out};
  Table table{taps, steps.temporary(r.places, extents), steps.temporary(computed, extents)};
  steps.map(text, {}, std::vector<StepOperand>{table.indices, table.weights});
  if (!is_normalised) return table;
  const StepOperand sums = steps.temporary(computed, total);
  const int64_t axis = 0;
  steps.reduce("sum", computed, {&axis, 1}, {"x"}, {table.weights}, {"x"}, sums);
  steps.map({"x / y"}, {table.weights, sums}, table.weights);
  return table;
}

// The table's [taps, out] along axes `axis` and `axis + 1` of `shape`.
StepOperand over_taps(StepOperand table, int32_t axis, const std::vector<int64_t>& shape) {
  for (int32_t i = 0; i < axis; ++i) table = with_axis(std::move(table), 0);
  while (table.shape.size() < shape.size())
    table = with_axis(std::move(table), static_cast<int32_t>(table.shape.size()));
  return broadcast_to(table, shape);
}

std::vector<int64_t> with_taps(const std::vector<int64_t>& shape, const Axis& a, int64_t taps) {
  std::vector<int64_t> result = shape;
  result[static_cast<size_t>(a.axis)] = a.out;
  result.insert(result.begin() + a.axis, taps);
  return result;
}

// ---- Nearest elements as views --------------------------------------------------------------------------------------

// How the nearest elements lie: each `repeats` times in order, or evenly from `start` on.
struct Pattern {
  int64_t repeats = 0;  // 0: not so
  bool is_even = false;
  int64_t start = 0, step = 0;
};

Pattern pattern_of(const Resize& r, const Axis& a) {
  Pattern result;
  const int64_t start = nearest(r, a, 0), step = a.out > 1 ? nearest(r, a, 1) - start : 1;
  bool is_even = true, is_repeated = a.out % a.in == 0;
  const int64_t repeats = a.out / a.in;
  for (int64_t i = 0; i < a.out && (is_even || is_repeated); ++i) {
    const int64_t index = nearest(r, a, i);
    is_even = is_even && index == start + i * step;
    is_repeated = is_repeated && index == i / repeats;
  }
  // Elements of a gradient's result share no memory.
  if (is_even && step != 0) return {0, true, start, step};
  if (is_repeated) result.repeats = repeats;
  return result;
}

StepOperand evenly(StepOperand x, const Axis& a, const Pattern& pattern) {
  const auto at = static_cast<size_t>(a.axis);
  x.offset += pattern.start * x.strides[at];
  x.strides[at] *= pattern.step;
  x.shape[at] = a.out;
  return x;
}

StepOperand split_repeats(const StepOperand& y, const Axis& a, int64_t repeats) {
  const int64_t parts[] = {a.in, repeats};
  return split_axis(y, a.axis, parts);
}

// Axes that shrink come first, so that the others have less to do.
void sort_axes(std::vector<Axis>& axes, bool is_grad) {
  std::ranges::stable_sort(axes, [&](const Axis& a, const Axis& b) {
    return is_grad ? a.in * b.out < b.in * a.out : a.out * b.in < b.out * a.in;
  });
}

// ---- resize ---------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_resize(const OpCall& call) {
  const Resize r = read_resize(call, "sizes");
  if (r.mode != Mode::kNearest) require_class(call, 0, DtypeClass::kFloat);
  return {{call.inputs[0].dtype, r.out}};
}

bool is_beyond(const Resize& r, const Axis& a) {
  const auto is_outside = [&](int64_t i) {
    const double x = coordinate(r, a, i);
    return !(x >= 0 && x <= static_cast<double>(a.in - 1));
  };
  return is_outside(0) || is_outside(a.out - 1);
}

// The axes along which some coordinates are outside of x, whose elements are then given.
std::vector<Axis> beyond(const Resize& r) {
  std::vector<Axis> axes;
  if (r.coordinates != Coordinates::kCrop) return axes;
  std::ranges::copy_if(r.axes, std::back_inserter(axes), [&](const Axis& a) { return is_beyond(r, a); });
  return axes;
}

// Along one axis, where elements outside of x are to be `value`, which is over the input y.
void replace_beyond(Steps& steps, const Resize& r, const Axis& a, const std::string& value,
                    std::span<const ScalarTerm> scalars, const StepOperand& from, const StepOperand& to) {
  StepExpression text = coordinate_text(r, a, a.axis);
  text.text += "where((x >= 0) & (x <= last), y, " + value + ")";
  text.scalars.push_back(extent_term(a.in - 1).named("last"));
  text.scalars.insert(text.scalars.end(), scalars.begin(), scalars.end());
  text.inputs = {"y"};
  steps.map(text, {from}, to);
}

StepOperand resampled(Steps& steps, const StepOperand& x, const Axis& a, const Table& table, compute_dtype computed,
                      const StepOperand* last) {
  const std::vector<int64_t> shape = with_taps(x.shape, a, table.taps);
  std::vector<int64_t> merged = x.shape, extents = x.shape;
  extents[static_cast<size_t>(a.axis)] = a.out;
  merged[static_cast<size_t>(a.axis)] = table.taps * a.out;
  const StepOperand indices = *collapsed(table.indices, 0, 2);
  const auto as_gathered = [&](StepOperand one) {
    for (int32_t i = 0; i < a.axis; ++i) one = with_axis(std::move(one), 0);
    while (one.shape.size() < merged.size()) one = with_axis(std::move(one), static_cast<int32_t>(one.shape.size()));
    return broadcast_to(one, merged);
  };
  if (table.weights.is_absent()) {
    const StepOperand y = last != nullptr ? *last : steps.temporary(x.dtype, extents);
    steps.gather(x, as_gathered(indices), y, a.axis);
    return y;
  }
  const StepOperand parts = steps.temporary(x.dtype, merged);
  steps.gather(x, as_gathered(indices), parts, a.axis);
  const StepOperand y = last != nullptr ? *last : steps.temporary(computed, extents);
  const int64_t counts[] = {table.taps, a.out}, axis = a.axis;
  steps.reduce("sum", computed, {&axis, 1}, {convert_text("x", x.dtype, computed) + " * y"},
               {split_axis(parts, a.axis, counts), over_taps(table.weights, a.axis, shape)}, {"x"},
               with_axis(y, a.axis));
  return y;
}

// Alternative 0: places in int32; 1: in int64, for a device that has no int32.
compute_dtype dtype_of_places(int32_t alternative) {
  return alternative == 0 ? compute_dtype{COMPUTE_DTYPE_INT32} : compute_dtype{COMPUTE_DTYPE_INT64};
}

std::optional<Lowering> lower_resize(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  Resize r = read_resize(call, "sizes");
  r.places = dtype_of_places(alternative);
  sort_axes(r.axes, false);
  const StepOperand y = steps.output();
  const compute_dtype computed = computed_in(y.dtype);
  StepOperand x = steps.input(0);
  std::vector<Axis> gathered, repeated;
  std::vector<int64_t> repeats;
  for (const Axis& a : r.axes) {
    const Pattern pattern = r.mode == Mode::kNearest ? pattern_of(r, a) : Pattern{};
    if (pattern.is_even) {
      x = evenly(std::move(x), a, pattern);
    } else if (pattern.repeats > 0) {
      repeated.push_back(a);
      repeats.push_back(pattern.repeats);
    } else {
      gathered.push_back(a);
    }
  }
  for (size_t i = 0; i < gathered.size(); ++i) {
    const bool is_last = i + 1 == gathered.size() && repeated.empty();
    const Table table =
        r.mode == Mode::kNearest ? nearest_table(steps, r, gathered[i]) : filter_table(steps, r, gathered[i], computed);
    x = resampled(steps, x, gathered[i], table, computed, is_last ? &y : nullptr);
  }
  if (gathered.empty() || !repeated.empty()) {
    // From the last axis on, so that the places of the others stay.
    StepOperand to = y;
    for (int32_t axis = static_cast<int32_t>(y.shape.size()); axis-- > 0;) {
      for (size_t i = 0; i < repeated.size(); ++i) {
        if (repeated[i].axis != axis) continue;
        to = split_repeats(to, repeated[i], repeats[i]);
        x = with_axis(std::move(x), axis + 1, repeats[i]);
      }
    }
    steps.copy(x, to);
  }
  const ScalarTerm value = attribute_term(call, "extrapolation_value", y.dtype).named("value");
  for (const Axis& a : beyond(r)) replace_beyond(steps, r, a, "value", {&value, 1}, y, y);
  return steps.take();
}

// ---- Gradient -------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_resize_grad(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const Resize r = read_resize(call, "shape");
  return {{call.inputs[0].dtype, r.in}};
}

// dy along one axis goes to the elements that it came from, times their weights.
StepOperand scattered(Steps& steps, const StepOperand& dy, const Axis& a, const Table& table, compute_dtype computed) {
  std::vector<int64_t> extents = dy.shape, merged = dy.shape;
  extents[static_cast<size_t>(a.axis)] = a.in;
  merged[static_cast<size_t>(a.axis)] = table.taps * a.out;
  const StepOperand sums = steps.temporary(computed, extents);
  steps.fill(sums, {});
  StepOperand updates = dy;
  if (!table.weights.is_absent()) {
    updates = steps.temporary(computed, merged);
    const int64_t counts[] = {table.taps, a.out};
    const StepOperand parts = split_axis(updates, a.axis, counts);
    steps.map({"x * y"}, {with_axis(dy, a.axis, table.taps), over_taps(table.weights, a.axis, parts.shape)}, parts);
  }
  StepOperand indices = *collapsed(table.indices, 0, 2);
  for (int32_t i = 0; i < a.axis; ++i) indices = with_axis(std::move(indices), 0);
  while (indices.shape.size() < merged.size())
    indices = with_axis(std::move(indices), static_cast<int32_t>(indices.shape.size()));
  steps.scatter(broadcast_to(indices, merged), updates, sums, a.axis, "add", Duplicates::kAnyOrder);
  return sums;
}

std::optional<Lowering> lower_resize_grad(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  Resize r = read_resize(call, "shape");
  r.places = dtype_of_places(alternative);
  sort_axes(r.axes, true);
  const StepOperand dx = steps.output();
  const compute_dtype computed = computed_in(dx.dtype);
  if (!has_elements(call.inputs[0].extents())) {
    steps.fill(dx, {});
    return steps.take();
  }
  StepOperand dy = steps.as_dtype(steps.input(0), computed);
  for (const Axis& a : beyond(r)) {
    const StepOperand inside = steps.temporary(computed, dy.shape);
    replace_beyond(steps, r, a, "0", {}, dy, inside);
    dy = inside;
  }
  for (const Axis& a : r.axes) {
    const Pattern pattern = r.mode == Mode::kNearest ? pattern_of(r, a) : Pattern{};
    std::vector<int64_t> extents = dy.shape;
    extents[static_cast<size_t>(a.axis)] = a.in;
    if (pattern.repeats > 0) {
      const StepOperand sums = steps.temporary(computed, extents);
      const int64_t axis = a.axis + 1;
      steps.reduce("sum", computed, {&axis, 1}, {"x"}, {split_repeats(dy, a, pattern.repeats)}, {"x"},
                   with_axis(sums, a.axis + 1));
      dy = sums;
    } else if (pattern.is_even) {
      const StepOperand sums = steps.temporary(computed, extents);
      steps.fill(sums, {});
      steps.copy(dy, evenly(sums, a, pattern));
      dy = sums;
    } else {
      dy = scattered(steps, dy, a,
                     r.mode == Mode::kNearest ? nearest_table(steps, r, a) : filter_table(steps, r, a, computed),
                     computed);
    }
  }
  steps.copy(dy, dx);
  return steps.take();
}

}  // namespace

const OpRules resize_1_rules{infer_resize, lower_resize, true};
const OpRules resize_grad_1_rules{infer_resize_grad, lower_resize_grad, true};

}  // namespace compute
