// SPDX-License-Identifier: Apache-2.0
// Trains a convolutional network on MNIST, or on any data in its format, such as Fashion-MNIST: two convolutions of
// 32 and 64 channels, 5 x 5, same padding, whose weights have an L2 penalty, and a dense layer: 553,866 parameters.
//
//   mnist_cnn --data=FOLDER [--compute-device=DEVICE] [--epochs=1] [--steps=430] [--batch=128] [--rate=0.001]
//             [--l2=0.0001] [--seed=1] [--pool=0] [--graph=0] [--losses=0]
//
// FOLDER holds train-images-idx3-ubyte, train-labels-idx1-ubyte and the t10k- files, compressed or not. An epoch has
// `steps` batches; the images repeat if there are fewer. --pool=1 takes the greatest of 2 x 2 after each convolution,
// which leaves 83,466 parameters. --l2 is the factor of the convolutions' squared weights in the loss.
// With --graph=1 the step is recorded once and replayed. --losses=N prints the first N losses. With --ranks=1,
// `compute run -n 2 mnist_cnn …` divides each batch between two processes, which average their gradients while they
// compute them; the first one prints.
#include <numeric>
#include <random>

#include "data.hpp"
#include "program.hpp"
#include "replay.hpp"
#include "tape.hpp"

using compute::Device;
using compute::Tensor;

namespace {

struct Images {
  Tensor pixels, labels;  // [n, 28 * 28] uint8, [n] int32
  int64_t count;
};

Images load(const Device& device, const std::string& folder, const std::string& prefix) {
  const data::Idx images = data::read_idx(folder, prefix + "-images-idx3-ubyte");
  const data::Idx labels = data::read_idx(folder, prefix + "-labels-idx1-ubyte");
  const int64_t count = images.shape.empty() ? 0 : images.shape[0];
  if (count == 0 || images.shape != std::vector<int64_t>{count, 28, 28} || labels.shape != std::vector{count})
    throw std::runtime_error(folder + ", " + prefix + ": expected images of 28 x 28 and as many labels");
  return {device.from_host(images.bytes, {count, 28 * 28}),
          device.from_host(std::vector<int32_t>(labels.bytes.begin(), labels.bytes.end())), count};
}

// Weights from a normal distribution with variance 2 / inputs, the same on every device.
tape::Value weights(const Device& device, std::vector<int64_t> shape, int64_t inputs, int64_t seed) {
  const double deviation = std::sqrt(2.0 / static_cast<double>(inputs));
  return tape::parameter(compute::random_normal(device, shape, compute::float32, 0, deviation, seed));
}

struct Network {
  bool pools;
  tape::Value w1, b1, w2, b2, w3, b3;

  Network(const Device& device, int64_t seed, bool pooling) : pools(pooling) {
    const auto zeros = [&](int64_t n) { return tape::parameter(device.zeros(compute::float32, {n})); };
    const int64_t features = 64 * (pools ? 7 * 7 : 28 * 28);
    w1 = weights(device, {32, 1, 5, 5}, 25, 10 * seed);
    w2 = weights(device, {64, 32, 5, 5}, 800, 10 * seed + 1);
    w3 = weights(device, {features, 10}, features, 10 * seed + 2);
    b1 = zeros(32);
    b2 = zeros(64);
    b3 = zeros(10);
  }
  std::vector<tape::Value> parameters() const { return {w1, b1, w2, b2, w3, b3}; }
  tape::Value penalty() const { return sum(square(w1)) + sum(square(w2)); }
  tape::Value operator()(const Tensor& pixels) const {
    const int64_t n = pixels.extent(0);
    static const compute::Expression scaled("convert(x, float32) * a", {"x"}, {"a"});
    const Tensor x = compute::map(scaled, {pixels}, {1.0f / 255}, tape::stream).reshape({n, 1, 28, 28});
    tape::Value h = relu(convolution(x, w1, b1, "same"));
    if (pools) h = max_pool(h, {2, 2});
    h = relu(convolution(h, w2, b2, "same"));
    if (pools) h = max_pool(h, {2, 2});
    return linear(reshape(h, {n, h.tensor().size() / n}), w3, b3);
  }
};

// How many of the greatest logits [n, 10] are at the labels: an integer on the device.
Tensor count_right(const Tensor& logits, const Tensor& labels) {
  const Tensor best = compute::cast(compute::argmax(logits, 1, false, tape::stream), compute::int32, tape::stream);
  return compute::count_nonzero(compute::equal(best, labels, tape::stream), compute::all_axes, false, tape::stream);
}

double accuracy(const Network& network, const Images& images) {
  int64_t right = 0;
  for (int64_t i = 0; i < images.count; i += 500) {
    const int64_t end = std::min(i + 500, images.count);
    const auto part = compute::slice(i, end);
    right += count_right(network(images.pixels[part]).tensor(), images.labels[part]).item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(images.count);
}

int run(int argc, char** argv) {
  const program::Options options(argc, argv,
                                 {{"data", ""},
                                  {"epochs", "1"},
                                  {"steps", "430"},
                                  {"batch", "128"},
                                  {"rate", "0.001"},
                                  {"l2", "0.0001"},
                                  {"seed", "1"},
                                  {"pool", "0"},
                                  {"graph", "0"},
                                  {"losses", "0"},
                                  {"ranks", "0"}});
  const Device device = Device::open();
  const compute::Group group =
      options.integer("ranks") != 0 ? compute::Group::over_mpi(device) : compute::Group(device);
  const compute::Stream exchanges(device);
  const Images train = load(device, options.text("data"), "train"), test = load(device, options.text("data"), "t10k");
  const int64_t steps = options.integer("steps", 1), batch = options.integer("batch", 1),
                seed = options.integer("seed");
  const int64_t part = batch / group.size();  // of a batch, which is this rank's
  if (part * group.size() != batch) throw std::runtime_error("--batch cannot be divided among the processes");
  if (group.rank() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
  const double l2 = options.real("l2");
  const Network network(device, seed, options.integer("pool") != 0);
  int64_t count = 0;
  for (const tape::Value& each : network.parameters()) count += each.tensor().size();
  std::printf("%lld images on %s, %lld parameters\n", static_cast<long long>(train.count), device.name().c_str(),
              static_cast<long long>(count));
  tape::Adam adam(network.parameters());
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  std::vector<int32_t> order(static_cast<size_t>(train.count));
  std::iota(order.begin(), order.end(), 0);
  size_t next = order.size();
  int64_t step = 0, shown = 0;
  Replay replay(device, options.integer("graph") != 0);
  const Counter count_of_steps = replay.counter();
  const Tensor indices = device.empty(compute::int32, {part});
  tape::Value loss;
  Tensor right;
  const auto learn = [&] {
    const Tensor pixels = compute::take(train.pixels, indices, 0, tape::stream);
    const Tensor labels = compute::take(train.labels, indices, 0, tape::stream);
    const tape::Value logits = network(pixels);
    right = count_right(logits.tensor(), labels);
    loss = tape::cross_entropy(logits, labels);
    if (l2 != 0) loss = loss + network.penalty() * l2;
    tape::backward(loss, 1, [&](Tensor& gradient) {
      if (group.size() > 1) gradient = group.all_reduce(gradient, compute::Reduction::mean, {}, exchanges);
    });
    adam.step(options.real("rate"), count_of_steps.as("step"));
  };
  for (int64_t epoch = 1; epoch <= options.integer("epochs"); ++epoch) {
    const double start = program::seconds();
    Tensor total = device.zeros(compute::float32, {}), all_right = device.zeros(compute::int64, {});
    program::Progress progress("epoch " + std::to_string(epoch), steps);
    for (int64_t i = 0; i < steps; ++i) {
      std::vector<int32_t> chosen;
      while (static_cast<int64_t>(chosen.size()) < batch) {
        if (next == order.size()) {
          for (size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random() % k]);
          next = 0;
        }
        chosen.push_back(order[next++]);
      }
      indices.write(std::span<const int32_t>(chosen).subspan(static_cast<size_t>(group.rank() * part),
                                                             static_cast<size_t>(part)));
      replay.set(count_of_steps, ++step);
      replay.run(learn);
      if (group.size() > 1) {
        loss = group.all_reduce(loss.tensor(), compute::Reduction::mean, {}, tape::stream);
        right = group.all_reduce(right, compute::Reduction::sum, {}, tape::stream);
      }
      total += loss.tensor();
      all_right += right;
      if (shown < options.integer("losses")) {
        std::printf("loss %lld: %.7g\n", static_cast<long long>(++shown),
                    static_cast<double>(loss.tensor().item<float>()));
      }
      progress.show(i + 1);
    }
    const double loss = static_cast<double>(total.item<float>()) / static_cast<double>(steps),
                 learnt = static_cast<double>(all_right.item<int64_t>()) / static_cast<double>(steps * batch),
                 seconds = program::seconds() - start;
    std::printf("epoch %lld: loss %.4f, accuracy %.4f, test accuracy %.4f, %.2f s\n", static_cast<long long>(epoch),
                loss, learnt, accuracy(network, test), seconds);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return program::guarded([&] { return run(argc, argv); });
}
