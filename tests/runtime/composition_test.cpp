// SPDX-License-Identifier: Apache-2.0
// Ops that a program composes of other ops.
#include <algorithm>
#include <cmath>

#include "runtime.hpp"

namespace runtime {
namespace {

using compute::Op;
using compute::Tensor;

// One layer with an activation: the attributes of the calls are literals and the op's own.
const Op& dense() {
  static const Op op =
      Op::compose("acme.dense", "x weight bias",
                  "z = matmul(x, weight)\n; h = add(z, bias); t = tanh(h);\n total = sum(t, axes=axes, keepdims=1)",
                  "t total", "axes: int64[] = all", "a layer and the sums of its rows");
  return op;
}

std::vector<float> layer(const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& b) {
  std::vector<float> result;
  for (size_t i = 0; i < x.size() / 2; ++i) {
    for (size_t j = 0; j < 3; ++j) result.push_back(std::tanh(x[2 * i] * w[j] + x[2 * i + 1] * w[3 + j] + b[j]));
  }
  return result;
}

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6f * (1 + std::abs(expected[i])));
}

struct Operands {
  std::vector<float> x{0.5f, -1, 2, 0.25f, -0.125f, 1}, w{1, 2, -1, 0.5f, -0.25f, 3}, b{0.1f, 0.2f, 0.3f};
  Tensor x_tensor, w_tensor, b_tensor;
  explicit Operands(const compute::Device& device)
      : x_tensor(device.from_host(x, {3, 2})), w_tensor(device.from_host(w, {2, 3})), b_tensor(device.from_host(b)) {}
  std::vector<Tensor> all() const { return {x_tensor, w_tensor, b_tensor}; }
};

TEST(ComposedOp, IsDescribed) {
  const compute::OpInfo info = dense().info();
  EXPECT_EQ(info.inputs, "x weight bias");
  EXPECT_EQ(info.outputs, "t total");
  EXPECT_EQ(info.attributes, "axes: int64[] = all");
  EXPECT_EQ(info.expression, "");
}

TEST(ComposedOp, RunsOnEveryDevice) {
  for (const compute::Device& device : {host(), remote()}) {
    const Operands given(device);
    const std::vector<float> expected = layer(given.x, given.w, given.b);
    const std::vector<Tensor> results = dense().run(given.all(), {{"axes", {1}}});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].device().name(), device.name());
    expect_near(results[0].to_vector<float>(), expected);
    std::vector<float> sums(3);
    for (size_t i = 0; i < 9; ++i) sums[i / 3] += expected[i];
    EXPECT_TRUE(std::ranges::equal(results[1].shape(), compute::Shape{3, 1}));
    expect_near(results[1].to_vector<float>(), sums);
    // The attribute that is left out is absent for the call too.
    EXPECT_TRUE(std::ranges::equal(dense().run(given.all())[1].shape(), compute::Shape{1, 1}));
  }
}

TEST(ComposedOp, WritesIntoViews) {
  for (const compute::Device& device : {host(), remote()}) {
    const Operands given(device);
    const Tensor wide = device.zeros(compute::float32, {3, 6}), total = device.zeros(compute::float32, {3, 1});
    const Tensor every_second = wide(compute::slice(), compute::slice(0, 6, 2));
    dense().into(given.all(), {every_second, total}, {{"axes", {1}}});
    expect_near(every_second.to_vector<float>(), layer(given.x, given.w, given.b));
    expect_near(wide(compute::slice(), compute::slice(1, 6, 2)).to_vector<float>(), std::vector<float>(9));
  }
}

TEST(ComposedOp, IsQueriedPlannedAndRecorded) {
  for (const compute::Device& device : {host(), remote()}) {
    const Operands given(device);
    const std::vector<float> expected = layer(given.x, given.w, given.b);
    const compute::Support support =
        dense().query(device, {{compute::float32, {3, 2}}, {compute::float32, {2, 3}}, {compute::float32, {3}}});
    EXPECT_EQ(support.level, compute::SupportLevel::decomposed);
    const compute::Plan plan(dense(), device, given.all());
    expect_near(plan.run(given.all(), 2)[0].to_vector<float>(), expected);
    const compute::Stream stream(device);
    std::vector<Tensor> results;
    const compute::Graph graph =
        compute::Graph::record(stream, [&] { results = dense().run(given.all(), {}, stream); });
    graph.run(stream);
    expect_near(results[0].to_vector<float>(), expected);
  }
}

// A plugin that refuses the one-step form of scatter still counts as native.
TEST(ComposedOp, OfAScatterIsAsNativeAsTheScatter) {
  const Op op = Op::compose("acme.scattered", "x indices updates", "y = scatter(x, indices, updates)");
  for (const compute::Device& device : {host(), remote()}) {
    const compute::Support support =
        op.query(device, {{compute::float32, {4, 4}}, {compute::int64, {2, 4}}, {compute::float32, {2, 4}}});
    EXPECT_EQ(support.level, compute::SupportLevel::native) << device.name();
    EXPECT_EQ(support.reason, "") << device.name();
  }
}

TEST(ComposedOp, PassesRunTimeAttributesAndScalars) {
  const Op shifted = Op::compose("acme.steps", "x y",
                                 "s = arange(start=start, step=step, size=3, dtype=float32); "
                                 "z = multiply(x, y); w = add(z, s); v = var(x, correction=1)",
                                 "w v", "start: number = 0!; step: number = 2!");
  for (const compute::Device& device : {host(), remote()}) {
    const Tensor x = device.from_host({1.0f, 2.0f, 3.0f});
    std::vector<Tensor> results = shifted.run({x, Tensor::scalar(10.0f)});
    EXPECT_EQ(results[0].to_vector<float>(), (std::vector<float>{10, 22, 34}));
    EXPECT_EQ(results[1].item<float>(), 1);
    results = shifted.run({x, x}, {{"start", 0.5}, {"step", 1}});
    EXPECT_EQ(results[0].to_vector<float>(), (std::vector<float>{1.5f, 5.5f, 11.5f}));
  }
}

TEST(ComposedOp, ComposesComposedOps) {
  (void)dense();
  const Op twice = Op::compose("acme.two_layers", "x v w b", "h, n = acme.dense(x, v, b); y, m = acme.dense(h, w, b)");
  for (const compute::Device& device : {host(), remote()}) {
    const Operands given(device);
    const std::vector<float> hidden = layer(given.x, given.w, given.b);
    const std::vector<float> w{1, 0, 2, 0, 1, 0, -1, 1, 1};
    std::vector<float> expected;
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j) {
        float z = given.b[j];
        for (size_t k = 0; k < 3; ++k) z += hidden[3 * i + k] * w[3 * k + j];
        expected.push_back(std::tanh(z));
      }
    }
    const Tensor y = twice({given.x_tensor, given.w_tensor, device.from_host(w, {3, 3}), given.b_tensor});
    expect_near(y.to_vector<float>(), expected);
  }
}

TEST(ComposedOp, HandlesTensorsWithoutElements) {
  for (const compute::Device& device : {host(), remote()}) {
    const Tensor x = device.zeros(compute::float32, {3, 0}), w = device.zeros(compute::float32, {0, 3});
    const Tensor b = device.from_host({1.0f, 2.0f, 3.0f});
    const std::vector<Tensor> results = dense().run({x, w, b});
    expect_near(results[0](0).to_vector<float>(), {std::tanh(1.0f), std::tanh(2.0f), std::tanh(3.0f)});
  }
}

TEST(ComposedOp, RefusesFaultyCompositions) {
  const auto refused = [](const std::string& composition, const std::string& message, const std::string& outputs = "",
                          const std::string& attributes = "") {
    const Thrown error = thrown_by([&] { Op::compose("acme.bad", "x", composition, outputs, attributes); });
    EXPECT_EQ(error.code, COMPUTE_ERROR_INVALID_ARGUMENT) << message;
    EXPECT_NE(error.message.find(message), std::string::npos) << error.message;
  };
  refused("y = exp(z)", "\"z\" has no value");
  refused("y = exp(x", "expected ','");
  refused("y exp(x)", "expected '='");
  refused("= exp(x)", "expected a name");
  refused("z = exp(x)", "\"y\" has no value");
  refused("y = exp(x); y = exp(x)", "\"y\" is given a value twice");
  refused("x = exp(x)", "\"x\" is given a value twice");
  refused("y = exp(x, x)", "expected 1 input, got 2");
  refused("y, z = exp(x)", "expected 1 output, got 2");
  refused("y = exp(none)", "cannot be none");
  refused("y = sum(x, axis=1)", "sum has no attribute \"axis\"");
  refused("y = sum(axes=[1], x)", "follows an attribute");
  refused("y = sum(x, axes=[1.5])", "is not an integer");
  refused("y = sum(x, keepdims=[1])", "is not a list");
  refused("y = sum(x, dtype=quaternion)", "is not a dtype");
  refused("y = sum(x, keepdims=k)", "cannot be passed as keepdims", "", "k: int64 = 1!");
  refused("y = exp(x)", "the output \"x\" is an input", "x");
  refused("y = exp(x)", "is not of the form", "", "k");
  const Thrown unknown = thrown_by([] { Op::compose("acme.bad", "x", "y = expp(x)"); });
  EXPECT_EQ(unknown.code, COMPUTE_ERROR_NOT_FOUND);
  const Operands given(host());
  const Thrown shapes = thrown_by([&] { (void)dense().run({given.x_tensor, given.x_tensor, given.b_tensor}); });
  EXPECT_EQ(shapes.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(shapes.message.find("acme.dense: matmul: shapes"), std::string::npos) << shapes.message;
}

}  // namespace
}  // namespace runtime
