// SPDX-License-Identifier: Apache-2.0
// Trains a perceptron of two layers to tell the quadrants of a plane apart, gradients by hand.
//
//   perceptron [device...]    on each device, such as cpu opencl0:0, or the one that COMPUTE_DEVICE names
//
// Ends with 1 if the loss does not fall, or differs between the devices.
#include <compute/compute.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>

using namespace compute;

// Numbers in [-1, 1] that are the same on every device.
Tensor noise(const Device& device, int64_t rows, int64_t columns, int seed) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  uint32_t state = static_cast<uint32_t>(seed);
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
  return device.from_host(values, {rows, columns});
}

// The loss of each epoch.
std::vector<float> train(const Device& device) {
  const int64_t samples = 512, batch = 64, hidden = 16;
  const Tensor x = noise(device, samples, 2, 1);
  const Tensor y = cast((x(slice(), 0) > 0) ^ (x(slice(), 1) > 0), float32)(slice(), newaxis);  // [samples, 1]
  Tensor w1 = noise(device, 2, hidden, 2), b1 = noise(device, 1, hidden, 3);
  Tensor w2 = noise(device, hidden, 1, 4), b2 = device.zeros(float32, {1, 1});
  std::vector<float> losses;
  for (int epoch = 0; epoch < 60; ++epoch) {
    Tensor loss = device.zeros(float32, {});
    for (int64_t i = 0; i < samples; i += batch) {
      const Tensor xs = x[slice(i, i + batch)], ys = y[slice(i, i + batch)];
      const Tensor h = tanh(matmul(xs, w1) + b1);
      const Tensor p = sigmoid(matmul(h, w2) + b2);
      loss -= mean(where(ys > 0, log(p), log(1 - p)));  // cross-entropy

      const Tensor dz = (p - ys) / static_cast<float>(batch);
      const Tensor dh = matmul(dz, w2.transpose()) * (1 - square(h));
      const float rate = 1;
      w2 -= rate * matmul(h.transpose(), dz);
      b2 -= rate * sum(dz, 0, true);
      w1 -= rate * matmul(xs.transpose(), dh);
      b1 -= rate * sum(dh, 0, true);
    }
    losses.push_back(loss.item<float>() * batch / samples);
  }
  std::cout << device.name() << ": loss " << losses.front() << " -> " << losses.back() << ", first layer\n"
            << w1 << '\n';
  return losses;
}

int main(int argc, char** argv) try {
  std::vector<Device> devices;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') {
      const bool wants_help = std::string(argv[i]) == "--help";
      std::fprintf(wants_help ? stdout : stderr, "usage: %s [DEVICE]...\n", argv[0]);
      return wants_help ? 0 : 2;
    }
    devices.push_back(Device::open(argv[i]));
  }
  if (devices.empty()) devices.push_back(Device::open());
  std::vector<float> first;
  for (const Device& device : devices) {
    const std::vector<float> losses = train(device);
    if (!(losses.back() < 0.2f * losses.front())) {
      std::fprintf(stderr, "the loss on %s does not fall\n", device.name().c_str());
      return 1;
    }
    if (first.empty()) first = losses;
    for (size_t i = 0; i < losses.size(); ++i) {
      if (std::abs(losses[i] - first[i]) < 1e-3f) continue;
      std::fprintf(stderr, "loss %zu on %s differs from that on %s\n", i, device.name().c_str(),
                   devices[0].name().c_str());
      return 1;
    }
  }
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
