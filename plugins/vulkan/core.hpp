// SPDX-License-Identifier: Apache-2.0
// Access to the core table, and what every slot needs: errors, handles, and refusals of unknown requests.
#pragma once

#include <compute/plugin.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vulkan {

// The core table, given by compute_plugin_open.
extern const compute_plugin_core* core;

struct Failure : std::runtime_error {
  Failure(compute_error_code kind, const std::string& message, int64_t native_code = 0)
      : std::runtime_error(message), code(kind), native(native_code) {}
  compute_error_code code;
  int64_t native;
};

// Why the device does not support an op. Not an error.
struct Refused {
  int32_t reason;    // COMPUTE_PLUGIN_REFUSE_
  int32_t argument;  // position of the operand, or -1
  std::string text;
  std::string hint = {};
};

inline compute_string text(std::string_view view) { return {view.data(), static_cast<int64_t>(view.size())}; }
inline std::string_view view(const compute_string& string) { return {string.data, static_cast<size_t>(string.size)}; }

compute_error* make_error(compute_error_code code, std::string_view message, int64_t native_code);

// The body of every slot: no exception leaves the plugin.
template <class F>
compute_error* guard(F&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Failure& failure) {
    return make_error(failure.code, failure.what(), failure.native);
  } catch (const std::bad_alloc&) {
    return make_error(COMPUTE_ERROR_OUT_OF_MEMORY, "vulkan: the host has no memory left", 0);
  } catch (const std::exception& exception) {
    return make_error(COMPUTE_ERROR_INTERNAL, exception.what(), 0);
  }
}

template <class T>
uint64_t to_handle(T* object) {
  return reinterpret_cast<uintptr_t>(object);
}
template <class T>
T& from_handle(uint64_t handle) {
  return *reinterpret_cast<T*>(static_cast<uintptr_t>(handle));
}

// Element `index` of an array of sized structs. The maker of the array chose the distance between elements.
template <class T>
const T& element(const T* array, int64_t index) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(array) + index * array->struct_size);
}

// Refuses flags and entries of a `next` chain that must be understood and are unknown.
void understand_flags(uint32_t flags, const char* what, uint32_t known = 0);
void understand_chain(const void* next, const char* what);
template <class T>
void understand(const T& given, const char* what) {
  understand_chain(given.next, what);
  if constexpr (requires { given.flags; }) understand_flags(given.flags, what);
}
void understand_op(const compute_plugin_op& op);

void log_line(int32_t level, std::string_view category, const std::string& line);

}  // namespace vulkan
