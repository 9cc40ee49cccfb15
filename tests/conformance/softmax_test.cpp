// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp along any axes, in every floating-point dtype and layout.
#include <gtest/gtest.h>

#include <limits>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

class Case {
 public:
  Case(const Session& session, const std::string& op, Dtype dtype)
      : session_(session),
        op_(op),
        dtype_(dtype),
        bound_(bound_of(op, dtype)),
        seed_(seed_of(op + oracle::info(dtype).name)),
        inputs_(seed_) {}

  void quick() {
    run({37, 53}, along(1));
    if (dtype_ == dtype::FLOAT32) run({37, 53}, along(0), Layout::NEGATIVE);
  }

  void full() {
    axes();
    lengths();
    layouts();
    degenerate_shapes();
    special_values();
    wide_ranges();
    for (Layout layout : {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::NEGATIVE, Layout::OFFSET}) {
      const Operand x = session_.upload(array({8, 6, 7}));
      session_.expect_into(op_, along(1), std::span(&x, 1), bound_, what("output"), layout);
    }
  }

 private:
  bool reduces() const { return op_ == "logsumexp"; }
  // The one axis of softmax, or the axes of logsumexp.
  Attributes along(int64_t axis) const {
    Attributes attributes;
    if (reduces()) {
      attributes["axes"] = Shape{axis};
    } else {
      attributes["axis"] = axis;
    }
    return attributes;
  }
  std::string what(const std::string& name) const { return name + ", seed " + std::to_string(seed_); }
  Array array(const Shape& shape) { return inputs_.uniform(dtype_, shape, -4, 4); }

  void run(const Operand& x, const Attributes& attributes, const std::string& name) {
    session_.expect(op_, attributes, std::span(&x, 1), bound_, what(name));
  }
  void run(const Shape& shape, const Attributes& attributes, Layout layout = Layout::CONTIGUOUS) {
    run(session_.upload(array(shape), layout), attributes, name(layout));
  }

  void axes() {
    for (int64_t axis : {0, 1, -1, -2}) run({37, 53}, along(axis));
    for (int64_t axis : {0, 1, 2, 3}) run({4, 5, 6, 7}, along(axis));
    if (!reduces()) return run({9, 11}, {});
    run({37, 53}, {});
    run({4, 5, 6, 7}, {{"axes", Shape{0, 2}}});
    run({4, 5, 6, 7}, {{"axes", Shape{3, 1}}, {"keepdims", int64_t{1}}});
    run({4, 5, 6, 7}, {{"axes", Shape{}}});
  }

  void lengths() {
    for (int64_t n : {1, 2, 3, 7, 8, 9, 31, 33, 127, 129, 1023, 1025, 4099}) {
      run({3, n}, along(1));
      run({n, 3}, along(0));
    }
    run({2, 100003}, along(1));
    run({140, 1500}, along(0));
    if (dtype_ == dtype::FLOAT32 && !reduces()) run({5000, 1040}, along(1));  // more than caches hold
  }

  void layouts() {
    for (Layout layout : {Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET, Layout::PERMUTED}) {
      run({29}, along(0), layout);
      run({11, 13}, along(0), layout);
      run({11, 13}, along(1), layout);
      run({3, 5, 4, 6}, along(2), layout);
    }
    const Shape shape = {6, 5, 4};
    const Operand repeated =
        view(Layout::BROADCAST, session_.upload(array(base_shape(Layout::BROADCAST, shape))), shape);
    for (int64_t axis : {0, 1, 2}) run(repeated, along(axis), "broadcast");
  }

  void degenerate_shapes() {
    run({1}, along(0));
    run({1, 1}, along(1));
    run({0, 3}, along(1));
    run({3, 0}, along(1));
    run({0}, along(0));
    if (reduces()) run({}, {});
  }

  void special_values() {
    for (int i = 0; i < 4; ++i)
      run(session_.upload(inputs_.with_specials(dtype_, {16, 6}, -2, 2)), along(1), "special values");
    const Real infinity = std::numeric_limits<Real>::infinity();
    for (Real x : {infinity, -infinity, std::numeric_limits<Real>::quiet_NaN()}) {
      Array rows = array({12, 300});
      rows.set(5 * 300 - 1, Value::of(x));
      rows.set(7 * 300, Value::of(x));
      run(session_.upload(rows), along(1), "two special values");
      Array all = array({3, 5});
      for (int64_t i = 5; i < 10; ++i) all.set(i, Value::of(x));
      run(session_.upload(all), along(1), "a row of one special value");
    }
  }

  // Values whose exponentials overflow or vanish.
  void wide_ranges() {
    const Real most = dtype_ == dtype::FLOAT16 ? 60000 : 1e5L;
    run(session_.upload(inputs_.uniform(dtype_, {20, 50}, -most, most)), along(1), "a wide range");
    run(session_.upload(inputs_.uniform(dtype_, {20, 50}, -120, 0)), along(1), "small exponentials");
    Array shifted = array({20, 50});
    for (int64_t i = 0; i < shifted.size(); ++i) shifted.set(i, Value::of(shifted.at(i).re + most / 2));
    run(session_.upload(shifted), along(1), "far from zero");
  }

  const Session& session_;
  const std::string op_;
  const Dtype dtype_;
  const Bound bound_;
  const uint64_t seed_;
  Inputs inputs_;
};

void refuses(const Session& session) {
  for (const char* op : {"softmax", "log_softmax", "logsumexp"}) {
    for (Dtype dtype : {dtype::INT32, dtype::COMPLEX64}) {
      if (!session.supports(dtype, COMPUTE_DTYPE_LEVEL_ARITHMETIC)) continue;
      const Operand x = session.upload(Array(dtype, {3}));
      Tensor result;
      const Error error = session.try_run(op, {}, std::span(&x, 1), nullptr, result);
      EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << op << ": " << error.message();
    }
  }
  const Operand scalar = session.upload(Array(dtype::FLOAT32, {}));
  Tensor result;
  EXPECT_TRUE(session.try_run("softmax", {}, std::span(&scalar, 1), nullptr, result)) << "softmax of rank 0";
}

}  // namespace

void add_softmax_tests(Registry& registry) {
  for (const char* op : {"softmax", "log_softmax", "logsumexp"}) {
    for (Dtype dtype : tested_dtypes(registry.level())) {
      if (!oracle::is_float(dtype)) continue;
      Test test{"softmax", std::string(op) + "_" + oracle::info(dtype).name,
                nullptr,   dtype == dtype::FLOAT32 ? Level::SMOKE : Level::QUICK,
                op,        {dtype}};
      test.body = [op, dtype](const Session& session) {
        Case c(session, op, dtype);
        session.level() == Level::FULL ? c.full() : c.quick();
      };
      registry.add(std::move(test));
    }
  }
  Test refusal{"refusal", "softmax_of_other_dtypes", refuses};
  refusal.runs_ops = false;
  registry.add(std::move(refusal));
}

}  // namespace compute::conformance
