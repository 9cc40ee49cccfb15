// SPDX-License-Identifier: Apache-2.0
// The C functions for the whole process: settings, reports, scopes.
#include <compute/compute.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "core/base/scope.hpp"
#include "core/devices/registry.hpp"
#include "core/lifetime/life.hpp"
#include "core/lifetime/placement_report.hpp"
#include "core/observation/live_tensors.hpp"
#include "core/observation/observed.hpp"
#include "core/observation/ranges.hpp"
#include "core/observation/recorder.hpp"
#include "core/process/change_settings.hpp"
#include "core/process/in_use.hpp"
#include "core/process/log.hpp"
#include "core/process/process_config.hpp"
#include "core/streams/device_times.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"

using namespace compute;

namespace {

const char* origin_name(const SettingValue& value) { return value.source.c_str(); }

const char* kind_name(SettingKind kind) {
  switch (kind) {
    case SettingKind::kText:
      return "text";
    case SettingKind::kFlag:
      return "flag";
    case SettingKind::kInteger:
      return "integer";
    case SettingKind::kBytes:
      return "bytes";
    case SettingKind::kChoice:
      return "choice";
    case SettingKind::kWords:
      return "words";
    case SettingKind::kLevels:
      return "levels";
    case SettingKind::kPath:
      return "path";
    case SettingKind::kPaths:
      return "paths";
  }
  return "";
}

std::string settings_text(const Config& config) {
  std::string text;
  for (const Setting& one : all_settings()) {
    const SettingValue& value = config.get(one.id);
    text += fmt::format("{}\n  {}\n  kind: {}", one.environment, one.summary, kind_name(one.kind));
    if (*one.values != '\0') text += fmt::format(" ({})", one.values);
    text += fmt::format("; default: {}\n", *one.default_text != '\0' ? one.default_text : "none");
    text += fmt::format("  flag: {}{}{}\n", one.flag(), *one.key != '\0' ? "; key of files: " : "", one.key);
    text += fmt::format("  in force: {} ({})\n", value.text.empty() ? "none" : value.text, origin_name(value));
  }
  return text;
}

std::string settings_json(const Config& config) {
  JsonWriter out;
  out.begin_array();
  for (const Setting& one : all_settings()) {
    const SettingValue& value = config.get(one.id);
    out.begin_object().field("name", one.environment).field("flag", one.flag()).field("key", one.key);
    out.field("kind", kind_name(one.kind)).field("default", one.default_text).field("values", one.values);
    out.field("summary", one.summary).field("value", value.text).field("origin", origin_name(value)).end_object();
  }
  out.end_array();
  return out.take() + "\n";
}

}  // namespace

extern "C" {

compute_error* compute_config_set(const char* name, const char* value) {
  return guard([&] {
    require_not_null(name, "name");
    set_setting(name, Origin::kApi, value != nullptr ? std::optional<std::string_view>(value) : std::nullopt);
  });
}

compute_error* compute_config_get(const char* name, compute_text** out_value, compute_text** out_origin) {
  if (out_value != nullptr) *out_value = nullptr;
  if (out_origin != nullptr) *out_origin = nullptr;
  return guard([&] {
    require_not_null(name, "name");
    require_not_null(out_value, "out_value");
    SettingValue value;
    change_process_config([&](Config& config) { value = config.get(config.find(name).id); });
    std::unique_ptr<compute_text, decltype(&compute_text_free)> text(make_text(value.text), compute_text_free);
    if (out_origin != nullptr) *out_origin = make_text(origin_name(value));
    *out_value = text.release();
  });
}

compute_error* compute_config_describe(int32_t format, compute_text** out_description) {
  if (out_description != nullptr) *out_description = nullptr;
  return guard([&] {
    require_not_null(out_description, "out_description");
    require_format(format);
    change_process_config([](Config& config) { config.learn(); });
    const Config config = process_config();
    *out_description = make_text(format == COMPUTE_FORMAT_JSON ? settings_json(config) : settings_text(config));
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
    *out_report = make_text(placement_report(format));
  });
}

compute_error* compute_profile_start(void) {
  return guard([&] {
    const Running running;
    start_profile();
  });
}

compute_error* compute_profile_stop(void) {
  return guard([&] {
    const Running running;
    collect_all_times(Deadline::max());
    stop_profile();
  });
}

compute_error* compute_profile_report(int32_t format, compute_text** out_report) {
  if (out_report != nullptr) *out_report = nullptr;
  return guard([&] {
    require_not_null(out_report, "out_report");
    require_format(format);
    const Running running;
    collect_all_times(Deadline::max());
    *out_report = make_text(profile_report(format));
  });
}

compute_error* compute_trace_start(const char* path) {
  return guard([&] {
    require_not_null(path, "path");
    const Running running;
    start_trace(path);
  });
}

compute_error* compute_trace_stop(void) {
  return guard([&] {
    const Running running;
    collect_all_times(Deadline::max());
    static_cast<void>(stop_trace());
  });
}

compute_error* compute_leak_report(int32_t format, compute_text** out_report) {
  if (out_report != nullptr) *out_report = nullptr;
  return guard([&] {
    require_not_null(out_report, "out_report");
    require_format(format);
    const Running running;
    *out_report = make_text(leak_report(format, cached_memory()));
  });
}

compute_error* compute_scope_push(const char* label, const char* file, int32_t line) {
  return guard([&] {
    require_not_null(label, "label");
    push_scope({label, file != nullptr ? file : "", line});
    if (observes(kNamesRanges)) open_range(label);
  });
}

compute_error* compute_scope_pop(void) {
  return guard([&] {
    if (!pop_scope()) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "compute_scope_pop: no scope is open on this thread");
    if (observes(kNamesRanges)) close_range();
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
