// SPDX-License-Identifier: Apache-2.0
// Optional features of plugins, which the minimal plugin enables on demand: times, priorities, graphs and device
// settings.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "robustness.hpp"

namespace robustness {
namespace {

constexpr compute_error_code kInvalid = COMPUTE_ERROR_INVALID_ARGUMENT;

// The lines of the log from now on.
std::string& logged() {
  static std::string lines;
  setenv("COMPUTE_LOG", "debug", 1);
  EXPECT_OK(compute_log_set_callback(
      [](compute_borrowed_log_record record, void*) { lines += std::string(record->text) + "\n"; }, nullptr));
  return lines;
}

// ---- Times ----------------------------------------------------------------------------------------------------------

Event timed_event(compute_stream* stream) {
  const compute_event_options options = {sizeof options, COMPUTE_STRUCT_EVENT_OPTIONS, nullptr, COMPUTE_EVENT_TIMED, 0};
  Event event;
  EXPECT_OK(compute_event_record(stream, &options, event.out()));
  return event;
}

int64_t elapsed(compute_event* start, compute_event* end) {
  int64_t ns = 0;
  EXPECT_OK(compute_event_elapsed(start, end, &ns));
  return ns;
}

ISOLATED_TEST(Times, AreThoseOfTheWorkBetweenTwoEvents) {
  use_plugins({"minimal"});
  for (const char* name : devices_with_ops()) {
    const Device device = open(name);
    const Stream stream = make_stream(device), other = make_stream(device);
    const Tensor x = make_tensor(device, std::vector<float>(1000, 2.0f));
    const Event start = timed_event(stream);
    Tensor y;
    EXPECT_OK(run_op("square", stream, {x}, y.out()));
    const Event middle = timed_event(stream);
    EXPECT_OK(compute_event_wait(middle, other));
    const Event end = timed_event(other);
    EXPECT_GT(elapsed(start, middle), 0) << name;
    EXPECT_GE(elapsed(middle, end), 0) << name;
    EXPECT_EQ(elapsed(start, end), elapsed(start, middle) + elapsed(middle, end)) << name;
    EXPECT_EQ(elapsed(end, start), -elapsed(start, end)) << name;
    Event untimed;
    EXPECT_OK(compute_event_record(stream, nullptr, untimed.out()));
    int64_t ns = 7;
    EXPECT_FAILS(compute_event_elapsed(untimed, end, &ns), kInvalid, "start", "COMPUTE_EVENT_TIMED");
    EXPECT_EQ(ns, 0);
    EXPECT_FAILS(compute_event_elapsed(end, untimed, &ns), kInvalid, "end", "COMPUTE_EVENT_TIMED");
    EXPECT_FAILS(compute_event_elapsed(start, end, nullptr), kInvalid, "out_ns");
  }
}

// The minimal plugin's clock is an hour ahead of the host's, so times that are not converted would show.
ISOLATED_TEST(Times, OfTwoDevicesAreRelatedByTheHost) {
  use_plugins({"minimal"});
  const std::vector<const char*> names = devices_with_ops();
  const Device first = open(names.front()), second = open("minimal1");
  const Stream a = make_stream(first), b = make_stream(second);
  const Event start = timed_event(a);
  EXPECT_OK(compute_event_synchronize(start));
  const Event end = timed_event(b);
  constexpr int64_t kMinute = int64_t{60} * 1'000'000'000;
  EXPECT_LT(std::abs(elapsed(start, end)), kMinute);
}

ISOLATED_TEST(Times, OutliveTheHandlesOfStreams) {
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  Event start, end, dropped;
  {
    const Stream stream = make_stream(device);
    start = timed_event(stream);
    dropped = timed_event(stream);
    end = timed_event(stream);
  }
  dropped = Event();
  EXPECT_GE(elapsed(start, end), 0);
  EXPECT_GE(elapsed(start, end), 0) << "asked again";
}

ISOLATED_TEST(Times, AreNotThereOnEveryDevice) {
  use_plugins({"minimal"});
  setenv("COMPUTE_MINIMAL_WITHOUT", "times", 1);
  const Device device = open("minimal0");
  const Stream stream = make_stream(device);
  const compute_event_options options = {sizeof options, COMPUTE_STRUCT_EVENT_OPTIONS, nullptr, COMPUTE_EVENT_TIMED, 0};
  Event event;
  EXPECT_FAILS(compute_event_record(stream, &options, event.out()), COMPUTE_ERROR_UNSUPPORTED, "minimal0",
               "does not support timed events");
}

ISOLATED_TEST(Times, OfWorkThatFailedAreTheFailure) {
  use_plugins({"faulty"});
  const Device device = open("faulty0");
  const Stream stream = make_stream(device);
  const Event start = timed_event(stream);
  EXPECT_OK(compute_event_synchronize(start));
  const Event end = timed_event(stream);
  set_faults("stream_sync=error:STREAM_FAILED;stream_reached=error:STREAM_FAILED");
  int64_t ns = 0;
  EXPECT_FAILS(compute_event_elapsed(start, end, &ns), COMPUTE_ERROR_STREAM_FAILED);
}

// ---- Priorities -----------------------------------------------------------------------------------------------------

std::string attribute(const char* device, std::string_view name) {
  compute_device_attribute attributes[64] = {};
  attributes[0].struct_size = sizeof attributes[0];
  int64_t count = 0;
  EXPECT_OK(compute_device_attributes(device, attributes, 64, &count));
  for (int64_t i = 0; i < count; ++i) {
    if (attributes[i].name == name) return attributes[i].value;
  }
  return "";
}

// The minimal plugin refuses priorities beyond its range.
ISOLATED_TEST(Priorities, AreLimitedToWhatTheDeviceHas) {
  use_plugins({"minimal"});
  EXPECT_EQ(attribute("minimal0", "stream_priorities"), "");
  const Device device = open("minimal0");
  for (const int32_t priority : {INT32_MIN, -3, -2, 0, 3, 4, INT32_MAX}) {
    const compute_stream_options options = {sizeof options, COMPUTE_STRUCT_STREAM_OPTIONS, nullptr, 0, priority};
    Stream stream;
    EXPECT_OK(compute_stream_create(device, &options, stream.out()));
  }
  EXPECT_EQ(attribute("minimal0", "stream_priorities"), "-2 to 3");
  EXPECT_EQ(attribute("cpu", "stream_priorities"), "");
}

// ---- Telemetry ------------------------------------------------------------------------------------------------------

compute_device_telemetry telemetry_of(compute_device* device) {
  compute_device_telemetry telemetry = {sizeof telemetry, COMPUTE_STRUCT_DEVICE_TELEMETRY, nullptr, 0, 0, 0, 0, 0};
  EXPECT_OK(compute_device_get_telemetry(device, &telemetry));
  return telemetry;
}

// The minimal plugin measures the memory of the process.
ISOLATED_TEST(Telemetry, IsWhatThePluginMeasures) {
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  const int64_t before = telemetry_of(device).memory_process_bytes;
  const int64_t shape[] = {1 << 20};
  Tensor x;
  ASSERT_OK(compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, 1, shape, x.out()));
  const compute_device_telemetry telemetry = telemetry_of(device);
  EXPECT_GE(telemetry.memory_process_bytes, before + (4 << 20));
  EXPECT_EQ(telemetry.utilization_percent, -1);
  EXPECT_EQ(telemetry.temperature_millidegrees, -1);
  EXPECT_EQ(telemetry.power_milliwatts, -1);
  EXPECT_EQ(telemetry.memory_used_bytes, -1);
}

ISOLATED_TEST(Telemetry, IsUnknownWithoutTheSlot) {
  use_plugins({"minimal"});
  setenv("COMPUTE_MINIMAL_WITHOUT", "telemetry", 1);
  EXPECT_EQ(telemetry_of(open("minimal0")).memory_process_bytes, -1);
  EXPECT_EQ(telemetry_of(open("cpu")).memory_process_bytes, -1);
}

// ---- Graphs ---------------------------------------------------------------------------------------------------------

ISOLATED_TEST(PluginGraphs, RunAsOne) {
  use_plugins({"minimal"});
  setenv("COMPUTE_MINIMAL_GRAPHS", "1", 1);
  std::string& lines = logged();
  const Device device = open("minimal0");
  const Stream stream = make_stream(device);
  const std::vector<float> values(1000, 2.0f);
  const Tensor x = make_tensor(device, values);
  std::vector<Tensor> bystanders;
  for (int i = 0; i < 20; ++i) bystanders.push_back(make_tensor(device, std::vector<float>(1000, float(i))));
  Tensor kept, inner, y;
  ASSERT_OK(compute_graph_begin(stream, nullptr));
  EXPECT_OK(run_op("square", stream, {x}, inner.out()));
  EXPECT_OK(run_op("negative", stream, {inner}, kept.out()));
  EXPECT_OK(run_op("square", stream, {kept}, y.out()));
  inner = Tensor();
  compute_graph* graph = nullptr;
  ASSERT_OK(compute_graph_end(stream, &graph));
  EXPECT_NE(lines.find("a graph of 3 runs"), std::string::npos) << lines;
  compute_graph_info info = {};
  info.struct_size = sizeof info;
  EXPECT_OK(compute_graph_get_info(graph, &info));
  EXPECT_EQ(info.native, 1);
  const auto holds = [](compute_tensor* tensor, float value) {
    std::vector<float> back(1000);
    EXPECT_OK(compute_tensor_read(tensor, back.data(), 4000));
    EXPECT_EQ(back, std::vector<float>(1000, value));
  };
  for (int run = 0; run < 3; ++run) {
    EXPECT_OK(compute_graph_run(graph, stream));
    const Tensor later = make_tensor(device, std::vector<float>(1000, 77.0f));
    EXPECT_OK(compute_graph_run(graph, stream));
    holds(x, 2);
    holds(kept, -4);
    holds(y, 16);
    holds(later, 77);
    for (int i = 0; i < 20; ++i) holds(bystanders[size_t(i)], float(i));
  }
  compute_graph_release(graph);
}

// ---- Settings of devices --------------------------------------------------------------------------------------------

std::string configured(const char* name) {
  compute_text *value = nullptr, *origin = nullptr;
  EXPECT_OK(compute_config_get(name, &value, &origin));
  const std::string text = take_text(value);
  return text + " from " + take_text(origin);
}

ISOLATED_TEST(DeviceSettings, ComeFromTheSelector) {
  use_plugins({"minimal"});
  std::string& lines = logged();
  Device device;
  EXPECT_FAILS(compute_device_open("minimal0+mode=exat", device.out()), kInvalid, "exat", "not one of fast, exact",
               "did you mean \"exact\"", "^");
  EXPECT_FAILS(compute_device_open("minimal0+modes=exact", device.out()), kInvalid, "modes", "did you mean \"mode\"",
               "mem, without, mode", "^");
  EXPECT_FAILS(compute_device_open("cpu+mode=exact", device.out()), kInvalid, "\"mode\" is not an option", "^");
  EXPECT_FAILS(compute_device_open("auto+mode=exact", device.out()), kInvalid, "\"mode\" is not an option", "^");
  const Device exact = open("minimal0+mem=1G+mode=EXACT");
  EXPECT_NE(lines.find("minimal0 is opened with mode=exact\n"), std::string::npos) << lines;
  const Device again = open("minimal0+mode=exact"), any = open("minimal0");
  EXPECT_EQ(again.get(), exact.get());
  EXPECT_EQ(any.get(), exact.get());
  EXPECT_FAILS(compute_device_open("minimal0+mode=fast", device.out()), kInvalid,
               "minimal0 is already open with mode=exact; mode=fast was requested");
  const Device other = open("minimal1");
  EXPECT_NE(lines.find("minimal1 is opened with mode=fast\n"), std::string::npos) << lines;
  EXPECT_EQ(configured("COMPUTE_MINIMAL_MODE"), "fast from default");
  compute_text* all = nullptr;
  EXPECT_OK(compute_config_describe(COMPUTE_FORMAT_TEXT, &all));
  EXPECT_NE(take_text(all).find("COMPUTE_MINIMAL_MODE"), std::string::npos);
}

ISOLATED_TEST(DeviceSettings, ComeFromTheEnvironment) {
  use_plugins({"minimal"});
  setenv("COMPUTE_MINIMAL_MODE", "Exact", 1);
  std::string& lines = logged();
  const Device device = open("minimal0");
  EXPECT_NE(lines.find("minimal0 is opened with mode=exact\n"), std::string::npos) << lines;
  const Device other = open("minimal1+mode=fast");
  EXPECT_NE(lines.find("minimal1 is opened with mode=fast\n"), std::string::npos) << lines;
  EXPECT_EQ(configured("minimal.mode"), "exact from COMPUTE_MINIMAL_MODE");
}

ISOLATED_TEST(DeviceSettings, OfAnotherValueThanTheirChoicesAreRefused) {
  use_plugins({"minimal"});
  setenv("COMPUTE_MINIMAL_MODE", "exat", 1);
  Device device;
  EXPECT_FAILS(compute_device_open("minimal0", device.out()), COMPUTE_ERROR_NOT_FOUND, "COMPUTE_MINIMAL_MODE", "exat",
               "not one of fast, exact");
}

// Declared in a manifest, they are known before the file is opened, and the manifest's declaration wins.
ISOLATED_TEST(DeviceSettings, AreDeclaredInAManifest) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "compute-settings-XXXXXX").string();
  const fs::path folder = mkdtemp(pattern.data());
  std::ofstream(folder / "minimal.json")
      << R"({"name": "minimal", "library": ")" << plugin_folder("minimal")
      << R"(/compute_plugin_minimal.so", "settings": [{"name": "COMPUTE_MINIMAL_MODE",
    "kind": "choice", "choices": ["fast", "exact", "wild"], "default": "wild", "help": "how", "device": true},
    {"name": "COMPUTE_MINIMAL_RINGS", "kind": "integer", "range": [1, 9], "help": "how many", "device": true},
    {"name": "COMPUTE_MINIMAL_QUIET", "kind": "flag", "default": "1", "help": "no device's"}]})";
  setenv("COMPUTE_PLUGIN_FILES", (folder / "minimal.json").c_str(), 1);
  EXPECT_EQ(configured("minimal.rings"), " from default");
  std::string& lines = logged();
  Device device;
  EXPECT_FAILS(compute_device_open("minimal0+rings=10", device.out()), kInvalid, "not a number from 1 to 9", "^");
  EXPECT_FAILS(compute_device_open("minimal0+quiet=1", device.out()), kInvalid, "mem, without, mode, rings", "^");
  const Device first = open("minimal0+rings=3");
  EXPECT_NE(lines.find("minimal0 is opened with rings=3 mode=wild\n"), std::string::npos) << lines;
  EXPECT_OK(compute_config_set("minimal.mode", "fast"));
  const Device second = open("minimal1");
  EXPECT_NE(lines.find("minimal1 is opened with mode=fast\n"), std::string::npos) << lines;
  fs::remove_all(folder);
}

ISOLATED_TEST(DeviceSettings, ThatAreDeclaredBadlyRejectThePlugin) {
  const std::pair<const char*, const char*> rows[] = {
      {"next", "a setting has a `next` entry of type"},
      {"flags", "a setting has flags"},
      {"small", "a setting has struct_size 24"},
      {"help", "has no help"},
      {"name", "must be COMPUTE_FAULTY_"},
      {"path", "must not name files to load"},
      {"range", "has no valid range"},
      {"default", "\"for tests\" is not one of"},
      {"count", "its list of -1 settings is invalid"},
  };
  for (const auto& [part, words] : rows) {
    const Outcome outcome = run_in_child([&part = part, &words = words] {
      use_plugins({"faulty"});
      set_faults(std::string("manifest=setting:") + part);
      Device device;
      EXPECT_FAILS(compute_device_open("faulty0", device.out()), COMPUTE_ERROR_NOT_FOUND, words);
    });
    EXPECT_TRUE(outcome.exited(0)) << part << "\n" << outcome.output;
  }
}

}  // namespace
}  // namespace robustness
