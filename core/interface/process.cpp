// SPDX-License-Identifier: Apache-2.0
// The C interface of what concerns the whole process: settings, reports, scopes.
#include <compute/compute.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "core/base/change_settings.hpp"
#include "core/base/json_writer.hpp"
#include "core/base/log.hpp"
#include "core/base/printable.hpp"
#include "core/base/process_config.hpp"
#include "core/base/scope.hpp"
#include "core/base/text.hpp"
#include "core/execution/life.hpp"
#include "core/execution/opened_devices.hpp"
#include "core/execution/plan_cache.hpp"
#include "core/selection/registry.hpp"

using namespace compute;

namespace {

struct PlacementRow {
  std::string device, op, how;
  int64_t runs = 0;
};

std::vector<PlacementRow> placement_rows() {
  std::map<std::tuple<std::string, std::string, std::string>, int64_t> counts;
  for (Device* device : open_devices()) {
    device->plans->for_each(
        [](const CallPlan& plan, void* context) {
          auto& all = *static_cast<decltype(counts)*>(context);
          const char* how = plan.steps.size() <= 1 ? "native" : "decomposed";
          all[{plan.device.name, plan.name, how}] += plan.runs.load(std::memory_order_relaxed);
        },
        &counts);
    device->plans->for_each_gone(
        [](const char* name, int64_t runs, const char* device_name, void* context) {
          (*static_cast<decltype(counts)*>(context))[{device_name, name, "evicted plans"}] += runs;
        },
        &counts);
  }
  std::vector<PlacementRow> rows;
  for (const auto& [key, runs] : counts) {
    if (runs > 0) rows.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), runs});
  }
  return rows;
}

std::string placement_text() {
  std::string text = fmt::format("{:<14}{:<24}{:<16}{:>12}\n", "device", "op", "how", "runs");
  for (const PlacementRow& row : placement_rows()) {
    text += fmt::format("{:<14}{:<24}{:<16}{:>12}\n", row.device, row.op, row.how, row.runs);
  }
  for (Device* device : open_devices()) {
    const DeviceCounters& counters = device->counters;
    if (device->is_host) continue;
    text += fmt::format(
        "{}: {} transfers to it ({} bytes), {} from it ({} bytes), {} of them implicit; {} ops fell back to cpu\n",
        device->name, counters.to_device.load(), counters.to_device_bytes.load(), counters.from_device.load(),
        counters.from_device_bytes.load(), counters.implicit.load(), counters.ops_fallback.load());
  }
  return text;
}

std::string placement_json() {
  JsonWriter out;
  out.begin_object().key("ops").begin_array();
  for (const PlacementRow& row : placement_rows()) {
    out.begin_object()
        .field("device", row.device)
        .field("op", row.op)
        .field("how", row.how)
        .field("runs", row.runs)
        .end_object();
  }
  out.end_array().key("devices").begin_array();
  for (Device* device : open_devices()) {
    const DeviceCounters& counters = device->counters;
    out.begin_object().field("name", device->name);
    out.field("transfers_to_device", counters.to_device.load())
        .field("transfers_to_device_bytes", counters.to_device_bytes.load());
    out.field("transfers_from_device", counters.from_device.load())
        .field("transfers_from_device_bytes", counters.from_device_bytes.load());
    out.field("transfers_implicit", counters.implicit.load()).field("mirror_hits", counters.mirror_hits.load());
    out.field("ops_fallback", counters.ops_fallback.load()).end_object();
  }
  out.end_array().end_object();
  return out.take();
}

const char* origin_name(const SettingValue& value) { return value.source.c_str(); }

}  // namespace

extern "C" {

compute_error* compute_config_set(const char* name, const char* value) {
  return guard([&] {
    require_not_null(name, "name");
    set_setting(name, Origin::kApi, value != nullptr ? std::optional<std::string_view>(value) : std::nullopt);
  });
}

compute_error* compute_config_get(const char* name, compute_text** out_value) {
  if (out_value != nullptr) *out_value = nullptr;
  return guard([&] {
    require_not_null(out_value, "out_value");
    if (name != nullptr) {
      SettingValue value;
      change_process_config([&](Config& config) { value = config.get(config.find(name).id); });
      *out_value = make_text(fmt::format("{}\t{}", value.text, origin_name(value)));
      return;
    }
    change_process_config([](Config& config) { config.learn(); });
    const Config config = process_config();
    std::string text;
    for (const Setting& one : all_settings()) {
      const SettingValue& value = config.get(one.id);
      text += fmt::format("{}\t{}\t{}\n", one.environment, value.text, origin_name(value));
    }
    *out_value = make_text(std::move(text));
  });
}

compute_error* compute_config_arguments(int32_t* argc, char** argv) {
  return guard([&] {
    require_not_null(argc, "argc");
    require_not_null(argv, "argv");
    take_process_flags(argc, argv);
  });
}

compute_error* compute_load_report(int32_t format, compute_text** out_report) {
  if (out_report != nullptr) *out_report = nullptr;
  return guard([&] {
    require_not_null(out_report, "out_report");
    require_format(format);
    const Running running;
    Registry::instance().devices();
    *out_report = make_text(Registry::instance().load_report(format));
  });
}

compute_error* compute_placement_report(int32_t format, compute_text** out_report) {
  if (out_report != nullptr) *out_report = nullptr;
  return guard([&] {
    require_not_null(out_report, "out_report");
    require_format(format);
    const Running running;
    *out_report = make_text(format == COMPUTE_FORMAT_JSON ? placement_json() : placement_text());
  });
}

compute_error* compute_scope_push(const char* label, const char* file, int32_t line) {
  return guard([&] {
    require_not_null(label, "label");
    push_scope({label, file != nullptr ? file : "", line});
  });
}

compute_error* compute_scope_pop(void) {
  return guard([&] {
    if (!pop_scope()) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "compute_scope_pop: no scope is open on this thread");
  });
}

compute_error* compute_log_set_callback(compute_log_callback callback, void* user_data) {
  return guard([&] { set_log_callback(callback, user_data); });
}

compute_error* compute_shutdown(int64_t timeout_ns, int32_t* out_drained) {
  if (out_drained != nullptr) *out_drained = 0;
  return guard([&] {
    require_not_null(out_drained, "out_drained");
    if (timeout_ns < 0)
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("timeout_ns is {}; it must not be negative", timeout_ns));
    *out_drained = shut_down_library(timeout_ns) ? 1 : 0;
  });
}

}  // extern "C"
