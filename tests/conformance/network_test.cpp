// SPDX-License-Identifier: Apache-2.0
// Ops of neural networks and their gradients, in every floating-point dtype and layout.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;
using Numbers = std::complex<double>;

class Case {
 public:
  Case(const Session& session, const std::string& op, Dtype dtype)
      : session(session), op(op), dtype(dtype), seed_(seed_of(op + oracle::info(dtype).name)), inputs(seed_) {}

  bool full() const { return session.level() == Level::FULL; }
  Dtype computed() const { return oracle::computed_in(dtype); }
  Operand numbers(const Shape& shape, Layout layout = Layout::CONTIGUOUS, Real low = -2, Real high = 2) {
    return session.upload(inputs.uniform(dtype, shape, low, high), layout);
  }
  Operand statistics(const Shape& shape, Real low, Real high) {
    return session.upload(inputs.uniform(computed(), shape, low, high));
  }
  Operand integers(const Shape& shape, int64_t extent, Dtype type = dtype::INT64) {
    return session.upload(inputs.indices(type, shape, extent, false));
  }
  // The results of another op as operands: their arrays are the device's results.
  std::vector<Operand> results(const std::string& other, const Attributes& attributes,
                               const std::vector<Operand>& given, size_t count) {
    std::vector<Tensor> outputs(count);
    session.run_all(other, attributes, given, nullptr, outputs);
    std::vector<Operand> operands;
    for (const Tensor& output : outputs) operands.push_back({session.download(output), output});
    return operands;
  }
  void run(const Attributes& attributes, const std::vector<Operand>& given, const std::string& what) {
    session.expect(op, attributes, given, bound_of(op, dtype), what + ", seed " + std::to_string(seed_));
  }
  void run_into(const Attributes& attributes, const std::vector<Operand>& given, Layout layout) {
    session.expect_into(op, attributes, given, bound_of(op, dtype), "seed " + std::to_string(seed_), layout);
  }

  const Session& session;
  const std::string op;
  const Dtype dtype;

 private:
  uint64_t seed_;

 public:
  Inputs inputs;
};

std::vector<Layout> layouts_of(const Case& c) {
  if (!c.full()) return {Layout::CONTIGUOUS};
  return {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::NEGATIVE, Layout::OFFSET, Layout::PERMUTED};
}

Attributes along(int64_t axis) { return {{"axis", axis}}; }

// ---- Affine maps ----------------------------------------------------------------------------------------------------

Attributes affine(const std::string& activation, bool transposed = false) {
  return {{"activation", activation}, {"transpose_weight", int64_t{transposed}}};
}

void test_affine(Case& c) {
  const auto numbers = [&](const Shape& shape, Layout layout = Layout::CONTIGUOUS) {
    return c.numbers(shape, layout, -1, 1);
  };
  for (const char* activation : {"none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"}) {
    const Attributes plain = affine(activation), transposed = affine(activation, true);
    c.run(plain, {numbers({5, 3, 17}), numbers({17, 9}), numbers({9})}, activation);
    c.run(plain, {c.numbers({7, 40}, Layout::CONTIGUOUS, -8, 8), numbers({40, 5}), numbers({5})}, "wide range");
    if (!c.full()) continue;
    c.run(plain, {numbers({5, 3, 17}), numbers({17, 9})}, "without a bias");
    for (Layout layout : layouts_of(c)) {
      c.run(plain, {numbers({5, 3, 17}, layout), numbers({17, 9}), numbers({9})}, name(layout));
      c.run(transposed, {numbers({11, 17}), numbers({9, 17}, layout), numbers({9}, layout)}, name(layout));
    }
    for (Layout layout : {Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET})
      c.run_into(plain, {numbers({5, 3, 17}), numbers({17, 9}), numbers({9})}, layout);
    c.run(plain, {numbers({17}), numbers({17, 9}), numbers({9})}, "a vector");
    c.run(plain, {permuted(numbers({3, 4, 5, 17}), {1, 2, 0, 3}), numbers({17, 9}), numbers({9})}, "not one matrix");
    c.run(plain, {numbers({4, 0}), numbers({0, 9}), numbers({9})}, "no terms");
    c.run(plain, {numbers({4, 0}), numbers({0, 9})}, "nothing at all");
    c.run(plain, {numbers({0, 17}), numbers({17, 9}), numbers({9})}, "no row");
    c.run(plain, {numbers({4, 17}), numbers({17, 0}), numbers({0})}, "no column");
  }
  c.run(affine("relu"), {numbers({5, 3, 17}), numbers({17, 9})}, "without a bias");
  if (!c.full()) return;
  c.run(affine("gelu"), {numbers({2, 150, 60}), numbers({60, 270}), numbers({270})}, "several tiles");
  c.run(affine("silu", true), {numbers({300, 60}), numbers({270, 60})}, "several tiles");
}

void test_gemm(Case& c) {
  const auto numbers = [&](const Shape& shape, Layout layout = Layout::CONTIGUOUS) {
    return c.numbers(shape, layout, -1, 1);
  };
  const Attributes scaled = {{"alpha", Numbers(0.5)}, {"beta", Numbers(-2)}};
  for (Layout layout : layouts_of(c)) {
    c.run(scaled, {numbers({7, 9}, layout), numbers({7, 17}, layout), numbers({17, 9}, layout)}, name(layout));
    c.run({{"activation", std::string("relu")}, {"beta", Numbers(0.25)}},
          {numbers({7, 9}, layout), numbers({7, 17}), numbers({17, 9}), numbers({9})}, name(layout));
  }
  Array nothing = c.inputs.uniform(c.dtype, {7, 9}, -1, 1);
  nothing.set(3, oracle::Value::of(std::numeric_limits<Real>::quiet_NaN()));
  c.run({{"beta", Numbers(0)}}, {c.session.upload(nothing), numbers({7, 17}), numbers({17, 9})}, "beta 0");
  // In place, as C is in BLAS.
  const std::vector<Operand> given = {numbers({7, 9}), numbers({7, 17}), numbers({17, 9}), numbers({9})};
  c.session.expect(c.op, scaled, given, bound_of(c.op, c.dtype), "in place", nullptr, given[0].tensor);
  if (!c.full()) return;
  c.run(scaled, {numbers({2, 3, 5, 4}), numbers({3, 5, 6}), numbers({2, 1, 6, 4})}, "batches that broadcast");
  c.run(scaled, {numbers({5, 4}), numbers({5, 0}), numbers({0, 4}), numbers({4})}, "no terms");
  c.run(scaled, {numbers({0, 4}), numbers({0, 3}), numbers({3, 4})}, "no row");
  c.run({{"activation", std::string("gelu")}, {"alpha", Numbers(0.125)}},
        {numbers({150, 270}), numbers({150, 60}), numbers({60, 270}), numbers({270})}, "several tiles");
  c.run_into(scaled, {numbers({7, 9}), numbers({7, 17}), numbers({17, 9})}, Layout::NEGATIVE);
}

// ---- Losses ---------------------------------------------------------------------------------------------------------

void test_softmax_grad(Case& c) {
  const std::string forward = c.op.substr(0, c.op.size() - 5);
  for (Layout layout : layouts_of(c)) {
    const Operand y = c.results(forward, along(-1), {c.numbers({7, 33})}, 1)[0];
    c.run({}, {c.numbers({7, 33}, layout), y}, name(layout));
  }
  if (!c.full()) return;
  for (const int64_t axis : {0, 1}) {
    const Operand y = c.results(forward, along(axis), {c.numbers({40, 5, 3})}, 1)[0];
    c.run(along(axis), {c.numbers({40, 5, 3}), y}, "axis " + std::to_string(axis));
    c.run_into(along(axis), {c.numbers({40, 5, 3}), y}, Layout::NEGATIVE);
  }
  c.run({}, {c.numbers({0, 3}), c.numbers({0, 3})}, "empty");
  if (c.dtype != dtype::FLOAT32) return;
  const Operand y = c.results(forward, along(-1), {c.numbers({3000, 1040})}, 1)[0];
  c.run({}, {c.numbers({3000, 1040}), y}, "more than caches hold");
}

// Every combination of the attributes, along an axis.
std::vector<Attributes> label_attributes(int64_t axis) {
  std::vector<Attributes> list(4, along(axis));
  for (size_t i = 0; i < 4; ++i) {
    if (i % 2 == 1) list[i]["label_smoothing"] = Numbers(0.125);
    if (i / 2 == 1) list[i]["ignore_index"] = int64_t{3};
  }
  return list;
}

void test_cross_entropy(Case& c) {
  for (const Attributes& attributes : label_attributes(-1)) {
    for (Layout layout : layouts_of(c))
      c.run(attributes, {c.numbers({9, 12}, layout), c.integers({9}, 5)}, name(layout));
  }
  if (!c.full()) return;
  for (const Attributes& attributes : label_attributes(1))
    c.run(attributes, {c.numbers({4, 10, 5, 3}), c.integers({4, 5, 3}, 10, dtype::INT32)}, "images");
  for (const Attributes& attributes : label_attributes(-1))
    c.run(attributes, {c.numbers({7, 131}), c.integers({7}, 5, dtype::INT16)}, "rows");
  c.run(along(0), {c.numbers({1000}, Layout::CONTIGUOUS, -30, 30), c.integers({}, 1000)}, "one sample");
  const Operand outside = c.session.upload(c.inputs.uniform(dtype::INT32, {40}, -3, 9));
  for (Attributes attributes : label_attributes(-1)) {
    c.run(attributes, {c.numbers({40, 5}), outside}, "labels outside");
    attributes["ignore_index"] = int64_t{-2};
    c.run(attributes, {c.numbers({40, 5}), outside}, "a label outside is ignored");
  }
  c.run({}, {c.numbers({0, 5}), c.integers({0}, 5)}, "no sample");
  // Classes that cannot be.
  Array logits = c.inputs.uniform(c.dtype, {6, 4}, -2, 2);
  for (int64_t i = 0; i < 6; ++i) logits.set(4 * i + 3, oracle::Value::of(-std::numeric_limits<Real>::infinity()));
  for (const Attributes& attributes : std::vector<Attributes>{{}, {{"ignore_index", int64_t{1}}}})
    c.run(attributes, {c.session.upload(logits), c.integers({6}, 3)}, "an impossible class");
}

void test_cross_entropy_grad(Case& c) {
  const auto check = [&](const Shape& shape, int64_t axis, Layout layout) {
    Shape labels = shape;
    labels.erase(labels.begin() + axis);
    const Operand x = c.numbers(shape, layout), y = c.integers(labels, 5);
    const Operand logsumexp = c.results("cross_entropy", along(axis), {x, y}, 2)[1];
    for (const Attributes& attributes : label_attributes(axis))
      c.run(attributes, {c.statistics(labels, -1, 1), x, y, logsumexp}, name(layout));
  };
  for (Layout layout : layouts_of(c)) check({9, 12}, 1, layout);
  if (c.full()) check({3, 7, 5}, 1, Layout::CONTIGUOUS);
}

// Rows of probabilities, every fourth of which is 0.
Operand probabilities(Case& c, const Shape& shape, Layout layout) {
  Array targets = c.inputs.uniform(c.dtype, shape, 0, 0.25L);
  for (int64_t i = 0; i < targets.size(); i += 4) targets.set(i, oracle::Value::of(Real{0}));
  return c.session.upload(targets, layout);
}

void test_cross_entropy_soft(Case& c) {
  const auto check = [&](const Shape& shape, int64_t axis, Layout layout) {
    c.run(along(axis), {c.numbers(shape, layout), probabilities(c, shape, layout)}, name(layout));
  };
  for (Layout layout : layouts_of(c)) check({9, 12}, 1, layout);
  if (!c.full()) return;
  check({4, 10, 5, 3}, 1, Layout::CONTIGUOUS);
  check({5000}, 0, Layout::CONTIGUOUS);
  check({0, 5}, 1, Layout::CONTIGUOUS);
  check({5, 0}, 1, Layout::CONTIGUOUS);
  Array logits = c.inputs.uniform(c.dtype, {4, 4}, -2, 2);
  for (int64_t i = 0; i < 16; i += 4) logits.set(i, oracle::Value::of(-std::numeric_limits<Real>::infinity()));
  c.run({}, {c.session.upload(logits), probabilities(c, {4, 4}, Layout::CONTIGUOUS)}, "an impossible class");
}

void test_cross_entropy_soft_grad(Case& c) {
  const auto check = [&](const Shape& shape, int64_t axis, Layout layout) {
    Shape outer = shape;
    outer.erase(outer.begin() + axis);
    const Operand x = c.numbers(shape, layout), targets = probabilities(c, shape, layout);
    const Operand logsumexp = c.results("cross_entropy_soft", along(axis), {x, targets}, 2)[1];
    c.run(along(axis), {c.statistics(outer, -1, 1), x, targets, logsumexp}, name(layout));
  };
  for (Layout layout : layouts_of(c)) check({9, 12}, 1, layout);
  if (c.full()) check({3, 7, 5}, 1, Layout::CONTIGUOUS);
}

// ---- Norms ----------------------------------------------------------------------------------------------------------

void test_norm(Case& c) {
  const bool is_batch = c.op == "batch_norm", is_rms = c.op == "rms_norm";
  const Shape parameter = is_batch ? Shape{5} : Shape{33};
  const auto operands = [&](const Operand& x, const Shape& extents) {
    std::vector<Operand> list = {x, c.numbers(extents)};
    if (!is_rms) list.push_back(c.numbers(extents));
    return list;
  };
  for (Layout layout : layouts_of(c)) c.run({}, operands(c.numbers({6, 5, 33}, layout), parameter), name(layout));
  c.run({}, {c.numbers({4, 5, 33})}, "without parameters");
  if (!c.full()) return;
  const Attributes second = {{"axis", int64_t{is_batch ? 2 : 1}}, {"epsilon", Numbers(0.125)}};
  c.run(second, operands(c.numbers({4, 5, 33}), is_batch ? Shape{33} : Shape{5, 33}), "another axis");
  if (!is_rms) c.run({}, {c.numbers({4, 5, 33}), Operand{}, c.numbers(parameter)}, "without scale");
  c.run({}, operands(c.numbers({2, 5, 4099}), is_batch ? Shape{5} : Shape{4099}), "long rows");
  c.run({}, {c.numbers({0, 5, 3})}, "no sample");
  if (!is_batch) c.run({}, {c.numbers({3, 0})}, "nothing to normalise");
  c.run_into({}, operands(c.numbers({6, 5, 33}), parameter), Layout::NEGATIVE);
  if (is_batch || c.dtype != dtype::FLOAT32) return;
  c.run({}, operands(c.numbers({5000, 1040}), {1040}), "more than caches hold");
}

void test_norm_grad(Case& c) {
  const bool is_batch = c.op == "batch_norm_grad", is_rms = c.op == "rms_norm_grad";
  const std::string forward = c.op.substr(0, c.op.size() - 5);
  const auto check = [&](const Shape& shape, int64_t axis, const Shape& parameter, Layout layout, bool scaled) {
    Attributes attributes = along(axis);
    const Operand x = c.numbers(shape, layout);
    const std::vector<Operand> kept = c.results(forward, attributes, {x}, is_rms ? 2 : 3);
    std::vector<Operand> list = {c.numbers(shape, layout), x};
    list.insert(list.end(), kept.begin() + 1, kept.end());
    if (scaled) list.push_back(c.numbers(parameter));
    c.run(attributes, list, name(layout));
  };
  for (Layout layout : layouts_of(c)) {
    check({6, 5, 33}, is_batch ? 1 : 2, is_batch ? Shape{5} : Shape{33}, layout, true);
    check({6, 5, 33}, is_batch ? 1 : 2, is_batch ? Shape{5} : Shape{33}, layout, false);
  }
  if (!c.full()) return;
  check({6, 5, 33}, is_batch ? 2 : 1, is_batch ? Shape{33} : Shape{5, 33}, Layout::CONTIGUOUS, true);
  check({40, 1000}, is_batch ? 1 : 1, Shape{1000}, Layout::CONTIGUOUS, true);
  for (const int64_t n : {7, 8, 16, 29}) check({50, n}, 1, Shape{n}, Layout::CONTIGUOUS, true);
  if (!is_batch && c.dtype == dtype::FLOAT32) check({3000, 1040}, 1, Shape{1040}, Layout::CONTIGUOUS, true);
}

void test_group_norm(Case& c) {
  const auto in_groups = [](int64_t groups) { return Attributes{{"groups", groups}}; };
  const auto operands = [&](const Operand& x) {
    const Shape channels = {x.array.shape()[1]};
    return std::vector<Operand>{x, c.numbers(channels), c.numbers(channels)};
  };
  for (Layout layout : layouts_of(c)) {
    for (const int64_t groups : {1, 2, 6})
      c.run(in_groups(groups), operands(c.numbers({3, 6, 5, 4}, layout)), name(layout));
  }
  c.run(in_groups(3), {c.numbers({3, 6, 5, 4})}, "without parameters");
  if (!c.full()) return;
  c.run({{"groups", int64_t{3}}, {"epsilon", Numbers(0.125)}}, operands(c.numbers({3, 6, 7})), "another epsilon");
  c.run(in_groups(2), {c.numbers({3, 6, 7}), Operand{}, c.numbers({6})}, "without scale");
  c.run(in_groups(4), operands(c.numbers({5, 8})), "channels alone");
  c.run(in_groups(2), operands(c.numbers({2, 4, 2049})), "long rows");
  c.run(in_groups(2), {c.numbers({0, 4, 3})}, "no sample");
  c.run(in_groups(2), {c.numbers({3, 4, 0})}, "nothing to normalise");
  c.run_into(in_groups(2), operands(c.numbers({3, 6, 7})), Layout::NEGATIVE);
}

void test_group_norm_grad(Case& c) {
  const auto check = [&](const Shape& shape, int64_t groups, Layout layout, bool scaled) {
    const Attributes attributes = {{"groups", groups}};
    const Operand x = c.numbers(shape, layout);
    const std::vector<Operand> kept = c.results("group_norm", attributes, {x}, 3);
    std::vector<Operand> list = {c.numbers(shape, layout), x, kept[1], kept[2]};
    if (scaled) list.push_back(c.numbers({shape[1]}));
    c.run(attributes, list, name(layout));
  };
  for (Layout layout : layouts_of(c)) {
    check({3, 6, 5, 4}, 2, layout, true);
    check({3, 6, 5, 4}, 6, layout, false);
  }
  if (!c.full()) return;
  check({5, 8}, 2, Layout::CONTIGUOUS, true);
  check({2, 4, 2049}, 1, Layout::CONTIGUOUS, true);
  c.run({{"groups", int64_t{2}}},
        {c.numbers({0, 4, 3}), c.numbers({0, 4, 3}), c.statistics({0, 2}, -1, 1), c.statistics({0, 2}, 1, 2)},
        "no sample");
}

void test_batch_norm_inference(Case& c) {
  for (Layout layout : layouts_of(c)) {
    const Operand x = c.numbers({3, 5, 7}, layout), mean = c.statistics({5}, -1, 1),
                  variance = c.statistics({5}, 0.5, 2);
    c.run({}, {x, mean, variance, c.numbers({5}), c.numbers({5})}, name(layout));
    c.run({}, {x, mean, variance}, name(layout));
    c.run({}, {x, mean, variance, Operand{}, c.numbers({5})}, name(layout));
  }
}

// ---- Pooling --------------------------------------------------------------------------------------------------------

struct Pool {
  Shape spatial;
  Attributes attributes;
};

std::vector<Pool> pools(const Case& c, bool dilations) {
  std::vector<Pool> list = {{{8, 8}, {{"window", Shape{2, 2}}}}};
  if (!c.full()) return list;
  list.push_back({{7, 75}, {{"window", Shape{2, 2}}}});
  list.push_back({{5, 40}, {{"window", Shape{2, 3}}, {"strides", Shape{1, 1}}}});
  list.push_back({{9}, {{"window", Shape{3}}, {"strides", Shape{2}}}});
  list.push_back(
      {{7, 9},
       {{"window", Shape{3, 2}}, {"strides", Shape{1, 3}}, {"pads_begin", Shape{1, 0}}, {"pads_end", Shape{2, 1}}}});
  list.push_back({{7, 9}, {{"window", Shape{3, 3}}, {"strides", Shape{2, 2}}, {"padding", std::string("same")}}});
  list.push_back(
      {{5, 6, 4}, {{"window", Shape{2, 3, 1}}, {"strides", Shape{1, 2, 1}}, {"padding", std::string("valid")}}});
  list.push_back({{50}, {{"window", Shape{50}}}});
  if (dilations)
    list.push_back({{9, 9}, {{"window", Shape{2, 3}}, {"strides", Shape{1, 2}}, {"dilations", Shape{3, 2}}}});
  return list;
}

Shape image(const Shape& spatial) {
  Shape shape = {2, 3};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

void test_pool(Case& c) {
  const bool is_max = c.op == "max_pool";
  for (const Pool& pool : pools(c, is_max)) {
    for (Layout layout : layouts_of(c)) c.run(pool.attributes, {c.numbers(image(pool.spatial), layout)}, name(layout));
    if (!is_max) {
      Attributes all = pool.attributes;
      all["count_include_pad"] = int64_t{1};
      c.run(all, {c.numbers(image(pool.spatial))}, "with padding counted");
    }
  }
  if (!c.full() || !is_max || !oracle::is_float(c.dtype)) return;
  c.run({{"window", Shape{3}}, {"pads_begin", Shape{2}}, {"pads_end", Shape{2}}},
        {c.session.upload(c.inputs.with_specials(c.dtype, {2, 3, 40}, -2, 2))}, "special values");
}

void test_pool_grad(Case& c) {
  const bool is_max = c.op == "max_pool_grad";
  for (const Pool& pool : pools(c, is_max)) {
    for (Layout layout : layouts_of(c)) {
      const Operand x = c.numbers(image(pool.spatial), layout);
      const Operand y = c.results(is_max ? "max_pool" : "average_pool", pool.attributes, {x}, 1)[0];
      const Operand dy = c.numbers(y.array.shape());
      if (is_max) {
        c.run(pool.attributes, {dy, x, y}, name(layout));
      } else {
        Attributes attributes = pool.attributes;
        attributes["shape"] = pool.spatial;
        c.run(attributes, {dy}, name(layout));
      }
    }
  }
}

// ---- Attention ------------------------------------------------------------------------------------------------------

struct Lengths {
  int64_t b, h, h_kv, n, m, d, e;
  bool is_for_units = false;  // whose kernels take no masks, and rows that lie in memory one way
};

std::vector<Lengths> lengths(const Case& c) {
  // The second has several blocks of queries and of keys in kernels that go by blocks.
  std::vector<Lengths> list = {{2, 4, 2, 7, 7, 8, 8}, {1, 2, 1, 70, 150, 9, 5}};
  if (!c.full()) return list;
  list.push_back({1, 2, 2, 150, 70, 20, 24});  // causal: the first queries see no key
  list.push_back({1, 2, 1, 33, 290, 130, 40});
  list.push_back({1, 1, 1, 20, 40, 256, 256});
  list.push_back({1, 2, 2, 33, 20, 16, 5});
  list.push_back({2, 3, 1, 5, 65, 64, 64});
  list.push_back({1, 1, 1, 1, 130, 4, 4});
  list.push_back({1, 1, 1, 140, 70, 16, 16});  // several blocks of matrix units
  list.push_back({1, 1, 1, 40, 150, 16, 16});
  list.push_back({2, 2, 1, 5, 6, 0, 3});  // all scores are 0
  // Several blocks of rows and of columns of units that multiply TF32 or halves, in each of their widths.
  if (c.dtype == dtype::FLOAT16 || c.dtype == dtype::BFLOAT16) {
    list.push_back({1, 2, 1, 140, 400, 64, 64, true});
    list.push_back({1, 1, 1, 70, 200, 96, 96, true});
    list.push_back({1, 1, 1, 70, 150, 48, 48, true});
    list.push_back({1, 1, 1, 140, 270, 128, 128, true});
  }
  if (c.dtype != dtype::FLOAT32) return list;
  list.push_back({1, 2, 1, 140, 70, 64, 64});
  list.push_back({1, 1, 1, 70, 150, 32, 32});
  list.push_back({1, 1, 1, 70, 70, 96, 96});
  list.push_back({1, 1, 1, 70, 70, 128, 128});
  return list;
}

std::vector<Attributes> attention_attributes() { return {{}, {{"causal", int64_t{1}}}, {{"scale", Numbers(0.3)}}}; }

// q, k, v with heads inside positions in memory, as projections leave them.
Operand heads(Case& c, int64_t b, int64_t h, int64_t n, int64_t d) {
  return permuted(c.numbers({b, n, h, d}), {0, 2, 1, 3});
}

// Where attention is one step, scores are not stored.
void check_memory(Case& c) {
  const int64_t shape[] = {1, 1, 4096, 16}, score_bytes = shape[2] * shape[2] * 4;
  compute_tensor_spec specs[3] = {};
  for (compute_tensor_spec& spec : specs) {
    spec.struct_size = sizeof spec;
    spec.dtype = COMPUTE_DTYPE_FLOAT32;
    spec.rank = 4;
    spec.shape = shape;
  }
  const compute_op* op = nullptr;
  check(compute_op_find("attention", 1, &op));
  compute_support support = {};
  support.struct_size = sizeof support;
  check(compute_op_query(c.session.device(), op, nullptr, 0, specs, 3, nullptr, 0, &support));
  compute_text_free(support.text);
  if (support.support != COMPUTE_SUPPORT_NATIVE) return;
  EXPECT_LT(support.workspace_bytes, score_bytes / 2);
  std::vector<Operand> given;
  for (int i = 0; i < 3; ++i) given.push_back(c.numbers({shape[0], shape[1], shape[2], shape[3]}));
  const compute_device_statistics before = c.session.statistics();
  std::vector<Tensor> outputs(2);
  c.session.run_all("attention", {}, given, nullptr, outputs);
  check(compute_device_synchronize(c.session.device()));
  EXPECT_LE(c.session.statistics().memory_peak, std::max(before.memory_peak, before.memory_used + score_bytes / 2));
}

// Numbers whose low parts would underflow: each of q, k and v in turn. Products with weights are subnormal too.
std::vector<std::vector<Operand>> extreme_numbers(Case& c) {
  if (c.session.flushes_subnormals()) return {};
  const auto numbers = [&](long double most) {
    return c.session.upload(c.inputs.uniform(c.dtype, {1, 1, 70, 64}, -most, most));
  };
  return {{numbers(1e-36L), numbers(1e35L), numbers(1)},
          {numbers(1e34L), numbers(1e-35L), numbers(1)},
          {numbers(1), numbers(1), numbers(1e-34L)}};
}

// Few queries of many keys, which kernels divide, with masks of each broadcast form: of a part of the keys, as sliding
// windows and unfilled caches leave them, and of any keys.
void test_few_queries(Case& c) {
  std::vector<Lengths> list = {{2, 6, 2, 1, 700, 16, 16}};
  if (c.full()) list.push_back({1, 8, 2, 4, 300, 64, 128});
  if (c.full() && c.dtype == dtype::FLOAT32) {
    list.push_back({1, 4, 1, 3, 1100, 24, 12});
    list.push_back({2, 2, 2, 9, 530, 5, 7});
  }
  for (const Lengths& s : list) {
    std::vector<Operand> given = {heads(c, s.b, s.h, s.n, s.d), heads(c, s.b, s.h_kv, s.m, s.d),
                                  heads(c, s.b, s.h_kv, s.m, s.e)};
    c.run({}, given, "few queries");
    c.run({{"causal", int64_t{1}}}, given, "few queries, causal");
    given.emplace_back();
    const std::vector<oracle::Shape> shapes = {{s.m},         {s.n, s.m}, {s.b, 1, 1, s.m}, {1, s.h, s.n, s.m},
                                               {s.h, s.n, 1}, {}};
    for (const oracle::Shape& shape : shapes) {
      Array window = c.inputs.uniform(dtype::BOOL, shape, 0, 1);
      const int64_t columns = shape.empty() ? 1 : shape.back();
      for (int64_t i = 0; columns > 1 && i < window.size(); ++i)
        if (i % columns < columns / 2 || i % columns > columns / 2 + 90) window.set(i, oracle::Value::of(false));
      given.back() = c.session.upload(window);
      c.run({}, given, "few queries, a window");
      if (!c.full()) break;
    }
    given.back() = c.numbers({s.h, 1, s.m});
    c.run({{"causal", int64_t{1}}}, given, "few queries, an added mask");
  }
}

void test_attention(Case& c) {
  if (c.full() && c.dtype == dtype::FLOAT32) {
    for (const std::vector<Operand>& given : extreme_numbers(c)) c.run({}, given, "extreme numbers");
  }
  if (c.full()) {
    Array special = c.inputs.uniform(c.dtype, {1, 1, 70, 64}, -2, 2);
    special.set(65 * 64 + 5, oracle::Value::of(std::numeric_limits<Real>::infinity()));
    special.set(7 * 64 + 1, oracle::Value::of(std::numeric_limits<Real>::quiet_NaN()));
    const Operand ordinary = c.numbers({1, 1, 70, 64});
    c.run({}, {ordinary, ordinary, c.session.upload(special)}, "special values");
    // A query that is NaN has no sum, and a logsumexp that is NaN.
    for (const int64_t features : {16, 64}) {
      Array queries = c.inputs.uniform(c.dtype, {1, 1, 70, features}, -2, 2);
      queries.set(7 * features + 1, oracle::Value::of(std::numeric_limits<Real>::quiet_NaN()));
      c.run({}, {c.session.upload(queries), c.numbers({1, 1, 70, features}), c.numbers({1, 1, 70, features})},
            "a query that is NaN");
    }
  }
  for (const Lengths& s : lengths(c)) {
    const std::vector<Operand> given = {heads(c, s.b, s.h, s.n, s.d), heads(c, s.b, s.h_kv, s.m, s.d),
                                        heads(c, s.b, s.h_kv, s.m, s.e)};
    for (const Attributes& attributes : attention_attributes()) c.run(attributes, given, "heads behind positions");
    if (s.is_for_units) continue;
    for (Layout layout : layouts_of(c)) {
      c.run({},
            {c.numbers({s.b, s.h, s.n, s.d}, layout), c.numbers({s.b, s.h_kv, s.m, s.d}, layout),
             c.numbers({s.b, s.h_kv, s.m, s.e}, layout)},
            name(layout));
    }
    if (s.d > 100) continue;  // every form of a kernel takes long to compile
    std::vector<Operand> masked = given;
    masked.push_back(c.numbers({s.n, s.m}));
    c.run({}, masked, "added mask");
    masked.back() = c.session.upload(c.inputs.uniform(dtype::BOOL, {s.b, 1, s.n, s.m}, 0, 1));
    c.run({{"causal", int64_t{1}}}, masked, "bool mask");
    masked.back() = c.session.upload(c.inputs.uniform(dtype::BOOL, {s.m}, 0, 1));
    c.run({}, masked, "mask of keys");
  }
  test_few_queries(c);
  if (c.full() && c.dtype == dtype::FLOAT32) check_memory(c);
}

void test_attention_grad(Case& c) {
  if (c.full() && c.dtype == dtype::FLOAT32) {
    for (const std::vector<Operand>& given : extreme_numbers(c)) {
      const std::vector<Operand> results = c.results("attention", {}, given, 2);
      c.run({}, {c.numbers({1, 1, 70, 64}), given[0], given[1], given[2], results[0], results[1]}, "extreme numbers");
    }
  }
  for (const Lengths& s : lengths(c)) {
    std::vector<Operand> given = {heads(c, s.b, s.h, s.n, s.d), heads(c, s.b, s.h_kv, s.m, s.d),
                                  heads(c, s.b, s.h_kv, s.m, s.e)};
    const auto check = [&](const Attributes& attributes, const Operand& mask) {
      std::vector<Operand> forward = given, list = {c.numbers({s.b, s.h, s.n, s.e})};
      if (mask.tensor) forward.push_back(mask);
      const std::vector<Operand> results = c.results("attention", attributes, forward, 2);
      list.insert(list.end(), given.begin(), given.end());
      list.insert(list.end(), results.begin(), results.end());
      if (mask.tensor) list.push_back(mask);
      c.run(attributes, list, "");
    };
    for (const Attributes& attributes : attention_attributes()) check(attributes, {});
    if (s.d > 100 || s.is_for_units) continue;
    check({}, c.numbers({s.n, s.m}));
    check({{"causal", int64_t{1}}}, c.session.upload(c.inputs.uniform(dtype::BOOL, {s.b, 1, s.n, s.m}, 0, 1)));
  }
}

void test_rotary(Case& c) {
  for (Layout layout : layouts_of(c)) {
    for (const Attributes& attributes : std::vector<Attributes>{
             {}, {{"interleaved", int64_t{1}}}, {{"inverse", int64_t{1}}}, {{"base", Numbers(500)}}}) {
      c.run(attributes, {c.numbers({2, 3, 9, 8}, layout), c.integers({9}, 100)}, name(layout));
    }
  }
}

// ---- Optimisers -----------------------------------------------------------------------------------------------------

// Several groups of tensors in one call; first in a row, then one with strides and one without elements among them.
void test_optimizer_groups(Case& c) {
  const bool is_adam = c.op == "adam" || c.op == "adamw";
  const size_t count = is_adam ? 4 : c.op == "sgd" ? 2 : 3;
  Attributes attributes = {{"rate", Numbers(0.25)}, {"decay", Numbers(0.125)}};
  if (is_adam) attributes["step"] = Numbers(3);
  const auto operands = [&](const std::vector<Shape>& shapes, Layout layout) {
    std::vector<Operand> given;
    for (size_t i = 0; i < count; ++i) {
      for (const Shape& shape : shapes)
        given.push_back(c.numbers(shape, shape.size() > 1 ? layout : Layout::CONTIGUOUS, i == 3 ? 0.01L : -2));
    }
    return given;
  };
  const std::vector<Shape> shapes = {{13, 29}, {7}, {}, {2000}, {3, 5, 2}};
  c.run(attributes, operands(shapes, Layout::CONTIGUOUS), "groups");
  c.run(attributes, operands({{4, 6}, {0}, {300}}, Layout::TRANSPOSED), "groups");
  if (!c.full()) return;
  c.run(attributes, operands(std::vector<Shape>(75, Shape{40}), Layout::CONTIGUOUS), "many groups");
  // In place.
  const std::vector<Operand> given = operands(shapes, Layout::CONTIGUOUS);
  const oracle::Result expected = c.session.reference(c.op, attributes, given);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < given.size(); ++i)
    if (i / shapes.size() != 1) outputs.push_back(given[i].tensor);
  c.session.run_all(c.op, attributes, given, nullptr, outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    c.session.judge(outputs[i], i == 0 ? expected : expected.more[i - 1], bound_of(c.op, c.dtype), "groups in place");
}

void test_optimizer(Case& c) {
  test_optimizer_groups(c);
  const bool is_adam = c.op == "adam" || c.op == "adamw";
  const size_t count = is_adam ? 4 : c.op == "sgd" ? 2 : 3;
  for (Layout layout : layouts_of(c)) {
    std::vector<Operand> given;
    for (size_t i = 0; i < count; ++i) given.push_back(c.numbers({13, 29}, layout, i == 3 ? 0.01L : -2));
    c.run({}, given, name(layout));
    Attributes attributes = {{"rate", Numbers(0.25)}, {"decay", Numbers(0.125)}};
    if (is_adam) attributes["step"] = Numbers(10);
    if (c.op == "sgd_momentum") attributes["nesterov"] = int64_t{1};
    c.run(attributes, given, name(layout));
  }
  // In place: every output is the identical view of its input.
  std::vector<Operand> given;
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < count; ++i) given.push_back(c.numbers({13, 29}, Layout::CONTIGUOUS, i == 3 ? 0.01L : -2));
  const oracle::Result expected = c.session.reference(c.op, {}, given);
  outputs.push_back(given[0].tensor);
  for (size_t i = 2; i < count; ++i) outputs.push_back(given[i].tensor);
  c.session.run_all(c.op, {}, given, nullptr, outputs);
  c.session.judge(outputs[0], expected, bound_of(c.op, c.dtype), c.op + " in place");
  for (size_t i = 1; i < outputs.size(); ++i)
    c.session.judge(outputs[i], expected.more[i - 1], bound_of(c.op, c.dtype), c.op + " in place");
}

// ---- Recurrent layers -----------------------------------------------------------------------------------------------

struct Recurrence {
  int64_t time, batch, features, hidden;
  std::string direction = "forward";
  bool biases = false, states = false, peepholes = false, lengths = false;
};

std::vector<Operand> recurrent_operands(Case& c, const Recurrence& r, Layout layout = Layout::CONTIGUOUS) {
  const int64_t directions = r.direction == "bidirectional" ? 2 : 1, rows = (c.op == "lstm" ? 4 : 3) * r.hidden;
  const auto numbers = [&](const Shape& shape, bool given = true) {
    return given ? c.numbers(shape, layout, -1, 1) : Operand{};
  };
  std::vector<Operand> all = {numbers({r.time, r.batch, r.features}), numbers({directions, rows, r.features}),
                              numbers({directions, rows, r.hidden})};
  for (int i = 0; i < 2; ++i) all.push_back(numbers({directions, rows}, r.biases));
  for (int i = 0; i < (c.op == "lstm" ? 2 : 1); ++i) all.push_back(numbers({directions, r.batch, r.hidden}, r.states));
  if (c.op == "lstm") all.push_back(numbers({directions, 3 * r.hidden}, r.peepholes));
  all.push_back(r.lengths ? c.integers({r.batch}, r.time + 1, dtype::INT32) : Operand{});
  return all;
}

void test_recurrent(Case& c) {
  const auto run = [&](const Recurrence& r, const char* what, Layout layout = Layout::CONTIGUOUS) {
    for (const int64_t linear : {0, 1}) {
      if (c.op == "lstm" && linear == 1) continue;
      Attributes attributes = {{"direction", r.direction}};
      if (c.op == "gru") attributes["linear_before_reset"] = linear;
      c.run(attributes, recurrent_operands(c, r, layout), what);
    }
  };
  run({4, 3, 5, 6}, "plain");
  run({4, 3, 5, 6, "bidirectional", true, true, true, true}, "everything");
  if (!c.full()) return;
  run({4, 3, 5, 6, "reverse", true}, "reverse");
  run({5, 2, 3, 7, "reverse", false, true, false, true}, "reverse, with lengths");
  run({3, 2, 3, 4, "bidirectional"}, "both directions");
  run({3, 2, 3, 4, "forward", true, false, true}, "peepholes");
  run({1, 1, 16, 128, "forward", true, true}, "one time");
  run({9, 1, 40, 33, "forward", true, true}, "one sequence");
  run({2, 17, 40, 33, "bidirectional", true, true}, "many sequences");
  run({7, 26, 9, 37, "reverse", true, true, true, true}, "many sequences of other lengths");
  run({12, 2, 5, 150, "bidirectional", true, false, true}, "many units");
  run({0, 2, 3, 4, "forward", true, true}, "no time");
  run({2, 2, 0, 4, "forward", true, true}, "no features");
  run({2, 0, 3, 4, "forward", true, true}, "no sequences");
  for (Layout layout : layouts_of(c)) run({3, 2, 5, 4, "bidirectional", true, true, true}, name(layout), layout);
  for (Layout layout : {Layout::TRANSPOSED, Layout::NEGATIVE}) {
    c.run_into({{"direction", std::string("bidirectional")}},
               recurrent_operands(c, {3, 2, 5, 4, "bidirectional", true, true, false, true}), layout);
  }
}

// ---- Local response normalisation -----------------------------------------------------------------------------------

void test_local_response_norm(Case& c) {
  const auto size_of = [](int64_t size) {
    return Attributes{{"size", size}, {"alpha", Numbers(0.5)}, {"beta", Numbers(0.75)}, {"bias", Numbers(1.5)}};
  };
  for (Layout layout : layouts_of(c)) c.run(size_of(5), {c.numbers({2, 7, 3, 2}, layout)}, name(layout));
  c.run({{"size", int64_t{4}}}, {c.numbers({3, 9, 5})}, "defaults");
  if (!c.full()) return;
  for (const int64_t size : {1, 2, 3, 20}) c.run(size_of(size), {c.numbers({2, 6, 11})}, std::to_string(size));
  c.run(size_of(3), {c.numbers({4, 5})}, "no spatial axis");
  c.run(size_of(3), {c.numbers({0, 5, 2})}, "no image");
  c.run(size_of(3), {c.numbers({2, 64, 14, 14}, Layout::CONTIGUOUS, -8, 8)}, "an image");
  for (Layout layout : {Layout::TRANSPOSED, Layout::NEGATIVE}) c.run_into(size_of(3), {c.numbers({2, 6, 11})}, layout);
}

// ---- Resampling -----------------------------------------------------------------------------------------------------

oracle::Attribute reals(const std::vector<double>& values) {
  oracle::Attribute attribute;
  attribute.numbers.assign(values.begin(), values.end());
  return attribute;
}

// The calls of resize: an input's shape and the attributes.
std::vector<std::pair<Shape, Attributes>> resize_calls(const Case& c) {
  using Text = std::string;
  std::vector<std::pair<Shape, Attributes>> calls;
  const auto add = [&](const Shape& shape, Shape sizes, Attributes attributes) {
    attributes["sizes"] = std::move(sizes);
    calls.emplace_back(shape, std::move(attributes));
  };
  const Shape spatial = {2, 3};
  const bool is_float = oracle::is_float(c.dtype);
  add({2, 3, 4, 5}, {8, 10}, {{"axes", spatial}});
  add({2, 5, 7}, {2, 7, 4}, {});
  if (is_float) {
    add({2, 3, 4, 5}, {7, 11}, {{"axes", spatial}, {"mode", Text("linear")}});
    add({9, 8}, {5, 13}, {{"mode", Text("cubic")}, {"exclude_outside", int64_t{1}}});
    add({9, 12}, {4, 5}, {{"mode", Text("linear")}, {"antialias", int64_t{1}}});
  }
  if (!c.full()) return calls;
  add({}, {}, {});
  add({3, 4}, {3, 4}, {});
  add({3, 4}, {0, 4}, {});
  add({0, 4}, {0, 8}, {});
  add({1, 6}, {4, 1}, {});
  add({6, 8}, {3, 4}, {{"coordinate_transformation_mode", Text("asymmetric")}, {"nearest_mode", Text("floor")}});
  for (const char* coordinates :
       {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
    for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
      const Attributes nearest = {{"coordinate_transformation_mode", Text(coordinates)},
                                  {"nearest_mode", Text(rounding)}};
      add({7, 10}, {4, 17}, nearest);
      add({7, 10}, {14, 30}, nearest);
      Attributes scaled = nearest;
      scaled["scales"] = reals({0.7, 1.3});
      add({10, 10}, {7, 13}, scaled);
    }
    for (const char* mode : {"linear", "cubic"}) {
      if (!is_float) break;
      const Attributes plain = {{"coordinate_transformation_mode", Text(coordinates)}, {"mode", Text(mode)}};
      add({1, 4}, {3, 1}, plain);
      Attributes from_behind = plain;
      from_behind["axes"] = Shape{-1, -3};
      add({2, 9, 3, 12}, {17, 5}, from_behind);
      for (const int64_t exclude : {0, 1}) {
        for (const int64_t antialias : {0, 1}) {
          Attributes given = plain;
          given["exclude_outside"] = exclude;
          given["antialias"] = antialias;
          given["scales"] = reals({0.6, 1.7});
          if (antialias != 0) given["cubic_coeff_a"] = Numbers(-0.5);
          add({11, 10}, {6, 17}, given);
        }
      }
    }
  }
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    if (!is_float && Text(mode) != "nearest") continue;
    Attributes crop = {{"coordinate_transformation_mode", Text("tf_crop_and_resize")}, {"mode", Text(mode)}};
    crop["roi"] = reals({0.25, 0.1, 0.75, 0.9});
    add({9, 12}, {6, 15}, crop);
    crop["roi"] = reals({-0.25, 0.5, 1.5, 1.25});
    crop["extrapolation_value"] = Numbers(10);
    add({9, 12}, {6, 15}, crop);
    add({9, 12}, {1, 5}, crop);
  }
  return calls;
}

void test_resize(Case& c) {
  const auto calls = resize_calls(c);
  for (const auto& [shape, attributes] : calls) c.run(attributes, {c.numbers(shape, Layout::CONTIGUOUS, -50, 50)}, "");
  for (Layout layout : layouts_of(c)) {
    for (size_t i = 0; i < 3 && i < calls.size(); ++i)
      c.run(calls[i].second, {c.numbers(calls[i].first, layout, -50, 50)}, name(layout));
  }
  if (!c.full()) return;
  for (Layout layout : {Layout::TRANSPOSED, Layout::NEGATIVE})
    c.run_into(calls[1].second, {c.numbers(calls[1].first, Layout::CONTIGUOUS, -50, 50)}, layout);
}

// dy has the shape of a resize's result.
void test_resize_grad(Case& c) {
  const auto calls = resize_calls(c);
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto& [x, given] = calls[i];
    Attributes attributes = given;
    const Shape sizes = attributes["sizes"].integers;
    Shape dy = x, shape = sizes;
    attributes.erase("sizes");
    attributes.erase("extrapolation_value");
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      const int64_t given_axis =
          attributes.contains("axes") ? attributes["axes"].integers[axis] : static_cast<int64_t>(axis);
      const auto at = static_cast<size_t>(given_axis < 0 ? given_axis + static_cast<int64_t>(x.size()) : given_axis);
      dy[at] = sizes[axis];
      shape[axis] = x[at];
    }
    attributes["shape"] = shape;
    c.run(attributes, {c.numbers(dy)}, "");
    if (i == 0)
      for (Layout layout : layouts_of(c)) c.run(attributes, {c.numbers(dy, layout)}, name(layout));
  }
}

// ---- Indices --------------------------------------------------------------------------------------------------------

void test_take_grad(Case& c) {
  const auto run = [&](const Shape& dy, const Shape& indices, int64_t axis, int64_t size, Dtype type, Layout layout,
                       int64_t deterministic) {
    c.run({{"size", size}, {"axis", axis}, {"deterministic", deterministic}},
          {c.numbers(dy, layout), c.session.upload(c.inputs.indices(type, indices, size, true))},
          std::string(name(layout)) + (deterministic != 0 ? ", deterministic" : ""));
  };
  const auto check = [&](const Shape& dy, const Shape& indices, int64_t axis, int64_t size, Dtype type, Layout layout) {
    for (const int64_t deterministic : {0, 1}) run(dy, indices, axis, size, type, layout, deterministic);
  };
  for (Layout layout : layouts_of(c)) check({40, 6}, {40}, 0, 7, dtype::INT64, layout);
  for (const int64_t deterministic : {0, 1}) {
    const Attributes given = {{"size", int64_t{7}}, {"deterministic", deterministic}};
    c.run(given, {broadcast(c.numbers({20, 1, 4}), {20, 3, 4}), c.integers({20, 3}, 7)}, "rows that repeat");
    c.run(given, {c.numbers({20, 3, 4}), broadcast(c.integers({20, 1}, 7), {20, 3})}, "indices that repeat");
  }
  if (!c.full()) return;
  check({3, 5, 4, 6}, {5, 4}, 1, 9, dtype::INT32, Layout::CONTIGUOUS);
  check({3, 50}, {50}, -1, 4, dtype::INT64, Layout::NEGATIVE);
  check({6}, {}, 0, 3, dtype::INT64, Layout::CONTIGUOUS);
  check({0, 6}, {0}, 0, 3, dtype::INT64, Layout::CONTIGUOUS);
  check({600, 70}, {600}, 0, 1000, dtype::INT32, Layout::CONTIGUOUS);
  check({2, 700, 33}, {700}, 1, 5, dtype::INT64, Layout::TRANSPOSED);
  for (const int64_t deterministic : {0, 1}) {
    c.run_into({{"size", int64_t{7}}, {"deterministic", deterministic}}, {c.numbers({40, 6}), c.integers({40}, 7)},
               Layout::NEGATIVE);
  }
  // One row, and numbers of rows that need one to three digits of the sorted indices, with several tiles.
  run({300, 5}, {300}, 0, 1, dtype::INT64, Layout::CONTIGUOUS, 1);
  run({60, 100, 8}, {60, 100}, 0, 256, dtype::INT32, Layout::CONTIGUOUS, 1);
  run({9000, 4}, {9000}, 0, 700, dtype::INT64, Layout::CONTIGUOUS, 1);
  run({5000, 2}, {5000}, 0, 70000, dtype::INT32, Layout::TRANSPOSED, 1);
}

struct Row {
  const char* op;
  void (*body)(Case&);
  bool any_dtype = false;
};

constexpr Row kRows[] = {
    {"adam", test_optimizer},
    {"adamw", test_optimizer},
    {"affine", test_affine},
    {"attention", test_attention},
    {"attention_grad", test_attention_grad},
    {"average_pool", test_pool},
    {"average_pool_grad", test_pool_grad},
    {"batch_norm", test_norm},
    {"batch_norm_grad", test_norm_grad},
    {"batch_norm_inference", test_batch_norm_inference},
    {"cross_entropy", test_cross_entropy},
    {"cross_entropy_grad", test_cross_entropy_grad},
    {"cross_entropy_soft", test_cross_entropy_soft},
    {"cross_entropy_soft_grad", test_cross_entropy_soft_grad},
    {"gemm", test_gemm},
    {"group_norm", test_group_norm},
    {"group_norm_grad", test_group_norm_grad},
    {"gru", test_recurrent},
    {"layer_norm", test_norm},
    {"layer_norm_grad", test_norm_grad},
    {"local_response_norm", test_local_response_norm},
    {"log_softmax_grad", test_softmax_grad},
    {"lstm", test_recurrent},
    {"max_pool", test_pool, true},
    {"max_pool_grad", test_pool_grad},
    {"resize", test_resize, true},
    {"resize_grad", test_resize_grad},
    {"rms_norm", test_norm},
    {"rms_norm_grad", test_norm_grad},
    {"rotary_embedding", test_rotary},
    {"sgd", test_optimizer},
    {"sgd_momentum", test_optimizer},
    {"softmax_grad", test_softmax_grad},
    {"take_grad", test_take_grad, true},
};

}  // namespace

void add_network_tests(Registry& registry) {
  for (const Row& row : kRows) {
    for (Dtype dtype : tested_dtypes(registry.level())) {
      const bool is_ordered = std::string_view(row.op) == "max_pool";
      if (!oracle::is_float(dtype) && (!row.any_dtype || oracle::is_bool(dtype))) continue;
      if (is_ordered && oracle::is_complex(dtype)) continue;
      Test test{"network", std::string(row.op) + "_" + oracle::info(dtype).name,
                nullptr,   dtype == dtype::FLOAT32 ? Level::SMOKE : Level::QUICK,
                row.op,    {dtype}};
      // Where the op is taken apart, positions in the windows are int64.
      if (std::string_view(row.op) == "max_pool_grad") test.dtypes.push_back(dtype::INT64);
      // The same of elements, and comparisons round their coordinates.
      if (std::string_view(row.op).starts_with("resize")) {
        for (const Dtype other : {dtype::INT64, dtype::BOOL, dtype::FLOAT32}) test.dtypes.push_back(other);
      }
      test.body = [row, dtype](const Session& session) {
        Case c(session, row.op, dtype);
        row.body(c);
      };
      registry.add(std::move(test));
    }
  }
}

}  // namespace compute::conformance
