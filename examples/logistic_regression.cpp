// SPDX-License-Identifier: Apache-2.0
// Logistic regression on random labels, with the gradients written out. The training data reach the device in four
// ways: copied at each step (explicit), as host tensors whose copies on the device are kept (mirrors), as tensors of
// the device (resident), and with the whole step replayed as a graph.
//
//   logistic_regression [--compute-device=DEVICE] [--mode=explicit|mirrors|resident|graph|all] [--samples=400]
//                       [--features=784] [--steps=10000]
//
// Ends with 1 if predictions differ from the labels, or the modes from one another.
#include <cmath>
#include <random>

#include "program.hpp"

using namespace compute;

namespace {

struct Data {
  int64_t samples, features;
  std::vector<float> x, y, w;  // [samples, features], [samples], [features]
};

Data make_data(int64_t samples, int64_t features) {
  std::mt19937 random(22);
  const auto normal = [&] {  // the same numbers with every standard library
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random()) / 4294967296.0;
    return static_cast<float>(sum);
  };
  Data data{samples, features, {}, {}, {}};
  for (int64_t i = 0; i < samples * features; ++i) data.x.push_back(normal());
  for (int64_t i = 0; i < samples; ++i) data.y.push_back(static_cast<float>(random() & 1));
  for (int64_t i = 0; i < features; ++i) data.w.push_back(normal());
  return data;
}

struct Model {
  Tensor w, b;  // [features], []
};

// One step of gradient descent on mean(cross-entropy) + 0.01 * sum(w^2).
void step(const Model& model, const Tensor& x, const Tensor& y, const Stream& stream) {
  static const Expression error("1 / (1 + exp(-(z + b))) - y", {"z", "b", "y"});
  static const Expression update("w - 0.01 * (g / n + 0.02 * w)", {"w", "g"}, {"n"});
  static const Expression update_bias("b - 0.01 * g / n", {"b", "g"}, {"n"});
  const auto n = static_cast<double>(y.size());
  const Tensor d = map(error, {matmul(x, model.w, stream), model.b, y}, {}, stream);
  update.into({model.w, matmul(d, x, stream)}, {n}, {model.w}, stream);
  update_bias.into({model.b, sum(d, all_axes, false, {}, stream)}, {n}, {model.b}, stream);
}

struct Outcome {
  std::vector<float> prediction;
  double seconds = 0;
};

Outcome train(const Device& device, const Data& data, const std::string& mode, int64_t steps) {
  const Device host = Device::open("cpu");
  const Stream stream(device);
  const Model model{device.from_host(data.w, {data.features}), device.zeros(float32, {})};
  const Device& home = mode == "mirrors" ? host : device;
  Tensor x = home.from_host(data.x, {data.samples, data.features}), y = home.from_host(data.y, {data.samples});
  const DeviceStatistics before = device.statistics();
  const double start = program::seconds();
  std::optional<Graph> graph;
  if (mode == "graph") graph = Graph::record(stream, [&] { step(model, x, y, stream); });
  program::Progress progress(mode, steps);
  for (int64_t i = 0; i < steps; ++i) {
    if (mode == "explicit") {
      x = device.from_host(data.x, {data.samples, data.features});
      y = device.from_host(data.y, {data.samples});
    }
    graph ? graph->run(stream) : step(model, x, y, stream);
    progress.show(i + 1);
  }
  stream.synchronize();
  Outcome outcome;
  outcome.seconds = program::seconds() - start;
  const DeviceStatistics after = device.statistics();
  std::printf("%-9s %9.3f s, %lld copies to the device (%lld bytes)\n", mode.c_str(), outcome.seconds,
              static_cast<long long>(after.transfers_to_device - before.transfers_to_device),
              static_cast<long long>(after.transfers_to_device_bytes - before.transfers_to_device_bytes));
  const Tensor p = sigmoid(matmul(x.to(device), model.w) + model.b);
  outcome.prediction = cast(p > 0.5f, float32).to_vector<float>();
  return outcome;
}

void print(const char* title, const std::vector<float>& values) {
  std::printf("%s\n", title);
  for (size_t i = 0; i < values.size(); ++i) std::printf("%d%s", values[i] > 0, i % 80 == 79 ? "\n" : "");
  if (values.size() % 80 != 0) std::printf("\n");
}

int run(int argc, char** argv) {
  const program::Options options(argc, argv,
                                 {{"mode", "all"}, {"samples", "400"}, {"features", "784"}, {"steps", "10000"}});
  const Device device = Device::open();
  const Data data = make_data(options.integer("samples", 1), options.integer("features", 1));
  const std::string& asked = options.text("mode");
  std::vector<Outcome> outcomes;
  for (const char* mode : {"explicit", "mirrors", "resident", "graph"}) {
    if (asked == "all" || asked == mode) outcomes.push_back(train(device, data, mode, options.integer("steps")));
  }
  if (outcomes.empty()) {
    std::fprintf(stderr, "--mode is %s, not explicit, mirrors, resident, graph or all\n", asked.c_str());
    return 2;
  }
  print("target values", data.y);
  print("predictions", outcomes.front().prediction);
  std::printf("Used %s\n", device.name().c_str());
  for (const Outcome& outcome : outcomes) {
    if (outcome.prediction == data.y) continue;
    std::printf("predictions differ from the target values\n");
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return program::guarded([&] { return run(argc, argv); });
}
