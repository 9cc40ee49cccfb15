// SPDX-License-Identifier: Apache-2.0
// What a device releases when it is closed, in the plugin's own classes: on the fake driver or a real
// one.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "fake_cuda.hpp"
#include "plugins/cuda/device.hpp"
#include "plugins/cuda/libraries.hpp"
#include "plugins/cuda/matmul.hpp"
#include "plugins/cuda/stream.hpp"

namespace compute::cuda {
namespace {

// A counter of a fake library; 0 for NVIDIA's.
int64_t counted(const char* library, const char* name) {
  void* opened = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  void* function = opened != nullptr ? dlsym(opened, name) : nullptr;
  return function != nullptr ? reinterpret_cast<int64_t (*)()>(function)() : 0;
}

TEST(CudaDeviceEnd, DestroysItsHandlesAndFreesItsMemory) {
  if (!open_driver()) GTEST_SKIP() << driver_report().remedy;
  if (cublas_lt() == nullptr) GTEST_SKIP() << "there is no cuBLASLt";
  const bool is_fake = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "fake_cuda_fail") != nullptr;
  const auto handles = [] { return counted("libcublasLt.so.13", "fake_cublaslt_handles"); };
  EXPECT_EQ(handles(), 0);
  auto first = std::make_unique<Device>(read_devices().front());
  auto second = std::make_unique<Device>(read_devices().back());  // on a machine with one GPU, the same one again
  for (Device* device : {first.get(), second.get()}) {
    const Current current = device->current();
    ASSERT_NE(device->blas(), nullptr);
    EXPECT_EQ(device->blas(), device->blas());
    const Stream stream(*device, 0);
  }
  // On one GPU NVIDIA's may be the same.
  if (is_fake) {
    EXPECT_NE(first->blas()->get(), second->blas()->get());
  }
  EXPECT_EQ(handles(), is_fake ? 2 : 0);
  first.reset();
  EXPECT_EQ(handles(), is_fake ? 1 : 0);
  second.reset();
  EXPECT_EQ(handles(), 0);
  EXPECT_EQ(counted("libcuda.so.1", "fake_cuda_used_bytes"), 0);
  EXPECT_EQ(counted("libcuda.so.1", "fake_cuda_host_blocks"), 0);
}

}  // namespace
}  // namespace compute::cuda
