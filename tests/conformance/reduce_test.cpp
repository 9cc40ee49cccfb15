// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes, in every dtype and layout.
#include <gtest/gtest.h>

#include <cmath>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

struct Reduction {
  const char* op;
  bool takes_bool, takes_integer, takes_complex;
  bool empty;  // has a value for no elements
  bool takes_float = true;
};

constexpr Reduction kReductions[] = {
    {"all", true, true, true, true},
    {"any", true, true, true, true},
    {"max", false, true, false, false},
    {"mean", false, false, true, true},
    {"min", false, true, false, false},
    {"prod", false, true, true, true},
    {"std", false, false, false, true},
    {"sum", false, true, true, true},
    {"var", false, false, false, true},
    {"reduce_and", true, true, false, true, false},
    {"reduce_or", true, true, false, true, false},
    {"reduce_xor", true, true, false, true, false},
};

bool takes(const Reduction& op, Dtype dtype) {
  switch (oracle::category(dtype)) {
    case oracle::Category::BOOL:
      return op.takes_bool;
    case oracle::Category::SIGNED:
    case oracle::Category::UNSIGNED:
      return op.takes_integer;
    case oracle::Category::FLOAT:
      return op.takes_float;
    case oracle::Category::COMPLEX:
      return op.takes_complex;
  }
  return false;
}

// Few bits are cleared, or set, so that those of a long reduction say something.
Array rare_bits(Inputs& inputs, Dtype dtype, const Shape& shape, bool cleared) {
  const Array chosen = inputs.uniform(dtype::INT32, shape, 0, 400);
  Array array(dtype, shape);
  for (int64_t i = 0; i < array.size(); ++i) {
    const auto number = static_cast<int64_t>(chosen.at(i).integer);
    const oracle::Bits bit = number < oracle::width(dtype) ? oracle::Bits{1} << number : 0;
    array.set(i, Value::of(oracle::wrap(dtype, cleared ? ~bit : bit)));
  }
  return array;
}

// Factors near 1, so that products of many stay in range and say something.
Array values(Inputs& inputs, const Reduction& op, Dtype dtype, const Shape& shape) {
  const std::string_view name = op.op;
  if (name == "reduce_and" || name == "reduce_or") return rare_bits(inputs, dtype, shape, name == "reduce_and");
  if (oracle::is_bool(dtype)) return inputs.uniform(dtype, shape, 0, 1);
  if (oracle::is_integer(dtype)) return inputs.uniform(dtype, shape, -1e19L, 1e19L);
  if (name == "prod") return inputs.uniform(dtype, shape, 0.75L, oracle::is_complex(dtype) ? 0.8L : 1.25L);
  if (name == "all" || name == "any") return inputs.uniform(dtype, shape, 0, 2);
  return inputs.uniform(dtype, shape, -2, 3);
}

Attributes with_axes(const Shape& axes, bool keepdims = false) {
  Attributes attributes{{"axes", axes}};
  if (keepdims) attributes["keepdims"] = int64_t{1};
  return attributes;
}

// The reduction of compute_reduce that is called as the op; 0 if there is none.
int32_t reduction_called(std::string_view op) {
  if (op == "sum") return COMPUTE_REDUCTION_SUM;
  if (op == "prod") return COMPUTE_REDUCTION_PROD;
  if (op == "min") return COMPUTE_REDUCTION_MIN;
  if (op == "max") return COMPUTE_REDUCTION_MAX;
  if (op == "all") return COMPUTE_REDUCTION_ALL;
  if (op == "any") return COMPUTE_REDUCTION_ANY;
  return 0;
}

// The op as compute_reduce of an expression that is its input, with axes as a list and, where they can be, as a mask.
std::vector<Tensor> by_expression(int32_t reduction, const Attributes& attributes, const Operand& x) {
  const char* names[] = {"x"};
  Expression before;
  check(compute_expression_parse("x", names, 1, nullptr, 0, before.out()));
  compute_reduce_options options{};
  options.struct_size = sizeof options;
  const auto axes = attributes.find("axes");
  if (axes != attributes.end()) {
    static constexpr int64_t kNone = 0;
    options.axes = axes->second.integers.empty() ? &kNone : axes->second.integers.data();
    options.axes_count = static_cast<int64_t>(axes->second.integers.size());
  }
  const auto number = [&](const char* name) {
    const auto found = attributes.find(name);
    return found == attributes.end() ? 0 : static_cast<int32_t>(found->second.integers[0]);
  };
  options.keepdims = number("keepdims");
  options.accumulator = number("dtype");
  std::vector<Tensor> results;
  const auto run = [&] {
    compute_tensor* const input = x.tensor;
    compute_tensor* y = nullptr;
    check(compute_reduce(nullptr, before, reduction, &options, &input, 1, nullptr, 0, &y));
    *results.emplace_back().out() = y;
  };
  run();
  if (options.axes_count == 0) return results;
  for (int64_t i = 0; i < options.axes_count; ++i) {
    const int64_t axis = options.axes[i] < 0 ? options.axes[i] + compute_tensor_rank(x.tensor) : options.axes[i];
    options.axes_mask |= uint64_t{1} << axis;
  }
  options.axes = nullptr;
  options.axes_count = 0;
  run();
  return results;
}

class Case {
 public:
  Case(const Session& session, const Reduction& op, Dtype dtype)
      : session_(session),
        op_(op),
        dtype_(dtype),
        bound_(bound_of(op.op, dtype)),
        seed_(seed_of(op.op + std::string(oracle::info(dtype).name))),
        inputs_(seed_) {}

  Array array(const Shape& shape) { return values(inputs_, op_, dtype_, shape); }

  void run(const Operand& x, const Attributes& attributes, const std::string& what) {
    const auto axes = attributes.find("axes");
    const std::string over = axes == attributes.end() ? "all axes" : "axes " + oracle::describe(axes->second.integers);
    session_.expect(op_.op, attributes, std::span(&x, 1), bound_,
                    over + ", " + what + ", seed " + std::to_string(seed_));
    const int32_t reduction = reduction_called(op_.op);
    if (reduction == 0) return;
    for (const Tensor& y : by_expression(reduction, attributes, x)) {
      session_.judge(y, session_.reference(op_.op, attributes, std::span(&x, 1)), bound_,
                     "by expression, " + over + ", " + what + ", seed " + std::to_string(seed_));
    }
  }

  void run(const Shape& shape, const Attributes& attributes, Layout layout = Layout::CONTIGUOUS) {
    run(session_.upload(array(shape), layout == Layout::BROADCAST ? Layout::CONTIGUOUS : layout), attributes,
        name(layout));
  }

  void axes() {
    run({37, 53}, {});
    run({37, 53}, with_axes({0}));
    run({37, 53}, with_axes({1}));
    run({37, 53}, with_axes({-2}, true));
    run({37, 53}, with_axes({0, 1}, true));
    run({4, 5, 6, 7}, with_axes({0, 2}));
    run({4, 5, 6, 7}, with_axes({3, 1}, true));
    run({4, 5, 6, 7}, with_axes({1, 2}));
    run({4, 5, 6, 7}, with_axes({}));
    run({2, 3, 2, 3, 2, 3}, with_axes({0, 2, 4}));
  }

  void lengths() {
    for (int64_t n : {1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 63, 65, 127, 129, 1023, 1025, 4099}) run({n}, {});
    run({5, 2047}, with_axes({1}));
    for (int64_t n : {2, 3, 4, 5, 8, 12, 16}) run({1003, n}, with_axes({1}));
    run({2047, 5}, with_axes({0}));
    // Rows that begin within vectors and lines of the cache.
    for (int64_t n : {65, 79, 101, 203, 510}) {
      run({11, n}, with_axes({1}));
      run({101, n}, with_axes({0}));
    }
  }

  void layouts() {
    for (Layout layout : {Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET, Layout::PERMUTED}) {
      run({29}, {}, layout);
      run({11, 13}, {}, layout);
      run({11, 13}, with_axes({0}), layout);
      run({11, 13}, with_axes({1}), layout);
      run({3, 5, 4, 6}, with_axes({1, 3}), layout);
    }
    const Shape shape = {6, 5, 4};
    const Operand repeated =
        view(Layout::BROADCAST, session_.upload(array(base_shape(Layout::BROADCAST, shape))), shape);
    run(repeated, {}, "broadcast");
    run(repeated, with_axes({0}), "broadcast");
    run(repeated, with_axes({1, 2}), "broadcast");
  }

  void degenerate_shapes() {
    run({}, {});
    run({}, with_axes({}));
    run({1}, {});
    run({1, 1}, with_axes({0}));
    run({0, 3}, with_axes({1}));
    if (op_.empty) {
      run({0}, {});
      run({3, 0}, with_axes({1}));
      run({0, 3}, with_axes({0}, true));
      run({2, 0, 2}, {});
      return;
    }
    const Operand nothing = session_.upload(Array(dtype_, {3, 0}));
    Tensor result;
    const Error error = session_.try_run(op_.op, with_axes({1}), std::span(&nothing, 1), nullptr, result);
    EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << op_.op << " of no element: " << error.message();
  }

  void special_values() {
    if (!oracle::is_inexact(dtype_)) return;
    for (int i = 0; i < 4; ++i)
      run(session_.upload(inputs_.with_specials(dtype_, {16, 6}, -2, 2)), with_axes({1}), "special values");
    run(session_.upload(inputs_.with_specials(dtype_, {6, 40}, -2, 2)), with_axes({0}), "special values");
    // One in each row: the order of two decides whether a sum overflows.
    for (int64_t n : {2, 8}) {
      Array short_rows = inputs_.uniform(dtype_, {40, n}, -2, 2);
      const std::vector<Value> specials = oracle::special_values(dtype_);
      for (int64_t row = 0; row < 40; ++row)
        short_rows.set(row * n + row % n, specials[static_cast<size_t>(row) % specials.size()]);
      run(session_.upload(short_rows), with_axes({1}), "a special value in each row");
    }
    // One of each: a sum with one infinity is infinite, with NaN it is NaN.
    const Real infinity = std::numeric_limits<Real>::infinity();
    for (Real x : {infinity, -infinity, std::numeric_limits<Real>::quiet_NaN()}) {
      Array a = array({50});
      a.set(17, Value::of(x));
      run(session_.upload(a), {}, "one special value");
      // The rows next to it are unchanged.
      Array rows = array({12, 75});
      rows.set(5 * 75 - 1, Value::of(x));
      rows.set(7 * 75, Value::of(x));
      run(session_.upload(rows), with_axes({1}), "two special values");
    }
  }

  // What plain summation loses: many terms, and cancelling ones.
  void long_ones() {
    run({100003}, {});
    run({3, 40001}, with_axes({1}));
    run({40001, 3}, with_axes({0}));
    run({140, 1500}, with_axes({0}));
    if (std::string_view(op_.op) == "sum" && oracle::is_integer(dtype_)) {
      // All elements the least or the greatest: what narrow ones are added up in must not overflow.
      for (oracle::Integer extreme : {oracle::integer_min(dtype_), oracle::integer_max(dtype_)}) {
        Array a(dtype_, {4200, 70});
        for (int64_t i = 0; i < a.size(); ++i) a.set(i, Value::of(extreme));
        run(session_.upload(a), with_axes({0}), "extremes");
        run(session_.upload(a), with_axes({1}), "extremes");
        run(session_.upload(a), {}, "extremes");
      }
    }
    if (!oracle::is_inexact(dtype_) || std::string_view(op_.op) == "prod") return;
    Array a = array({4096});
    for (int64_t i = 0; i < 2048; ++i) {
      Value v = a.at(i);
      v.re = -v.re;
      v.im = -v.im;
      a.set(4095 - i, v);
    }
    run(session_.upload(a), {}, "cancelling terms");
  }

  void attributes() {
    const std::string_view op = op_.op;
    if (op == "var" || op == "std") {
      for (double correction : {0.0, 1.0, 0.5}) {
        run({9, 14}, {{"axes", Shape{1}}, {"correction", std::complex<double>(correction)}});
      }
      // A mean far from zero: one pass would lose it all.
      Array a = array({2000});
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, Value::of(a.at(i).re + 1000));
      run(session_.upload(a), {}, "far from zero");
      if (session_.level() == Level::FULL && dtype_ == dtype::FLOAT32) many();
    }
    if (op != "sum" && op != "prod") return;
    const auto to = [&](Dtype dtype) {
      if (session_.supports(dtype, COMPUTE_DTYPE_LEVEL_ARITHMETIC))
        run({7, 33}, {{"axes", Shape{1}}, {"dtype", int64_t{dtype}}});
    };
    if (dtype_ == dtype::INT8) to(dtype::INT32);
    if (dtype_ == dtype::FLOAT32) to(dtype::FLOAT64);
    if (dtype_ == dtype::FLOAT16) to(dtype::FLOAT32);
  }

  // 16 MiB for one result, far from zero, with one chunk that is not.
  void many() {
    Array a = array({4 << 20});
    for (int64_t i = 4096; i < a.size(); ++i) a.set(i, Value::of(a.at(i).re + 100));
    run(session_.upload(a), {{"correction", std::complex<double>(1)}}, "many");
  }

  void outputs() {
    const Operand x = session_.upload(array({8, 6, 7}));
    for (Layout layout : {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::NEGATIVE, Layout::OFFSET}) {
      session_.expect_into(op_.op, with_axes({1}), std::span(&x, 1), bound_, "seed " + std::to_string(seed_), layout);
    }
  }

 private:
  const Session& session_;
  const Reduction& op_;
  Dtype dtype_;
  Bound bound_;
  uint64_t seed_;
  Inputs inputs_;
};

void arg_reduction(const Session& session, const std::string& op, Dtype dtype) {
  const uint64_t seed = seed_of(op + oracle::info(dtype).name);
  Inputs inputs(seed);
  const Bound bound{Bound::EXACT, 0};
  const std::string what = "seed " + std::to_string(seed);
  // Small integers repeat: the first of equals counts.
  const auto run = [&](const Shape& shape, const Attributes& attributes, Layout layout = Layout::CONTIGUOUS) {
    const Operand x = session.upload(inputs.uniform(dtype, shape, -5, 5), layout);
    session.expect(op, attributes, std::span(&x, 1), bound, std::string(name(layout)) + ", " + what);
  };
  const auto run_broadcast = [&](const Shape& base, const Shape& shape, const Attributes& attributes) {
    const Operand x = broadcast(session.upload(inputs.uniform(dtype, base, -5, 5)), shape);
    session.expect(op, attributes, std::span(&x, 1), bound, "broadcast, " + what);
  };
  run({1009}, {});
  run({23, 31}, {{"axis", int64_t{1}}});
  if (dtype != dtype::FLOAT32 && session.level() != Level::FULL) return;
  run_broadcast({1}, {1000}, {});
  run_broadcast({8, 1, 1}, {8, 64, 64}, {{"axis", int64_t{2}}});
  run_broadcast({8, 1, 64}, {8, 64, 64}, {{"axis", int64_t{1}}});
  if (session.level() != Level::FULL) return;
  for (int64_t n : {1, 2, 7, 8, 9, 33, 129, 20011}) run({n}, {});
  run({23, 31}, {});
  run({23, 31}, {{"axis", int64_t{0}}, {"keepdims", int64_t{1}}});
  run({3, 4, 5, 6}, {{"axis", int64_t{-2}}});
  // Many rows of few columns, and few of many: either may be divided.
  run({40001, 3}, {{"axis", int64_t{0}}});
  run({613, 517}, {{"axis", int64_t{0}}});
  run({5, 20011}, {{"axis", int64_t{0}}});
  run({3, 2500, 41}, {{"axis", int64_t{1}}});
  run({2500, 41}, {{"axis", int64_t{0}}}, Layout::STEPPED);
  run({}, {});
  run({0, 3}, {{"axis", int64_t{1}}});
  for (Layout layout : kEveryLayout) {
    run({11, 13}, {{"axis", int64_t{0}}}, layout);
    run({11, 13}, {{"axis", int64_t{1}}}, layout);
    run({3, 5, 4}, {}, layout);
  }
  if (oracle::is_float(dtype)) {
    for (int i = 0; i < 4; ++i) {
      const Operand x = session.upload(inputs.with_specials(dtype, {20, 9}, -2, 2));
      session.expect(op, {{"axis", int64_t{1}}}, std::span(&x, 1), bound, "special values, " + what);
      const Operand rows = session.upload(inputs.with_specials(dtype, {9, 20}, -2, 2));
      session.expect(op, {{"axis", int64_t{0}}}, std::span(&rows, 1), bound, "special values in columns, " + what);
    }
    // The first NaN counts, wherever it is, even after greater elements.
    const int64_t height = 5000, width = 37;
    Array tall = inputs.uniform(dtype, {height, width}, -5, 5);
    for (int64_t j = 0; j < width; ++j) {
      const int64_t at = 1 + j * (height - 2) / (width - 1);
      const auto put = [&](int64_t row, long double x) { tall.set(row * width + j, oracle::Value::of(x)); };
      put(at - 1, op == "argmax" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
      if (j % 3 == 0) continue;
      put(at, std::numeric_limits<double>::quiet_NaN());
      if (j % 3 == 1) put(height - 1, std::numeric_limits<double>::quiet_NaN());
    }
    const Operand x = session.upload(tall);
    session.expect(op, {{"axis", int64_t{0}}}, std::span(&x, 1), bound, "NaN in columns, " + what);
  }
  const Operand nothing = session.upload(Array(dtype, {3, 0}));
  Tensor result;
  const Error error = session.try_run(op, {{"axis", int64_t{1}}}, std::span(&nothing, 1), nullptr, result);
  EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << op << " of no element: " << error.message();
}

// A sum of only -0 is -0: initial values and padding of a device must not show.
void sums_negative_zeros(const Session& session, Dtype dtype) {
  oracle::Value zero;
  zero.re = -0.0L;
  for (const int64_t terms : {1, 2, 5, 17, 300, 5000}) {
    for (const int64_t axis : {0, 1}) {
      Array x(dtype, axis == 0 ? Shape{terms, 3} : Shape{3, terms});
      for (int64_t i = 0; i < x.size(); ++i) x.set(i, zero);
      const Operand operand = session.upload(x);
      for (const char* op : {"sum", "mean"}) {
        if (std::string_view(op) == "mean" && session.level() != Level::FULL) continue;
        const Array result = session.download(session.run(op, with_axes({axis}), std::span(&operand, 1)));
        for (int64_t i = 0; i < result.size(); ++i) {
          EXPECT_TRUE(std::signbit(result.at(i).re))
              << op << " of " << terms << " terms along axis " << axis << " at " << i;
        }
      }
    }
  }
}

// mean, var and std refuse integers, with the cast as a hint.
void refuses_integers(const Session& session) {
  for (const char* op : {"mean", "var", "std"}) {
    const Operand x = session.upload(Array(dtype::INT32, {3}));
    Tensor result;
    const Error error = session.try_run(op, {}, std::span(&x, 1), nullptr, result);
    EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << op;
    EXPECT_TRUE(error.mentions("cast")) << error.message();
  }
}

}  // namespace

void add_reduce_tests(Registry& registry) {
  for (const Reduction& op : kReductions) {
    for (Dtype dtype : tested_dtypes(registry.level())) {
      if (!takes(op, dtype)) continue;
      const bool first = dtype == dtype::FLOAT32;
      Test test{"reduce", std::string(op.op) + "_" + oracle::info(dtype).name,
                nullptr,  first ? Level::SMOKE : Level::QUICK,
                op.op,    {dtype}};
      test.body = [&op, dtype, first](const Session& session) {
        Case c(session, op, dtype);
        if (session.level() != Level::FULL) {
          c.run({37, 53}, with_axes({1}));
          if (first && session.level() == Level::QUICK) c.run({37, 53}, with_axes({0}), Layout::NEGATIVE);
          return;
        }
        c.axes();
        c.lengths();
        c.layouts();
        c.degenerate_shapes();
        c.special_values();
        c.long_ones();
        c.attributes();
        c.outputs();
      };
      registry.add(std::move(test));
    }
  }
  for (const char* op : {"argmax", "argmin"}) {
    for (Dtype dtype : tested_dtypes(registry.level())) {
      if (oracle::is_complex(dtype) || oracle::is_bool(dtype)) continue;
      registry.add({"reduce",
                    std::string(op) + "_" + oracle::info(dtype).name,
                    [op, dtype](const Session& session) { arg_reduction(session, op, dtype); },
                    dtype == dtype::FLOAT32 ? Level::SMOKE : Level::QUICK,
                    op,
                    {dtype}});
    }
  }
  for (Dtype dtype : tested_dtypes(registry.level())) {
    if (!oracle::is_float(dtype)) continue;
    registry.add({"reduce",
                  std::string("negative_zeros_") + oracle::info(dtype).name,
                  [dtype](const Session& session) { sums_negative_zeros(session, dtype); },
                  dtype == dtype::FLOAT32 ? Level::QUICK : Level::FULL,
                  "sum",
                  {dtype}});
  }
  Test refusal{"refusal", "mean_of_integers", refuses_integers};
  refusal.runs_ops = false;
  registry.add(std::move(refusal));
}

}  // namespace compute::conformance
