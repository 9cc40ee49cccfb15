// SPDX-License-Identifier: Apache-2.0
#include "core/devices/device_choice.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <compute/compute.h>
#include "core/base/error.hpp"

namespace compute {
namespace {

DeviceRecord device(const char* name, int32_t kind, int32_t flat, int32_t platform = -1, int32_t on_platform = 0) {
  DeviceRecord record;
  record.name = name;
  record.plugin = record.name.substr(0, record.name.find_first_of("0123456789"));
  record.kind = kind;
  record.flat_index = flat;
  record.platform_index = platform;
  record.device_index = platform < 0 ? flat : on_platform;
  return record;
}

// Two cards, one of them seen by two plugins; an integrated GPU; PoCL's view of the processor; the processor.
std::vector<DeviceRecord> machine() {
  std::vector<DeviceRecord> devices = {
      device("cpu", COMPUTE_DEVICE_KIND_CPU, 0),
      device("opencl0:0", COMPUTE_DEVICE_KIND_CPU, 0, 0, 0),
      device("opencl1:0", COMPUTE_DEVICE_KIND_INTEGRATED_GPU, 1, 1, 0),
      device("opencl1:1", COMPUTE_DEVICE_KIND_DISCRETE_GPU, 2, 1, 1),
      device("cuda0", COMPUTE_DEVICE_KIND_DISCRETE_GPU, 0),
      device("cuda1", COMPUTE_DEVICE_KIND_DISCRETE_GPU, 1),
  };
  devices[1].description = "pthread-skylake-avx512";
  devices[1].priority = 900;
  devices[1].platform = "Portable Computing Language\nOpenCL 3.0 PoCL 3.1\nPOCL";
  devices[2].description = "Intel(R) Iris(R) Xe";
  devices[3].description = "NVIDIA H200";
  devices[3].pci = "0000:65:00.0";
  devices[4].description = "NVIDIA H200";
  devices[4].pci = "00000000:65:00.0";
  devices[4].uuid = "GPU-aa";
  devices[4].priority = 10;
  devices[5].description = "NVIDIA L4";
  devices[5].pci = "0000:C1:00.0";
  devices[5].uuid = "GPU-bb";
  devices[5].priority = 10;
  return devices;
}

const std::vector<std::string> kPlugins = {"cuda", "opencl"};

DeviceChoice choose(const std::string& text, const std::vector<DeviceRecord>& devices,
                    const std::vector<PluginProblem>& problems = {}) {
  return choose_device(parse_selector(text, "COMPUTE_DEVICE", kPlugins), devices, problems);
}

std::string chosen(const std::string& text, const std::vector<DeviceRecord>& devices) {
  const DeviceChoice choice = choose(text, devices);
  return choice.device ? devices[*choice.device].name : "none";
}

std::string failure(const std::string& text, const std::vector<DeviceRecord>& devices,
                    const std::vector<PluginProblem>& problems = {}) {
  const Selector selector = parse_selector(text, "COMPUTE_DEVICE", kPlugins);
  const DeviceChoice choice = choose_device(selector, devices, problems);
  EXPECT_FALSE(choice.device) << text;
  return failure_message(selector, choice);
}

std::string reason(const DeviceChoice& choice, const std::string& name) {
  for (const Refusal& other : choice.others) {
    if (other.name == name) return other.reason;
  }
  return "not listed";
}

TEST(DeviceChoice, AutoTakesACpuWithoutItsPluginLast) {
  std::vector<DeviceRecord> devices = {device("cpu", COMPUTE_DEVICE_KIND_CPU, 0),
                                       device("opencl0:0", COMPUTE_DEVICE_KIND_CPU, 0, 0, 0)};
  EXPECT_EQ(chosen("auto", devices), "cpu");
  devices[0].runs_ops = false;
  const DeviceChoice choice = choose("auto", devices);
  EXPECT_EQ(devices[choice.device.value()].name, "opencl0:0");
  EXPECT_EQ(choice.others.at(0).reason, "runs no ops: its plugin is not installed or was rejected");
  EXPECT_EQ(chosen("cpu", devices), "cpu");  // who names it has its memory
  devices[1].usable = false;
  EXPECT_EQ(chosen("auto", devices), "cpu");
}

TEST(DeviceChoice, TakesTheNamedDevice) {
  const std::vector<DeviceRecord> devices = machine();
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"cpu", "cpu"},
      {"cpu0", "cpu"},
      {"cuda", "cuda0"},
      {"cuda0", "cuda0"},
      {"cuda1", "cuda1"},
      {"cuda:1", "cuda1"},
      {"opencl", "opencl0:0"},
      {"opencl0", "opencl0:0"},
      {"opencl1", "opencl1:0"},
      {"opencl1:1", "opencl1:1"},
      {"opencl:2", "opencl1:1"},
      {"cuda@pci=65:00.0", "cuda0"},
      {"cuda@pci=0000:c1:00.0", "cuda1"},
      {"cuda@pci~c1:", "cuda1"},
      {"cuda@uuid=gpu-BB", "cuda1"},
      {"opencl@name~iris", "opencl1:0"},
      {"opencl@platform~pocl 3", "opencl0:0"},
      {"opencl@platform=pocl", "opencl0:0"},
      {"opencl@platform=portable computing language", "opencl0:0"},
      {"opencl@platform=portable", "none"},
      {"opencl@platform~nvidia", "none"},
      {"opencl@name=nvidia h200", "opencl1:1"},
      {"cuda1@name~l4", "cuda1"},
      {"cuda3,opencl1,cpu", "opencl1:0"},
  };
  for (const auto& [text, name] : rows) EXPECT_EQ(chosen(text, devices), name) << text;
}

TEST(DeviceChoice, RanksByKindThenPriorityThenScoreThenName) {
  std::vector<DeviceRecord> devices = machine();
  EXPECT_EQ(chosen("auto", devices), "cuda0");
  EXPECT_EQ(chosen("", devices), "cuda0");
  devices[5].score = 5;
  EXPECT_EQ(chosen("auto", devices), "cuda1");
  devices[3].priority = 11;
  EXPECT_EQ(chosen("auto", devices), "opencl1:1");
  EXPECT_EQ(chosen("auto,-opencl", devices), "cuda1");
  EXPECT_EQ(chosen("auto,-opencl,-cuda1", devices), "cuda0");
  EXPECT_EQ(chosen("auto,-cuda,-opencl1:1", devices), "opencl1:0");
  EXPECT_EQ(chosen("auto,-cuda,-opencl@name~h200,-opencl@name~iris", devices), "cpu");
  EXPECT_EQ(chosen("auto,-gpu", devices), "cpu");
  EXPECT_EQ(chosen("auto,-gpu,-cpu", devices), "opencl0:0");
  EXPECT_EQ(chosen("auto@name~iris", devices), "opencl1:0");
  EXPECT_EQ(chosen("gpu", devices), "opencl1:1");
  EXPECT_EQ(chosen("gpu,-opencl1:1", devices), "cuda1");
}

TEST(DeviceChoice, PutsAnAcceleratorBetweenGpuAndCpu) {
  std::vector<DeviceRecord> devices = {device("cpu", COMPUTE_DEVICE_KIND_CPU, 0),
                                       device("acme0", COMPUTE_DEVICE_KIND_ACCELERATOR, 0)};
  EXPECT_EQ(chosen("auto", devices), "acme0");
  devices.push_back(device("opencl0:0", COMPUTE_DEVICE_KIND_INTEGRATED_GPU, 0, 0, 0));
  EXPECT_EQ(chosen("auto", devices), "opencl0:0");
}

TEST(DeviceChoice, OfANamedDeviceIsStrictAndSaysWhy) {
  std::vector<DeviceRecord> devices = machine();
  EXPECT_EQ(failure("cuda3", devices), R"(COMPUTE_DEVICE "cuda3": cuda has no device 3 (available: cuda0, cuda1))");
  EXPECT_EQ(failure("cuda:2", devices), R"(COMPUTE_DEVICE "cuda:2": cuda has no device 2 (available: cuda0, cuda1))");
  EXPECT_EQ(failure("opencl7", devices),
            R"(COMPUTE_DEVICE "opencl7": opencl has no platform 7 (available: opencl0:0, opencl1:0, opencl1:1))");
  EXPECT_EQ(
      failure("opencl0:4", devices),
      R"(COMPUTE_DEVICE "opencl0:4": opencl has no device 4 on platform 0 (available: opencl0:0, opencl1:0, opencl1:1))");
  EXPECT_EQ(failure("cuda@pci=0000:01:00.0", devices),
            R"(COMPUTE_DEVICE "cuda@pci=0000:01:00.0": none of cuda0, cuda1 has the PCI address "0000:01:00.0")");
  EXPECT_EQ(failure("cuda0@name~radeon", devices),
            R"(COMPUTE_DEVICE "cuda0@name~radeon": cuda0 does not have a name with "radeon")");
  devices[4].usable = false;
  devices[4].problem = "the driver is too old";
  EXPECT_EQ(failure("cuda0", devices), R"(COMPUTE_DEVICE "cuda0": cuda0 cannot be used: the driver is too old)");
  EXPECT_EQ(chosen("cuda", devices), "cuda1");
}

TEST(DeviceChoice, SaysWhatAPluginWithoutDevicesLacks) {
  const std::vector<DeviceRecord> devices = {machine()[0]};
  EXPECT_EQ(failure("cuda", devices, {{"cuda", "NVIDIA driver: libcuda.so.1 was not found"}}),
            R"(COMPUTE_DEVICE "cuda": cuda has no device: NVIDIA driver: libcuda.so.1 was not found)");
  EXPECT_EQ(
      failure("opencl", devices),
      R"(COMPUTE_DEVICE "opencl": opencl has no device: the plugin is not installed (the package compute-plugin-opencl))");
  EXPECT_EQ(failure("gpu", devices, {{"cuda", "no driver"}}),
            R"(COMPUTE_DEVICE "gpu": no GPU was found: cuda: no driver)");
  EXPECT_EQ(failure("cuda,opencl0", devices, {{"cuda", "no driver"}}),
            R"(COMPUTE_DEVICE "cuda,opencl0": cuda has no device: no driver; )"
            "opencl0: opencl has no device: the plugin is not installed (the package compute-plugin-opencl)");
  EXPECT_EQ(failure("auto,-cpu", devices), R"(COMPUTE_DEVICE "auto,-cpu": every device is excluded (cpu))");
}

TEST(DeviceChoice, WarnsOnceWhereAListFallsThrough) {
  std::vector<DeviceRecord> devices = machine();
  EXPECT_EQ(choose("cuda0,cpu", devices).warning, "");
  EXPECT_EQ(
      choose("cuda5,opencl9,cpu", devices).warning,
      "cuda5: cuda has no device 5 (available: cuda0, cuda1); opencl9: opencl has no platform 9 (available: opencl0:0, "
      "opencl1:0, opencl1:1); using cpu instead");
  devices[4].usable = false;
  devices[4].problem = "out of order";
  EXPECT_EQ(choose("cuda0,cpu", devices).warning, "cuda0 cannot be used: out of order; using cpu instead");
  EXPECT_EQ(choose("auto", devices).warning, "cuda0 cannot be used: out of order; using cuda1 instead");
  EXPECT_EQ(choose("cuda", devices).warning, "cuda0 cannot be used: out of order; using cuda1 instead");
}

TEST(DeviceChoice, DoesNotWarnOfWhatAutoWouldNotHavePreferred) {
  std::vector<DeviceRecord> devices = machine();
  devices[1].usable = false;
  EXPECT_EQ(choose("auto", devices, {{"acme", "no driver"}}).warning, "");
}

TEST(DeviceChoice, ExplainsEveryOtherDevice) {
  std::vector<DeviceRecord> devices = machine();
  devices[2].usable = false;
  devices[2].problem = "no driver";
  const DeviceChoice choice = choose("auto,-cpu", devices, {{"acme", "no board"}});
  ASSERT_EQ(devices[*choice.device].name, "cuda0");
  EXPECT_EQ(reason(choice, "cuda0"), "not listed");
  EXPECT_EQ(reason(choice, "cuda1"), "ranks below cuda0");
  EXPECT_EQ(reason(choice, "opencl1:1"), "same card as cuda0, which ranks higher");
  EXPECT_EQ(reason(choice, "opencl1:0"), "no driver");
  EXPECT_EQ(reason(choice, "opencl0:0"), "a CPU ranks below a discrete GPU");
  EXPECT_EQ(reason(choice, "cpu"), "excluded by -cpu");
  EXPECT_EQ(reason(choice, "acme"), "no board");
  EXPECT_EQ(choice.others.size(), devices.size());

  EXPECT_EQ(reason(choose("cpu", devices), "cuda0"), "not requested");
  EXPECT_EQ(reason(choose("cuda", devices), "cuda1"), "comes after cuda0");
  EXPECT_EQ(reason(choose("auto,-opencl", devices, {{"opencl", "not requested"}}), "opencl"), "excluded by -opencl");
  EXPECT_EQ(reason(choose("auto,-gpu", devices), "opencl0:0"), "same processor as cpu");
  devices[5].score = -1;
  EXPECT_EQ(reason(choose("auto", devices), "cuda1"), "score -1; cuda0 has 0");
  devices[5].priority = 3;
  EXPECT_EQ(reason(choose("auto", devices), "cuda1"), "plugin priority 3; cuda0 has 10");
}

TEST(DeviceChoice, RefusesAPlatformOfAPluginWithoutPlatforms) {
  try {
    choose("cpu9,cuda0:1", machine());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, COMPUTE_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(error.what(),
                 "COMPUTE_DEVICE \"cpu9,cuda0:1\", column 11: cuda has no platforms; write cuda0\n"
                 "  cpu9,cuda0:1\n"
                 "            ^");
  }
}

TEST(DeviceChoice, NamesTheChosenDeviceInOneLine) {
  const std::vector<DeviceRecord> devices = machine();
  EXPECT_EQ(selection_message(devices[3], "COMPUTE_DEVICE"),
            "using opencl1:1: NVIDIA H200 (0000:65:00.0), chosen by COMPUTE_DEVICE");
  EXPECT_EQ(selection_message(devices[0], "auto"), "using cpu, chosen by auto");
}

}  // namespace
}  // namespace compute
