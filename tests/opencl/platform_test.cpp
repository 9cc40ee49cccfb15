// SPDX-License-Identifier: Apache-2.0
// The OpenCL plugin where the loader finds no platform.
#include <gtest/gtest.h>

#include "device.hpp"

namespace compute::opencl_tests {
namespace {

TEST(OpenclWithoutPlatform, ListsNoDeviceAndSaysTheRemedy) {
  for (const compute_device_info& info : Device::list()) EXPECT_NE(std::string(info.name).rfind("opencl", 0), 0u) << info.name;
  const std::string report = load_report();
  EXPECT_NE(report.find("no platform has a device"), std::string::npos) << report;
  EXPECT_NE(report.find("install an OpenCL driver, e.g. pocl-opencl-icd"), std::string::npos) << report;
  for (const char* selector : {"opencl", "opencl0:0"}) {
    try {
      Device::open(selector);
      FAIL() << selector << " opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), COMPUTE_ERROR_NOT_FOUND);
      EXPECT_NE(std::string(error.what()).find("install an OpenCL driver, e.g. pocl-opencl-icd"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace compute::opencl_tests
