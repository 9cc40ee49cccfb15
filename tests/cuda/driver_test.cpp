// SPDX-License-Identifier: Apache-2.0
// The CUDA plugin without a driver, and with the toolkit's stub on the library path.
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <cstdlib>
#include <string>

namespace {

using compute::Device;

using compute::load_report;

int cuda_devices() {
  int count = 0;
  for (const auto& info : Device::list()) count += std::string(info.name).rfind("cuda", 0) == 0 ? 1 : 0;
  return count;
}

TEST(CudaWithoutDriver, LoadsAndSaysWhatItTried) {
  if (cuda_devices() > 0) GTEST_SKIP() << "there is a driver";
  const std::string report = load_report();
  EXPECT_NE(report.find("tried libcuda.so.1"), std::string::npos) << report;
  EXPECT_NE(report.find("install NVIDIA's driver"), std::string::npos) << report;
  try {
    static_cast<void>(Device::open("cuda0"));
    FAIL() << "cuda0 opened";
  } catch (const compute::Error& error) {
    EXPECT_EQ(error.code(), COMPUTE_ERROR_NOT_FOUND);
    EXPECT_NE(std::string(error.what()).find("libcuda.so.1"), std::string::npos) << error.what();
  }
}

TEST(CudaWithStub, SaysSo) {
  if (std::getenv("COMPUTE_TEST_STUB") == nullptr) GTEST_SKIP() << "the toolkit's stub is not on the library path";
  EXPECT_EQ(cuda_devices(), 0);
  const std::string report = load_report();
  EXPECT_NE(report.find("cuInit returned 34"), std::string::npos) << report;
  EXPECT_NE(report.find("remove the stub's directory from the library path"), std::string::npos) << report;
}

}  // namespace
