// SPDX-License-Identifier: Apache-2.0
// Core's side of slots that no function of compute.h uses yet, on fake tables.
#include "core/loading/plugin_table.hpp"

#include <compute/compute.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "core/loading/plugin_core.hpp"

namespace compute {
namespace {

// The code and the message of an error, which is freed.
std::pair<compute_error_code, std::string> taken(compute_error* error) {
  if (error == nullptr) return {COMPUTE_OK, ""};
  std::pair<compute_error_code, std::string> result{error->code, error->message};
  compute_error_free(error);
  return result;
}

void expect_rejected(compute_error* error, std::string_view words) {
  const auto [code, message] = taken(error);
  EXPECT_EQ(code, COMPUTE_ERROR_PLUGIN_REJECTED);
  EXPECT_NE(message.find(words), std::string::npos) << message;
  EXPECT_NE(message.find("plugin fake"), std::string::npos) << message;
}

compute_error* made_error(compute_error_code code) {
  compute_plugin_error_info info{};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_PLUGIN_STRUCT_ERROR_INFO;
  info.code = code;
  info.argument = -1;
  info.message = {"as asked", 8};
  return plugin_core().error_new(&info);
}

// What the plugin does in the slots that are looked at.
std::function<compute_error*(compute_plugin_telemetry*)> telemetry;
std::string settings_given;
int32_t priority_least = -1, priority_greatest = 2;
bool has_clock = true;
int64_t process_bytes = 0;  // of the only process; 0: there is none

const compute_plugin_caps* caps(uint64_t) {
  static compute_plugin_heap heap{};
  heap.struct_size = sizeof heap;
  heap.struct_type = COMPUTE_PLUGIN_STRUCT_HEAP;
  heap.offset_alignment = heap.base_alignment = 64;
  static compute_plugin_caps value{};
  value = {sizeof value, COMPUTE_PLUGIN_STRUCT_CAPS, nullptr, 0, 1, &heap, priority_least, priority_greatest};
  return &value;
}

// A slot that must be there and is not called.
template <class... Arguments>
compute_error* unused(Arguments...) {
  return made_error(COMPUTE_ERROR_INTERNAL);
}

template <class... Arguments>
void fill(compute_error* (*&slot)(Arguments...)) {
  slot = unused<Arguments...>;
}

compute_plugin_device_table device_table() {
  compute_plugin_device_table table{};
  table.table_size = sizeof table;
  table.caps = caps;
  table.close = [](uint64_t) {};
  fill(table.memory_allocate);
  table.memory_free = [](uint64_t, int32_t, uint64_t) {};
  fill(table.stream_create);
  table.stream_destroy = [](uint64_t) {};
  fill(table.stream_mark);
  fill(table.stream_wait);
  fill(table.stream_reached);
  fill(table.stream_sync);
  fill(table.copy_from_host);
  fill(table.copy_to_host);
  fill(table.fill);
  fill(table.op_query);
  fill(table.op_prepare);
  fill(table.plan_run);
  table.plan_release = [](uint64_t, uint64_t) {};
  fill(table.mark_time);
  if (has_clock) fill(table.clock);
  table.telemetry = [](uint64_t, compute_plugin_telemetry* out, compute_plugin_take_process take, void* context) {
    compute_plugin_process process{};
    process.struct_size = sizeof process;
    process.struct_type = COMPUTE_PLUGIN_STRUCT_PROCESS;
    process.process_id = 17;
    process.memory_bytes = process_bytes;
    if (process_bytes != 0) take(context, &process);
    return telemetry(out);
  };
  return table;
}

compute_error* open_fake(uint64_t, const compute_plugin_device_options* options, uint64_t* out_device,
                         const compute_plugin_device_table** out_table) {
  for (int32_t i = 0; i < options->setting_count; ++i) {
    const compute_plugin_device_setting& setting = options->settings[i];
    settings_given += std::string(setting.name.data, static_cast<size_t>(setting.name.size)) + "=" +
                      std::string(setting.value.data, static_cast<size_t>(setting.value.size)) + ";";
  }
  static compute_plugin_device_table table;
  table = device_table();
  *out_device = 1;
  *out_table = &table;
  return nullptr;
}

class PluginTableTest : public testing::Test {
 protected:
  PluginTableTest() {
    compute_plugin_table table{};
    table.table_size = sizeof table;
    table.enumerate = [](const compute_plugin_sink*) -> compute_error* { return nullptr; };
    table.device_open = open_fake;
    plugin_.take(&table, "fake");
    priority_least = -1;
    priority_greatest = 2;
    has_clock = true;
    settings_given.clear();
  }

  PluginTable plugin_;
  DeviceTable device_;
};

TEST_F(PluginTableTest, OpensWithSettingsAndPriorities) {
  const DeviceCaps caps = device_.open(plugin_, 0, "fake0", {{"mode", "fast"}, {"rings", "3"}});
  EXPECT_EQ(settings_given, "mode=fast;rings=3;");
  EXPECT_EQ(caps.priority_least, -1);
  EXPECT_EQ(caps.priority_greatest, 2);
  device_.close();
  priority_least = 1;
  EXPECT_THROW(device_.open(plugin_, 0, "fake0"), Error);
}

TEST_F(PluginTableTest, TimesNeedAClock) {
  has_clock = false;
  try {
    device_.open(plugin_, 0, "fake0");
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, COMPUTE_ERROR_PLUGIN_REJECTED);
    EXPECT_NE(error.message.find("one of mark_time and clock"), std::string::npos) << error.message;
  }
}

TEST_F(PluginTableTest, TelemetryIsPresetAndChecked) {
  device_.open(plugin_, 0, "fake0");
  compute_plugin_telemetry value{};
  telemetry = [](compute_plugin_telemetry* out) -> compute_error* {
    EXPECT_EQ(out->struct_size, sizeof *out);
    EXPECT_EQ(out->temperature_millidegrees, -1);
    out->utilization_percent = 35;
    out->memory_process_bytes = 4096;
    return nullptr;
  };
  EXPECT_EQ(taken(device_.telemetry(&value, nullptr)).first, COMPUTE_OK);
  EXPECT_EQ(value.utilization_percent, 35);
  EXPECT_EQ(value.memory_process_bytes, 4096);
  EXPECT_EQ(value.power_milliwatts, -1);
  EXPECT_EQ(value.memory_used_bytes, -1);
  telemetry = [](compute_plugin_telemetry* out) -> compute_error* {
    out->utilization_percent = 101;
    return nullptr;
  };
  expect_rejected(device_.telemetry(&value, nullptr), "utilization_percent is 101");
  EXPECT_EQ(value.utilization_percent, -1);
  telemetry = [](compute_plugin_telemetry* out) -> compute_error* {
    out->power_milliwatts = -5;
    return nullptr;
  };
  expect_rejected(device_.telemetry(&value, nullptr), "power_milliwatts is -5");
  telemetry = [](compute_plugin_telemetry* out) -> compute_error* {
    out->memory_used_bytes = -2;
    return nullptr;
  };
  expect_rejected(device_.telemetry(&value, nullptr), "memory_process_bytes is -1 and memory_used_bytes is -2");
  telemetry = [](compute_plugin_telemetry* out) -> compute_error* {
    out->struct_type = 0;
    return nullptr;
  };
  expect_rejected(device_.telemetry(&value, nullptr), "struct_type 0");
  telemetry = [](compute_plugin_telemetry*) -> compute_error* { throw std::runtime_error("here"); };
  expect_rejected(device_.telemetry(&value, nullptr), "telemetry of fake0 threw an exception: here");
}

TEST_F(PluginTableTest, TelemetryListsProcesses) {
  device_.open(plugin_, 0, "fake0");
  telemetry = [](compute_plugin_telemetry*) -> compute_error* { return nullptr; };
  compute_plugin_telemetry value{};
  std::vector<ProcessMemory> processes;
  process_bytes = 4096;
  EXPECT_EQ(taken(device_.telemetry(&value, &processes)).first, COMPUTE_OK);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].process_id, 17);
  EXPECT_EQ(processes[0].bytes, 4096);
  process_bytes = -2;
  expect_rejected(device_.telemetry(&value, &processes), "process 17 uses -2 bytes");
  process_bytes = 0;
}

TEST(ClockReading, CountsAcrossTheWrap) {
  ClockReading clock{.device_ns = 990, .host_ns = 5000, .wrap_ns = 1000};
  EXPECT_EQ(clock.between(10, 30), 20);
  EXPECT_EQ(clock.between(30, 10), -20);
  EXPECT_EQ(clock.between(990, 10), 20);
  EXPECT_EQ(clock.between(10, 990), -20);
  EXPECT_EQ(clock.on_host(10), 5020);
  EXPECT_EQ(clock.on_host(980), 4990);
  clock.wrap_ns = 0;
  EXPECT_EQ(clock.between(990, 10), -980);
}

}  // namespace
}  // namespace compute
