// SPDX-License-Identifier: Apache-2.0
//
// process.hpp: versions, settings, the log, reports, scopes and the end. Include compute.hpp.
#ifndef COMPUTE_PROCESS_HPP_
#define COMPUTE_PROCESS_HPP_

#include <functional>

#include "compute/types.hpp"

namespace compute {

struct Version {
  int32_t major = 0, minor = 0, patch = 0;
};

/// Throws UNSUPPORTED if the loaded library is older than the interface that this program is compiled with.
inline void require_interface() { check(compute_require_interface(COMPUTE_INTERFACE_MAJOR, COMPUTE_INTERFACE_MINOR)); }

/// The version of the library that runs; COMPUTE_VERSION_MAJOR and its like are the version of the headers.
[[nodiscard]] inline Version version() noexcept {
  int32_t major = 0, minor = 0, patch = 0;
  compute_version(&major, &minor, &patch);
  return {major, minor, patch};
}

/// What became of every plugin that was looked at: found, opened with n devices, or rejected and why, with remedies.
/// Opens every plugin, but no device.
[[nodiscard]] inline std::string load_report(Format format = Format::text) {
  return detail::text_of([&](compute_text** out) { return compute_load_report(static_cast<int32_t>(format), out); });
}

/// Which op ran on which device, how often, and whether in one step or in several; per device the transfers.
[[nodiscard]] inline std::string placement_report(Format format = Format::text) {
  return detail::text_of(
      [&](compute_text** out) { return compute_placement_report(static_cast<int32_t>(format), out); });
}

/// Every setting with its names, kind, default, choices, help, value in force and origin.
[[nodiscard]] inline std::string config_describe(Format format = Format::text) {
  return detail::text_of(
      [&](compute_text** out) { return compute_config_describe(static_cast<int32_t>(format), out); });
}

/// Starts a profile, and drops the one before; see compute_profile_start.
inline void profile_start() { check(compute_profile_start()); }
inline void profile_stop() { check(compute_profile_stop()); }
/// The time of each op and transfer, and hints. Waits for queued work. NOT_FOUND: there is no profile.
[[nodiscard]] inline std::string profile_report(Format format = Format::text) {
  return detail::text_of([&](compute_text** out) { return compute_profile_report(static_cast<int32_t>(format), out); });
}

/// Starts a trace in the file `path`, for Perfetto and chrome://tracing.
inline void trace_start(const std::string& path) { check(compute_trace_start(path.c_str())); }
inline void trace_stop() { check(compute_trace_stop()); }

/// The tensors that are alive, with the setting COMPUTE_LEAKS; without it UNSUPPORTED.
[[nodiscard]] inline std::string leak_report(Format format = Format::text) {
  return detail::text_of([&](compute_text** out) { return compute_leak_report(static_cast<int32_t>(format), out); });
}

/// A setting in force.
struct Setting {
  std::string name;    ///< COMPUTE_DEVICE
  std::string value;   ///<
  std::string origin;  ///< who set it
};

/// Sets a setting with the strength of the API. `name` is that of the environment variable (COMPUTE_DEVICE) or of the
/// config file (device). NOT_FOUND has the nearest name; INVALID_ARGUMENT: a value that it cannot have.
inline void config_set(const std::string& name, const std::string& value) {
  check(compute_config_set(name.c_str(), value.c_str()));
}
/// Takes a setting back.
inline void config_unset(const std::string& name) { check(compute_config_set(name.c_str(), nullptr)); }
[[nodiscard]] inline Setting config_get(const std::string& name) {
  detail::Text value, origin;
  check(compute_config_get(name.c_str(), &value.text, &origin.text));
  return {name, value.str(), origin.str()};
}
/// Every setting.
[[nodiscard]] inline std::vector<Setting> config_list() {
  // The names are those of environment variables, without escapes; a quote inside another string has one.
  constexpr std::string_view kBefore = "\"name\": \"";
  const std::string text =
      detail::text_of([](compute_text** out) { return compute_config_describe(COMPUTE_FORMAT_JSON, out); });
  std::vector<Setting> all;
  for (size_t at = 0; (at = text.find(kBefore, at)) != std::string::npos;) {
    at += kBefore.size();
    all.push_back(config_get(text.substr(at, text.find('"', at) - at)));
  }
  return all;
}
/// Takes the --compute-NAME=VALUE flags out of the arguments of main.
inline void config_arguments(int& argc, char** argv) {
  int32_t count = argc;
  check(compute_config_arguments(&count, argv));
  argc = count;
}

/// A later library may have further levels: take them for `error`.
enum class LogLevel : int32_t {
  error = COMPUTE_LOG_ERROR,
  warning = COMPUTE_LOG_WARNING,
  info = COMPUTE_LOG_INFO,
  debug = COMPUTE_LOG_DEBUG,
  trace = COMPUTE_LOG_TRACE
};

/// Receives every log line in place of the default sink until it goes; one at a time in a process.
///
/// The callback gets a level, a category (load, select, place, copy, compile, memory, error) and a line without its
/// end. It is called from any thread, must not call the library, and an exception that leaves it is dropped.
class LogSink {
 public:
  using Callback = std::function<void(LogLevel level, std::string_view category, std::string_view text)>;

  explicit LogSink(Callback callback) : callback_(std::move(callback)) {
    check(compute_log_set_callback(&LogSink::take, this));
  }
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;
  ~LogSink() { compute_error_free(compute_log_set_callback(nullptr, nullptr)); }

 private:
  static void take(compute_borrowed_log_record record, void* self) {
    try {
      static_cast<LogSink*>(self)->callback_(static_cast<LogLevel>(record->level),
                                             detail::string_of(record->category, record->category_size),
                                             detail::string_of(record->text, record->text_size));
    } catch (...) {  // the thread may be the library's: nobody could catch it
    }
  }

  Callback callback_;
};

/// Where in the program the calling thread is, until this object goes. Errors that calls on this thread report have the
/// scopes in a further line. Scopes nest; the object stays on its thread.
class Scope {
 public:
  /// `file` and `line` are those of the call.
  explicit Scope(const std::string& label, const char* file = __builtin_FILE(), int32_t line = __builtin_LINE()) {
    check(compute_scope_push(label.c_str(), file, line));
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { compute_error_free(compute_scope_pop()); }
};

/// Refuses further calls, waits for those under way, for all work and for all callbacks, at most `timeout`, then closes
/// all devices and plugins. False if the time was up before: then nothing is closed. INVALID_ARGUMENT in a callback.
template <class Rep, class Period>
[[nodiscard]] bool shutdown(std::chrono::duration<Rep, Period> timeout) {
  int32_t drained = 0;
  check(compute_shutdown(detail::timeout_ns(timeout), &drained));
  return drained != 0;
}

}  // namespace compute

#endif  // COMPUTE_PROCESS_HPP_
