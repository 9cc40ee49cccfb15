// SPDX-License-Identifier: Apache-2.0
// Ops of ONNX that read or write images at places of their own: GridSample, AffineGrid, Col2Im, MaxUnpool.
#include <algorithm>
#include <stdexcept>

#include "../op_table.hpp"

namespace onnxruntime_compute {
namespace {

int64_t product_from(const Shape& shape, size_t begin) {
  int64_t product = 1;
  for (size_t i = begin; i < shape.size(); ++i) product *= shape[i];
  return product;
}

std::string number_text(double value) {
  std::string text = std::to_string(value);
  return value < 0 ? "(" + text + ")" : text;
}

// ---- GridSample -----------------------------------------------------------------------------------------------------

// $0 mirrored at both ends of [low, high] as often as needed.
std::string reflected(double low, double high) {
  const double range = high - low;
  if (range <= 0) return number_text(low);
  const std::string distance = "(abs($0 - " + number_text(low) + ") % " + number_text(2 * range) + ")";
  return number_text(low) + " + where(" + distance + " > " + number_text(range) + ", " + number_text(2 * range) +
         " - " + distance + ", " + distance + ")";
}

// The elements beside a place along one axis, each with its weight. `inside`: of those outside the image, 0.
struct Tap {
  Value index, inside, weight;
};

std::vector<Tap> taps_of(Call& c, const Value& grid, int64_t extent, const std::string& mode) {
  const bool corners = c.node.integer("align_corners", 0) != 0;
  const std::string padding = c.node.text("padding_mode", "zeros");
  const auto length = static_cast<double>(extent);
  const double low = corners ? 0 : -0.5, high = corners ? length - 1 : length - 0.5;
  const auto map = [&](const std::string& text, const std::vector<Value>& operands) {
    return c.t.settle(c.t.map(text, operands, compute::float32));
  };
  Value place =
      map(corners ? "($0 + 1) / 2 * " + number_text(length - 1) : "(($0 + 1) * " + number_text(length) + " - 1) / 2",
          {grid});
  if (mode == "nearest") place = map("round($0)", {place});
  if (padding == "border") place = map("min(max($0, 0), " + number_text(length - 1) + ")", {place});
  if (padding == "reflection")
    place = map(
        "where(($0 < " + number_text(low) + ") | ($0 > " + number_text(high) + "), " + reflected(low, high) + ", $0)",
        {place});
  const Value first = map(mode == "nearest" ? "round($0)" : "floor($0)", {place});
  const Value part = map("$0 - $1", {place, first});
  const auto tap = [&](int64_t step, const std::string& weight) {
    const Value at = map("$0 + " + number_text(static_cast<double>(step)), {first});
    Tap made;
    if (padding == "zeros")
      made.inside = map("convert(($0 >= 0) & ($0 <= " + number_text(length - 1) + "), float32)", {at});
    const Value known = padding == "reflection" ? map("trunc(" + reflected(low, high) + ")", {at}) : at;
    made.index = c.t.settle(
        c.t.map("convert(min(max($0, 0), " + number_text(length - 1) + "), int64)", {known}, compute::int64));
    made.weight = map(weight, {part});
    return made;
  };
  if (mode == "nearest") return {tap(0, "$0 * 0 + 1")};
  if (mode == "linear") return {tap(0, "1 - $0"), tap(1, "$0")};
  const auto outer = [](const std::string& x) {
    return "((-0.75 * " + x + " + 3.75) * " + x + " - 6) * " + x + " + 3";
  };
  const auto inner = [](const std::string& x) { return "(1.25 * " + x + " - 2.25) * " + x + " * " + x + " + 1"; };
  return {tap(-1, outer("($0 + 1)")), tap(0, inner("$0")), tap(1, inner("(1 - $0)")), tap(2, outer("(2 - $0)"))};
}

void run_grid_sample(Call& c) {
  const Value x = c.t.settle(c.in(0));
  const Value grid = c.t.settle(c.t.cast(c.in(1), compute::float32));
  const size_t axes = x.shape.size() - 2;
  std::string mode = c.node.text("mode", "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  const int64_t batch = x.shape[0], channels = x.shape[1], elements = product_from(x.shape, 2);
  Shape shape{batch, channels};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  const int64_t places = product_from(shape, 2);
  if (places * batch * channels == 0) return c.out(0, c.t.fill(0, x.dtype, shape));
  const Value flat = c.t.reshape(x, {batch, channels, elements});
  std::vector<std::vector<Tap>> taps;
  for (size_t axis = 0; axis < axes; ++axis) {
    const auto number = static_cast<int64_t>(axes - 1 - axis);
    const Value along = c.t.slice_axis(grid, grid.rank() - 1, number, number + 1);
    taps.push_back(taps_of(c, c.t.reshape(along, {batch, 1, places}), x.shape[2 + axis], mode));
  }
  Value sum;
  std::vector<size_t> at(axes, 0);
  for (size_t axis = 0; axis < axes;) {
    Value index = taps[0][at[0]].index, weight = taps[0][at[0]].weight;
    for (size_t i = 0; i < axes; ++i) {
      const Tap& tap = taps[i][at[i]];
      if (i > 0) {
        index = c.t.map("$0 * " + std::to_string(x.shape[2 + i]) + " + $1", {index, tap.index}, compute::int64);
        weight = c.t.map("$0 * $1", {weight, tap.weight}, compute::float32);
      }
      if (tap.inside.is_present()) weight = c.t.map("$0 * $1", {weight, tap.inside}, compute::float32);
    }
    index = c.t.settle(c.t.broadcast_to(c.t.settle(index), {batch, channels, places}));
    const Value taken = c.t.op("take_along_axis", {flat, index}, {Attribute("axis", int64_t{2})});
    // A weight of 0 hides NaN and infinity outside.
    const Value term = c.t.map("where($1 == 0, 0, convert($0, float32) * $1)", {taken, weight}, compute::float32);
    sum = c.t.settle(sum.is_present() ? c.t.map("$0 + $1", {sum, term}, compute::float32) : term);
    for (axis = 0; axis < axes && ++at[axis] == taps[axis].size(); ++axis) at[axis] = 0;
  }
  c.out(0, c.t.reshape(c.t.cast(sum, x.dtype), shape));
}

std::string refuse_grid_sample(const Claim& claim) {
  const std::string mode = claim.node.text("mode", "linear");
  if (claim.rank(0) < 3 || claim.rank(0) > 5) return "its rank";
  if ((mode == "cubic" || mode == "bicubic") && claim.rank(0) > 4) return "cubic in three dimensions";
  return claim.dtype(0) == compute::float64 ? "the dtype float64" : "";
}

// ---- AffineGrid -----------------------------------------------------------------------------------------------------

void run_affine_grid(Call& c) {
  const Value theta = c.t.settle(c.in(0));
  const std::vector<int64_t> size = c.t.to_integers(c.in(1));
  const bool corners = c.node.integer("align_corners", 0) != 0;
  const size_t axes = size.size() - 2;
  const int64_t places = product_from(size, 2);
  // The last axis comes first, and 1 behind all.
  std::vector<float> points(static_cast<size_t>(places) * (axes + 1), 1);
  for (int64_t place = 0; place < places; ++place) {
    int64_t rest = place;
    for (size_t i = 0; i < axes; ++i) {
      const int64_t extent = size[size.size() - 1 - i], at = rest % extent;
      rest /= extent;
      const double value =
          corners ? (extent == 1 ? -1 : -1 + 2.0 * static_cast<double>(at) / static_cast<double>(extent - 1))
                  : (2.0 * static_cast<double>(at) + 1) / static_cast<double>(extent) - 1;
      points[i * static_cast<size_t>(places) + static_cast<size_t>(place)] = static_cast<float>(value);
    }
  }
  const Value all =
      Tracer::constant(compute::Device::open("cpu").from_host(points, {static_cast<int64_t>(axes + 1), places}));
  const Value grid = c.t.op("matmul", {theta, c.t.settle(c.t.cast(all, theta.dtype))});
  Shape shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(static_cast<int64_t>(axes));
  c.out(0, c.t.reshape(c.t.permute(grid, {0, 2, 1}), shape));
}

// ---- Col2Im and MaxUnpool -------------------------------------------------------------------------------------------

// Adds elements of windows to the image: one place behind it takes those outside.
void run_col2im(Call& c) {
  const Value x = c.t.settle(c.in(0));
  const std::vector<int64_t> image = c.t.to_integers(c.in(1)), kernel = c.t.to_integers(c.in(2));
  const size_t axes = image.size();
  std::vector<int64_t> strides = c.node.integers("strides"), dilations = c.node.integers("dilations");
  std::vector<int64_t> pads = c.node.integers("pads"), windows(axes);
  strides.resize(axes, 1);
  dilations.resize(axes, 1);
  pads.resize(2 * axes, 0);
  for (size_t i = 0; i < axes; ++i)
    windows[i] = (image[i] + pads[i] + pads[i + axes] - dilations[i] * (kernel[i] - 1) - 1) / strides[i] + 1;
  const int64_t size = product_from(image, 0), taps = product_from(kernel, 0), count = product_from(windows, 0);
  std::vector<int64_t> places;
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t window = 0; window < count; ++window) {
      int64_t place = 0, step = 1, of_tap = tap, of_window = window;
      bool is_inside = true;
      for (size_t i = axes; i-- > 0;) {
        const int64_t at = of_window % windows[i] * strides[i] - pads[i] + of_tap % kernel[i] * dilations[i];
        of_window /= windows[i];
        of_tap /= kernel[i];
        is_inside = is_inside && at >= 0 && at < image[i];
        place += at * step;
        step *= image[i];
      }
      places.push_back(is_inside ? place : size);
    }
  }
  const int64_t planes = x.shape.at(0) * x.shape.at(1) / taps;
  const Value updates = c.t.reshape(x, {planes, taps * count});
  const Value indices =
      c.t.settle(c.t.broadcast_to(c.t.reshape(Tracer::integers(places), {1, taps * count}), {planes, taps * count}));
  const Value sums = c.t.op("scatter", {c.t.fill(0, x.dtype, {planes, size + 1}), indices, updates},
                            {Attribute("axis", int64_t{1}), Attribute("reduction", std::string("add"))});
  Shape shape{x.shape[0], x.shape[1] / taps};
  shape.insert(shape.end(), image.begin(), image.end());
  c.out(0, c.t.reshape(c.t.slice_axis(sums, 1, 0, size), shape));
}

void run_max_unpool(Call& c) {
  const Value x = c.t.settle(c.in(0));
  const std::vector<int64_t> kernel = c.node.integers("kernel_shape");
  std::vector<int64_t> strides = c.node.integers("strides"), pads = c.node.integers("pads");
  strides.resize(kernel.size(), 1);
  pads.resize(2 * kernel.size(), 0);
  Shape shape{x.shape.at(0), x.shape.at(1)};
  for (size_t i = 0; i < kernel.size(); ++i)
    shape.push_back((x.shape.at(i + 2) - 1) * strides[i] - pads[i] - pads[i + kernel.size()] + kernel[i]);
  const int64_t size = product_from(shape, 0);
  const Value all =
      c.t.op("scatter", {c.t.fill(0, x.dtype, {size}), c.t.reshape(c.in(1), {x.size()}), c.t.reshape(x, {x.size()})},
             {Attribute("axis", int64_t{0}), Attribute("reduction", std::string("set"))});
  Value y = c.t.reshape(all, shape);
  if (c.has(2)) {
    const std::vector<int64_t> wanted = c.t.to_integers(c.in(2));
    std::vector<int64_t> before(shape.size(), 0), after(shape.size(), 0);
    for (size_t i = 0; i < shape.size(); ++i) after[i] = std::max<int64_t>(0, wanted.at(i) - shape[i]);
    y = c.t.op("pad", {y}, {Attribute("pads_begin", before), Attribute("pads_end", after)});
  }
  c.out(0, y);
}

}  // namespace

void add_sampling(std::vector<OpEntry>& table) {
  table.push_back({"GridSample", 16, kNewest, kReal, 0, refuse_grid_sample, run_grid_sample});
  table.push_back({"AffineGrid", 20, kNewest, kReal, 0b10, nullptr, run_affine_grid});
  table.push_back({"Col2Im", 18, kNewest, kNumbers, 0b110, nullptr, run_col2im});
  table.push_back({"MaxUnpool", 9, kNewest, kReal, 0b100, nullptr, run_max_unpool});
}

}  // namespace onnxruntime_compute
