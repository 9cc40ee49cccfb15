// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of [n, c, spatial…]: a reduction over an overlapping view of the padded tensor.
#include <algorithm>
#include <limits>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

constexpr size_t kLead = 2;  // the axes n and c

struct Window {
  int64_t extent, size, stride, dilation, before, after, count;  // count: positions of the window

  int64_t padded() const { return before + extent + after; }
  int64_t reach() const { return (size - 1) * dilation + 1; }
};

std::vector<int64_t> list_or(const OpCall& call, const char* name, size_t count, int64_t fallback) {
  const int32_t index = attribute_index(call, name);
  if (!call.attributes.has(index)) return std::vector<int64_t>(count, fallback);
  const std::span<const int64_t> given = call.attributes.int64_list(index);
  if (given.size() != count) {
    refuse_attribute(call, name,
                     std::string(name) + " has " + std::to_string(given.size()) +
                         " entries; expected one for each of " + std::to_string(count) + " spatial axes");
  }
  return {given.begin(), given.end()};
}

// The windows along the spatial axes of extents `spatial`.
std::vector<Window> read_windows(const OpCall& call, std::span<const int64_t> spatial, bool has_dilations) {
  const size_t count = spatial.size();
  const std::vector<int64_t> sizes = list_or(call, "window", count, 1);
  std::vector<int64_t> strides = sizes, dilations(count, 1);
  if (call.attributes.has(attribute_index(call, "strides"))) strides = list_or(call, "strides", count, 1);
  if (has_dilations) dilations = list_or(call, "dilations", count, 1);
  const std::vector<int64_t> before = list_or(call, "pads_begin", count, 0),
                             after = list_or(call, "pads_end", count, 0);
  const std::string padding(call.attributes.string(attribute_index(call, "padding")));
  if (padding != "explicit" && padding != "same" && padding != "valid")
    refuse_attribute(call, "padding", "padding is \"" + padding + "\"; expected explicit, same or valid");
  std::vector<Window> windows;
  for (size_t i = 0; i < count; ++i) {
    Window w{spatial[i], sizes[i], strides[i], dilations[i], before[i], after[i], 0};
    if (w.size < 1 || w.stride < 1 || w.dilation < 1)
      refuse_attribute(call, "window", "window, strides and dilations must be at least 1");
    if (w.before < 0 || w.after < 0 || (padding != "explicit" && (w.before != 0 || w.after != 0)))
      refuse_attribute(call, "pads_begin", "pads must not be negative, and 0 unless padding is explicit");
    if (padding == "same") {
      const int64_t total =
          std::max<int64_t>(((w.extent + w.stride - 1) / w.stride - 1) * w.stride + w.reach() - w.extent, 0);
      w.before = total / 2;
      w.after = total - w.before;
    }
    if (w.padded() < w.reach()) {
      refuse_attribute(call, "window",
                       "a window of " + std::to_string(w.reach()) + " elements does not fit in " +
                           std::to_string(w.padded()) + " along spatial axis " + std::to_string(i));
    }
    w.count = (w.padded() - w.reach()) / w.stride + 1;
    windows.push_back(w);
  }
  return windows;
}

std::span<const int64_t> spatial_of(const OpCall& call, int32_t index) {
  const std::span<const int64_t> shape = call.inputs[static_cast<size_t>(index)].extents();
  if (shape.size() < kLead + 1)
    refuse(call, call.schema.input_name(index) + " has shape " + shape_text(shape) + "; expected [n, c, spatial…]",
           index);
  return shape.subspan(kLead);
}

std::vector<int64_t> pooled_shape(std::span<const int64_t> shape, std::span<const Window> windows) {
  std::vector<int64_t> result(shape.begin(), shape.begin() + kLead);
  for (const Window& w : windows) result.push_back(w.count);
  return result;
}

// The operand with its padding, if there is any.
StepOperand padded(Steps& steps, const StepOperand& x, std::span<const Window> windows, const ScalarBits& value) {
  bool needed = false;
  std::vector<int64_t> shape(x.shape.begin(), x.shape.begin() + kLead);
  for (const Window& w : windows) {
    needed = needed || w.before > 0 || w.after > 0;
    shape.push_back(w.padded());
  }
  if (!needed) return x;
  const StepOperand result = steps.temporary(x.dtype, shape);
  steps.fill(result, value);
  StepOperand inner = result;
  for (size_t i = 0; i < windows.size(); ++i)
    inner = narrowed(std::move(inner), static_cast<int32_t>(kLead + i), windows[i].before, windows[i].extent);
  steps.copy(x, inner);
  return result;
}

// [n, c, positions…, window…] over [n, c, padded spatial…].
StepOperand window_view(const StepOperand& x, std::span<const Window> windows) {
  StepOperand view = x;
  for (size_t i = 0; i < windows.size(); ++i) {
    view.shape[kLead + i] = windows[i].count;
    view.strides[kLead + i] = x.strides[kLead + i] * windows[i].stride;
    view.shape.push_back(windows[i].size);
    view.strides.push_back(x.strides[kLead + i] * windows[i].dilation);
  }
  return view;
}

std::vector<int64_t> window_axes(size_t spatial) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < spatial; ++i) axes.push_back(static_cast<int64_t>(kLead + spatial + i));
  return axes;
}

StepOperand with_window_axes(StepOperand x, std::span<const Window> windows, bool repeats) {
  for (const Window& w : windows)
    x = with_axis(std::move(x), static_cast<int32_t>(x.shape.size()), repeats ? w.size : 1);
  return x;
}

ScalarBits least_of(compute_dtype dtype) {
  if (is_float(dtype)) return scalar_from_double(-std::numeric_limits<double>::infinity(), dtype);
  if (!is_signed_integer(dtype)) return scalar_from_int64(0, dtype);
  return scalar_from_int64(
      -1 - ((int64_t{1} << (dtype_size(dtype) * 8 - 2)) - 1 + (int64_t{1} << (dtype_size(dtype) * 8 - 2))), dtype);
}

// ---- Maximum --------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_max_pool(const OpCall& call) {
  require_class(call, 0, DtypeClass::kReal);
  return {
      {call.inputs[0].dtype, pooled_shape(call.inputs[0].extents(), read_windows(call, spatial_of(call, 0), true))}};
}

std::optional<Lowering> lower_max_pool(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const std::vector<Window> windows = read_windows(call, spatial_of(call, 0), true);
  const StepOperand x = steps.input(0);
  const StepOperand view = window_view(padded(steps, x, windows, least_of(x.dtype)), windows);
  steps.reduce("max", computed_in(x.dtype), window_axes(windows.size()), {"x"}, {view}, {"x"},
               with_window_axes(steps.output(), windows, false));
  return steps.take();
}

// Inputs dy, x, y.
std::vector<OutputDesc> infer_max_pool_grad(const OpCall& call) {
  require_class(call, 1, DtypeClass::kFloat);
  const std::span<const int64_t> shape = call.inputs[1].extents();
  const std::vector<int64_t> pooled = pooled_shape(shape, read_windows(call, spatial_of(call, 1), true));
  require_tensor(call, 0, call.inputs[1].dtype, pooled);
  require_tensor(call, 2, call.inputs[1].dtype, pooled);
  return {{call.inputs[1].dtype, {shape.begin(), shape.end()}}};
}

// The position of each window's maximum among the window's elements, and its gradient.
struct Winners {
  StepOperand first, dy;
  std::string linear;  // the position of a window's element, over the scalars
  std::vector<ScalarTerm> scalars;
};

// For disjoint windows: each element of a window gets dy or 0, and elements outside all windows get 0.
void give_to_first(Steps& steps, std::span<const Window> windows, const Winners& winners, const StepOperand& dx) {
  const bool is_direct =
      std::all_of(windows.begin(), windows.end(), [](const Window& w) { return w.padded() == w.extent; });
  std::vector<int64_t> shape(dx.shape.begin(), dx.shape.begin() + kLead);
  bool is_covered = true;
  for (const Window& w : windows) {
    shape.push_back(w.padded());
    is_covered = is_covered && w.count * w.size == w.padded();
  }
  const StepOperand padded_dx = is_direct ? dx : steps.temporary(dx.dtype, shape);
  if (!is_covered) steps.fill(padded_dx, {});
  const StepOperand view = window_view(padded_dx, windows);
  steps.map({"where(" + winners.linear + " == x, y, 0)", winners.scalars},
            {with_window_axes(winners.first, windows, true), with_window_axes(winners.dy, windows, true)}, view);
  if (is_direct) return;
  StepOperand inner = padded_dx;
  for (size_t i = 0; i < windows.size(); ++i)
    inner = narrowed(std::move(inner), static_cast<int32_t>(kLead + i), windows[i].before, windows[i].extent);
  steps.copy(inner, dx);
}

// Whether each element is in one window at most, and no window in padding.
bool are_apart(std::span<const Window> windows) {
  return std::all_of(windows.begin(), windows.end(),
                     [](const Window& w) { return w.stride >= w.reach() && w.padded() == w.extent; });
}

bool cover_all(std::span<const Window> windows) {
  return std::all_of(windows.begin(), windows.end(),
                     [](const Window& w) { return w.dilation == 1 && w.count * w.size == w.padded(); });
}

// For windows that are apart: finds the first winner and gives it dy in one pass over each window.
std::optional<Lowering> grad_in_rows(const OpCall& call, Steps& steps, std::span<const Window> windows) {
  const StepOperand dy = steps.input(0), x = steps.input(1), y = steps.input(2), dx = steps.output();
  const compute_dtype computed = computed_in(call.inputs[1].dtype);
  StepExpression first, given;
  std::string linear;
  int64_t taps = 1;
  for (size_t i = 0; i < windows.size(); ++i) {
    const std::string index = "index(" + std::to_string(kLead + windows.size() + i) + ")";
    linear = linear.empty() ? index : "(" + linear + ") * " + scalar_name(given.scalars.size()) + " + " + index;
    if (i > 0) given.scalars.push_back(extent_term(windows[i].size));
    taps *= windows[i].size;
  }
  linear = "convert(" + linear + ", " + dtype_name(computed) + ")";
  first.scalars = given.scalars;
  first.text = "where((x == y) | isnan(x), " + linear + ", " + scalar_name(first.scalars.size()) + ")";
  first.scalars.push_back(extent_term(taps));
  given.text = "where(" + linear + " == first, dy, 0)";
  if (!cover_all(windows)) steps.fill(dx, {});
  Row row;
  row.inputs = {window_view(x, windows), with_window_axes(y, windows, true), with_window_axes(dy, windows, true)};
  row.axes = window_axes(windows.size());
  row.names = {"x", "y", "dy"};
  row.stages = {{"min", computed, std::move(first), {"x"}, computed, "first"}};
  row.map = std::move(given);
  row.outputs = {window_view(dx, windows)};
  steps.row(row);
  return steps.take();
}

// The first position in each window that holds the maximum, or a NaN; there dy is added.
std::optional<Lowering> lower_max_pool_grad(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  Steps steps(call, target);
  const std::vector<Window> windows = read_windows(call, spatial_of(call, 1), true);
  const size_t spatial = windows.size();
  const StepOperand dy = steps.input(0), x = steps.input(1), y = steps.input(2), dx = steps.output();
  const compute_dtype computed = computed_in(x.dtype);
  if (!has_elements(dy.shape)) {
    if (alternative > 0) return std::nullopt;
    steps.fill(dx, {});
    return steps.take();
  }
  if (are_apart(windows)) {
    if (alternative == 0) return grad_in_rows(call, steps, windows);
    --alternative;
  }
  if (alternative > 0) return std::nullopt;
  StepOperand view = window_view(padded(steps, x, windows, least_of(x.dtype)), windows);
  // Position within the window, row-major.
  StepExpression position;
  std::string linear;
  int64_t taps = 1;
  for (size_t i = 0; i < spatial; ++i) {
    const std::string index = "index(" + std::to_string(kLead + spatial + i) + ")";
    linear = linear.empty() ? index : "(" + linear + ") * " + scalar_name(position.scalars.size()) + " + " + index;
    if (i > 0) position.scalars.push_back(extent_term(windows[i].size));
    taps *= windows[i].size;
  }
  position.text = "where((x == y) | isnan(x), " + linear + ", " + scalar_name(position.scalars.size()) + ")";
  position.scalars.push_back(extent_term(taps));
  const StepOperand first = steps.temporary(COMPUTE_DTYPE_INT64, dy.shape);
  const StepOperand greatest = with_window_axes(y, windows, true);
  steps.reduce("min", COMPUTE_DTYPE_INT64, window_axes(spatial), position, {view, greatest}, {"x"},
               with_window_axes(first, windows, false));
  if (std::all_of(windows.begin(), windows.end(), [](const Window& w) { return w.stride >= w.reach(); })) {
    give_to_first(steps, windows, {first, dy, linear, std::move(position.scalars)}, dx);
    return steps.take();
  }
  // Its place in the padded tensor, whose spatial axes are one.
  StepExpression place{"p0 = x; "};
  std::string offset;
  for (size_t i = spatial; i-- > 0;) {
    const std::string p = "p" + std::to_string(spatial - 1 - i), next = "p" + std::to_string(spatial - i);
    const auto scalar = [&](int64_t value) {
      place.scalars.push_back(extent_term(value));
      return scalar_name(place.scalars.size() - 1);
    };
    const std::string size = scalar(windows[i].size);
    int64_t step = 1;
    for (size_t j = i + 1; j < spatial; ++j) step *= windows[j].padded();
    place.text += next + " = " + p + " // " + size + "; ";
    const std::string term = "(index(" + std::to_string(kLead + i) + ") * " + scalar(windows[i].stride) + " + (" + p +
                             " % " + size + ") * " + scalar(windows[i].dilation) + ") * " + scalar(step);
    offset += (offset.empty() ? "" : " + ") + term;
  }
  place.text += offset;
  const StepOperand places = steps.temporary(COMPUTE_DTYPE_INT64, dy.shape);
  steps.map(place, {first}, places);
  std::vector<int64_t> shape(x.shape.begin(), x.shape.begin() + kLead);
  for (const Window& w : windows) shape.push_back(w.padded());
  const StepOperand sums = steps.temporary(computed, shape);
  steps.fill(sums, {});
  const auto merged = static_cast<int32_t>(spatial);
  const StepOperand updates = steps.as_collapsed(steps.as_dtype(dy, computed), kLead, merged);
  steps.scatter(*collapsed(places, kLead, merged), updates, *collapsed(sums, kLead, merged), kLead, "add",
                Duplicates::kAnyOrder);
  StepOperand inner = sums;
  for (size_t i = 0; i < spatial; ++i)
    inner = narrowed(std::move(inner), static_cast<int32_t>(kLead + i), windows[i].before, windows[i].extent);
  steps.copy(inner, dx);
  return steps.take();
}

// ---- Average --------------------------------------------------------------------------------------------------------

// "x / (number of elements without padding)" for an operand over [n, c, positions…].
StepExpression divided_by_count(const OpCall& call, std::span<const Window> windows) {
  StepExpression result{"x"};
  const bool all = flag_attribute(call, "count_include_pad");
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    const auto scalar = [&](int64_t value) {
      result.scalars.push_back(extent_term(value));
      return scalar_name(result.scalars.size() - 1);
    };
    if (all || (w.before == 0 && w.after == 0)) {
      result.text += " / " + scalar(w.size);
      continue;
    }
    const std::string start =
        "(index(" + std::to_string(kLead + i) + ") * " + scalar(w.stride) + " - " + scalar(w.before) + ")";
    result.text += " / convert(max(min(" + start + " + " + scalar(w.size) + ", " + scalar(w.extent) + ") - max(" +
                   start + ", 0), 1), " + dtype_name(computed_in(call.inputs[0].dtype)) + ")";
  }
  return result;
}

std::vector<OutputDesc> infer_average_pool(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  return {
      {call.inputs[0].dtype, pooled_shape(call.inputs[0].extents(), read_windows(call, spatial_of(call, 0), false))}};
}

std::optional<Lowering> lower_average_pool(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const std::vector<Window> windows = read_windows(call, spatial_of(call, 0), false);
  const StepOperand x = steps.input(0), y = steps.output();
  const compute_dtype computed = computed_in(x.dtype);
  const StepOperand view = window_view(padded(steps, x, windows, {}), windows);
  const StepExpression divided = divided_by_count(call, windows);
  const bool has_positions = divided.text.find("index") != std::string::npos;
  const StepOperand sums = has_positions ? steps.temporary(computed, y.shape) : y;
  steps.reduce("sum", computed, window_axes(windows.size()), {"x"}, {view},
               has_positions ? StepExpression{"x"} : divided, with_window_axes(sums, windows, false));
  if (has_positions) steps.map(divided, {sums}, y);
  return steps.take();
}

// Input dy; attribute shape: the spatial extents of x.
std::vector<OutputDesc> infer_average_pool_grad(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const std::span<const int64_t> given = call.attributes.int64_list(attribute_index(call, "shape")),
                                 dy = call.inputs[0].extents();
  spatial_of(call, 0);
  if (given.size() + kLead != dy.size())
    refuse_attribute(call, "shape",
                     "shape has " + std::to_string(given.size()) + " entries; expected one for each spatial axis");
  for (const int64_t extent : given)
    if (extent < 0) refuse_attribute(call, "shape", "shape has a negative extent");
  std::vector<int64_t> shape(dy.begin(), dy.begin() + kLead);
  shape.insert(shape.end(), given.begin(), given.end());
  require_tensor(call, 0, call.inputs[0].dtype, pooled_shape(shape, read_windows(call, given, false)));
  return {{call.inputs[0].dtype, std::move(shape)}};
}

// Each element gets its window's dy. Otherwise dy, spread by the strides and padded, is summed over windows of stride
// 1.
std::optional<Lowering> lower_average_pool_grad(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand dy = steps.input(0), dx = steps.output();
  const compute_dtype computed = computed_in(dy.dtype);
  const std::vector<Window> windows =
      read_windows(call, call.attributes.int64_list(attribute_index(call, "shape")), false);
  if (are_apart(windows)) {
    if (!cover_all(windows)) steps.fill(dx, {});
    steps.map(divided_by_count(call, windows), {with_window_axes(dy, windows, true)}, window_view(dx, windows));
    return steps.take();
  }
  std::vector<int64_t> shape(dy.shape.begin(), dy.shape.begin() + kLead);
  for (const Window& w : windows) shape.push_back(w.padded() + w.size - 1);
  const StepOperand spread = steps.temporary(computed, shape);
  steps.fill(spread, {});
  StepOperand places = spread, view = spread;
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    const size_t axis = kLead + i;
    places.offset += (w.size - 1) * places.strides[axis];
    places.shape[axis] = w.count;
    places.strides[axis] *= w.stride;
    view.offset += w.before * view.strides[axis];
    view.shape[axis] = w.extent;
    view.shape.push_back(w.size);
    view.strides.push_back(view.strides[axis]);
  }
  steps.map(divided_by_count(call, windows), {dy}, places);
  steps.reduce("sum", computed, window_axes(windows.size()), {"x"}, {view}, {"x"},
               with_window_axes(dx, windows, false));
  return steps.take();
}

}  // namespace

const OpRules average_pool_1_rules{infer_average_pool, lower_average_pool, true};
const OpRules average_pool_grad_1_rules{infer_average_pool_grad, lower_average_pool_grad, true};
const OpRules max_pool_1_rules{infer_max_pool, lower_max_pool, true};
const OpRules max_pool_grad_1_rules{infer_max_pool_grad, lower_max_pool_grad, true};

}  // namespace compute
