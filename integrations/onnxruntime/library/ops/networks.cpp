// SPDX-License-Identifier: Apache-2.0
// Ops of ONNX for networks: convolutions, pooling, norms.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "../op_table.hpp"

namespace onnxruntime_compute {
namespace {

struct Window {
  std::vector<int64_t> kernel, strides, dilations, before, after;
};

// The window of a node over `spatial` extents, with its pads written out.
Window window_of(const Node& node, const Shape& spatial, std::vector<int64_t> kernel) {
  const size_t rank = spatial.size();
  Window w;
  w.kernel = std::move(kernel);
  w.strides = node.integers("strides");
  w.dilations = node.integers("dilations");
  w.strides.resize(rank, 1);
  w.dilations.resize(rank, 1);
  std::vector<int64_t> pads = node.integers("pads");
  pads.resize(2 * rank, 0);
  w.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
  w.after.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
  const std::string automatic = node.text("auto_pad", "NOTSET");
  if (automatic == "NOTSET" || automatic.empty()) return w;
  for (size_t i = 0; i < rank; ++i) {
    w.before[i] = w.after[i] = 0;
    if (automatic == "VALID") continue;
    const int64_t windows = (spatial[i] + w.strides[i] - 1) / w.strides[i];
    const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const int64_t all = std::max<int64_t>(0, (windows - 1) * w.strides[i] + reach - spatial[i]);
    (automatic == "SAME_UPPER" ? w.before : w.after)[i] = all / 2;
    (automatic == "SAME_UPPER" ? w.after : w.before)[i] = all - all / 2;
  }
  return w;
}

Shape spatial_of(const Value& x) { return {x.shape.begin() + 2, x.shape.end()}; }

std::string refuse_convolution(const Claim& claim) {
  const int64_t rank = std::max(claim.rank(0), claim.rank(1));
  if (rank < 0) return "an unknown rank";
  return rank < 3 || rank > 5 ? "its rank" : "";
}

void run_convolution(Call& c) {
  const Value& x = c.in(0);
  const Value& weight = c.in(1);
  const Window w = window_of(c.node, spatial_of(x), spatial_of(weight));
  std::vector<Value> inputs{x, weight};
  if (c.has(2)) inputs.push_back(c.in(2));
  c.out(0,
        c.t.op("convolution", inputs,
               {Attribute("strides", w.strides), Attribute("dilations", w.dilations), Attribute("pads_begin", w.before),
                Attribute("pads_end", w.after), Attribute("groups", c.node.integer("group", 1))}));
}

void run_convolution_integer(Call& c) {
  Value x = c.t.cast(c.in(0), compute::int32), weight = c.t.cast(c.in(1), compute::int32);
  const auto less = [&](Value value, size_t input) {
    Value zero = c.t.cast(c.in(input), compute::int32);
    if (zero.rank() == 1 && zero.size() > 1) {
      Shape shape(value.shape.size(), 1);
      shape[0] = zero.size();
      zero = c.t.reshape(zero, shape);
    } else {
      zero = c.t.reshape(zero, {});
    }
    return c.t.map("$0 - $1", {value, zero}, compute::int32);
  };
  if (c.has(2)) x = less(x, 2);
  if (c.has(3)) weight = less(weight, 3);
  const Window w = window_of(c.node, spatial_of(x), spatial_of(weight));
  c.out(0,
        c.t.op("convolution", {x, weight},
               {Attribute("strides", w.strides), Attribute("dilations", w.dilations), Attribute("pads_begin", w.before),
                Attribute("pads_end", w.after), Attribute("groups", c.node.integer("group", 1))}));
}

void run_convolution_quantized(Call& c) {
  // [c] for the channels of the result.
  const auto of_channels = [](Call& call, const Value& value, size_t axis, int64_t rank) {
    if (value.size() == 1) return call.t.reshape(value, {});
    Shape shape(static_cast<size_t>(rank), 1);
    shape[axis] = value.size();
    return call.t.reshape(value, shape);
  };
  const int64_t rank = c.in(0).rank();
  const auto centred = [&](size_t input) {
    const Value x = c.t.cast(c.in(input), compute::int32);
    const Value zero = of_channels(c, c.t.cast(c.in(input + 2), compute::int32), 0, rank);
    return c.t.settle(c.t.map("$0 - $1", {x, zero}, compute::int32));
  };
  const Value x = centred(0), weight = centred(3);
  const Window w = window_of(c.node, spatial_of(x), spatial_of(weight));
  std::vector<Value> inputs{x, weight};
  if (c.has(8)) inputs.push_back(c.in(8));
  const Value sums =
      c.t.op("convolution", inputs,
             {Attribute("strides", w.strides), Attribute("dilations", w.dilations), Attribute("pads_begin", w.before),
              Attribute("pads_end", w.after), Attribute("groups", c.node.integer("group", 1))});
  const DType dtype = c.in(7).dtype;
  const Value factor =
      c.t.map("$0 * $1 / $2", {c.t.reshape(c.in(1), {}), of_channels(c, c.in(4), 1, rank), c.t.reshape(c.in(6), {})},
              compute::float32);
  const Value zero = c.t.cast(c.t.reshape(c.in(7), {}), compute::float32);
  const std::string range = dtype == compute::int8 ? "-128.0), 127.0" : "0.0), 255.0";
  c.out(0, c.t.map("convert(min(max(round(convert($0, float32) * $1) + $2, " + range + "), " +
                       std::string(dtype.name()) + ")",
                   {sums, c.t.settle(factor), zero}, dtype));
}

void run_convolution_transpose(Call& c) {
  const Value& x = c.in(0);
  const Value& weight = c.in(1);
  const Shape spatial = spatial_of(x), kernel = spatial_of(weight);
  const size_t rank = spatial.size();
  std::vector<int64_t> strides = c.node.integers("strides"), dilations = c.node.integers("dilations");
  std::vector<int64_t> more = c.node.integers("output_padding"), pads = c.node.integers("pads");
  strides.resize(rank, 1);
  dilations.resize(rank, 1);
  more.resize(rank, 0);
  pads.resize(2 * rank, 0);
  const std::vector<int64_t> wanted = c.node.integers("output_shape");
  const std::string automatic = c.node.text("auto_pad", "NOTSET");
  std::vector<int64_t> before(rank), after(rank);
  for (size_t i = 0; i < rank; ++i) {
    before[i] = pads[i];
    after[i] = pads[i + rank];
    const bool is_same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    if (wanted.empty() && !is_same) continue;
    const int64_t goal = wanted.empty() ? spatial[i] * strides[i] : wanted[wanted.size() - rank + i];
    const int64_t all = strides[i] * (spatial[i] - 1) + more[i] + (kernel[i] - 1) * dilations[i] + 1 - goal;
    if (all < 0) {  // the result is larger than what windows cover
      before[i] = after[i] = 0;
      more[i] -= all;
      continue;
    }
    before[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    after[i] = all - before[i];
  }
  std::vector<Value> inputs{x, weight};
  if (c.has(2)) inputs.push_back(c.in(2));
  c.out(0, c.t.op("convolution_transpose", inputs,
                  {Attribute("strides", strides), Attribute("dilations", dilations), Attribute("pads_begin", before),
                   Attribute("pads_end", after), Attribute("output_padding", more),
                   Attribute("groups", c.node.integer("group", 1))}));
}

std::string refuse_convolution_transpose(const Claim& claim) {
  const std::string refused = refuse_convolution(claim);
  if (!refused.empty()) return refused;
  const std::vector<int64_t> more = claim.node.integers("output_padding"), strides = claim.node.integers("strides");
  for (size_t i = 0; i < more.size(); ++i) {
    if (more[i] != 0 && more[i] >= (i < strides.size() ? strides[i] : 1)) return "its output_padding";
  }
  return "";
}

std::string refuse_pool(const Claim& claim) {
  const Node& node = claim.node;
  const size_t spatial = node.integers("kernel_shape").size();
  if (spatial < 1 || spatial > 3) return "its rank";
  const bool is_max = node.type == "MaxPool";
  if (node.has_output(1) && !is_real(claim.dtype(0)))
    return "indices of the dtype " + std::string(claim.dtype(0).name());
  return !is_max && !is_real(claim.dtype(0)) ? "the dtype " + std::string(claim.dtype(0).name()) : "";
}

int64_t product_of(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

// How many windows there are along an axis.
int64_t windows_of(const Window& w, size_t axis, int64_t extent) {
  const int64_t reach = (w.kernel[axis] - 1) * w.dilations[axis] + 1;
  return (extent + w.before[axis] + w.after[axis] - reach) / w.strides[axis] + 1;
}

// The sums of the windows, by a convolution with ones.
Value window_sums(Call& c, const Value& x, const Window& w) {
  Shape planes{x.shape[0] * x.shape[1], 1}, kernel{1, 1}, shape{x.shape[0], x.shape[1]};
  const Shape spatial = spatial_of(x);
  planes.insert(planes.end(), spatial.begin(), spatial.end());
  kernel.insert(kernel.end(), w.kernel.begin(), w.kernel.end());
  const Value sums = c.t.op("convolution", {c.t.reshape(x, planes), c.t.fill(1, x.dtype, kernel)},
                            {Attribute("strides", w.strides), Attribute("dilations", w.dilations),
                             Attribute("pads_begin", w.before), Attribute("pads_end", w.after)});
  shape.insert(shape.end(), sums.shape.begin() + 2, sums.shape.end());
  return c.t.reshape(sums, shape);
}

// How many elements of [-before, extent + after) each window has, as an operand for [n, c, …]. A tensor is padded
// further, where ceil_mode asks for it.
Value window_counts(Call& c, const Window& w, const Shape& spatial, const Shape& before, const Shape& after) {
  Shape shape(spatial.size(), 1);
  std::vector<int64_t> counts{1};
  for (size_t axis = 0; axis < spatial.size(); ++axis) {
    std::vector<int64_t> more;
    shape[axis] = windows_of(w, axis, spatial[axis]);
    for (const int64_t count : counts) {
      for (int64_t i = 0; i < shape[axis]; ++i) {
        int64_t inside = 0;
        for (int64_t tap = 0; tap < w.kernel[axis]; ++tap) {
          const int64_t at = i * w.strides[axis] - w.before[axis] + tap * w.dilations[axis];
          if (at >= -before[axis] && at < spatial[axis] + after[axis]) ++inside;
        }
        more.push_back(count * inside);
      }
    }
    counts = std::move(more);
  }
  return c.t.reshape(Tracer::integers(counts), shape);
}

// MaxPool with the positions of the greatest elements: all elements of all windows side by side.
void run_pool_with_indices(Call& c, const Window& w) {
  const Value& x = c.in(0);
  const Shape spatial = spatial_of(x);
  const int64_t planes = x.shape[0] * x.shape[1], elements = product_of(spatial), taps = product_of(w.kernel);
  Shape shape{x.shape[0], x.shape[1]};
  for (size_t axis = 0; axis < spatial.size(); ++axis) shape.push_back(windows_of(w, axis, spatial[axis]));
  const int64_t windows = product_of({shape.begin() + 2, shape.end()});
  const bool by_columns = c.node.integer("storage_order", 0) != 0;
  std::vector<int64_t> positions, named, outside;
  for (int64_t i = 0; i < windows * taps; ++i) {
    int64_t window = i / taps, tap = i % taps, at = 0, name = 0, step = 1;
    bool is_inside = true;
    std::vector<int64_t> place(spatial.size());
    for (size_t axis = spatial.size(); axis-- > 0;) {
      place[axis] =
          window % shape[2 + axis] * w.strides[axis] - w.before[axis] + tap % w.kernel[axis] * w.dilations[axis];
      window /= shape[2 + axis];
      tap /= w.kernel[axis];
      is_inside = is_inside && place[axis] >= 0 && place[axis] < spatial[axis];
    }
    for (size_t axis = 0; axis < spatial.size(); ++axis) {
      at = at * spatial[axis] + place[axis];
      name += place[axis] * step;
      step *= spatial[axis];
    }
    positions.push_back(is_inside ? at : 0);
    named.push_back(is_inside ? (by_columns ? name : at) : 0);
    outside.push_back(is_inside ? 0 : 1);
  }
  const Value flat = c.t.reshape(x, {planes, elements});
  const Value taken = c.t.op("take", {flat, Tracer::integers(positions)}, {Attribute("axis", int64_t{1})});
  const Value seen = c.t.map("where($1 != 0, -inf, $0)", {taken, Tracer::integers(outside)}, x.dtype);
  const Value all = c.t.settle(c.t.reshape(c.t.settle(seen), {planes, windows, taps}));
  const std::vector<Attribute> last{Attribute("axis", int64_t{2}), Attribute("keepdims", int64_t{1})};
  const Value best = c.t.cast(c.t.op("argmax", {all}, last), compute::int64);
  const Value names =
      c.t.broadcast_to(c.t.reshape(Tracer::integers(named), {1, windows, taps}), {planes, windows, taps});
  const Value chosen = c.t.op("take_along_axis", {names, c.t.settle(best)}, {Attribute("axis", int64_t{2})});
  std::vector<int64_t> first;
  for (int64_t plane = 0; plane < planes; ++plane) first.push_back(plane * elements);
  const Value index =
      c.t.map("$0 + $1", {chosen, c.t.reshape(Tracer::integers(first), {planes, 1, 1})}, compute::int64);
  const Value greatest = c.t.op("take_along_axis", {all, best}, {Attribute("axis", int64_t{2})});
  c.out(0, c.t.reshape(greatest, shape));
  c.out(1, c.t.reshape(c.t.settle(index), shape));
}

void run_pool(Call& c) {
  const Value x = c.t.settle(c.in(0));
  const Shape spatial = spatial_of(x);
  Window w = window_of(c.node, spatial, c.node.integers("kernel_shape"));
  const std::vector<int64_t> given_after = w.after;
  if (c.node.integer("ceil_mode", 0) != 0) {
    for (size_t i = 0; i < spatial.size(); ++i) {
      const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
      const int64_t room = spatial[i] + w.before[i] + w.after[i] - reach;
      int64_t windows = (room + w.strides[i] - 1) / w.strides[i] + 1;
      if ((windows - 1) * w.strides[i] >= spatial[i] + w.before[i]) --windows;  // it would begin in the padding
      w.after[i] = std::max<int64_t>(w.after[i], (windows - 1) * w.strides[i] + reach - spatial[i] - w.before[i]);
    }
  }
  std::vector<Attribute> attributes{Attribute("window", w.kernel), Attribute("strides", w.strides),
                                    Attribute("pads_begin", w.before), Attribute("pads_end", w.after)};
  if (c.node.type == "MaxPool" && c.node.has_output(1)) return run_pool_with_indices(c, w);
  if (c.node.type == "MaxPool") {
    attributes.emplace_back("dilations", w.dilations);
    return c.out(0, c.t.op("max_pool", {x}, attributes));
  }
  const bool is_dilated = std::any_of(w.dilations.begin(), w.dilations.end(), [](int64_t step) { return step != 1; });
  const bool counts_pads = c.node.integer("count_include_pad", 0) != 0;
  if (c.node.type == "AveragePool" && (is_dilated || (counts_pads && w.after != given_after))) {
    const std::vector<int64_t> none(spatial.size(), 0);
    const Value counts = window_counts(c, w, spatial, counts_pads ? w.before : none, counts_pads ? given_after : none);
    return c.out(0, c.t.map("$0 / $1", {window_sums(c, x, w), c.t.cast(counts, x.dtype)}, x.dtype));
  }
  if (c.node.type == "AveragePool") {
    attributes.emplace_back("count_include_pad", c.node.integer("count_include_pad", 0));
    return c.out(0, c.t.op("average_pool", {x}, attributes));
  }
  attributes.emplace_back("count_include_pad", int64_t{1});  // LpPool
  int64_t count = 1;
  for (const int64_t extent : w.kernel) count *= extent;
  const auto p = static_cast<double>(c.node.integer("p", 2));
  const Value power = Tracer::number(p, x.dtype), inverse = Tracer::number(1 / p, x.dtype);
  const Value number = Tracer::number(static_cast<double>(count), x.dtype);
  const Value powers = c.t.map(p == 2   ? "$0 * $0"
                               : p == 1 ? "abs($0)"
                                        : "abs($0) ** $1",
                               p <= 2 ? std::vector<Value>{x} : std::vector<Value>{x, power}, x.dtype);
  if (is_dilated) {
    const Value sums = window_sums(c, c.t.settle(powers), w);
    return c.out(0, c.t.map(p == 2 ? "sqrt($0)" : "$0 ** $1",
                            p == 2 ? std::vector<Value>{sums} : std::vector<Value>{sums, inverse}, x.dtype));
  }
  const Value means = c.t.op("average_pool", {powers}, attributes);
  c.out(0, c.t.map(p == 2 ? "sqrt($0 * $1)" : "($0 * $1) ** $2",
                   p == 2 ? std::vector<Value>{means, number} : std::vector<Value>{means, number, inverse}, x.dtype));
}

std::vector<int64_t> spatial_axes(const Value& x) {
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

void run_global_pool(Call& c) {
  const Value& x = c.in(0);
  const std::vector<Attribute> attributes{Attribute("axes", spatial_axes(x)), Attribute("keepdims", int64_t{1})};
  if (c.node.type == "GlobalAveragePool") return c.out(0, c.t.op("mean", {x}, attributes));
  if (c.node.type == "GlobalMaxPool") return c.out(0, c.t.op("max", {x}, attributes));
  const auto p = static_cast<double>(c.node.integer("p", 2));
  const Value power = Tracer::number(p, x.dtype), inverse = Tracer::number(1 / p, x.dtype);
  const Value sums = c.t.op("sum", {c.t.map("abs($0) ** $1", {x, power}, x.dtype)}, attributes);
  c.out(0, c.t.map("$0 ** $1", {sums, inverse}, x.dtype));
}

// A tensor [c] as an operand of [n, c, …].
Value of_channels(Call& c, const Value& value, int64_t rank) {
  Shape shape(static_cast<size_t>(std::max<int64_t>(rank - 1, 1)), 1);
  shape[0] = value.size();
  return c.t.reshape(value, shape);
}

std::string refuse_batch_norm(const Claim& claim) {
  if (claim.node.version < 14 && claim.node.has_output(1)) return "training";
  if (claim.node.integer("spatial", 1) == 0) return "spatial=0";
  return claim.dtype(0) != claim.dtype(1) || claim.dtype(0) != claim.dtype(3) ? "mixed dtypes" : "";
}

// The mean and the variance of the batch, which the running ones approach.
void run_batch_norm_training(Call& c) {
  const Value x = c.t.settle(c.in(0));
  std::vector<int64_t> axes = spatial_axes(x);
  axes.insert(axes.begin(), 0);
  const std::vector<Attribute> attributes{Attribute("axes", axes)};
  const Value mean = c.t.op("mean", {x}, attributes), variance = c.t.op("var", {x}, attributes);
  c.out(0, c.t.op("batch_norm_inference", {x, mean, variance, c.in(1), c.in(2)},
                  {Attribute("epsilon", c.node.real("epsilon", 1e-5))}));
  const DType dtype = c.in(3).dtype;
  const Value momentum = Tracer::number(c.node.real("momentum", 0.9), dtype);
  for (const size_t i : {size_t{1}, size_t{2}}) {
    c.out(i, c.t.map("$0 * $2 + $1 * (1 - $2)", {c.in(2 + i), c.t.cast(i == 1 ? mean : variance, dtype), momentum},
                     dtype));
  }
}

void run_batch_norm(Call& c) {
  if (c.node.integer("training_mode", 0) != 0) return run_batch_norm_training(c);
  const Value& x = c.in(0);
  const double epsilon = c.node.real("epsilon", 1e-5);
  const DType dtype = x.dtype;
  const bool is_fixed =
      c.in(1).is_constant() && c.in(2).is_constant() && c.in(3).is_constant() && c.in(4).is_constant();
  if (!is_fixed) {
    return c.out(
        0, c.t.op("batch_norm_inference", {x, c.in(3), c.in(4), c.in(1), c.in(2)}, {Attribute("epsilon", epsilon)}));
  }
  const Value scale = c.t.map("$0 / sqrt($1 + $2)", {c.in(1), c.in(4), Tracer::number(epsilon, dtype)}, dtype);
  const Value shift = c.t.map("$0 - $1 * $2", {c.in(2), c.in(3), scale}, dtype);
  c.out(0, c.t.map("$0 * $1 + $2", {x, of_channels(c, scale, x.rank()), of_channels(c, shift, x.rank())}, dtype));
}

void run_instance_norm(Call& c) {
  const Value& x = c.in(0);
  c.out(0, c.t.ops("group_norm", 3, {x, c.in(1), c.in(2)},
                   {Attribute("groups", x.shape.at(1)), Attribute("epsilon", c.node.real("epsilon", 1e-5))})[0]);
}

void run_group_norm(Call& c) {
  // Before version 21 a group has one scale and one bias.
  const auto of_channels = [&](const Value& value) {
    if (c.node.version >= 21) return value;
    const int64_t groups = value.size(), channels = c.in(0).shape.at(1);
    return c.t.reshape(c.t.broadcast_to(c.t.reshape(value, {groups, 1}), {groups, channels / groups}), {channels});
  };
  c.out(0, c.t.ops("group_norm", 3, {c.in(0), of_channels(c.in(1)), of_channels(c.in(2))},
                   {Attribute("groups", c.node.integer("num_groups", 1)),
                    Attribute("epsilon", c.node.real("epsilon", 1e-5))})[0]);
}

void run_layer_norm(Call& c) {
  const Value x = c.t.settle(c.in(0));
  const int64_t axis = Call::axis_of(c.node.integer("axis", -1), x.rank());
  const Shape features(x.shape.begin() + axis, x.shape.end());
  const bool is_rms = c.node.type == "RMSNormalization";
  std::vector<Value> inputs{x, c.t.broadcast_to(c.in(1), features)};
  if (!is_rms && c.has(2)) inputs.push_back(c.t.broadcast_to(c.in(2), features));
  const std::vector<Value> made =
      c.t.ops(is_rms ? "rms_norm" : "layer_norm", is_rms ? 2 : 3, inputs,
              {Attribute("axis", axis), Attribute("epsilon", c.node.real("epsilon", 1e-5))});
  c.out(0, made[0]);
  Shape kept(x.shape.begin(), x.shape.begin() + axis);
  kept.resize(x.shape.size(), 1);
  for (size_t i = 1; i < made.size(); ++i) {
    if (c.node.has_output(i)) c.out(i, c.t.cast(c.t.reshape(made[i], kept), compute::float32));
  }
}

std::string refuse_layer_norm(const Claim& claim) {
  if (claim.node.integer("stash_type", 1) != 1) return "stash_type";
  return claim.dtype(0) != claim.dtype(1) ? "mixed dtypes" : "";
}

void run_mean_variance(Call& c) {
  const Value x = c.t.settle(c.in(0));
  std::vector<int64_t> axes = c.node.integers("axes");
  if (axes.empty()) axes = {0, 2, 3};
  const std::vector<Attribute> attributes{Attribute("axes", axes), Attribute("keepdims", int64_t{1})};
  const Value mean = c.t.op("mean", {x}, attributes), deviation = c.t.op("std", {x}, attributes);
  c.out(0, c.t.map("($0 - $1) / ($2 + 1e-9)", {x, mean, deviation}, x.dtype));
}

void run_lp_norm(Call& c) {
  const Value x = c.t.settle(c.in(0));
  const int64_t axis = Call::axis_of(c.node.integer("axis", -1), x.rank());
  const bool is_first = c.node.integer("p", 2) == 1;
  const Value powers = c.t.map(is_first ? "abs($0)" : "$0 * $0", {x}, x.dtype);
  const Value sums =
      c.t.op("sum", {powers}, {Attribute("axes", std::vector<int64_t>{axis}), Attribute("keepdims", int64_t{1})});
  const Value norm = c.t.map(is_first ? "$0" : "sqrt($0)", {sums}, x.dtype);
  c.out(0, c.t.map("where($1 == 0, 0, $0 / $1)", {x, c.t.settle(norm)}, x.dtype));
}

}  // namespace

void add_networks(std::vector<OpEntry>& table) {
  table.push_back({"Conv", 1, kNewest, kReal, 0, refuse_convolution, run_convolution});
  table.push_back({"ConvInteger", 10, kNewest, kIntegers, 0, refuse_convolution, run_convolution_integer});
  table.push_back({"QLinearConv", 10, kNewest, kIntegers, 0, refuse_convolution, run_convolution_quantized});
  table.push_back({"ConvTranspose", 1, kNewest, kReal, 0, refuse_convolution_transpose, run_convolution_transpose});
  table.push_back({"MaxPool", 1, kNewest, kNumbers, 0, refuse_pool, run_pool});
  table.push_back({"AveragePool", 7, kNewest, kReal, 0, refuse_pool, run_pool});
  table.push_back({"LpPool", 2, kNewest, kReal, 0, refuse_pool, run_pool});
  table.push_back({"GlobalAveragePool", 1, kNewest, kReal, 0, nullptr, run_global_pool});
  table.push_back({"GlobalMaxPool", 1, kNewest, kReal, 0, nullptr, run_global_pool});
  table.push_back({"GlobalLpPool", 2, kNewest, kReal, 0, nullptr, run_global_pool});
  table.push_back({"BatchNormalization", 7, kNewest, kReal, 0, refuse_batch_norm, run_batch_norm});
  table.push_back({"InstanceNormalization", 6, kNewest, kReal, 0, nullptr, run_instance_norm});
  table.push_back({"GroupNormalization", 18, kNewest, kReal, 0, nullptr, run_group_norm});
  table.push_back({"LayerNormalization", 17, kNewest, kReal, 0, refuse_layer_norm, run_layer_norm});
  table.push_back({"RMSNormalization", 23, kNewest, kReal, 0, refuse_layer_norm, run_layer_norm});
  table.push_back({"MeanVarianceNormalization", 9, kNewest, kReal, 0, nullptr, run_mean_variance});
  table.push_back({"LpNormalization", 1, kNewest, kReal, 0, nullptr, run_lp_norm});
}

}  // namespace onnxruntime_compute
