// SPDX-License-Identifier: Apache-2.0
// Faults that Oclgrind must see, or its silence about the other tests says nothing.
#include <gtest/gtest.h>

#include "device.hpp"

namespace compute::opencl_tests {
namespace {

// One group of 64 work items of a kernel `f` over x and y.
void launch(const Device& device, const std::string& source, const Tensor& x, const Tensor& y) {
  const Stream stream(device);
  compute_kernel* kernel = nullptr;
  check(compute_kernel_compile(device.get(), "portable", source.c_str(), -1, "f", nullptr, &kernel));
  compute_kernel_argument arguments[2] = {};
  for (int i = 0; i < 2; ++i) {
    arguments[i].struct_size = sizeof arguments[i];
    arguments[i].kind = COMPUTE_ARGUMENT_TENSOR;
    arguments[i].access = COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE;
    arguments[i].tensor = i == 0 ? x.get() : y.get();
  }
  compute_launch launch{};
  launch.struct_size = sizeof launch;
  launch.groups[0] = launch.groups[1] = launch.groups[2] = 1;
  launch.group_size[0] = 64;
  launch.group_size[1] = launch.group_size[2] = 1;
  check(compute_kernel_launch(kernel, stream.get(), &launch, arguments, 2));
  stream.synchronize();
  compute_kernel_release(kernel);
}

TEST(OpenclPlanted, OutOfBounds) {
  const Device device = Device::open("opencl");
  const Tensor x = device.full({64}, 0.f), y = device.full({64}, 0.f);
  launch(device,
         "COMPUTE_KERNEL f(COMPUTE_GLOBAL f32* x, COMPUTE_GLOBAL f32* y) { x[COMPUTE_GLOBAL_ID(0) + 1048576] = 1; }\n",
         x, y);
}

// The kernel reads 64 elements, of which 63 were written.
TEST(OpenclPlanted, Uninitialized) {
  const Device device = Device::open("opencl");
  const Tensor x = device.empty(float32, {64}), y = device.full({64}, 0.f);
  x.slice(0, 0, 63).write(std::vector<float>(63, 1.f));
  launch(device,
         "COMPUTE_KERNEL f(COMPUTE_GLOBAL f32* x, COMPUTE_GLOBAL f32* y)"
         " { y[COMPUTE_GLOBAL_ID(0)] = x[COMPUTE_GLOBAL_ID(0)]; }\n",
         x, y);
}

}  // namespace
}  // namespace compute::opencl_tests
