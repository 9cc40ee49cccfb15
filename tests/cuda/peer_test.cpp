// SPDX-License-Identifier: Apache-2.0
// Two GPUs: copies between them, and libraries on both. Uses the fake driver's two devices, or by hand two real
// ones.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runs_kernels.hpp"

namespace {

using compute::Device;
using compute::Tensor;

bool has_two_devices() {
  compute_device* second = nullptr;
  compute_error* error = compute_device_open("cuda1", &second);
  compute_error_free(error);
  compute_device_release(second);
  return error == nullptr;
}

Tensor moved(const Tensor& tensor, const Device& device) {
  compute_tensor* made = nullptr;
  compute::check(compute_tensor_to_device(tensor.get(), device.get(), &made));
  return Tensor(made);
}

Tensor made_on(const Device& device, const std::vector<float>& values) {
  const auto size = static_cast<int64_t>(values.size());
  compute_tensor* made = nullptr;
  compute::check(compute_tensor_from_host(device.get(), COMPUTE_DTYPE_FLOAT32, 1, &size, values.data(), &made));
  return Tensor(made);
}

TEST(CudaPeers, CarryMemoryBothWays) {
  if (!has_two_devices()) GTEST_SKIP() << "there is one CUDA device";
  const Device first = Device::open("cuda0"), second = Device::open("cuda1");
  for (const size_t size : {size_t{1}, size_t{1000}, size_t{1} << 20, (size_t{1} << 22) + 7}) {
    std::vector<float> values(size);
    std::iota(values.begin(), values.end(), 0.0f);
    const Tensor there = moved(made_on(first, values), second);
    EXPECT_STREQ(compute_device_name(compute_tensor_device(there.get())), "cuda1");
    EXPECT_EQ(there.to_vector<float>(), values);
    EXPECT_EQ(moved(there, first).to_vector<float>(), values);
  }
}

// Nobody waits in between: each device's work waits for the other's.
TEST(CudaPeers, KeepTheOrderOfWork) {
  if (!has_two_devices()) GTEST_SKIP() << "there is one CUDA device";
  const Device devices[] = {Device::open("cuda0"), Device::open("cuda1")};
  if (!runs_kernels(devices[0])) GTEST_SKIP() << "the fake driver runs no kernels";
  const size_t size = size_t{1} << 22;
  const Tensor ones[] = {made_on(devices[0], std::vector<float>(size, 1.0f)),
                         made_on(devices[1], std::vector<float>(size, 1.0f))};
  Tensor sum = made_on(devices[0], std::vector<float>(size, 0.0f));
  for (size_t turn = 0; turn < 100; ++turn) {
    compute_tensor* more = nullptr;
    compute::check(compute_add(nullptr, sum.get(), ones[turn % 2].get(), &more));
    sum = moved(Tensor(more), devices[(turn + 1) % 2]);
  }
  EXPECT_EQ(sum.to_vector<float>(), std::vector<float>(size, 100.0f));
}

// A counter of the fake cuBLASLt; -1 for NVIDIA's.
int64_t counted_by_cublaslt(const char* name) {
  void* library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_NOLOAD);
  void* function = library != nullptr ? dlsym(library, name) : nullptr;
  return function != nullptr ? reinterpret_cast<int64_t (*)()>(function)() : -1;
}

// Each element of the product of a matrix of ones with one that has `value` everywhere is their extent times `value`.
// Extents differ, so that each product has a separate plan, by cuBLASLt and not a generated kernel.
void multiply_everywhere(const Device& device, int64_t least, float value) {
  for (int64_t extent = least; extent < least + 16; ++extent) {
    const std::vector<float> ones(static_cast<size_t>(extent * extent), 1.0f), values(ones.size(), value);
    const Tensor a = device.from_host(ones, {extent, extent}), b = device.from_host(values, {extent, extent});
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(compute::matmul(a, b).to_vector<float>(),
                std::vector<float>(ones.size(), value * static_cast<float>(extent)));
    }
  }
}

TEST(CudaPeers, MultiplyMatricesEachWithItsOwnHandle) {
  if (!has_two_devices()) GTEST_SKIP() << "there is one CUDA device";
  const Device devices[] = {Device::open("cuda0"), Device::open("cuda1")};
  const int64_t before = counted_by_cublaslt("fake_cublaslt_calls");
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 4; ++i) {
    threads.emplace_back(
        [&devices, i] { multiply_everywhere(devices[i % 2], 8 + 16 * (i / 2), static_cast<float>(i + 1)); });
  }
  for (std::thread& thread : threads) thread.join();
  if (runs_kernels(devices[0])) return;
  EXPECT_EQ(counted_by_cublaslt("fake_cublaslt_calls") - std::max<int64_t>(before, 0), 4 * 16 * 4);
  EXPECT_EQ(counted_by_cublaslt("fake_cublaslt_handles"), 2);
}

}  // namespace
