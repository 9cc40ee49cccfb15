// SPDX-License-Identifier: Apache-2.0
// Selectors that are malformed, or name missing devices.
#include <fstream>

#include "robustness.hpp"

namespace robustness {
namespace {

constexpr compute_error_code kInvalid = COMPUTE_ERROR_INVALID_ARGUMENT;

// The line below the selector's text has the caret at this column (0-based).
void expect_caret(const char* selector, size_t column) {
  compute_device* device = nullptr;
  const std::string message = message_of(compute_device_open(selector, &device));
  const size_t text = message.find(std::string("\n  ") + selector + "\n");
  ASSERT_NE(text, std::string::npos) << message;
  const size_t line = message.find('\n', text + 1) + 1;
  EXPECT_EQ(message.substr(line, message.find('\n', line) - line), std::string(2 + column, ' ') + "^") << message;
}

ISOLATED_TEST(Selectors, TypingErrorsGetACaretAndTheNearestName) {
  use_plugins({"minimal"});
  Device device;
  EXPECT_FAILS(compute_device_open("minimall0", device.out()), kInvalid, "minimall", "minimal", "^");
  EXPECT_FAILS(compute_device_open("cpu,cdua0", device.out()), kInvalid, "cdua", "cuda", "^");
  EXPECT_FAILS(compute_device_open("cpu@", device.out()), kInvalid, "^");
  EXPECT_FAILS(compute_device_open("cpu+mem=", device.out()), kInvalid, "^");
  EXPECT_FAILS(compute_device_open("cpu+meme=1G", device.out()), kInvalid, "meme", "^");
  EXPECT_FAILS(compute_device_open("cpu,,cpu", device.out()), kInvalid, "^");
  EXPECT_FAILS(compute_device_open("minimal0:1", device.out()), kInvalid, "^");
  EXPECT_FAILS(compute_device_open("cpu,-minimal", device.out()), kInvalid, "auto");
  EXPECT_FAILS(compute_device_open("9", device.out()), kInvalid, "^");
  EXPECT_FAILS(compute_device_open("minimal99999999999999999999", device.out()), kInvalid, "^");
  EXPECT_FAILS(compute_device_open("\xff\xfe", device.out()), kInvalid);
  expect_caret("cpu,cdua0", 4);
  expect_caret("cpu+meme=1G", 4);
}

ISOLATED_TEST(Selectors, TheEnvironmentIsNamed) {
  setenv("COMPUTE_DEVICE", "cpuu", 1);
  Device device;
  EXPECT_FAILS(compute_device_open(nullptr, device.out()), kInvalid, "COMPUTE_DEVICE", "cpuu", "^");
}

ISOLATED_TEST(Selectors, DevicesThatAreNotThereBringTheLoadReport) {
  use_plugins({"minimal", "missing_library"});
  Device device;
  EXPECT_FAILS(compute_device_open("minimal7", device.out()), COMPUTE_ERROR_NOT_FOUND, "minimal7", "minimal0");
  EXPECT_FAILS(compute_device_open("missing_library", device.out()), COMPUTE_ERROR_NOT_FOUND,
               "libcompute_absent_one.so.7", "libcompute_absent_two.so.7");
  EXPECT_FAILS(compute_device_open("minimal@pci=0000:65:00.0", device.out()), COMPUTE_ERROR_NOT_FOUND, "0000:65:00.0");
  EXPECT_EQ(device.get(), nullptr);
}

ISOLATED_TEST(Selectors, CpuHasTheProcessorsNameWithoutItsPlugin) {
  setenv("COMPUTE_PLUGIN_FILES", (plugin_folder("minimal") + "/compute_plugin_minimal.so").c_str(), 1);
  const Device device = open("cpu");
  compute_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_OK(compute_device_get_info(device, &info));
  std::string expected = "host processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    expected = line.substr(line.find(": ") + 2);
    break;
  }
  EXPECT_EQ(std::string(info.description, static_cast<size_t>(info.description_size)), expected);
}

ISOLATED_TEST(Selectors, AListFallsThroughWithAWarning) {
  use_plugins({"faulty"});
  static std::string lines;
  ASSERT_OK(compute_log_set_callback(
      [](compute_borrowed_log_record record, void*) {
        EXPECT_EQ(record->struct_size, sizeof *record);
        EXPECT_EQ(record->struct_type, uint32_t{COMPUTE_STRUCT_LOG_RECORD});
        EXPECT_EQ(record->next, nullptr);
        EXPECT_EQ(record->reserved, 0);
        EXPECT_EQ(record->category_size, static_cast<int64_t>(std::strlen(record->category)));
        EXPECT_EQ(record->text_size, static_cast<int64_t>(std::strlen(record->text)));
        lines += std::to_string(record->level) + " " + record->category + " " + record->text + "\n";
      },
      nullptr));
  set_faults("device_open=error:DEVICE_LOST");
  const Device device = open("faulty0,cpu");
  EXPECT_STREQ(compute_device_name(device), "cpu");
  EXPECT_NE(lines.find("2 select"), std::string::npos) << lines;
  EXPECT_NE(lines.find("faulty0"), std::string::npos) << lines;
  EXPECT_NE(lines.find("fails as asked"), std::string::npos) << lines;
}

ISOLATED_TEST(Selectors, MisspeltSettingsAreWarnedOfOnce) {
  use_plugins({"minimal"});
  setenv("COMPUTE_DEVISE", "minimal1", 1);
  setenv("COMPUTE_ACME_MODE", "1", 1);  // of a plugin that is not there
  static std::string lines;
  ASSERT_OK(compute_log_set_callback(
      [](compute_borrowed_log_record record, void*) {
        if (record->level == COMPUTE_LOG_WARNING) lines += std::string(record->text) + "\n";
      },
      nullptr));
  const Device host = open("cpu"), device = open("minimal0");
  EXPECT_EQ(lines, "environment variable \"COMPUTE_DEVISE\" is not a setting; did you mean COMPUTE_DEVICE?\n");
  compute_text* report = nullptr;
  ASSERT_OK(compute_load_report(COMPUTE_FORMAT_TEXT, &report));
  EXPECT_NE(take_text(report).find("COMPUTE_DEVISE"), std::string::npos);
}

ISOLATED_TEST(Selectors, NamesOfSeveralDevicesAreSelectors) {
  use_plugins({"minimal"});
  setenv("COMPUTE_DEVICES", "far=near;near=minimal1", 1);
  setenv("COMPUTE_DEVICE", "far", 1);
  EXPECT_STREQ(compute_device_name(open(nullptr)), "minimal1");
  EXPECT_STREQ(compute_device_name(open("near")), "minimal1");
  ASSERT_OK(compute_config_set("COMPUTE_DEVICES", "far=near;near=far"));
  Device device;
  EXPECT_FAILS(compute_device_open("cpu", device.out()), kInvalid, "far", "is defined in terms of itself", "^");
}

ISOLATED_TEST(Selectors, PreallocatedMemoryIsThereAtOnce) {
  use_plugins({"minimal"});
  setenv("COMPUTE_PREALLOCATE", "3M", 1);
  const Device device = open("minimal0");
  compute_device_statistics statistics = {};
  statistics.struct_size = sizeof statistics;
  ASSERT_OK(compute_device_get_statistics(device, &statistics));
  EXPECT_GE(statistics.memory_reserved, 3 << 20);
  EXPECT_EQ(statistics.memory_used, 0);
}

ISOLATED_TEST(Selectors, TheHostsMemoryIsNotPreallocated) {
  use_plugins({"minimal"});
  setenv("COMPUTE_PREALLOCATE", "1000000G", 1);  // a share of a device's memory that the host does not have
  const Device host = open("cpu");
  compute_device_statistics statistics = {};
  statistics.struct_size = sizeof statistics;
  ASSERT_OK(compute_device_get_statistics(host, &statistics));
  EXPECT_LT(statistics.memory_reserved, 1 << 30);
}

ISOLATED_TEST(Selectors, OneDeviceIsOneHandleAndHasOneSetOfOptions) {
  use_plugins({"minimal"});
  const Device first = open("minimal0+mem=1M"), again = open("minimal0");
  EXPECT_EQ(first.get(), again.get());
  Device other;
  EXPECT_FAILS(compute_device_open("minimal0+mem=2M", other.out()), kInvalid,
               "minimal0 is already open with mem=1M; mem=2M was requested");
  compute_error* error = compute_device_open("minimal0+mem=2M", other.out());
  EXPECT_STREQ(compute_error_device(error), "minimal0");
  compute_error_free(error);
}

// Memory of the program opens the host device without a selector.
ISOLATED_TEST(Selectors, HostMemoryBeforeTheDeviceKeepsItsOptions) {
  use_plugins({"minimal"});
  setenv("COMPUTE_DEVICE", "cpu+without=float64+mem=2G", 1);
  static double values[4] = {};
  const int64_t shape[] = {4};
  compute_tensor* wrapped = nullptr;
  ASSERT_OK(compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, values, COMPUTE_WRAP_IMMUTABLE, nullptr,
                                     nullptr, &wrapped));
  const Device device = open(nullptr);
  EXPECT_STREQ(compute_device_name(device), "cpu");
  compute_tensor* refused = nullptr;
  EXPECT_FAILS(compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT64, 1, shape, &refused), COMPUTE_ERROR_UNSUPPORTED,
               "float64");
  EXPECT_FAILS(compute_tensor_empty(device, COMPUTE_DTYPE_COMPLEX128, 1, shape, &refused), COMPUTE_ERROR_UNSUPPORTED,
               "complex128");
  Device other;
  EXPECT_FAILS(compute_device_open("cpu+mem=1G", other.out()), kInvalid,
               "cpu is already open with mem=2G; mem=1G was requested");
  compute_tensor_release(wrapped);
}

}  // namespace
}  // namespace robustness
