// SPDX-License-Identifier: Apache-2.0
// Ops of ONNX for transformers: attention, rotary embeddings and updates of caches.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "../op_table.hpp"

namespace onnxruntime_compute {
namespace {

// 0, 1, … along `axis` of `rank`.
Value positions(Call& c, int64_t count, int64_t axis, int64_t rank) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i);
  Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = count;
  return c.t.reshape(Tracer::integers(values), shape);
}

// [batch, time, heads * size] as [batch, heads, time, size].
Value by_heads(Call& c, const Value& x, int64_t heads) {
  if (x.rank() == 4) return c.t.settle(x);
  const Value apart = c.t.reshape(x, {x.shape.at(0), x.shape.at(1), heads, x.shape.at(2) / heads});
  return c.t.permute(apart, {0, 2, 1, 3});
}

std::string refuse_attention(const Claim& claim) {
  const Node& node = claim.node;
  if (claim.rank(0) != 3 && claim.rank(0) != 4) return "its rank";
  if (claim.dtype(0) != claim.dtype(2)) return "mixed dtypes";
  return claim.node.has_input(4) != node.has_input(5) ? "one past tensor of two" : "";
}

// Which keys each query sees.
struct Mask {
  Value seen;  // bool, or absent
  Value bias;  // added to the scores, or absent
};

Mask attention_mask(Call& c, int64_t queries, int64_t keys, int64_t past, DType dtype) {
  Mask mask;
  const auto also = [&](const Value& seen) {
    mask.seen = mask.seen.is_present() ? c.t.map("$0 & $1", {mask.seen, seen}, compute::bool_) : seen;
  };
  if (c.has(3)) {
    Value given = c.in(3);
    const bool is_bool = given.dtype == compute::bool_;
    if (const int64_t missing = keys - given.shape.back(); missing > 0) {
      Shape shape = given.shape;
      shape.back() = missing;
      const double nothing = is_bool ? 0 : -std::numeric_limits<double>::infinity();
      given = c.t.op("concat", {given, c.t.fill(nothing, given.dtype, shape)}, {Attribute("axis", given.rank() - 1)});
    }
    while (given.rank() < 2) given = c.t.reshape(given, {1, given.shape.back()});
    (is_bool ? mask.seen : mask.bias) = given;
  }
  const Value key = positions(c, keys, 3, 4), query = positions(c, queries, 2, 4);
  const bool is_outside_cache = c.has(6) && past == 0 && !c.has(4);
  Value lengths;
  if (c.has(6)) lengths = c.t.reshape(c.t.cast(c.in(6), compute::int64), {c.in(6).size(), 1, 1, 1});
  // The position of the query among the keys minus the position of the key.
  Value ahead = c.t.map("$0 - $1", {query, key}, compute::int64);
  if (is_outside_cache) {
    ahead = c.t.map("$0 + $1 - " + std::to_string(queries), {ahead, lengths}, compute::int64);
  } else if (past != 0) {
    ahead = c.t.map("$0 + " + std::to_string(past), {ahead}, compute::int64);
  }
  ahead = c.t.settle(ahead);
  if (c.node.integer("is_causal", 0) != 0) also(c.t.map("$0 >= 0", {ahead}, compute::bool_));
  const int64_t left = c.node.integer("left_window_size", -1), right = c.node.integer("right_window_size", -1);
  if (left >= 0) also(c.t.map("$0 <= " + std::to_string(left), {ahead}, compute::bool_));
  if (right >= 0) also(c.t.map("$0 >= -" + std::to_string(right), {ahead}, compute::bool_));
  if (lengths.is_present()) also(c.t.map("$0 < $1", {key, lengths}, compute::bool_));
  if (mask.bias.is_present() && mask.seen.is_present()) {
    mask.bias = c.t.map("where($0, $1, -inf)", {mask.seen, mask.bias}, dtype);
    mask.seen = {};
  }
  return mask;
}

// The scores step by step, where softcap or the fourth output asks for them. A head of keys serves several of queries.
Value attention_by_steps(Call& c, const Value& q, const Value& k, const Value& v, const Mask& mask, double scale) {
  const DType dtype = q.dtype;
  const int64_t batch = q.shape[0], heads = q.shape[1], few = k.shape[1], n = q.shape[2], m = k.shape[2];
  const Value root = Tracer::number(std::sqrt(scale), dtype);
  const Value queries = c.t.settle(c.t.map("$0 * $1", {q, root}, dtype));
  const Value keys = c.t.settle(c.t.map("$0 * $1", {k, root}, dtype));
  const Value grouped = c.t.reshape(queries, {batch, few, heads / few * n, q.shape[3]});
  Value scores = c.t.reshape(c.t.op("matmul", {grouped, c.t.permute(keys, {0, 1, 3, 2})}), {batch, heads, n, m});
  const int64_t wanted = c.node.integer("qk_matmul_output_mode", 0);
  if (wanted == 0) c.out(3, scores);
  if (const double cap = c.node.real("softcap", 0); cap > 0) {
    const Value most = Tracer::number(cap, dtype);
    scores = c.t.settle(c.t.map("tanh($0 / $1) * $1", {scores, most}, dtype));
  }
  if (wanted == 1) c.out(3, scores);
  if (mask.seen.is_present()) scores = c.t.map("where($0, $1, -inf)", {mask.seen, scores}, dtype);
  if (mask.bias.is_present()) scores = c.t.map("$0 + $1", {scores, mask.bias}, dtype);
  scores = c.t.settle(scores);
  if (wanted == 2) c.out(3, scores);
  const int64_t precision = c.node.integer("softmax_precision", 0);
  const DType wide = precision != 0 ? dtype_of_onnx(static_cast<int32_t>(precision)) : dtype;
  const Value exact = c.t.settle(c.t.cast(scores, wide));
  const Value greatest =
      c.t.op("max", {exact}, {Attribute("axes", std::vector<int64_t>{3}), Attribute("keepdims", int64_t{1})});
  const Value parts = c.t.op("softmax", {exact}, {Attribute("axis", int64_t{3})});
  // A query that sees no key gets nothing.
  const Value weights = c.t.settle(c.t.cast(c.t.map("where($1 == -inf, 0, $0)", {parts, greatest}, wide), dtype));
  if (wanted == 3) c.out(3, weights);
  const Value rows = c.t.reshape(weights, {batch, few, heads / few * n, m});
  return c.t.reshape(c.t.op("matmul", {rows, v}), {batch, heads, n, v.shape[3]});
}

void run_attention(Call& c) {
  const int64_t heads = c.node.integer("q_num_heads", c.in(0).rank() == 4 ? c.in(0).shape[1] : 1);
  const int64_t few = c.node.integer("kv_num_heads", c.in(1).rank() == 4 ? c.in(1).shape[1] : 1);
  const Value q = by_heads(c, c.in(0), heads);
  Value k = by_heads(c, c.in(1), few), v = by_heads(c, c.in(2), few);
  const int64_t past = c.has(4) ? c.in(4).shape.at(2) : 0;
  if (c.has(4)) {
    k = c.t.op("concat", {c.in(4), k}, {Attribute("axis", int64_t{2})});
    v = c.t.op("concat", {c.in(5), v}, {Attribute("axis", int64_t{2})});
  }
  c.out(1, k);
  c.out(2, v);
  const double scale = c.node.real("scale", 1 / std::sqrt(static_cast<double>(q.shape.at(3))));
  const Mask mask = attention_mask(c, q.shape[2], k.shape[2], past, q.dtype);
  Value y;
  if (c.node.has_output(3) || c.node.real("softcap", 0) > 0 || c.node.integer("softmax_precision", 0) != 0) {
    y = attention_by_steps(c, q, k, v, mask, scale);
  } else {
    std::vector<Value> inputs{q, k, v};
    if (mask.seen.is_present() || mask.bias.is_present()) {
      const Value given = mask.seen.is_present() ? mask.seen : mask.bias;
      inputs.push_back(c.t.broadcast_to(given, broadcast_shape({given.shape, {1, 1, q.shape[2], k.shape[2]}})));
    }
    y = c.t.ops("attention", 2, inputs, {Attribute("scale", scale)})[0];
  }
  if (c.in(0).rank() == 3)
    y = c.t.reshape(c.t.permute(y, {0, 2, 1, 3}), {y.shape[0], y.shape[2], y.shape[1] * y.shape[3]});
  c.out(0, y);
}

// The angles are given as their cosines and sines, so this is not rotary_embedding.
void run_rotary(Call& c) {
  const Value& given = c.in(0);
  const DType dtype = given.dtype;
  const Value x = by_heads(c, given, std::max<int64_t>(c.node.integer("num_heads", 1), 1));
  const int64_t rest = c.node.integer("rotary_embedding_dim", 0), size = rest == 0 ? x.shape[3] : rest;
  const auto angles = [&](size_t input) {
    const Value all =
        c.has(3) ? c.t.op("take", {c.in(input), c.in(3)}, {Attribute("axis", int64_t{0})}) : c.t.settle(c.in(input));
    return c.t.reshape(all, {all.shape.at(0), 1, all.shape.at(1), all.shape.at(2)});
  };
  const Value cosine = angles(1), sine = angles(2);
  const bool interleaved = c.node.integer("interleaved", 0) != 0;
  const Value first = interleaved ? c.t.slice_axis(x, 3, 0, size, 2) : c.t.slice_axis(x, 3, 0, size / 2);
  const Value second = interleaved ? c.t.slice_axis(x, 3, 1, size, 2) : c.t.slice_axis(x, 3, size / 2, size);
  const std::vector<Value> operands{cosine, sine, first, second};
  Value real = c.t.map("$0 * $2 - $1 * $3", operands, dtype), imaginary = c.t.map("$1 * $2 + $0 * $3", operands, dtype);
  std::vector<Value> parts;
  if (interleaved) {
    Shape apart = real.shape;
    apart.push_back(1);
    const Value pairs =
        c.t.op("concat", {c.t.reshape(real, apart), c.t.reshape(imaginary, apart)}, {Attribute("axis", int64_t{4})});
    parts.push_back(c.t.reshape(pairs, {x.shape[0], x.shape[1], x.shape[2], size}));
  } else {
    parts = {c.t.settle(real), c.t.settle(imaginary)};
  }
  if (size < x.shape[3]) parts.push_back(c.t.slice_axis(x, 3, size, x.shape[3]));
  Value y = parts.size() == 1 ? parts[0] : c.t.op("concat", parts, {Attribute("axis", int64_t{3})});
  if (given.rank() == 3) y = c.t.reshape(c.t.permute(y, {0, 2, 1, 3}), given.shape);
  c.out(0, y);
}

std::string refuse_rotary(const Claim& claim) {
  if (claim.rank(0) != 3 && claim.rank(0) != 4) return "its rank";
  return claim.rank(0) == 3 && claim.node.integer("num_heads", 0) == 0 ? "no num_heads" : "";
}

// Each element of the result is taken from the update, where it has one.
void run_tensor_scatter(Call& c) {
  const Value past = c.t.settle(c.in(0)), update = c.t.settle(c.in(1));
  const int64_t axis = Call::axis_of(c.node.integer("axis", -2), past.rank());
  const int64_t size = past.shape.at(static_cast<size_t>(axis)), count = update.shape.at(static_cast<size_t>(axis));
  Value place = positions(c, size, axis, past.rank());
  if (c.has(2)) {
    Shape shape(past.shape.size(), 1);
    shape[0] = c.in(2).size();
    const bool is_circular = c.node.text("mode", "linear") == "circular";
    place = c.t.map(is_circular ? "($0 - $1) % " + std::to_string(size) : "$0 - $1",
                    {place, c.t.reshape(c.t.cast(c.in(2), compute::int64), shape)}, compute::int64);
  }
  place = c.t.settle(c.t.broadcast_to(c.t.settle(place), past.shape));
  const std::string last = std::to_string(count - 1);
  const Value inside = c.t.map("min(max($0, 0), " + last + ")", {place}, compute::int64);
  const Value taken = c.t.op("take_along_axis", {update, c.t.settle(inside)}, {Attribute("axis", axis)});
  c.out(0, c.t.map("where(($0 >= 0) & ($0 <= " + last + "), $1, $2)", {place, taken, past}, past.dtype));
}

std::string refuse_tensor_scatter(const Claim& claim) { return claim.rank(0) < 0 ? "an unknown rank" : ""; }

}  // namespace

void add_attention(std::vector<OpEntry>& table) {
  table.push_back({"Attention", 23, kNewest, kReal, 0, refuse_attention, run_attention});
  table.push_back({"RotaryEmbedding", 23, kNewest, kReal, 0, refuse_rotary, run_rotary});
  table.push_back({"TensorScatter", 24, kNewest, kAny, 0, refuse_tensor_scatter, run_tensor_scatter});
}

}  // namespace onnxruntime_compute
