// SPDX-License-Identifier: Apache-2.0
// Copies between two GPUs. On the fake driver its two devices; run by hand where two real ones are.
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <numeric>
#include <string>
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

}  // namespace
