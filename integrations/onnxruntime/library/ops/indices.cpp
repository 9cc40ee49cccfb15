// SPDX-License-Identifier: Apache-2.0
// Ops of ONNX that read or write elements at positions that other tensors hold.
#include <algorithm>
#include <stdexcept>

#include "../op_table.hpp"

namespace onnxruntime_compute {
namespace {

void run_gather(Call& c) {
  const Value& x = c.in(0);
  const Value& indices = c.in(1);
  const int64_t axis = Call::axis_of(c.node.integer("axis", 0), x.rank());
  const int64_t extent = x.shape.at(static_cast<size_t>(axis));
  if (indices.is_constant() && indices.size() == 1) {  // a view
    const int64_t at = Call::axis_of(c.t.to_integers(indices).at(0), extent);
    if (at < 0 || at >= extent) throw std::runtime_error("Gather: an index out of range");
    const Value part = c.t.slice_axis(x, axis, at, at + 1);
    Shape shape(x.shape.begin(), x.shape.begin() + axis);
    shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
    shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
    return c.out(0, c.t.reshape(part, shape));
  }
  c.out(0, c.t.op("take", {x, indices}, {Attribute("axis", axis)}));
}

void run_gather_elements(Call& c) {
  Value x = c.in(0);
  const Value& indices = c.in(1);
  const int64_t axis = Call::axis_of(c.node.integer("axis", 0), x.rank());
  std::vector<int64_t> starts(x.shape.size(), 0), stops(indices.shape), steps(x.shape.size(), 1);
  stops[static_cast<size_t>(axis)] = x.shape[static_cast<size_t>(axis)];
  if (stops != x.shape) x = c.t.slice(x, starts, stops, steps);
  c.out(0, c.t.op("take_along_axis", {x, indices}, {Attribute("axis", axis)}));
}

// Indices of axes that both operands have in front come before those that are given.
void run_gather_nd(Call& c) {
  Value indices = c.in(1);
  const auto batches = static_cast<size_t>(c.node.integer("batch_dims", 0));
  if (batches > 0) {
    Shape one(indices.shape), all(indices.shape);
    all.back() = 1;
    std::vector<Value> parts;
    for (size_t axis = 0; axis < batches; ++axis) {
      std::vector<int64_t> positions;
      for (int64_t i = 0; i < indices.shape[axis]; ++i) positions.push_back(i);
      std::fill(one.begin(), one.end(), 1);
      one[axis] = indices.shape[axis];
      parts.push_back(c.t.cast(c.t.broadcast_to(c.t.reshape(Tracer::integers(positions), one), all), indices.dtype));
    }
    parts.push_back(indices);
    indices = c.t.op("concat", parts, {Attribute("axis", indices.rank() - 1)});
  }
  c.out(0, c.t.op("gather_nd", {c.in(0), indices}));
}

std::string reduction_of(const Node& node) {
  const std::string reduction = node.text("reduction", "none");
  return reduction == "none" ? "set" : reduction;
}

std::string refuse_scatter(const Claim& claim) {
  return claim.dtype(0) == compute::bool_ && reduction_of(claim.node) != "set" ? "a reduction of bool" : "";
}

void run_scatter(Call& c) {
  c.out(0, c.t.op("scatter", {c.in(0), c.in(1), c.in(2)},
                  {Attribute("axis", Call::axis_of(c.node.integer("axis", 0), c.in(0).rank())),
                   Attribute("reduction", reduction_of(c.node))}));
}

void run_scatter_nd(Call& c) {
  c.out(0, c.t.op("scatter_nd", {c.in(0), c.in(1), c.in(2)}, {Attribute("reduction", reduction_of(c.node))}));
}

void run_one_hot(Call& c) {
  const int64_t depth = c.t.to_integers(c.in(1)).at(0);
  const Value& values = c.in(2);
  const Value indices = c.t.map("where($0 < 0, $0 + " + std::to_string(depth) + ", $0)",
                                {c.t.cast(c.in(0), compute::int64)}, compute::int64);
  const int64_t axis = Call::axis_of(c.node.integer("axis", -1), indices.rank() + 1);
  const Value is_hot = c.t.op("one_hot", {indices},
                              {Attribute("depth", depth), Attribute("axis", axis), Attribute("dtype", compute::bool_)});
  const Value off = c.t.reshape(c.t.slice_axis(values, 0, 0, 1), {}),
              on = c.t.reshape(c.t.slice_axis(values, 0, 1, 2), {});
  c.out(0, c.t.map("where($0, $1, $2)", {is_hot, on, off}, values.dtype));
}

void run_top_k(Call& c) {
  const Value& x = c.in(0);
  const int64_t k = c.integers("k", 1).at(0);
  const std::vector<Value> found =
      c.t.ops("top_k", 2, {x},
              {Attribute("k", k), Attribute("axis", Call::axis_of(c.node.integer("axis", -1), x.rank())),
               Attribute("largest", c.node.integer("largest", 1))});
  c.out(0, found[0]);
  c.out(1, found[1]);
}

// The value of a tensor of one element that was just computed. The trace serves this run alone.
int64_t read_count(Call& c, const Value& value) {
  if (!value.is_constant()) c.t.read_values();
  return compute::cast(c.t.to_host(c.t.settle(value)), compute::int64).to_vector<int64_t>().at(0);
}

std::string refuse_scalars(const Claim& claim) { return claim.rank(0) < 1 ? "a rank that may be 0" : ""; }

void run_nonzero(Call& c) {
  const std::vector<Value> found = c.t.ops("nonzero", 2, {c.in(0)});
  c.out(0, c.t.slice_axis(found[0], 1, 0, read_count(c, found[1])));
}

void run_compress(Call& c) {
  Value x = c.in(0);
  int64_t axis = 0;
  if (c.node.has_attribute("axis")) {
    axis = Call::axis_of(c.node.integer("axis", 0), x.rank());
  } else {
    x = c.t.reshape(x, {x.size()});
  }
  const std::vector<Value> found = c.t.ops("nonzero", 2, {c.in(1)});
  const int64_t count = read_count(c, found[1]);
  const Value indices = c.t.reshape(c.t.slice_axis(found[0], 1, 0, count), {count});
  c.out(0, c.t.op("take", {x, indices}, {Attribute("axis", axis)}));
}

std::string refuse_unique(const Claim& claim) { return claim.node.has_attribute("axis") ? "an axis" : ""; }

void run_unique(Call& c) {
  const Value& x = c.in(0);
  const std::vector<Value> found = c.t.ops("unique", 5, {x});
  const int64_t count = read_count(c, found[4]);
  const auto whole = [&](size_t i) { return c.t.slice_axis(found[i], 0, 0, count); };
  const Value inverse = c.t.reshape(found[2], {x.size()});
  if (c.node.integer("sorted", 1) != 0) {
    c.out(0, whole(0));
    c.out(1, whole(1));
    c.out(2, inverse);
    return c.out(3, whole(3));
  }
  // In the order in which they occur first.
  const Value order = c.t.op("argsort", {whole(1)});
  const std::vector<Attribute> first{Attribute("axis", int64_t{0})};
  for (const size_t i : {0, 1, 3}) c.out(i, c.t.op("take", {whole(i), order}, first));
  c.out(2, c.t.op("take", {c.t.op("argsort", {order}), inverse}, first));
}

void run_reverse_sequence(Call& c) {
  const Value& x = c.in(0);
  const std::vector<int64_t> lengths = c.t.to_integers(c.in(1));
  const int64_t time_axis = c.node.integer("time_axis", 0), batch_axis = c.node.integer("batch_axis", 1);
  const int64_t steps = x.shape.at(static_cast<size_t>(time_axis)), batch = x.shape.at(static_cast<size_t>(batch_axis));
  std::vector<int64_t> positions(static_cast<size_t>(steps * batch));
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = lengths.at(static_cast<size_t>(b));
      const int64_t place = time_axis == 0 ? t * batch + b : b * steps + t;
      positions[static_cast<size_t>(place)] = t < length ? length - 1 - t : t;
    }
  }
  Shape shape(x.shape.size(), 1);
  shape[static_cast<size_t>(time_axis)] = steps;
  shape[static_cast<size_t>(batch_axis)] = batch;
  const Value indices = c.t.broadcast_to(c.t.reshape(Tracer::integers(positions), shape), x.shape);
  c.out(0, c.t.op("take_along_axis", {x, indices}, {Attribute("axis", time_axis)}));
}

}  // namespace

void add_indices(std::vector<OpEntry>& table) {
  table.push_back({"Gather", 1, kNewest, kAny, 0, nullptr, run_gather});
  table.push_back({"GatherElements", 11, kNewest, kAny, 0, nullptr, run_gather_elements});
  table.push_back({"GatherND", 11, kNewest, kAny, 0, nullptr, run_gather_nd});
  table.push_back({"Scatter", 9, kNewest, kAny, 0, refuse_scatter, run_scatter});
  table.push_back({"ScatterElements", 11, kNewest, kAny, 0, refuse_scatter, run_scatter});
  table.push_back({"ScatterND", 11, kNewest, kAny, 0, refuse_scatter, run_scatter_nd});
  table.push_back({"OneHot", 9, kNewest, kNumbers, 0b10, nullptr, run_one_hot});
  table.push_back({"TopK", 1, kNewest, kNumbers, 0b10, nullptr, run_top_k});
  table.push_back({"NonZero", 9, kNewest, kAny, 0, refuse_scalars, run_nonzero});
  table.push_back({"Compress", 9, kNewest, kAny, 0, nullptr, run_compress});
  table.push_back({"Unique", 11, kNewest, kAny, 0, refuse_unique, run_unique});
  table.push_back({"ReverseSequence", 10, kNewest, kAny, 0b10, nullptr, run_reverse_sequence});
}

}  // namespace onnxruntime_compute
