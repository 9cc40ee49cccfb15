// SPDX-License-Identifier: Apache-2.0
// Ops of ONNX that arrange elements by positions that do not depend on them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "../op_table.hpp"

namespace onnxruntime_compute {
namespace {

int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t size = 1;
  for (size_t i = begin; i < end; ++i) size *= shape[i];
  return size;
}

void run_reshape(Call& c) {
  const Value& x = c.in(0);
  Shape shape = c.integers("shape", 1);
  const bool zero_is_zero = c.node.integer("allowzero", 0) != 0;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !zero_is_zero) shape[i] = x.shape.at(i);
    if (shape[i] == -1) {
      open = static_cast<int64_t>(i);
    } else {
      known *= shape[i];
    }
  }
  if (open >= 0) shape[static_cast<size_t>(open)] = known == 0 ? 0 : x.size() / known;
  c.out(0, c.t.reshape(x, shape));
}

void run_flatten(Call& c) {
  const Value& x = c.in(0);
  const auto axis = static_cast<size_t>(Call::axis_of(c.node.integer("axis", 1), x.rank()));
  c.out(0, c.t.reshape(x, {product(x.shape, 0, axis), product(x.shape, axis, x.shape.size())}));
}

void run_squeeze(Call& c) {
  const Value& x = c.in(0);
  bool is_given = false;
  std::vector<int64_t> axes = c.integers("axes", 1, &is_given);
  for (int64_t& axis : axes) axis = Call::axis_of(axis, x.rank());
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t extent = x.shape[static_cast<size_t>(i)];
    const bool goes = is_given && !axes.empty() ? std::find(axes.begin(), axes.end(), i) != axes.end() : extent == 1;
    if (goes && extent != 1) throw std::runtime_error("Squeeze: an axis whose extent is not 1");
    if (!goes) shape.push_back(extent);
  }
  c.out(0, c.t.reshape(x, shape));
}

void run_unsqueeze(Call& c) {
  const Value& x = c.in(0);
  std::vector<int64_t> axes = c.integers("axes", 1);
  const int64_t rank = x.rank() + static_cast<int64_t>(axes.size());
  for (int64_t& axis : axes) axis = Call::axis_of(axis, rank);
  Shape shape;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i) {
    shape.push_back(std::find(axes.begin(), axes.end(), i) != axes.end() ? 1 : x.shape.at(next++));
  }
  c.out(0, c.t.reshape(x, shape));
}

void run_transpose(Call& c) {
  const Value& x = c.in(0);
  std::vector<int32_t> axes;
  for (const int64_t axis : c.node.integers("perm")) axes.push_back(static_cast<int32_t>(axis));
  if (axes.empty()) {
    for (int64_t i = x.rank(); i-- > 0;) axes.push_back(static_cast<int32_t>(i));
  }
  c.out(0, c.t.permute(x, axes));
}

void run_expand(Call& c) {
  const Value& x = c.in(0);
  c.out(0, c.t.broadcast_to(x, broadcast_shape({x.shape, c.t.to_integers(c.in(1))})));
}

void run_tile(Call& c) { c.out(0, c.t.op("tile", {c.in(0)}, {Attribute("repetitions", c.t.to_integers(c.in(1)))})); }

void run_concat(Call& c) {
  const int64_t axis = Call::axis_of(c.node.integer("axis", 1), c.in(0).rank());
  std::vector<Value> parts;
  for (const Value& part : c.all()) {
    if (part.shape.at(static_cast<size_t>(axis)) != 0) parts.push_back(part);
  }
  if (parts.empty()) parts.push_back(c.in(0));
  if (parts.size() == 1) return c.out(0, parts[0]);
  c.out(0, c.t.op("concat", parts, {Attribute("axis", axis)}));
}

void run_split(Call& c) {
  const Value x = c.t.settle(c.in(0));
  const int64_t axis = Call::axis_of(c.node.integer("axis", 0), x.rank());
  const int64_t extent = x.shape.at(static_cast<size_t>(axis));
  bool is_given = false;
  std::vector<int64_t> sizes = c.integers("split", 1, &is_given);
  if (!is_given) {
    const auto count = static_cast<int64_t>(c.node.outputs.size());
    const int64_t each = (extent + count - 1) / count;
    for (int64_t i = 0; i < count; ++i) sizes.push_back(std::clamp<int64_t>(extent - i * each, 0, each));
  }
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (c.node.has_output(i)) c.out(i, c.t.slice_axis(x, axis, start, start + sizes[i]));
    start += sizes[i];
  }
}

void run_slice(Call& c) {
  const Value& x = c.in(0);
  const bool by_attributes = c.node.version < 10;
  const std::vector<int64_t> starts = by_attributes ? c.node.integers("starts") : c.t.to_integers(c.in(1));
  const std::vector<int64_t> ends = by_attributes ? c.node.integers("ends") : c.t.to_integers(c.in(2));
  std::vector<int64_t> axes = c.integers("axes", 3), steps(starts.size(), 1);
  if (c.has(4)) steps = c.t.to_integers(c.in(4));
  if (axes.empty()) {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  std::vector<int64_t> from(x.shape.size(), 0), to(x.shape), by(x.shape.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto axis = static_cast<size_t>(Call::axis_of(axes[i], x.rank()));
    const int64_t extent = x.shape.at(axis), step = steps[i];
    const auto place = [&](int64_t at, int64_t least, int64_t greatest) {
      return std::clamp(at < 0 ? at + extent : at, least, greatest);
    };
    const int64_t start =
        step > 0 ? place(starts[i], 0, extent) : place(starts[i], 0, std::max<int64_t>(extent - 1, 0));
    const int64_t end = step > 0 ? place(ends[i], 0, extent) : place(ends[i], -1, extent - 1);
    if (step > 0 ? start >= end : start <= end) {
      from[axis] = to[axis] = 0;
      continue;
    }
    from[axis] = start;
    to[axis] = end < 0 ? compute::Slice().stop : end;
    by[axis] = step;
  }
  c.out(0, c.t.slice(x, from, to, by));
}

// The positions along an axis of `extent` that a mode of padding reads.
std::vector<int64_t> padded_positions(int64_t extent, int64_t before, int64_t after, const std::string& mode) {
  std::vector<int64_t> positions;
  if (extent == 0 && before + after > 0) throw std::runtime_error("Pad: no elements to repeat");
  for (int64_t i = -before; i < extent + after; ++i) {
    int64_t at = i;
    if (mode == "edge") {
      at = std::clamp<int64_t>(i, 0, extent - 1);
    } else if (mode == "wrap") {
      at = ((i % extent) + extent) % extent;
    } else if (extent > 1) {
      const int64_t period = 2 * (extent - 1);
      at = ((i % period) + period) % period;
      if (at >= extent) at = period - at;
    } else {
      at = 0;
    }
    positions.push_back(at);
  }
  return positions;
}

std::string refuse_pad(const Claim& claim) {
  return claim.node.version < 11 && !claim.node.has_attribute("pads") ? "pads that are missing" : "";
}

void run_pad(Call& c) {
  Value x = c.in(0);
  std::vector<int64_t> pads = c.integers("pads", 1);
  std::vector<int64_t> axes;
  if (c.has(3)) {
    axes = c.t.to_integers(c.in(3));
  } else {
    for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  const size_t rank = x.shape.size();
  std::vector<int64_t> before(rank, 0), after(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(Call::axis_of(axes[i], x.rank()));
    before[axis] = pads.at(i);
    after[axis] = pads.at(i + axes.size());
  }
  std::vector<int64_t> starts(rank, 0), stops(x.shape), steps(rank, 1);
  bool cuts = false;
  for (size_t i = 0; i < rank; ++i) {
    cuts = cuts || before[i] < 0 || after[i] < 0;
    starts[i] = std::max<int64_t>(0, -before[i]);
    stops[i] = std::max(starts[i], x.shape[i] + std::min<int64_t>(0, after[i]));
    before[i] = std::max<int64_t>(0, before[i]);
    after[i] = std::max<int64_t>(0, after[i]);
  }
  if (cuts) x = c.t.slice(x, starts, stops, steps);
  const std::string mode = c.node.text("mode", "constant");
  if (mode == "constant") {
    std::vector<Attribute> attributes{Attribute("pads_begin", before), Attribute("pads_end", after)};
    if (c.has(2)) {
      const Value& value = c.in(2);
      if (is_real(x.dtype)) {
        attributes.emplace_back("value", c.t.to_real(value));
      } else {
        attributes.emplace_back("value", c.t.to_integers(value).at(0));
      }
    } else if (is_real(x.dtype)) {
      attributes.emplace_back("value", c.node.real("value", 0));
    }
    return c.out(0, c.t.op("pad", {x}, attributes));
  }
  for (size_t i = 0; i < rank; ++i) {
    if (before[i] == 0 && after[i] == 0) continue;
    const Value positions = Tracer::integers(padded_positions(x.shape[i], before[i], after[i], mode));
    x = c.t.op("take", {x, positions}, {Attribute("axis", static_cast<int64_t>(i))});
  }
  c.out(0, x);
}

void run_shape(Call& c) {
  const Shape& shape = c.in(0).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t start = std::clamp<int64_t>(Call::axis_of(c.node.integer("start", 0), rank), 0, rank);
  const int64_t end = std::clamp<int64_t>(Call::axis_of(c.node.integer("end", rank), rank), 0, rank);
  c.out(0, Tracer::integers(std::vector<int64_t>(shape.begin() + start, shape.begin() + std::max(start, end))));
}

void run_size(Call& c) { c.out(0, c.t.reshape(Tracer::integers({c.in(0).size()}), {})); }

std::string refuse_constant(const Claim& claim) {
  for (const char* const key : {"value", "value_int", "value_ints", "value_float", "value_floats"}) {
    if (claim.node.has_attribute(key)) return "";
  }
  return "its kind of value";
}

void run_constant(Call& c) {
  if (const auto* const value = c.node.find("value")) return c.out(0, Tracer::constant(value->tensor));
  if (const auto* const value = c.node.find("value_int"))
    return c.out(0, c.t.reshape(Tracer::integers(value->ints), {}));
  if (const auto* const value = c.node.find("value_ints")) return c.out(0, Tracer::integers(value->ints));
  const bool is_list = c.node.has_attribute("value_floats");
  const std::vector<float>& values = c.node.find(is_list ? "value_floats" : "value_float")->floats;
  const Value list = Tracer::constant(compute::Device::open("cpu").from_host(values));
  c.out(0, is_list ? list : c.t.reshape(list, {}));
}

void run_constant_of_shape(Call& c) {
  const Shape shape = c.t.to_integers(c.in(0));
  const auto* const given = c.node.find("value");
  const Value value = given != nullptr ? Tracer::constant(given->tensor) : Tracer::number(0, compute::float32);
  c.out(0, c.t.broadcast_to(c.t.reshape(value, {}), shape));
}

void run_range(Call& c) {
  const DType dtype = c.in(0).dtype;
  if (is_real(dtype)) {
    const double start = c.t.to_real(c.in(0)), limit = c.t.to_real(c.in(1)), step = c.t.to_real(c.in(2));
    if (step == 0) throw std::runtime_error("Range: delta is 0");
    const auto size = static_cast<int64_t>(std::max(0.0, std::ceil((limit - start) / step)));
    return c.out(0, c.t.op("arange", {},
                           {Attribute("start", start), Attribute("step", step), Attribute("size", size),
                            Attribute("dtype", dtype)}));
  }
  const int64_t start = c.t.to_integers(c.in(0)).at(0), limit = c.t.to_integers(c.in(1)).at(0);
  const int64_t step = c.t.to_integers(c.in(2)).at(0);
  if (step == 0) throw std::runtime_error("Range: delta is 0");
  const int64_t size =
      std::max<int64_t>(0, step > 0 ? (limit - start + step - 1) / step : (start - limit - step - 1) / -step);
  c.out(0, c.t.op("arange", {},
                  {Attribute("start", start), Attribute("step", step), Attribute("size", size),
                   Attribute("dtype", dtype)}));
}

void run_eye_like(Call& c) {
  const Value& x = c.in(0);
  const int64_t wanted = c.node.integer("dtype", 0);
  const DType dtype = wanted != 0 ? dtype_of_onnx(static_cast<int32_t>(wanted)) : x.dtype;
  c.out(0, c.t.op("eye", {},
                  {Attribute("rows", x.shape.at(0)), Attribute("columns", x.shape.at(1)),
                   Attribute("k", c.node.integer("k", 0)), Attribute("dtype", dtype)}));
}

void run_trilu(Call& c) {
  const int64_t k = c.has(1) ? c.t.to_integers(c.in(1)).at(0) : 0;
  c.out(0, c.t.op(c.node.integer("upper", 1) != 0 ? "triu" : "tril", {c.in(0)}, {Attribute("k", k)}));
}

void run_depth_to_space(Call& c) {
  const Value& x = c.in(0);
  const int64_t block = c.node.integer("blocksize", 1), n = x.shape.at(0), depth = x.shape.at(1) / (block * block);
  const int64_t height = x.shape.at(2), width = x.shape.at(3);
  const bool by_columns = c.node.text("mode", "DCR") == "CRD";
  Value y = c.t.reshape(
      x, by_columns ? Shape{n, depth, block, block, height, width} : Shape{n, block, block, depth, height, width});
  y = c.t.permute(y, by_columns ? std::vector<int32_t>{0, 1, 4, 2, 5, 3} : std::vector<int32_t>{0, 3, 4, 1, 5, 2});
  c.out(0, c.t.reshape(y, {n, depth, height * block, width * block}));
}

void run_space_to_depth(Call& c) {
  const Value& x = c.in(0);
  const int64_t block = c.node.integer("blocksize", 1), n = x.shape.at(0), depth = x.shape.at(1);
  const int64_t height = x.shape.at(2) / block, width = x.shape.at(3) / block;
  Value y = c.t.reshape(x, {n, depth, height, block, width, block});
  y = c.t.permute(y, c.node.text("mode", "DCR") == "CRD" ? std::vector<int32_t>{0, 1, 3, 5, 2, 4}
                                                         : std::vector<int32_t>{0, 3, 5, 1, 2, 4});
  c.out(0, c.t.reshape(y, {n, depth * block * block, height, width}));
}

void run_center_crop_pad(Call& c) {
  Value x = c.in(0);
  const std::vector<int64_t> wanted = c.t.to_integers(c.in(1));
  std::vector<int64_t> axes = c.node.integers("axes");
  if (axes.empty()) {
    for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  std::vector<int64_t> before(x.shape.size(), 0), after(x.shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(Call::axis_of(axes[i], x.rank()));
    const int64_t extent = x.shape.at(axis), goal = wanted.at(i);
    if (extent > goal) {
      x = c.t.slice_axis(x, static_cast<int64_t>(axis), (extent - goal) / 2, (extent - goal) / 2 + goal);
    } else {
      before[axis] = (goal - extent) / 2;
      after[axis] = goal - extent - before[axis];
    }
  }
  c.out(0, c.t.op("pad", {x}, {Attribute("pads_begin", before), Attribute("pads_end", after)}));
}

// The nodes of its branches have their ops found before.
std::string refuse_if(const Claim& claim) {
  if (claim.node.branches.empty()) return "its branches";
  for (const auto& branch : claim.node.branches) {
    for (const Node& node : branch->nodes) {
      if (node.op == nullptr) return "nodes of its branches";
    }
  }
  return "";
}

}  // namespace

void add_arrays(std::vector<OpEntry>& table) {
  table.push_back({"Reshape", 5, kNewest, kStored, 0b10, nullptr, run_reshape});
  table.push_back({"Flatten", 1, kNewest, kStored, 0, nullptr, run_flatten});
  table.push_back({"Squeeze", 1, kNewest, kStored, 0b10, nullptr, run_squeeze});
  table.push_back({"Unsqueeze", 1, kNewest, kStored, 0b10, nullptr, run_unsqueeze});
  table.push_back({"Transpose", 1, kNewest, kStored, 0, nullptr, run_transpose});
  table.push_back({"Expand", 8, kNewest, kAny, 0b10, nullptr, run_expand});
  table.push_back({"Tile", 6, kNewest, kAny, 0b10, nullptr, run_tile});
  table.push_back({"Concat", 4, kNewest, kAny, 0, nullptr, run_concat});
  table.push_back({"Split", 2, kNewest, kAny, 0b10, nullptr, run_split});
  table.push_back({"Slice", 1, kNewest, kAny, 0b11110, nullptr, run_slice});
  table.push_back({"Pad", 2, kNewest, kAny, 0b1110, refuse_pad, run_pad});
  table.push_back({"Shape", 1, kNewest, kAny, 0, nullptr, run_shape, true});
  table.push_back({"Size", 1, kNewest, kAny, 0, nullptr, run_size, true});
  table.push_back({"If", 1, kNewest, kBool, 0b1, refuse_if, nullptr});
  table.push_back({"Constant", 1, kNewest, kAny, 0, refuse_constant, run_constant});
  table.push_back({"ConstantOfShape", 9, kNewest, kAny, 0b1, nullptr, run_constant_of_shape});
  table.push_back({"Range", 11, kNewest, kNumbers, 0b111, nullptr, run_range});
  table.push_back({"EyeLike", 9, kNewest, kAny, 0, nullptr, run_eye_like, true});
  table.push_back({"Trilu", 14, kNewest, kAny, 0b10, nullptr, run_trilu});
  table.push_back({"DepthToSpace", 1, kNewest, kAny, 0, nullptr, run_depth_to_space});
  table.push_back({"SpaceToDepth", 1, kNewest, kAny, 0, nullptr, run_space_to_depth});
  table.push_back({"CenterCropPad", 18, kNewest, kAny, 0b10, nullptr, run_center_crop_pad});
}

}  // namespace onnxruntime_compute
