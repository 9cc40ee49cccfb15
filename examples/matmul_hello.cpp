// SPDX-License-Identifier: Apache-2.0
// Multiplies two small matrices, and prints on which device each operand was, where the op ran, and how.
//
//   matmul_hello [--compute-device=DEVICE]
#include "program.hpp"

using namespace compute;

namespace {

void print_place(const char* name, const Tensor& tensor) {
  std::printf("%s: %s\n", name, tensor.device().name().c_str());
}

const char* words_of(SupportLevel level) {
  switch (level) {
    case SupportLevel::native:
      return "native";
    case SupportLevel::decomposed:
      return "in several steps";
    case SupportLevel::host:
      return "on the host";
    default:
      return "not supported";
  }
}

int run(int argc, char** argv) {
  const program::Options options(argc, argv, {});
  const Device device = Device::open();
  const Tensor a = device.from_host({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  const Tensor b = device.from_host({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {3, 2});
  const Tensor c = matmul(a, b);
  print_place("a", a);
  print_place("b", b);
  const Support support = Op("matmul").query(device, {TensorSpec::of(a), TensorSpec::of(b)});
  std::printf("matmul: %s, %s%s%s\n", c.device().name().c_str(), words_of(support.level),
              support.reason.empty() ? "" : ": ", support.reason.c_str());
  std::cout << c << '\n';
  return c.to_vector<float>() == std::vector<float>{22, 28, 49, 64} ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return program::guarded([&] { return run(argc, argv); });
}
