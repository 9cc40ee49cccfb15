// SPDX-License-Identifier: Apache-2.0
// fft, rfft and irfft: lengths of all kinds, axes, norms, layouts.
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
    run({2, 40}, {1});
    run({2, 11}, {1});
  }

  void full() {
    lengths();
    axes();
    norms();
    layouts();
    degenerate_shapes();
    if (!is_inverse_of_real()) special_values();
    for (Layout layout : {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::NEGATIVE, Layout::OFFSET}) {
      const Operand x = session_.upload(array(spectrum({8, 6, 7}, {1})));
      session_.expect_into(op_, along({1}, 6), std::span(&x, 1), bound_, what("output"), layout);
    }
  }

  void long_lengths() {
    for (int64_t n : {65536, 1 << 20, 3 * 5 * 7 * 11 * 13, 5003, 44100}) run({n}, {0});
    for (int64_t n : {4096, 6561, 9000}) run({n, 5}, {0});
  }

 private:
  bool is_inverse_of_real() const { return op_ == "irfft"; }
  // The shape of x whose transform has the shape `shape`.
  Shape spectrum(Shape shape, const Shape& axes) const {
    if (is_inverse_of_real()) shape[static_cast<size_t>(axes.back())] = shape[static_cast<size_t>(axes.back())] / 2 + 1;
    return shape;
  }
  Attributes along(const Shape& axes, int64_t last) const {
    Attributes attributes;
    attributes["axes"] = axes;
    if (is_inverse_of_real()) attributes["size"] = last;
    return attributes;
  }
  std::string what(const std::string& name) const { return name + ", seed " + std::to_string(seed_); }
  Array array(const Shape& shape) { return inputs_.uniform(dtype_, shape, -1, 1); }

  void run(const Operand& x, const Attributes& attributes, const std::string& name) {
    session_.expect(op_, attributes, std::span(&x, 1), bound_, what(name));
  }
  // Of `shape` in the place where the numbers may be real.
  void run(const Shape& shape, const Shape& axes, Layout layout = Layout::CONTIGUOUS) {
    Attributes attributes = along(axes, shape[static_cast<size_t>(axes.back())]);
    const Operand x = session_.upload(array(spectrum(shape, axes)), layout);
    run(x, attributes, name(layout));
    if (op_ == "fft") {
      attributes["inverse"] = int64_t{1};
      run(x, attributes, name(layout));
    }
  }

  void lengths() {
    for (int64_t n = 1; n <= 36; ++n) run({3, n}, {1});
    for (int64_t n : {40,  48,  49,  56,  64,  81,  97,  100,  105,  121,  125,  127,  128,  210,  243,
                      256, 257, 343, 360, 500, 512, 625, 1000, 1009, 1024, 1155, 2000, 2048, 2401, 4096}) {
      run({n}, {0});
      run({2, n}, {1});
    }
    for (int64_t n : {2, 5, 8, 16, 31, 60, 100}) run({n, 19}, {0});
    run({70, 128}, {1});
    run({128, 70}, {0});
    for (int64_t n : {600, 1001}) {
      run({20, n}, {1});
      run({n, 20}, {0});
    }
  }

  void axes() {
    run({6, 10}, {0, 1});
    run({6, 10}, {1, 0});
    run({4, 5, 6}, {0, 1, 2});
    run({4, 5, 6}, {2, 0});
    run({4, 5, 6}, {1});
    run({4, 5, 6}, {0, 1});
    run({2, 3, 4, 5}, {1, 2});
    run({2, 3, 4, 5}, {0, 1, 2, 3});
    run({64, 48}, {0, 1});
    run({11, 13}, {0, 1});
    const Operand x = session_.upload(array({5, 7}));
    run(x, {}, "default axes");
    run(x, {{"axes", Shape{-1}}}, "the last axis");
  }

  void norms() {
    for (const char* norm : {"backward", "ortho", "forward"}) {
      for (const Shape& axes : {Shape{1}, Shape{0, 1}}) {
        Attributes attributes = along(axes, 10);
        attributes["norm"] = std::string(norm);
        const Operand x = session_.upload(array(spectrum({6, 10}, axes)));
        run(x, attributes, norm);
        if (op_ != "fft") continue;
        attributes["inverse"] = int64_t{1};
        run(x, attributes, norm);
      }
    }
  }

  void layouts() {
    for (Layout layout : {Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET, Layout::PERMUTED}) {
      run({30}, {0}, layout);
      run({11, 14}, {0}, layout);
      run({11, 14}, {1}, layout);
      run({6, 14}, {0, 1}, layout);
      run({3, 5, 4, 6}, {2}, layout);
    }
    const Shape shape = {6, 5, 4};
    const Operand repeated =
        view(Layout::BROADCAST, session_.upload(array(base_shape(Layout::BROADCAST, shape))), shape);
    for (int64_t axis : {0, 1, 2}) {
      const int64_t n = shape[static_cast<size_t>(axis)];
      run(repeated, along({axis}, is_inverse_of_real() ? 2 * n - 1 : n), "broadcast");
    }
  }

  void degenerate_shapes() {
    run({1}, {0});
    run({1, 1}, {0, 1});
    run({0, 3}, {1});
    run({3, 0}, {0});
  }

  void special_values() {
    const Real infinity = std::numeric_limits<Real>::infinity();
    for (Real x : {infinity, -infinity, std::numeric_limits<Real>::quiet_NaN()}) {
      Array rows = array({3, 12});
      rows.set(17, Value::of(x));
      run(session_.upload(rows), along({1}, 12), "a special value");
    }
  }

  const Session& session_;
  const std::string op_;
  const Dtype dtype_;
  const Bound bound_;
  const uint64_t seed_;
  Inputs inputs_;
};

void refuses(const Session& session) {
  const auto refused = [&](const char* op, Dtype dtype, const Shape& shape, const Attributes& attributes,
                           std::string_view reason) {
    const Operand x = session.upload(Array(dtype, shape));
    Tensor result;
    const Error error = session.try_run(op, attributes, std::span(&x, 1), nullptr, result);
    EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << op << ": " << error.message();
    EXPECT_TRUE(error.mentions(reason)) << op << ": " << error.message();
  };
  refused("fft", dtype::INT32, {3}, {}, "int32");
  refused("fft", dtype::FLOAT32, {}, {}, "no axes");
  refused("fft", dtype::FLOAT32, {3}, {{"axes", Shape{1}}}, "axis 1");
  refused("fft", dtype::FLOAT32, {3}, {{"axes", Shape{}}}, "no axes");
  refused("fft", dtype::FLOAT32, {3, 4}, {{"axes", Shape{1, -1}}}, "twice");
  refused("fft", dtype::FLOAT32, {3, 0}, {{"axes", Shape{1}}}, "zero elements");
  refused("fft", dtype::FLOAT32, {3}, {{"norm", std::string("both")}}, "both");
  if (session.supports(dtype::FLOAT16, COMPUTE_DTYPE_LEVEL_STORAGE))
    refused("rfft", dtype::FLOAT16, {3}, {}, "float16");
  if (!session.supports(dtype::COMPLEX64, COMPUTE_DTYPE_LEVEL_STORAGE)) return;
  refused("rfft", dtype::COMPLEX64, {3}, {}, "complex64");
  refused("irfft", dtype::FLOAT32, {3}, {}, "float32");
  refused("irfft", dtype::COMPLEX64, {3}, {{"size", int64_t{6}}}, "size");
  refused("irfft", dtype::COMPLEX64, {1}, {}, "size");
}

}  // namespace

void add_fourier_tests(Registry& registry) {
  const auto add = [&](const char* op, Dtype dtype, const char* suffix, Level level, void (*run)(Case&, Level)) {
    Test test{"fourier", std::string(op) + "_" + oracle::info(dtype).name + suffix, nullptr, level, op, {dtype}};
    test.body = [op, dtype, run](const Session& session) {
      Case c(session, op, dtype);
      run(c, session.level());
    };
    registry.add(std::move(test));
  };
  for (const char* op : {"fft", "rfft", "irfft"}) {
    for (Dtype dtype : {dtype::FLOAT32, dtype::FLOAT64, dtype::COMPLEX64, dtype::COMPLEX128}) {
      if (std::string_view(op) == (oracle::is_complex(dtype) ? "rfft" : "irfft")) continue;
      const bool is_narrow = oracle::part(dtype) == dtype::FLOAT32;
      const bool is_first = is_narrow && oracle::is_complex(dtype) == (std::string_view(op) != "rfft");
      const Level level = is_first ? Level::SMOKE : is_narrow ? Level::QUICK : Level::FULL;
      add(op, dtype, "", level, [](Case& c, Level at) { at == Level::FULL ? c.full() : c.quick(); });
      add(op, dtype, "_long", Level::FULL, [](Case& c, Level) { c.long_lengths(); });
    }
  }
  Test refusal{"refusal", "fourier_transforms", refuses};
  refusal.runs_ops = false;
  registry.add(std::move(refusal));
}

}  // namespace compute::conformance
