// SPDX-License-Identifier: Apache-2.0
#include "faults.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace faulty {
namespace {

std::string_view take(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return part;
}

// Whether the call with this number is meant: "" any, "3" the third, "3+" that and later ones.
bool is_meant(std::string_view when, int64_t call) {
  if (when.empty()) return true;
  const bool and_later = when.back() == '+';
  const int64_t first = std::stoll(std::string(when.substr(0, when.size() - and_later)));
  return and_later ? call >= first : call == first;
}

}  // namespace

std::optional<Fault> next_fault(std::string_view place) {
  // Immortal: other threads may still be calling while the process exits.
  static auto& mutex = *new std::mutex;
  static auto& rules = *new std::string;
  static auto& calls = *new std::map<std::string, int64_t, std::less<>>;

  const char* value = std::getenv("COMPUTE_FAULTY");
  std::lock_guard lock(mutex);
  if (rules != (value ? value : "")) {
    rules = value ? value : "";
    calls.clear();
  }
  const int64_t call = ++calls.try_emplace(std::string(place), 0).first->second;
  for (std::string_view rest = rules; !rest.empty();) {
    std::string_view action = take(rest, ';');
    std::string_view when = take(action, '=');
    if (take(when, '@') != place || !is_meant(when, call)) continue;
    const std::string_view name = take(action, ':');
    return Fault{std::string(name), std::string(action)};
  }
  return std::nullopt;
}

bool act(const Fault& fault, std::string_view place, compute_error** out_error) {
  *out_error = nullptr;
  if (fault.is("error")) {
    *out_error = make_error(fault.argument, place);
    return true;
  }
  if (fault.is("error_next")) {
    *out_error = make_error(fault.argument, place, &must_be_understood);
    return true;
  }
  if (fault.is("stale")) {
    *out_error = make_error("INTERNAL", place);
    core->error_free(*out_error);  // and is given away nevertheless
    return true;
  }
  if (fault.is("bogus")) {
    static uint64_t no_error[32] = {};
    *out_error = reinterpret_cast<compute_error*>(no_error);
    return true;
  }
  if (fault.is("lie")) return true;
  if (fault.is("throw")) throw std::runtime_error("the faulty plugin throws in " + std::string(place));
  if (fault.is("crash")) std::raise(SIGSEGV);
  if (fault.is("exit")) std::exit(static_cast<int>(fault.number()));
  if (fault.is("hang")) std::this_thread::sleep_for(std::chrono::milliseconds(fault.number()));
  return false;
}

bool strike(std::string_view place, compute_error** out_error) {
  *out_error = nullptr;
  const std::optional<Fault> fault = next_fault(place);
  return fault && act(*fault, place, out_error);
}

compute_error_code code_from_name(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "OK",          "INVALID_ARGUMENT", "OUT_OF_RANGE",   "UNSUPPORTED",   "OUT_OF_MEMORY",   "OUT_OF_DEVICE_MEMORY",
      "NOT_FOUND",   "DEVICE_MISMATCH",  "COMPILE_FAILED", "KERNEL_FAILED", "STREAM_FAILED",   "CONTEXT_LOST",
      "DEVICE_LOST", "RESTART_REQUIRED", "FORKED",         "SHUT_DOWN",     "PLUGIN_REJECTED", "INTERNAL",
  };
  for (size_t code = 0; code < std::size(kNames); ++code) {
    if (kNames[code] == name) return static_cast<compute_error_code>(code);
  }
  return std::stoi(std::string(name));  // also numbers that are not codes
}

compute_error* make_error(std::string_view code, std::string_view place, const void* next) {
  const std::string message = "faulty: " + std::string(place) + " fails as asked";
  compute_plugin_error_info info = {};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_PLUGIN_STRUCT_ERROR_INFO;
  info.next = next;
  info.code = code_from_name(code);
  info.argument = -1;
  info.native_code = 4711;
  info.message = {message.data(), static_cast<int64_t>(message.size())};
  return core->error_new(&info);
}

}  // namespace faulty
