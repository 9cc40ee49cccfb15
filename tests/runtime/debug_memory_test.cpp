// SPDX-License-Identifier: Apache-2.0
// COMPUTE_DEBUG=memory, which ctest sets: unwritten memory holds NaN patterns, and writes into released memory are
// reported.
#include <cmath>
#include <future>
#include <mutex>

#include "runtime.hpp"

namespace {

using compute::Tensor;
using namespace runtime;

class DebugMemory : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* words = std::getenv("COMPUTE_DEBUG");
    if (words == nullptr || std::string(words).find("memory") == std::string::npos)
      GTEST_SKIP() << "COMPUTE_DEBUG=memory is not set";
    try {
      device_ = compute::Device::open(GetParam());
    } catch (const compute::Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  compute::Device device_;
};

TEST_P(DebugMemory, NewMemoryHoldsNoNumbers) {
  for (int i = 0; i < 3; ++i) {  // fresh, and from the pool
    for (const float value : device_.empty(COMPUTE_DTYPE_FLOAT32, {5000}).to_vector<float>())
      ASSERT_TRUE(std::isnan(value));
    for (const double value : device_.empty(COMPUTE_DTYPE_FLOAT64, {5000}).to_vector<double>())
      ASSERT_TRUE(std::isnan(value));
    static_cast<void>(device_.from_host(iota(5000)));
  }
}

std::mutex log_mutex;
std::string logged;

// Callbacks run after the checks that were submitted before them.
void wait_for_checks(const compute::Device& device) {
  std::promise<void> done;
  compute::Stream::default_of(device).notify([&done](const compute::ErrorView&) { done.set_value(); });
  done.get_future().wait();
}

TEST_P(DebugMemory, WritesIntoReleasedMemoryAreReported) {
  if (std::string(GetParam()) != "cpu") GTEST_SKIP() << "the host has no pointer into memory of " << GetParam();
  compute_log_set_callback(
      [](compute_borrowed_log_record record, void*) {
        std::lock_guard guard(log_mutex);
        logged += record->text;
      },
      nullptr);
  void* stale = nullptr;
  {
    const Tensor x = device_.from_host(iota(7777));
    int32_t is_copy = 0;
    compute::check(compute_tensor_map(x.get(), COMPUTE_ACCESS_READ, &stale, &is_copy));
    compute::check(compute_tensor_unmap(x.get(), stale));
  }
  static_cast<void>(device_.from_host(iota(7777)));
  wait_for_checks(device_);
  EXPECT_EQ(logged, "");
  static_cast<float*>(stale)[10] = 1;
  const Tensor next = device_.empty(COMPUTE_DTYPE_FLOAT32, {7777});
  wait_for_checks(device_);
  compute_log_set_callback(nullptr, nullptr);
  EXPECT_NE(logged.find("cpu: "), std::string::npos) << logged;
  EXPECT_NE(logged.find("written to after its release, first at byte 40"), std::string::npos) << logged;
}

INSTANTIATE_TEST_SUITE_P(Devices, DebugMemory, ::testing::Values("cpu", "minimal0", "opencl"));

}  // namespace
