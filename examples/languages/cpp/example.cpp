// SPDX-License-Identifier: Apache-2.0
#include <compute/compute.hpp>

#include <cstdio>

using namespace compute;

void print(const char* label, const char* format, const Tensor& tensor) {
  std::printf("%s:", label);
  for (const float value : tensor.to_vector<float>()) std::printf(format, value);  // waits and copies
  std::printf("\n");
}

int main() try {
  const Device device = Device::open();  // COMPUTE_DEVICE, or the best device
  std::printf("device: %s\n", device.name().c_str());
  const Tensor a = device.from_host({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  const Tensor b = device.from_host({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {3, 2});
  const Tensor product = matmul(a, b);
  print("product", " %.0f", product);
  print("tanh", " %.4f", tanh(product * 0.01f));
  try {
    const Tensor none = matmul(a, a);
  } catch (const Error& error) {
    std::printf("error: %s: %s\n", compute_error_code_name(static_cast<compute_error_code>(error.code())),
                error.what());
  }
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
