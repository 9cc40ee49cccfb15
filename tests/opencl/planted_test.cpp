// SPDX-License-Identifier: Apache-2.0
// Faults that Oclgrind must see, or its silence about the other tests says nothing.
#include <gtest/gtest.h>

#include "device.hpp"

namespace compute::opencl_tests {
namespace {

TEST(OpenclPlanted, OutOfBounds) {
  const Device device = Device::open("opencl");
  const Stream stream(device);
  const std::string source = "COMPUTE_KERNEL f(COMPUTE_GLOBAL f32* x) { x[COMPUTE_GLOBAL_ID(0) + 1048576] = 1; }\n";
  compute_kernel* kernel = nullptr;
  check(compute_kernel_compile(device.get(), "portable", source.c_str(), -1, "f", nullptr, &kernel));
  const Tensor x = device.full({64}, 0.f);
  compute_kernel_argument argument{};
  argument.struct_size = sizeof argument;
  argument.kind = COMPUTE_ARGUMENT_TENSOR;
  argument.access = COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE;
  argument.tensor = x.get();
  compute_launch launch{};
  launch.struct_size = sizeof launch;
  launch.groups[0] = launch.groups[1] = launch.groups[2] = 1;
  launch.group_size[0] = 64;
  launch.group_size[1] = launch.group_size[2] = 1;
  check(compute_kernel_launch(kernel, stream.get(), &launch, &argument, 1));
  stream.synchronize();
  compute_kernel_release(kernel);
}

}  // namespace
}  // namespace compute::opencl_tests
