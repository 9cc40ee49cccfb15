// SPDX-License-Identifier: Apache-2.0
// Memory that a program allocates by the driver's interface and lends to a device. On the fake driver, cuda1 is the
// device that all memory lies on.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "runs_kernels.hpp"

namespace {

using compute::Device;
using compute::Tensor;

// The pool of a program, as PyTorch or RMM has one.
class Driver final : public compute::Allocator {
 public:
  explicit Driver(uint64_t context) : context_(reinterpret_cast<void*>(context)) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    allocate_ = reinterpret_cast<int (*)(uint64_t*, size_t)>(dlsym(library, "cuMemAlloc_v2"));
    free_ = reinterpret_cast<int (*)(uint64_t)>(dlsym(library, "cuMemFree_v2"));
    set_current_ = reinterpret_cast<int (*)(void*)>(dlsym(library, "cuCtxSetCurrent"));
  }
  void* allocate(int64_t size_bytes, int64_t alignment) override {
    const std::lock_guard guard(mutex_);
    EXPECT_EQ(alignment, 256);
    set_current_(context_);
    uint64_t address = 0;
    if (allocate_(&address, static_cast<size_t>(size_bytes)) != 0) return nullptr;
    sizes_[address] = size_bytes;
    return reinterpret_cast<void*>(address);
  }
  void release(void* address, int64_t size_bytes) override {
    const std::lock_guard guard(mutex_);
    const auto found = sizes_.find(reinterpret_cast<uint64_t>(address));
    ASSERT_NE(found, sizes_.end());
    EXPECT_EQ(found->second, size_bytes);
    set_current_(context_);
    EXPECT_EQ(free_(found->first), 0);
    sizes_.erase(found);
  }
  bool holds(uint64_t address) const {
    const std::lock_guard guard(mutex_);
    const auto after = sizes_.upper_bound(address);
    return after != sizes_.begin() &&
           address < std::prev(after)->first + static_cast<uint64_t>(std::prev(after)->second);
  }
  size_t live() const {
    const std::lock_guard guard(mutex_);
    return sizes_.size();
  }

 private:
  void* const context_;
  int (*allocate_)(uint64_t*, size_t) = nullptr;
  int (*free_)(uint64_t) = nullptr;
  int (*set_current_)(void*) = nullptr;
  mutable std::mutex mutex_;
  std::map<uint64_t, int64_t> sizes_;
};

// The device of the driver's ordinal 0: where a GPU has no fellow, the only one.
Device device_of_the_memory() {
  const Device first = Device::open("cuda0");
  return runs_kernels(first) ? first : Device::open("cuda1");
}

TEST(CudaAllocator, ServesTheTensorsOfItsDevice) {
  const Device device = device_of_the_memory();
  Driver driver(device.native<compute_native_cuda>().context);
  for (const bool cached : {false, true}) {
    device.set_allocator(driver, cached);
    {
      std::vector<float> values(1000);
      std::iota(values.begin(), values.end(), 0.0f);
      const Tensor x = device.from_host(values), y = copy(x);
      EXPECT_TRUE(driver.holds(x.native<compute_native_cuda>().address));
      EXPECT_TRUE(driver.holds(y.native<compute_native_cuda>().address));
      EXPECT_EQ(x.to_vector<float>(), values);
      if (runs_kernels(device)) {
        EXPECT_EQ(y.to_vector<float>(), values);
      }
      EXPECT_EQ(driver.live(), cached ? 1U : 2U);
    }
    device.synchronize();
    device.trim();
    EXPECT_EQ(driver.live(), 0U);
  }
  device.reset_allocator();
  EXPECT_EQ(device.full({10}, 2.0f).to_vector<float>().size(), 10U);
  EXPECT_EQ(driver.live(), 0U);
}

// Memory of one device cannot serve another one.
TEST(CudaAllocator, IsRefusedForMemoryOfAnotherDevice) {
  const Device device = Device::open("cuda0");
  if (runs_kernels(device)) GTEST_SKIP() << "the memory is on this device";
  Driver driver(device.native<compute_native_cuda>().context);
  device.set_allocator(driver);
  try {
    static_cast<void>(device.empty(compute::float32, {10}));
    ADD_FAILURE() << "memory of cuda1 was taken";
  } catch (const compute::Error& error) {
    EXPECT_EQ(error.code(), COMPUTE_ERROR_UNSUPPORTED) << error.what();
    EXPECT_NE(std::string(error.what()).find("the memory is on CUDA device 0"), std::string::npos) << error.what();
  }
  EXPECT_EQ(driver.live(), 0U);
  device.reset_allocator();
}

}  // namespace
