// SPDX-License-Identifier: Apache-2.0
// The gradients of examples/tape.hpp against central differences, in float64.
#include <gtest/gtest.h>

#include "tape.hpp"

namespace {

using compute::Device;
using compute::Tensor;
using tape::Value;

const Device& device() {
  static const auto* const opened = new Device(Device::open("cpu"));
  return *opened;
}

Tensor numbers(std::vector<int64_t> shape, int64_t seed, double low = -1, double high = 1) {
  return compute::random_uniform(device(), shape, compute::float64, low, high, seed);
}

using Function = std::function<Value(const std::vector<Value>&)>;

double loss_of(const Function& f, const std::vector<Tensor>& inputs, const Tensor& weights) {
  std::vector<Value> values(inputs.begin(), inputs.end());
  return compute::sum(f(values).tensor() * weights).item<double>();
}

// The gradients of sum(f(inputs) * weights), with weights that differ between elements of the result.
void check(const Function& f, const std::vector<Tensor>& inputs, double tolerance = 1e-6) {
  std::vector<Value> parameters;
  for (const Tensor& input : inputs) parameters.push_back(tape::parameter(input));
  const Value y = f(parameters);
  const Tensor weights = numbers(tape::extents(y), 99, 0.5, 1.5);
  tape::backward(tape::sum(y * Value(weights)));
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::vector<double> gradient = compute::copy(parameters[k].gradient()).to_vector<double>();
    std::vector<double> x = inputs[k].to_vector<double>();
    for (size_t i = 0; i < x.size(); ++i) {
      const double step = 1e-5;
      const auto moved = [&](double by) {
        std::vector<double> values = x;
        values[i] += by;
        std::vector<Tensor> all = inputs;
        all[k] = device().from_host(values, tape::extents(parameters[k]));
        return loss_of(f, all, weights);
      };
      const double difference = (moved(step) - moved(-step)) / (2 * step);
      ASSERT_NEAR(gradient[i], difference, tolerance * (1 + std::abs(difference)))
          << "input " << k << ", element " << i;
    }
  }
}

TEST(Tape, Elementwise) {
  check([](const auto& v) { return v[0] * v[1] + v[0] / (v[1] * v[1] + 1); }, {numbers({3, 4}, 1), numbers({4}, 2)});
  check([](const auto& v) { return tape::tanh(v[0]) * tape::sigmoid(v[0]) + tape::gelu(v[0]); }, {numbers({7}, 3)});
  check([](const auto& v) { return tape::relu(v[0]) + tape::exp(v[0]) + tape::square(v[0]); }, {numbers({7}, 4)});
  check([](const auto& v) { return tape::log(v[0]); }, {numbers({5}, 5, 0.5, 2)});
}

TEST(Tape, PointsWithoutADerivativeAndFarFrom0) {
  const auto gradient = [](const Function& f, double x) {
    const Value parameter = tape::parameter(device().from_host(std::vector<float>{static_cast<float>(x)}, {1}));
    tape::backward(tape::sum(f({parameter})));
    return parameter.gradient().item<float>();
  };
  EXPECT_EQ(gradient([](const auto& v) { return tape::relu(v[0]); }, 0), 0);
  EXPECT_EQ(gradient([](const auto& v) { return tape::sigmoid(v[0]); }, 0), 0.25F);
  EXPECT_NEAR(gradient([](const auto& v) { return tape::sigmoid(v[0]); }, -90), 0, 1e-38);
  EXPECT_NEAR(gradient([](const auto& v) { return tape::sigmoid(v[0]); }, 90), 0, 1e-38);
}

TEST(Tape, ProductsViewsAndReductions) {
  check([](const auto& v) { return tape::matmul(v[0], v[1]); }, {numbers({2, 3, 4}, 1), numbers({4, 5}, 2)});
  check([](const auto& v) { return tape::linear(v[0], v[1], v[2]); },
        {numbers({2, 3, 4}, 1), numbers({4, 5}, 2), numbers({5}, 3)});
  check([](const auto& v) { return tape::permute(tape::reshape(v[0], {2, 6}), {1, 0}); }, {numbers({3, 4}, 1)});
  check([](const auto& v) { return tape::select(v[0], 1) * tape::mean(v[0]); }, {numbers({3, 4}, 1)});
}

TEST(Tape, Layers) {
  const Function same = [](const auto& v) { return tape::convolution(v[0], v[1], v[2], "same"); };
  check(same, {numbers({2, 3, 5, 4}, 1), numbers({2, 3, 3, 3}, 2), numbers({2}, 3)});
  check([](const auto& v) { return tape::convolution(v[0], v[1], v[2]); },
        {numbers({2, 3, 9}, 1), numbers({4, 3, 3}, 2), numbers({4}, 3)});
  check([](const auto& v) { return tape::max_pool(v[0], {2, 2}); }, {numbers({2, 2, 4, 6}, 1)});
  check([](const auto& v) { return tape::layer_norm(v[0], v[1], v[2]); },
        {numbers({3, 6}, 1), numbers({6}, 2), numbers({6}, 3)}, 1e-5);
  check([](const auto& v) { return tape::dropout(v[0], 0.25, 7, {"offset", 3}); }, {numbers({5, 6}, 1)});
  const Tensor indices = device().from_host(std::vector<int32_t>{2, 0, 2, 1});
  check([&](const auto& v) { return tape::embedding(v[0], indices); }, {numbers({4, 3}, 1)});
}

TEST(Tape, AttentionAndLosses) {
  for (const bool causal : {false, true}) {
    check([&](const auto& v) { return tape::attention(v[0], v[1], v[2], causal); },
          {numbers({1, 2, 4, 3}, 1), numbers({1, 2, 4, 3}, 2), numbers({1, 2, 4, 3}, 3)});
    check([&](const auto& v) { return tape::self_attention(v[0], 2, causal); }, {numbers({2, 4, 12}, 1)});
  }
  const Tensor labels = device().from_host(std::vector<int32_t>{1, 0, 3});
  check([&](const auto& v) { return tape::cross_entropy(v[0], labels); }, {numbers({3, 4}, 1)});
  const Tensor targets = device().from_host(std::vector<double>{1, 0, 0.25});
  check([&](const auto& v) { return tape::binary_cross_entropy(v[0], targets); }, {numbers({3}, 1)});
}

}  // namespace
