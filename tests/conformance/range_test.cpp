// SPDX-License-Identifier: Apache-2.0
// Ops that add terms, at the ends of the ranges that docs/ops.md states for their bounds: sums near the greatest number
// of the accumulator, squares near it and near the least normal number, subnormal numbers, and a mean far from zero.
#include <gtest/gtest.h>

#include <cmath>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Format;
using oracle::Inputs;
using Numbers = std::complex<double>;

class Case {
 public:
  Case(const Session& session, Dtype dtype)
      : session(session),
        dtype(dtype),
        own_(oracle::format(dtype)),
        accumulator_(oracle::format(oracle::computed_in(dtype))),
        seed_(seed_of(std::string("range") + oracle::info(dtype).name)),
        inputs_(seed_) {}

  // The greatest numbers of which `terms` can be added up, and whose squares can; the modulus of a complex number is
  // sqrt(2) times as great as its parts.
  Real greatest(int64_t terms) const {
    const Real limit = 0.99L * oracle::largest(accumulator_) / static_cast<Real>(terms);
    return std::min(oracle::largest(own_), oracle::is_complex(dtype) ? limit * std::sqrt(0.5L) : limit);
  }
  // The squares of the distances from the mean do not add up to more than those of the numbers.
  Real greatest_of_squares(int64_t terms) const {
    const Real limit = std::sqrt(0.99L * oracle::largest(accumulator_) / static_cast<Real>(terms));
    return std::min(oracle::largest(own_), oracle::is_complex(dtype) ? limit * std::sqrt(0.5L) : limit);
  }
  // The least distances from a mean whose squares are normal numbers.
  Real least() const {
    return std::max(4 * std::sqrt(oracle::smallest_normal(accumulator_)), oracle::smallest_normal(own_));
  }

  // Of either sign, with moduli in [0.9 high, high].
  Operand near(Real high, const Shape& shape) {
    return fill(shape, [&] { return sign() * inputs_.random().uniform(0.9L * high, high); });
  }
  // Of either sign and of one modulus.
  Operand signs(Real modulus, const Shape& shape) {
    return fill(shape, [&] { return sign() * modulus; });
  }
  Operand subnormal(const Shape& shape) {
    return fill(shape, [&] { return sign() * inputs_.random().uniform(0, oracle::smallest_normal(own_)); });
  }
  // A few units in the last place above a number that is far greater.
  Operand far_from_zero(const Shape& shape) {
    const Real base = 10000, unit = oracle::ulp(own_, base);
    return fill(shape, [&] { return base + static_cast<Real>(inputs_.random().below(4)) * unit; });
  }
  Operand common(const Shape& shape) { return session.upload(inputs_.uniform(dtype, shape, -2, 2)); }

  void run(const char* op, const Attributes& attributes, const std::vector<Operand>& given, const std::string& what) {
    session.expect(op, attributes, given, bound_of(op, dtype), what + ", seed " + std::to_string(seed_));
  }

  // Numbers that are subnormal in the dtype in which the device computes, and partial results, may be zero.
  bool flushes() const {
    return session.flushes_subnormals() && oracle::computed_in(oracle::part(dtype)) == dtype::FLOAT32 &&
           dtype != dtype::FLOAT16;
  }

  // At `quick` few kernels are compiled: one length, one form and one norm, without gradients.
  bool full() const { return session.level() == Level::FULL; }
  std::vector<int64_t> lengths() const { return full() ? std::vector<int64_t>{3, 33, 1025} : std::vector<int64_t>{33}; }

  const Session& session;
  const Dtype dtype;

 private:
  template <class F>
  Operand fill(const Shape& shape, const F& number) {
    Array x(dtype, shape);
    for (int64_t i = 0; i < x.size(); ++i) {
      const Real re = number(), im = oracle::is_complex(dtype) ? number() : 0;
      x.set(i, Value{0, re, im});
    }
    return session.upload(x);
  }
  Real sign() { return inputs_.random().below(2) == 0 ? 1 : -1; }

  const Format own_, accumulator_;
  const uint64_t seed_;
  Inputs inputs_;
};

// Rows, columns, and sums over two axes that do not lie side by side.
void test_moments(const Session& session, Dtype dtype) {
  Case c(session, dtype);
  for (const int64_t n : c.lengths()) {
    const std::string length = std::to_string(n) + " terms, ";
    struct Form {
      Shape shape, axes;
    };
    std::vector<Form> forms = {{{3, n}, {1}}};
    if (n == 33 && c.full()) forms = {{{3, n}, {1}}, {{n, 3}, {0}}, {{3, 5, 11}, {0, 2}}};
    for (const auto& [shape, axes] : forms) {
      const Attributes attributes{{"axes", axes}};
      c.run("mean", attributes, {c.near(c.greatest(n), shape)}, length + "great");
      c.run("mean", attributes, {c.subnormal(shape)}, length + "subnormal");
      for (const char* op : {"var", "std"}) {
        c.run(op, attributes, {c.near(c.greatest_of_squares(n), shape)}, length + "great");
        c.run(op, attributes, {c.signs(c.least(), shape)}, length + "small");
        c.run(op, attributes, {c.subnormal(shape)}, length + "subnormal");
        c.run(op, attributes, {c.far_from_zero(shape)}, length + "far from zero");
      }
    }
  }
}

struct Norm {
  std::string op;
  Shape shape;
  int64_t terms;
  Attributes attributes;
};

std::vector<Norm> norms(int64_t n) {
  return {{"layer_norm", {3, n}, n, {}},
          {"rms_norm", {3, n}, n, {}},
          {"batch_norm", {2, 3, n}, 2 * n, {}},
          {"group_norm", {2, 4, n}, 2 * n, {{"groups", int64_t{2}}}}};
}

// The gradients of a norm of x.
void run_gradient(Case& c, const Norm& norm, const Operand& x, const Operand& dy, const std::string& what) {
  std::vector<Tensor> outputs(norm.op == "rms_norm" ? 2 : 3);
  c.session.run_all(norm.op, norm.attributes, std::span(&x, 1), nullptr, outputs);
  std::vector<Operand> given = {dy, x};
  for (size_t i = 1; i < outputs.size(); ++i) given.push_back({c.session.download(outputs[i]), outputs[i]});
  c.run((norm.op + "_grad").c_str(), norm.attributes, given, what);
}

void test_norms(const Session& session, Dtype dtype) {
  Case c(session, dtype);
  for (const int64_t n : c.lengths()) {
    for (const Norm& norm : norms(n)) {
      const char* const op = norm.op.c_str();
      const std::string length = std::to_string(norm.terms) + " terms, ";
      const Operand great = c.near(c.greatest_of_squares(norm.terms), norm.shape);
      c.run(op, norm.attributes, {great}, length + "great");
      if (!c.flushes()) c.run(op, norm.attributes, {c.subnormal(norm.shape)}, length + "subnormal");
      Attributes without_epsilon = norm.attributes;
      without_epsilon["epsilon"] = Numbers(0);
      c.run(op, without_epsilon, {c.signs(c.least(), norm.shape)}, length + "small");
      c.run(op, norm.attributes, {c.far_from_zero(norm.shape)}, length + "far from zero");
      if (!c.full()) break;
      if (n > 33) continue;
      run_gradient(c, norm, great, c.common(norm.shape), length + "great");
      // All elements are terms of the gradients of scale and bias.
      const int64_t size = oracle::element_count(norm.shape);
      run_gradient(c, norm, c.common(norm.shape), c.near(c.greatest(4 * size), norm.shape), length + "great dy");
    }
  }
}

// The greatest element is subtracted first, so that no sum leaves the range.
void test_softmax(const Session& session, Dtype dtype) {
  Case c(session, dtype);
  const Shape shape = {3, 33};
  for (const Operand& x : {c.near(oracle::largest(oracle::format(dtype)), shape), c.subnormal(shape)}) {
    for (const char* op : {"softmax", "log_softmax"}) c.run(op, {}, {x}, "the ends of the range");
    c.run("logsumexp", {{"axes", Shape{1}}}, {x}, "the ends of the range");
  }
}

void test_average_pool(const Session& session, Dtype dtype) {
  Case c(session, dtype);
  const Attributes window{{"window", Shape{2, 2}}};
  c.run("average_pool", window, {c.near(c.greatest(4), {1, 2, 6, 6})}, "great");
  c.run("average_pool", window, {c.subnormal({1, 2, 6, 6})}, "subnormal");
}

struct Range {
  const char* op;
  void (*body)(const Session&, Dtype);
  Level level;  // in float32; other dtypes are tested at `full`
  bool takes_complex;
};

constexpr Range kRanges[] = {{"mean", test_moments, Level::QUICK, true},
                             {"layer_norm", test_norms, Level::QUICK, false},
                             {"softmax", test_softmax, Level::FULL, false},
                             {"average_pool", test_average_pool, Level::FULL, false}};

}  // namespace

void add_range_tests(Registry& registry) {
  for (const Range& range : kRanges) {
    for (Dtype dtype : tested_dtypes(Level::FULL)) {
      if (!oracle::is_inexact(dtype) || (oracle::is_complex(dtype) && !range.takes_complex)) continue;
      registry.add({"range",
                    std::string(range.op) + "_" + oracle::info(dtype).name,
                    [&range, dtype](const Session& session) { range.body(session, dtype); },
                    dtype == dtype::FLOAT32 ? range.level : Level::FULL,
                    range.op,
                    {dtype}});
    }
  }
}

}  // namespace compute::conformance
