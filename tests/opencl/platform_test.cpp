// SPDX-License-Identifier: Apache-2.0
// The OpenCL plugin without a platform, with a platform without devices, and on a device whose results may be wrong.
#include <gtest/gtest.h>

#include "device.hpp"

namespace compute::opencl_tests {
namespace {

TEST(OpenclWithoutPlatform, ListsNoDeviceAndSaysTheRemedy) {
  for (const DeviceInfo& info : Device::list()) EXPECT_NE(std::string(info.name).rfind("opencl", 0), 0u) << info.name;
  const std::string report = load_report();
  EXPECT_NE(report.find("no platform has a device"), std::string::npos) << report;
  EXPECT_NE(report.find("install an OpenCL driver, e.g. pocl-opencl-icd"), std::string::npos) << report;
  for (const char* selector : {"opencl", "opencl0:0"}) {
    try {
      static_cast<void>(Device::open(selector));
      FAIL() << selector << " opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), COMPUTE_ERROR_NOT_FOUND);
      EXPECT_NE(std::string(error.what()).find("install an OpenCL driver, e.g. pocl-opencl-icd"), std::string::npos)
          << error.what();
    }
  }
}

std::string which(const char* selector) {
  const std::string text = Device::which(selector);
  return text.substr(0, text.find(':', text.find(':') + 1));
}

TEST(OpenclPlatforms, WithoutDevicesHaveNoNumber) {
  int count = 0;
  for (const DeviceInfo& info : Device::list()) {
    if (std::string(info.plugin) != "opencl") continue;
    EXPECT_EQ(info.platform_index, 0) << info.name;
    EXPECT_EQ(info.name, "opencl0:" + std::to_string(count));
    EXPECT_EQ(info.kind, DeviceKind::cpu);
    EXPECT_EQ(info.same_as, "cpu");
    ++count;
  }
  EXPECT_EQ(count, 2);
}

TEST(OpenclPlatforms, AreSelectedByName) {
  for (const char* selector :
       {"opencl@platform~pocl", "opencl@platform=POCL", "opencl@platform=Portable Computing Language"}) {
    EXPECT_EQ(which(selector), "opencl0:0") << selector;
  }
  EXPECT_EQ(which("opencl0@platform~pocl,cpu"), "opencl0:0");
  for (const char* selector : {"opencl@platform=EMPTY", "opencl@platform~without devices"}) {
    try {
      static_cast<void>(Device::open(selector));
      FAIL() << selector << " opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), COMPUTE_ERROR_NOT_FOUND) << error.what();
    }
  }
}

// The layer gives PoCL's devices the name of Mesa's.
TEST(OpenclLlvmpipe, IsRefused) {
  for (const DeviceInfo& info : Device::list()) {
    if (std::string(info.plugin) != "opencl") continue;
    if (std::string(info.description).find("llvmpipe") == std::string::npos)
      GTEST_SKIP() << "the loader knows no layers";
    EXPECT_NE(std::string(info.unusable).find("after 65535 iterations"), std::string::npos) << info.unusable;
  }
  for (const char* selector : {"opencl0:0", "opencl", "opencl@name~llvmpipe"}) {
    try {
      static_cast<void>(Device::open(selector));
      FAIL() << selector << " opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), COMPUTE_ERROR_NOT_FOUND);
      EXPECT_NE(std::string(error.what()).find("after 65535 iterations"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(Device::open("opencl,cpu").name(), "cpu");
}

}  // namespace
}  // namespace compute::opencl_tests
