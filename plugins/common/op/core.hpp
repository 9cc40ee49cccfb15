// SPDX-License-Identifier: Apache-2.0
// The plugin's access to core: settings, the log, and errors, which are exceptions inside the plugin and error objects
// outside.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace compute::common {

// Stores a copy of the table that compute_plugin_open received; slots that an older core lacks are NULL. Each plugin
// links this file separately and so has its own table.
void set_core(const compute_plugin_core* table);
// Forgets whose table it is: another copy of the library may open the plugin. The functions stay usable.
void release_core();
const compute_plugin_core& core();

// The error for compute_plugin_open if the plugin is open for another copy of the library, made by that copy's table.
compute_error* refuse_second_core(const compute_plugin_core* table, std::string_view plugin);

// Thrown where a fault is found; caught only by guard(), or by a stream's worker.
class Error : public std::exception {
 public:
  Error(compute_error_code code, std::string message, int32_t argument = -1, int64_t native_code = 0)
      : code(code), argument(argument), native_code(native_code), message(std::move(message)) {}
  const char* what() const noexcept override { return message.c_str(); }

  compute_error_code code;
  int32_t argument;
  int64_t native_code;  // the vendor's number
  std::string message;
};

compute_error* make_error(compute_error_code code, std::string_view message, int32_t argument = -1,
                          int64_t native_code = 0) noexcept;

// The error object for the exception in flight; never throws and never returns NULL.
compute_error* current_exception_to_error() noexcept;

// Runs `f` at the boundary of the interface, and stops all exceptions.
template <class F>
compute_error* guard(F&& f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return current_exception_to_error();
  }
}

// The value of a setting, by its environment name; nothing if it is unset.
std::optional<std::string> setting(std::string_view name);

// The same as a number within [least, greatest]. Another value is logged once and counts as unset.
std::optional<int64_t> integer_setting(std::string_view name, int64_t least, int64_t greatest);

/// Why a library that takes file names from the environment (OpenCL's loader, NVIDIA's driver, OpenMP) must not be
/// opened: the process is privileged. Empty if it may be opened, also if the program itself allows it
/// (COMPUTE_TRUST_ALL through the interface).
std::string reason_against_libraries();

void log(int32_t level, const char* category, std::string_view text) noexcept;

// Element `index` of an array of sized structs, which is stepped by the size of its first element.
template <class T>
const T* at_step(const T* array, int64_t index) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(array) +
                                    index * static_cast<int64_t>(array->struct_size));
}

inline compute_string borrow(std::string_view text) { return {text.data(), static_cast<int64_t>(text.size())}; }
inline std::string_view view(compute_string text) { return {text.data, static_cast<size_t>(text.size)}; }

}  // namespace compute::common
