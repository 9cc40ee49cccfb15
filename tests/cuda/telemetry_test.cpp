// SPDX-License-Identifier: Apache-2.0
// What the devices of the fake driver measure by the fake NVML, in each of its states.
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using compute::Device;
using compute::DeviceTelemetry;

std::string_view state() {
  const char* text = std::getenv("FAKE_NVML");
  return text != nullptr ? text : "";
}

void expect(const DeviceTelemetry& given, int32_t percent, int32_t degrees, int64_t milliwatts, int64_t used_bytes) {
  EXPECT_EQ(given.utilization_percent, percent);
  EXPECT_EQ(given.temperature_millidegrees, degrees);
  EXPECT_EQ(given.power_milliwatts, milliwatts);
  EXPECT_EQ(given.memory_used_bytes, used_bytes);
  EXPECT_EQ(given.memory_process_bytes, -1);
}

// Devices are numbered by PCI address: the first one of the fake driver, which is the second one of the fake NVML, is
// cuda1.
TEST(CudaTelemetry, IsOfTheDeviceWithTheUuid) {
  const DeviceTelemetry first = Device::open("cuda1").telemetry(), second = Device::open("cuda0").telemetry();
  if (state().empty()) {
    expect(first, 37, 41000, 123456, int64_t{1} << 28);
    expect(second, 0, 52000, 98765, int64_t{3} << 28);
  } else if (state() == "parts") {
    expect(first, -1, -1, -1, int64_t{1} << 28);
    expect(second, -1, -1, -1, int64_t{3} << 28);
  } else {
    expect(first, -1, -1, -1, -1);
    expect(second, -1, -1, -1, -1);
  }
}

TEST(CudaTelemetry, ListsTheProcesses) {
  const std::vector<compute_device_process> processes = Device::open("cuda1").processes();
  ASSERT_EQ(processes.size(), state().empty() ? 70U : 0U);
  if (processes.empty()) return;
  EXPECT_EQ(processes[0].process_id, 1000);
  EXPECT_EQ(processes[0].memory_bytes, int64_t{1} << 28);
  EXPECT_EQ(processes[1].memory_bytes, -1);
  EXPECT_EQ(processes[69].process_id, 1069);
}

TEST(CudaTelemetry, ReportsTheLibrary) {
  static_cast<void>(Device::open("cuda0").telemetry());
  const std::string report = compute::load_report();
  const char* words = state() == "broken" ? "nvmlInit_v2 returned 9" : "libnvidia-ml.so.1";
  EXPECT_NE(report.find(words), std::string::npos) << report;
}

}  // namespace
