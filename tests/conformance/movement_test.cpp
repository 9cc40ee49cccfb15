// SPDX-License-Identifier: Apache-2.0
// Ops that move elements or convert them: all exact.
#include <gtest/gtest.h>

#include <numeric>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

const Bound kExact{Bound::EXACT, 0};

class Case {
 public:
  Case(const Session& session, const std::string& op, Dtype dtype)
      : session_(session), op_(op), dtype_(dtype), seed_(seed_of(op + oracle::info(dtype).name)), inputs_(seed_) {}

  Operand operand(const Shape& shape, Layout layout = Layout::CONTIGUOUS) {
    if (layout == Layout::BROADCAST) return view(layout, session_.upload(array(base_shape(layout, shape))), shape);
    return session_.upload(array(shape), layout);
  }

  Array array(const Shape& shape) { return inputs_.operand(op_, 0, 1, dtype_, shape); }

  Operand indices(const Shape& shape, int64_t extent, Dtype dtype = dtype::INT64, Layout layout = Layout::CONTIGUOUS) {
    return session_.upload(inputs_.indices(dtype, shape, extent, true), layout);
  }

  void run(const Attributes& attributes, const std::vector<Operand>& inputs, const std::string& what,
           const Bound& bound = kExact) {
    session_.expect(op_, attributes, inputs, bound, what + ", seed " + std::to_string(seed_));
  }

  void run_into(const Attributes& attributes, const std::vector<Operand>& inputs, Layout layout) {
    session_.expect_into(op_, attributes, inputs, kExact, "seed " + std::to_string(seed_), layout);
  }

  bool full() const { return session_.level() == Level::FULL; }
  const Session& session() const { return session_; }
  Inputs& inputs() { return inputs_; }
  Dtype dtype() const { return dtype_; }

 private:
  const Session& session_;
  std::string op_;
  Dtype dtype_;
  uint64_t seed_;
  Inputs inputs_;
};

// Of 4 KiB each, more than the nearest caches hold.
constexpr int64_t kManyRows = 6200;

Attributes along(int64_t axis) { return {{"axis", axis}}; }

void test_copy(Case& c) {
  c.run({}, {c.operand({37, 19})}, "contiguous");
  if (!c.full()) return;
  for (Layout layout : kEveryLayout) {
    for (const Shape& shape : std::vector<Shape>{{}, {0, 4}, {1}, {65}, {33, 17}, {3, 4, 5, 6}, {130, 70}, {90, 3}})
      c.run({}, {c.operand(shape, layout)}, name(layout));
    if (layout != Layout::BROADCAST) c.run_into({}, {c.operand({9, 14})}, layout);
    if (layout != Layout::BROADCAST) c.run_into({}, {c.operand({9, 14}, Layout::PERMUTED)}, layout);
  }
  if (c.dtype() == dtype::FLOAT32)
    c.run({}, {permuted(c.operand({130, 513, 128}), {1, 0, 2})}, "rows of more than caches hold");
}

void test_cast(Case& c) {
  for (const oracle::DtypeInfo& to : oracle::kDtypes) {
    if (oracle::is_complex(c.dtype()) && !oracle::is_complex(to.id)) continue;
    if (!c.session().supports(to.id, COMPUTE_DTYPE_LEVEL_CONVERT)) continue;
    if (!c.full() && to.id != dtype::FLOAT32 && to.id != dtype::INT32 && to.id != dtype::COMPLEX64) continue;
    const Attributes attributes{{"dtype", int64_t{to.id}}};
    const std::string what = std::string("to ") + to.name;
    c.run(attributes, {c.operand({1500})}, what);
    if (!c.full()) continue;
    // Values around the limits of the target.
    if (oracle::is_float(c.dtype()) && oracle::is_integer(to.id)) {
      const Real limit = static_cast<Real>(oracle::integer_max(to.id));
      c.run(attributes, {c.session().upload(c.inputs().uniform(c.dtype(), {777}, -1.5L * limit, 1.5L * limit))}, what);
      c.run(attributes, {c.session().upload(c.inputs().uniform(c.dtype(), {333}, -3, 3))}, what);
    }
    for (Layout layout : {Layout::TRANSPOSED, Layout::NEGATIVE, Layout::BROADCAST, Layout::OFFSET})
      c.run(attributes, {c.operand({7, 9}, layout)}, what);
    for (const Shape& shape : std::vector<Shape>{{}, {0}, {1}, {17}, {5, 3}})
      c.run(attributes, {c.operand(shape)}, what);
    c.run_into(attributes, {c.operand({7, 9})}, Layout::NEGATIVE);
    if (oracle::is_half(c.dtype()))
      c.run(attributes, {c.session().upload(Inputs::exhaustive(c.dtype()))}, what + ", every value");
  }
}

void test_concat(Case& c) {
  c.run(along(1), {c.operand({3, 5}), c.operand({3, 2}), c.operand({3, 7})}, "three");
  if (!c.full()) return;
  c.run({}, {c.operand({17})}, "one");
  c.run({}, {c.operand({17}), c.operand({0}), c.operand({3})}, "one of them empty");
  c.run(along(-2), {c.operand({2, 3, 4}), c.operand({2, 5, 4})}, "middle axis");
  for (const int64_t n : {1, 3, 9}) c.run(along(1), {c.operand({70, n}), c.operand({70, 5})}, "short rows");
  std::vector<Operand> many;
  for (int64_t i = 0; i < 40; ++i) many.push_back(c.operand({i % 3, 4}));
  c.run(along(0), many, "forty");
  for (Layout layout : kEveryLayout)
    c.run(along(1), {c.operand({4, 6}, layout), c.operand({4, 3}, Layout::NEGATIVE)}, name(layout));
  for (Layout layout : {Layout::TRANSPOSED, Layout::NEGATIVE})
    c.run_into(along(0), {c.operand({4, 6}), c.operand({3, 6})}, layout);
}

void test_stack(Case& c) {
  c.run({}, {c.operand({3, 5}), c.operand({3, 5})}, "first axis");
  if (!c.full()) return;
  for (int64_t axis : {1, 2, -1, -3})
    c.run(along(axis), {c.operand({3, 5}), c.operand({3, 5}), c.operand({3, 5})}, "axis " + std::to_string(axis));
  c.run({}, {c.operand({}), c.operand({}), c.operand({})}, "scalars");
  c.run({}, {c.operand({0, 2}), c.operand({0, 2})}, "empty");
  for (Layout layout : kEveryLayout) c.run(along(1), {c.operand({4, 6}, layout), c.operand({4, 6})}, name(layout));
}

void test_take(Case& c) {
  c.run(along(0), {c.operand({19, 5}), c.indices({31}, 19)}, "rows");
  if (!c.full()) return;
  c.run(along(1), {c.operand({5, 19}), c.indices({31}, 19, dtype::INT32)}, "columns");
  c.run(along(-1), {c.operand({3, 4, 9}), c.indices({2, 3}, 9)}, "indices of two axes");
  for (const Dtype type : {dtype::INT64, dtype::INT32}) {
    Array positions = c.inputs().indices(type, {77}, 19, false);
    c.run({}, {c.operand({19}), c.session().upload(positions)}, "elements");
    positions.set(40, Value::of(oracle::Integer{-19}));
    c.run({}, {c.operand({19}), c.session().upload(positions)}, "elements, one from the end");
  }
  for (const int64_t n : {2, 3, 7}) c.run(along(0), {c.operand({19, n}), c.indices({700}, 19)}, "short rows");
  c.run(along(1), {c.operand({3, 19, 3}), c.indices({31}, 19, dtype::INT32)}, "short rows of planes");
  c.run(along(1), {c.operand({3, 4, 9}), c.indices({}, 4)}, "one index");
  c.run({}, {c.operand({7}), c.indices({0}, 7)}, "no index");
  c.run({}, {c.operand({7, 0}), c.indices({5}, 7)}, "empty rows");
  for (Layout layout : kEveryLayout) {
    c.run(along(1), {c.operand({4, 6}, layout), c.indices({9}, 6)}, name(layout));
    if (layout != Layout::BROADCAST)
      c.run(along(1), {c.operand({4, 6}), c.indices({3, 4}, 6, dtype::INT64, layout)},
            std::string("indices ") + name(layout));
  }
  c.run_into(along(0), {c.operand({8, 3}), c.indices({5}, 8)}, Layout::NEGATIVE);
  if (c.dtype() == dtype::FLOAT32) c.run(along(0), {c.operand({61, 1024}), c.indices({kManyRows}, 61)}, "many rows");
}

void test_take_along_axis(Case& c) {
  c.run({}, {c.operand({6, 19}), c.indices({6, 8}, 19)}, "last axis");
  if (!c.full()) return;
  c.run(along(0), {c.operand({19, 6}), c.indices({4, 6}, 19, dtype::INT32)}, "first axis");
  c.run(along(1), {c.operand({3, 7, 4}), c.indices({3, 2, 4}, 7)}, "middle axis");
  c.run({}, {c.operand({9}), c.indices({30}, 9)}, "a vector");
  c.run({}, {c.operand({3, 9}), c.indices({3, 0}, 9)}, "no index");
  for (Layout layout : kEveryLayout) c.run({}, {c.operand({4, 6}, layout), c.indices({4, 3}, 6)}, name(layout));
}

void test_roll(Case& c) {
  c.run({{"shift", int64_t{2}}}, {c.operand({3, 7})}, "last axis");
  if (!c.full()) return;
  for (int64_t shift : {0, 1, -1, 5, 7, -16}) {
    for (Layout layout : kEveryLayout)
      c.run({{"shift", shift}, {"axis", int64_t{0}}}, {c.operand({5, 3}, layout)}, name(layout));
  }
  c.run({{"shift", int64_t{3}}}, {c.operand({2, 0})}, "empty");
  c.run_into({{"shift", int64_t{-3}}}, {c.operand({4, 9})}, Layout::NEGATIVE);
}

void test_repeat(Case& c) {
  c.run({{"repeats", int64_t{3}}}, {c.operand({3, 7})}, "last axis");
  if (!c.full()) return;
  for (int64_t repeats : {0, 1, 4}) {
    for (Layout layout : kEveryLayout)
      c.run({{"repeats", repeats}, {"axis", int64_t{0}}}, {c.operand({5, 3}, layout)}, name(layout));
  }
  c.run({{"repeats", int64_t{3}}}, {c.operand({2, 0})}, "empty");
  c.run_into({{"repeats", int64_t{2}}, {"axis", int64_t{1}}}, {c.operand({4, 3, 5})}, Layout::NEGATIVE);
}

void test_tile(Case& c) {
  c.run({{"repetitions", Shape{2, 3}}}, {c.operand({3, 7})}, "both axes");
  if (!c.full()) return;
  for (Layout layout : kEveryLayout)
    c.run({{"repetitions", Shape{2, 1, 3}}}, {c.operand({5, 3}, layout)}, name(layout));
  for (const Shape& counts : std::vector<Shape>{{}, {1}, {4}, {0}, {2, 0}, {2, 1, 1, 2}})
    c.run({{"repetitions", counts}}, {c.operand({2, 3, 4})}, "counts");
  c.run({{"repetitions", Shape{2, 2}}}, {c.operand({})}, "a scalar");
  c.run({{"repetitions", Shape{2}}}, {c.operand({2, 0})}, "empty");
  c.run_into({{"repetitions", Shape{3, 2}}}, {c.operand({4, 3})}, Layout::NEGATIVE);
}

// Each element of the result is written at most once: rows of permutations.
Operand distinct_indices(Case& c, int64_t count, int64_t extent, int64_t columns) {
  Array indices(dtype::INT64, {count, columns});
  std::vector<int64_t> order(static_cast<size_t>(extent));
  for (int64_t j = 0; j < columns; ++j) {
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[c.inputs().random().below(i)]);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = order[static_cast<size_t>(i)];
      indices.set(i * columns + j, Value::of(static_cast<oracle::Integer>(i % 2 ? index - extent : index)));
    }
  }
  return c.session().upload(indices);
}

// Many updates of few elements, which a plugin may combine in tables that it adds to the result once.
void test_scatter_to_few(Case& c) {
  const bool is_ordered = !oracle::is_complex(c.dtype());
  const Bound bound = bound_of("scatter", c.dtype());
  const auto numbers = [&](const Shape& shape) {
    return c.session().upload(oracle::is_inexact(c.dtype()) ? c.inputs().uniform(c.dtype(), shape, 0.5L, 1.5L)
                                                            : c.array(shape));
  };
  const auto updates = [](const char* how, int64_t deterministic = 0, int64_t axis = 0) {
    return Attributes{{"reduction", std::string(how)}, {"deterministic", deterministic}, {"axis", axis}};
  };
  if (!c.full() && c.dtype() != dtype::FLOAT32) return;
  c.run(updates("add"), {numbers({7}), c.indices({5000}, 7), numbers({5000})}, "add to few", bound);
  if (!c.full()) return;
  for (const int64_t deterministic : {0, 1}) {
    const auto run = [&](const char* how, const std::vector<Operand>& inputs, const std::string& what,
                         int64_t axis = 0) {
      const bool is_exact = std::string_view(how) == "min" || std::string_view(how) == "max";
      const std::string text = std::string(how) + ", " + what + (deterministic ? ", deterministic" : "");
      c.run(updates(how, deterministic, axis), inputs, text, is_exact ? kExact : bound);
    };
    run("add", {numbers({1}), c.indices({3000}, 1, dtype::INT32), numbers({3000})}, "one place");
    run("mul", {numbers({50}), c.indices({5000}, 50), numbers({5000})}, "few places");
    for (const char* how : {"min", "max"}) {
      if (!is_ordered) continue;
      run(how, {c.operand({5}), c.indices({4000}, 5), c.operand({4000})}, "few places");
      run(how, {c.operand({9, 3}), c.indices({2000, 3}, 9, dtype::INT32), c.operand({2000, 3})}, "rows");
    }
    // Just below 64 updates for each place on average, and as many.
    for (const int64_t count : {2559, 2560})
      run("add", {numbers({40}), c.indices({count}, 40), numbers({count})}, std::to_string(count) + " updates");
    run("add", {numbers({4, 70}), c.indices({4, 3000}, 70, dtype::INT32), numbers({4, 3000})}, "along rows", 1);
    run("add", {numbers({3, 5, 2}), c.indices({3, 2000, 2}, 5), numbers({3, 2000, 2})}, "the middle axis", 1);
    run("add", {numbers({11, 6}), c.indices({3000, 4}, 11), numbers({3000, 4})}, "some columns");
    for (Layout layout : kEveryLayout) {
      const Shape shape = {1500, 4};
      const Operand base = c.session().upload(numbers(base_shape(layout, shape)).array),
                    at = c.session().upload(c.inputs().indices(dtype::INT64, base_shape(layout, shape), 6, true));
      run("add", {numbers({6, 4}), view(layout, at, shape), view(layout, base, shape)}, name(layout));
      run("add", {numbers({6, 4}), view(layout, at, shape), numbers(shape)}, std::string("indices, ") + name(layout));
      if (layout == Layout::BROADCAST) continue;
      const Operand x = view(layout, numbers(base_shape(layout, {6, 4})), {6, 4});
      const std::vector<Operand> inputs = {x, c.indices(shape, 6), numbers(shape)};
      c.session().expect("scatter", updates("add", deterministic), inputs, bound,
                         std::string("few places in place, ") + name(layout), nullptr, x.tensor);
    }
  }
  // A table of 16 KiB that is full, and one column more.
  if (c.dtype() != dtype::FLOAT32) return;
  for (const int64_t columns : {64, 65})
    c.run(updates("add"), {numbers({64, columns}), c.indices({4200, columns}, 64), numbers({4200, columns})},
          std::to_string(columns) + " columns", bound);
}

void test_scatter(Case& c) {
  c.run({}, {c.operand({19, 5}), distinct_indices(c, 7, 19, 5), c.operand({7, 5})}, "set");
  if (oracle::is_bool(c.dtype())) return;
  test_scatter_to_few(c);
  const auto reduced = [](const char* how) { return Attributes{{"reduction", std::string(how)}}; };
  const Bound bound = bound_of("scatter", c.dtype());
  const auto numbers = [&](const Shape& shape) {
    return c.session().upload(oracle::is_inexact(c.dtype()) ? c.inputs().uniform(c.dtype(), shape, 0.5L, 1.5L)
                                                            : c.array(shape));
  };
  c.run(reduced("add"), {numbers({19, 5}), c.indices({64, 5}, 19), numbers({64, 5})}, "add", bound);
  if (oracle::is_half(c.dtype())) {
    // Each step alone is lost in the result's dtype.
    Array large(c.dtype(), {1}), ones(c.dtype(), {64});
    large.set(0, Value::of(oracle::Real{2048}));
    for (int64_t i = 0; i < ones.size(); ++i) ones.set(i, Value::of(oracle::Real{1}));
    const std::vector<Operand> inputs = {c.session().upload(large), c.indices({64}, 1), c.session().upload(ones)};
    c.run(reduced("add"), inputs, "add of many small numbers", bound);
    c.session().expect("scatter", reduced("add"), inputs, bound, "the same in place", nullptr, inputs[0].tensor);
  }
  if (!c.full()) return;
  if (oracle::is_half(c.dtype()))
    c.run(reduced("add"), {numbers({3, 5}), c.indices({3000, 4}, 3), numbers({3000, 4})}, "a part", bound);
  c.run(reduced("mul"), {numbers({19, 5}), c.indices({64, 5}, 19), numbers({64, 5})}, "mul", bound);
  if (!oracle::is_complex(c.dtype())) {
    c.run(reduced("min"), {c.operand({19, 5}), c.indices({64, 5}, 19), c.operand({64, 5})}, "min");
    c.run(reduced("max"), {c.operand({19, 5}), c.indices({64, 5}, 19), c.operand({64, 5})}, "max");
  }
  Attributes repeated = reduced("add");
  repeated["deterministic"] = int64_t{1};
  c.run(repeated, {numbers({3, 4}), c.indices({200, 4}, 3), numbers({200, 4})}, "deterministic add", bound);
  c.run({{"deterministic", int64_t{1}}}, {c.operand({3, 4}), c.indices({50, 4}, 3), c.operand({50, 4})},
        "deterministic set");
  Attributes second = reduced("add");
  second["axis"] = int64_t{1};
  c.run(second, {numbers({5, 19}), c.indices({5, 30}, 19, dtype::INT32), numbers({5, 30})}, "second axis", bound);
  c.run(second, {numbers({40, 19}), c.indices({40, 30}, 19), numbers({40, 30})}, "rows", bound);
  // Lines that a group updates in local memory.
  c.run(second, {numbers({150, 700}), c.indices({150, 1300}, 700), numbers({150, 1300})}, "many rows", bound);
  if (!oracle::is_complex(c.dtype())) {
    Attributes greatest = reduced("max");
    greatest["axis"] = int64_t{1};
    c.run(greatest, {c.operand({150, 70}), c.indices({150, 260}, 70, dtype::INT32), c.operand({150, 260})},
          "max of many rows");
  }
  c.run(reduced("add"), {numbers({3000}), c.indices({40000}, 3000, dtype::INT32), numbers({40000})}, "a long line",
        bound);
  c.run({}, {c.operand({9, 2}), c.indices({0, 2}, 9), c.operand({0, 2})}, "no update");
  for (Layout layout : kEveryLayout) {
    const Operand base = c.operand(base_shape(layout, {7, 5}));
    const std::vector<Operand> inputs = {view(layout, base, {7, 5}), distinct_indices(c, 6, 7, 5),
                                         c.operand({6, 5}, Layout::TRANSPOSED)};
    c.run({}, inputs, name(layout));
    if (layout == Layout::BROADCAST) continue;
    c.session().expect("scatter", {}, inputs, kExact, std::string("in place, ") + name(layout), nullptr,
                       inputs[0].tensor);
  }
  // Lines of every layout.
  const Attributes last = {{"axis", int64_t{1}}, {"deterministic", int64_t{1}}};
  for (Layout layout : kEveryLayout) {
    const Operand base = c.operand(base_shape(layout, {20, 9}));
    c.run(last, {view(layout, base, {20, 9}), c.indices({20, 11}, 9), c.operand({20, 11})},
          std::string("lines, ") + name(layout));
  }
  // Lines that are copied just before they are updated: by several threads, from and into views, in two loops.
  c.run(last, {c.operand({4000, 9}), c.indices({4000, 11}, 9), c.operand({4000, 11})}, "many lines");
  c.run_into(last, {c.operand({20, 9}, Layout::OFFSET), c.indices({20, 11}, 9), c.operand({20, 11})}, Layout::OFFSET);
  c.run({{"axis", int64_t{2}}, {"deterministic", int64_t{1}}},
        {c.operand({5, 8, 9}), c.indices({5, 8, 11}, 9), permuted(c.operand({8, 5, 11}), {1, 0, 2})}, "two loops");
}

// An index outside of [-n, n) is a fault that the device finds.
void index_out_of_range(const Session& session) {
  const auto fail = [&](const char* op, const Attributes& attributes, const Shape& shape, int64_t count,
                        int64_t index) {
    Array bad(dtype::INT64, {count});
    bad.set(count - 2, Value::of(static_cast<oracle::Integer>(index)));
    const Operand inputs[] = {session.upload(Array(dtype::FLOAT32, shape)), session.upload(bad)};
    const Stream stream = session.stream();
    Tensor result;
    check(compute_scope_push("look up", "table.py", 7));
    Error error = session.try_run(op, attributes, inputs, stream, result);
    check(compute_scope_pop());
    if (error.code() == COMPUTE_ERROR_UNSUPPORTED) throw Lacking(error.message());
    if (!error) error = Error(compute_stream_synchronize(stream));
    EXPECT_TRUE(error.code() == COMPUTE_ERROR_KERNEL_FAILED || error.code() == COMPUTE_ERROR_OUT_OF_RANGE)
        << compute_error_code_name(error.code()) << " " << error.message();
    EXPECT_TRUE(error.mentions(op)) << error.message();
    const std::string what = "index " + std::to_string(index) + " is out";
    EXPECT_TRUE(error.mentions(what)) << error.message();
    // Plugins may leave the place out.
    if (!error.mentions(" at indices")) return;
    const std::string place = " of range for axis 0 of extent 5, at indices[" + std::to_string(count - 2) + "]";
    EXPECT_TRUE(error.mentions(what + place)) << error.message();
    EXPECT_TRUE(error.mentions("\nscope: look up (table.py:7)")) << error.message();
  };
  fail("take", {}, {5}, 3, 5);
  fail("take", {}, {5}, 3, -6);
  for (int64_t index : {5, -6, 1 << 30}) fail("take", {}, {5}, 70, index);
  fail("take", {}, {5, 1024}, kManyRows, 5);
  fail("take", {}, {5, 3}, 700, -6);
  // A uint64 beyond int64 does not become a negative index.
  if (session.supports(dtype::UINT64, COMPUTE_DTYPE_LEVEL_CONVERT)) {
    Array bad(dtype::UINT64, {3});
    bad.set(1, Value::of(static_cast<oracle::Integer>(UINT64_MAX)));
    const Operand inputs[] = {session.upload(Array(dtype::FLOAT32, {5})), session.upload(bad)};
    const Stream stream = session.stream();
    Tensor result;
    Error error = session.try_run("take", {}, inputs, stream, result);
    if (!error) error = Error(compute_stream_synchronize(stream));
    EXPECT_TRUE(error) << "index 2^64 - 1";
  }
  // Where many updates go to few elements.
  for (const char* reduction : {"add", "mul"}) {
    for (const int64_t deterministic : {0, 1}) {
      if (session.level() != Level::FULL && (deterministic || std::string_view(reduction) != "add")) continue;
      constexpr int64_t kCount = 3000;
      Array bad(dtype::INT64, {kCount});
      bad.set(kCount - 700, Value::of(oracle::Integer{-6}));
      const Operand inputs[] = {session.upload(Array(dtype::FLOAT32, {5})), session.upload(bad),
                                session.upload(Array(dtype::FLOAT32, {kCount}))};
      const Stream stream = session.stream();
      Tensor result;
      Error error = session.try_run(
          "scatter", {{"reduction", std::string(reduction)}, {"deterministic", deterministic}}, inputs, stream, result);
      if (error.code() == COMPUTE_ERROR_UNSUPPORTED) continue;
      if (!error) error = Error(compute_stream_synchronize(stream));
      EXPECT_TRUE(error.mentions("index -6 is out")) << error.message();
      EXPECT_EQ(error.mentions(" at indices"), error.mentions("at indices[2300]")) << error.message();
    }
  }
  // The device still works.
  const Operand good[] = {session.upload(Array(dtype::FLOAT32, {5})), session.upload(Array(dtype::INT64, {3}))};
  session.expect("take", {}, good, kExact, "after a fault");
  for (int64_t index : {5, -6}) {
    for (const int64_t deterministic : {0, 1})
      fail("take_grad", {{"size", int64_t{5}}, {"deterministic", deterministic}}, {70, 2}, 70, index);
  }
}

}  // namespace

void add_movement_tests(Registry& registry) {
  const struct {
    const char* op;
    void (*body)(Case&);
    int needs;
  } kTests[] = {
      {"copy", test_copy, COMPUTE_DTYPE_LEVEL_STORAGE},
      {"cast", test_cast, COMPUTE_DTYPE_LEVEL_CONVERT},
      {"concat", test_concat, COMPUTE_DTYPE_LEVEL_STORAGE},
      {"repeat", test_repeat, COMPUTE_DTYPE_LEVEL_STORAGE},
      {"roll", test_roll, COMPUTE_DTYPE_LEVEL_STORAGE},
      {"stack", test_stack, COMPUTE_DTYPE_LEVEL_STORAGE},
      {"take", test_take, COMPUTE_DTYPE_LEVEL_STORAGE},
      {"take_along_axis", test_take_along_axis, COMPUTE_DTYPE_LEVEL_STORAGE},
      {"tile", test_tile, COMPUTE_DTYPE_LEVEL_STORAGE},
      {"scatter", test_scatter, COMPUTE_DTYPE_LEVEL_ARITHMETIC},
  };
  for (const auto& entry : kTests) {
    for (Dtype dtype : tested_dtypes(registry.level())) {
      registry.add({"movement",
                    std::string(entry.op) + "_" + oracle::info(dtype).name,
                    [entry, dtype](const Session& session) {
                      Case c(session, entry.op, dtype);
                      entry.body(c);
                    },
                    dtype == dtype::FLOAT32 ? Level::SMOKE : Level::QUICK,
                    entry.op,
                    {dtype},
                    entry.needs});
    }
  }
  registry.add({"movement", "index_out_of_range", index_out_of_range});
}

}  // namespace compute::conformance
