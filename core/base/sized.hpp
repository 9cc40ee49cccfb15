// SPDX-License-Identifier: Apache-2.0
// Structs whose size the other side chooses: reads the part that exists, writes the part that fits.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/base/copy_sized.hpp"
#include "core/base/error.hpp"

namespace compute {

constexpr uint32_t kSmallestStruct = sizeof(compute_struct_header);
constexpr uint32_t kGreatestStruct = 65536;  // a larger size was never set

// The minimum size of a struct that programs pass in: its size in version 1. Options of ops may omit all fields.
template <class T>
inline constexpr uint32_t least_size_of = kSmallestStruct;
template <>
inline constexpr uint32_t least_size_of<compute_attribute> = COMPUTE_ATTRIBUTE_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_stream_options> = COMPUTE_STREAM_OPTIONS_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_event_options> = COMPUTE_EVENT_OPTIONS_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_tensor_spec> = COMPUTE_TENSOR_SPEC_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_kernel_options> = COMPUTE_KERNEL_OPTIONS_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_kernel_argument> = COMPUTE_KERNEL_ARGUMENT_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_launch> = COMPUTE_LAUNCH_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_op_registration> = COMPUTE_OP_REGISTRATION_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_op_kernel> = COMPUTE_OP_KERNEL_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_allocator> = COMPUTE_ALLOCATOR_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_external> = COMPUTE_EXTERNAL_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_transport> = COMPUTE_TRANSPORT_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_group_options> = COMPUTE_GROUP_OPTIONS_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_collective_options> = COMPUTE_COLLECTIVE_OPTIONS_SIZE_1;
template <>
inline constexpr uint32_t least_size_of<compute_graph_options> = COMPUTE_GRAPH_OPTIONS_SIZE_1;

inline void require_struct_size(uint32_t size, const char* name, uint32_t least = kSmallestStruct) {
  if (size < least || size > kGreatestStruct) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}.struct_size is {}; set it to sizeof the struct", name, size));
  }
}

// Entries of a `next` chain that this library does not know. These are all entries: they are skipped unless they must
// be understood.
inline void check_chain(const void* next, const char* name) {
  constexpr int kLongest = 64;
  for (int i = 0; next != nullptr; ++i) {
    compute_struct_header entry;
    std::memcpy(&entry, next, sizeof entry);
    if ((entry.struct_type & COMPUTE_STRUCT_MUST_UNDERSTAND) != 0) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED,
                  fmt::format("{}.next has an entry of type {:#x}, which is not supported and must not be ignored",
                              name, entry.struct_type));
    }
    if (i == kLongest)
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}.next is a chain of more than {} entries", name, kLongest));
    next = entry.next;
  }
}

// Refuses fields that a newer program has set beyond the part that this library knows; otherwise they would be ignored
// silently.
template <class T>
void check_tail(const T* given, uint32_t size, const char* name) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(given);
  if (size <= sizeof(T) || std::all_of(bytes + sizeof(T), bytes + size, [](uint8_t byte) { return byte == 0; })) return;
  throw Error(COMPUTE_ERROR_UNSUPPORTED,
              fmt::format("{} is {} bytes long; this library supports {}, and the bytes after those are not zero", name,
                          size, sizeof(T)));
}

// The same for the step of an array, whose elements are aligned.
inline void require_struct_step(uint32_t size, const char* name) {
  require_struct_size(size, name);
  if (size % alignof(void*) != 0) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}.struct_size is {}, not a multiple of {}; the array elements would be misaligned", name,
                            size, alignof(void*)));
  }
}

// The COMPUTE_STRUCT_ of a struct that core reads from or fills for programs.
template <class T>
inline constexpr uint32_t struct_type_of = COMPUTE_STRUCT_OP_OPTIONS;
template <>
inline constexpr uint32_t struct_type_of<compute_stream_options> = COMPUTE_STRUCT_STREAM_OPTIONS;
template <>
inline constexpr uint32_t struct_type_of<compute_event_options> = COMPUTE_STRUCT_EVENT_OPTIONS;
template <>
inline constexpr uint32_t struct_type_of<compute_tensor_spec> = COMPUTE_STRUCT_TENSOR_SPEC;
template <>
inline constexpr uint32_t struct_type_of<compute_kernel_options> = COMPUTE_STRUCT_KERNEL_OPTIONS;
template <>
inline constexpr uint32_t struct_type_of<compute_kernel_argument> = COMPUTE_STRUCT_KERNEL_ARGUMENT;
template <>
inline constexpr uint32_t struct_type_of<compute_launch> = COMPUTE_STRUCT_LAUNCH;
template <>
inline constexpr uint32_t struct_type_of<compute_op_registration> = COMPUTE_STRUCT_OP_REGISTRATION;
template <>
inline constexpr uint32_t struct_type_of<compute_op_kernel> = COMPUTE_STRUCT_OP_KERNEL;
template <>
inline constexpr uint32_t struct_type_of<compute_allocator> = COMPUTE_STRUCT_ALLOCATOR;
template <>
inline constexpr uint32_t struct_type_of<compute_external> = COMPUTE_STRUCT_EXTERNAL;
template <>
inline constexpr uint32_t struct_type_of<compute_transport> = COMPUTE_STRUCT_TRANSPORT;
template <>
inline constexpr uint32_t struct_type_of<compute_group_options> = COMPUTE_STRUCT_GROUP_OPTIONS;
template <>
inline constexpr uint32_t struct_type_of<compute_collective_options> = COMPUTE_STRUCT_COLLECTIVE_OPTIONS;
template <>
inline constexpr uint32_t struct_type_of<compute_graph_options> = COMPUTE_STRUCT_GRAPH_OPTIONS;
template <>
inline constexpr uint32_t struct_type_of<compute_device_info> = COMPUTE_STRUCT_DEVICE_INFO;
template <>
inline constexpr uint32_t struct_type_of<compute_device_attribute> = COMPUTE_STRUCT_DEVICE_ATTRIBUTE;
template <>
inline constexpr uint32_t struct_type_of<compute_device_statistics> = COMPUTE_STRUCT_DEVICE_STATISTICS;
template <>
inline constexpr uint32_t struct_type_of<compute_device_telemetry> = COMPUTE_STRUCT_DEVICE_TELEMETRY;
template <>
inline constexpr uint32_t struct_type_of<compute_device_process> = COMPUTE_STRUCT_DEVICE_PROCESS;
template <>
inline constexpr uint32_t struct_type_of<compute_op_info> = COMPUTE_STRUCT_OP_INFO;
template <>
inline constexpr uint32_t struct_type_of<compute_support> = COMPUTE_STRUCT_SUPPORT;
template <>
inline constexpr uint32_t struct_type_of<compute_graph_info> = COMPUTE_STRUCT_GRAPH_INFO;

// A struct of the caller; fields that its program did not know are zero.
template <class T>
T read_sized(const T* given, const char* name) {
  require_struct_size(given->struct_size, name, least_size_of<T>);
  if (given->struct_type != COMPUTE_STRUCT_NONE && given->struct_type != struct_type_of<T>) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}.struct_type is {}; expected {} or 0", name, given->struct_type, struct_type_of<T>));
  }
  check_tail(given, given->struct_size, name);
  check_chain(given->next, name);
  return copy_sized(given, given->struct_size);
}

// Refuses a non-zero field that is reserved for later versions.
inline void require_zero(int32_t reserved, const char* name) {
  if (reserved != 0)
    throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{}.reserved is {}; it must be 0", name, reserved));
}

// Refuses unknown flags of a request.
inline void require_known_flags(uint32_t flags, uint32_t known, const char* name) {
  if ((flags & ~known) == 0) return;
  throw Error(COMPUTE_ERROR_UNSUPPORTED,
              fmt::format("{}.flags is {:#x}; {:#x} is not supported", name, flags, flags & ~known));
}

// The error of bits that are not of COMPUTE_ACCESS_, or of none; 0 if there is no error.
inline compute_error_code access_error(uint32_t access) noexcept {
  if (access == 0) return COMPUTE_ERROR_INVALID_ARGUMENT;
  return (access & ~uint32_t{COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE}) != 0 ? COMPUTE_ERROR_UNSUPPORTED : COMPUTE_OK;
}

// Zeroes an output struct of any size, except for its size and `next`; `descriptor` becomes -1. Called before anything
// that can fail. An invalid size is left for write_sized to report.
template <class T>
void clear_sized(T* out) noexcept {
  static_assert(struct_type_of<T> != COMPUTE_STRUCT_OP_OPTIONS);
  if (out == nullptr || out->struct_size < kSmallestStruct || out->struct_size > kGreatestStruct) return;
  out->struct_type = struct_type_of<T>;
  std::memset(reinterpret_cast<uint8_t*>(out) + kSmallestStruct, 0, out->struct_size - kSmallestStruct);
  if constexpr (requires { out->descriptor; }) {  // 0 is a descriptor
    if (out->struct_size >= offsetof(T, descriptor) + sizeof out->descriptor) out->descriptor = -1;
  }
}

// Writes every byte of a struct that the caller may have compiled smaller or larger than ours.
template <class T>
void write_sized(const T& value, T* out, const char* name) {
  require_struct_size(out->struct_size, name);
  clear_sized(out);
  check_chain(out->next, name);
  const size_t known = std::min<size_t>(out->struct_size, sizeof value);
  std::memcpy(reinterpret_cast<uint8_t*>(out) + kSmallestStruct,
              reinterpret_cast<const uint8_t*>(&value) + kSmallestStruct, known - kSmallestStruct);
}

// Element `index` of an array that is stepped by the size of its first element.
template <class T>
T* at_step(T* array, int64_t index) {
  using Byte = std::conditional_t<std::is_const_v<T>, const uint8_t, uint8_t>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(array) + static_cast<size_t>(index) * array->struct_size);
}

// Reads element `index`; mixed sizes are a mistake of the caller.
template <class T>
T read_sized_at(const T* array, int64_t index, const char* name) {
  require_struct_step(array->struct_size, name);
  const T* at = at_step(array, index);
  if (at->struct_size != array->struct_size) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}[{}].struct_size is {}, but that of element 0 is {}",
                                                            name, index, at->struct_size, array->struct_size));
  }
  return read_sized(at, name);
}

// Fills an array of the caller. Only the first struct_size and `next` must be set.
template <class T, class F>
void write_sized_array(T* array, int64_t count, const char* name, F&& value_at) {
  const uint32_t step = array->struct_size;
  require_struct_step(step, name);
  for (int64_t i = 0; i < count; ++i) {
    T* at = at_step(array, i);
    at->struct_size = step;
    if (i > 0) at->next = nullptr;
    write_sized(value_at(i), at, name);
  }
}

// The result of a two-call query: the entries that fit, and the count, which stays 0 on error.
template <class T, class F>
void write_list(T* array, int64_t capacity, int64_t count, const char* name, int64_t* out_count, F&& value_at) {
  if (capacity < 0)
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("capacity is {}; it must not be negative", capacity));
  if (capacity > 0) {
    require_not_null(array, name);
    write_sized_array(array, std::min(capacity, count), name, value_at);
  }
  *out_count = count;
}

// ---- What plugins hand out ------------------------------------------------------------------------------------------

// The struct_type of a struct that a plugin returns, and its minimum size.
struct PluginStructRow {
  uint32_t type;
  uint32_t least_size;
};
template <class T>
inline constexpr PluginStructRow plugin_struct_row{0, 0};
#define COMPUTE_PLUGIN_STRUCT_ROW(name, type, least_size) \
  template <>                                             \
  inline constexpr PluginStructRow plugin_struct_row<name>{type, least_size};
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_manifest, COMPUTE_PLUGIN_STRUCT_MANIFEST, COMPUTE_PLUGIN_MANIFEST_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_setting, COMPUTE_PLUGIN_STRUCT_SETTING, COMPUTE_PLUGIN_SETTING_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_telemetry, COMPUTE_PLUGIN_STRUCT_TELEMETRY, COMPUTE_PLUGIN_TELEMETRY_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_process, COMPUTE_PLUGIN_STRUCT_PROCESS, COMPUTE_PLUGIN_PROCESS_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_device_info, COMPUTE_PLUGIN_STRUCT_DEVICE_INFO,
                          COMPUTE_PLUGIN_DEVICE_INFO_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_property, COMPUTE_PLUGIN_STRUCT_PROPERTY, COMPUTE_PLUGIN_PROPERTY_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_requirement, COMPUTE_PLUGIN_STRUCT_REQUIREMENT,
                          COMPUTE_PLUGIN_REQUIREMENT_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_caps, COMPUTE_PLUGIN_STRUCT_CAPS, COMPUTE_PLUGIN_CAPS_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_heap, COMPUTE_PLUGIN_STRUCT_HEAP, COMPUTE_PLUGIN_HEAP_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_refusal, COMPUTE_PLUGIN_STRUCT_REFUSAL, COMPUTE_PLUGIN_REFUSAL_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_query_info, COMPUTE_PLUGIN_STRUCT_QUERY_INFO, COMPUTE_PLUGIN_QUERY_INFO_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_plan_info, COMPUTE_PLUGIN_STRUCT_PLAN_INFO, COMPUTE_PLUGIN_PLAN_INFO_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_vendor_op, COMPUTE_PLUGIN_STRUCT_VENDOR_OP, COMPUTE_PLUGIN_VENDOR_OP_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_vendor_dtype, COMPUTE_PLUGIN_STRUCT_VENDOR_DTYPE,
                          COMPUTE_PLUGIN_VENDOR_DTYPE_SIZE_1)
COMPUTE_PLUGIN_STRUCT_ROW(compute_plugin_kernel_info, COMPUTE_PLUGIN_STRUCT_KERNEL_INFO,
                          COMPUTE_PLUGIN_KERNEL_INFO_SIZE_1)
#undef COMPUTE_PLUGIN_STRUCT_ROW

[[noreturn]] inline void reject_plugin_struct(const char* what, const std::string& why) {
  throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, fmt::format("{} {}", what, why));
}

// Refuses unknown entries that must not be ignored: entries of the `next` chain, and flags 16 to 31, of which none are
// defined yet.
template <class T>
void require_understood(const T& value, const char* what) {
  constexpr uint32_t kMustUnderstand = 0xffff0000u;
  constexpr int kLongest = 64;
  const void* next = value.next;
  for (int i = 0; next != nullptr; ++i) {
    compute_struct_header entry;
    std::memcpy(&entry, next, sizeof entry);
    if (entry.struct_size < sizeof entry || i == kLongest) reject_plugin_struct(what, "has an invalid `next` chain");
    if ((entry.struct_type & COMPUTE_STRUCT_MUST_UNDERSTAND) != 0) {
      reject_plugin_struct(
          what, fmt::format("has a `next` entry of type {:#x}, which is not supported and must not be ignored",
                            entry.struct_type));
    }
    next = entry.next;
  }
  if constexpr (requires { value.flags; }) {
    if ((value.flags & kMustUnderstand) != 0) {
      reject_plugin_struct(what, fmt::format("has flags {:#x}; {:#x} is not supported and must not be ignored",
                                             value.flags, value.flags & kMustUnderstand));
    }
  }
}

// A struct of a plugin; fields that the plugin does not know are zero. Throws PLUGIN_REJECTED if it is invalid.
template <class T>
T read_plugin_struct(const T* given, const char* what) {
  constexpr PluginStructRow kRow = plugin_struct_row<T>;
  static_assert(kRow.type != 0);
  if (given == nullptr) reject_plugin_struct(what, "is NULL");
  if (given->struct_size < kRow.least_size || given->struct_size > kGreatestStruct || given->struct_type != kRow.type) {
    reject_plugin_struct(what, fmt::format("has struct_size {} and struct_type {}; expected at least {} and {}",
                                           given->struct_size, given->struct_type, kRow.least_size, kRow.type));
  }
  require_understood(*given, what);
  return copy_sized(given, given->struct_size);
}

// A string of a struct that the program sets. A size that was forgotten is an error, not an empty string.
inline compute_string string_in(const char* data, int64_t size, const char* name) {
  if (data == nullptr && size == 0) return {nullptr, 0};
  if (data != nullptr && size == -1) return {data, static_cast<int64_t>(std::strlen(data))};
  if (data == nullptr || size < 1) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{} is {} and its size is {}; use -1 for a NUL-terminated string", name,
                            data != nullptr ? "set" : "NULL", size));
  }
  return {data, size};
}

// Element `index` of an array of a plugin, which is stepped by the size of its first element.
template <class T>
T read_plugin_struct_at(const T* array, int64_t index, const char* what) {
  if (array->struct_size < plugin_struct_row<T>.least_size || array->struct_size > kGreatestStruct ||
      array->struct_size % alignof(T) != 0) {
    reject_plugin_struct(what,
                         fmt::format("has struct_size {}, which is not a valid array stride", array->struct_size));
  }
  const T* at = at_step(array, index);
  if (at->struct_size != array->struct_size) {
    reject_plugin_struct(
        what, fmt::format("has struct_size {}, but that of element 0 is {}", at->struct_size, array->struct_size));
  }
  return read_plugin_struct(at, what);
}

// The same for a struct that core made and the plugin filled.
template <class T>
void require_filled_struct(const T& value, const char* what) {
  if (value.struct_size != sizeof value || value.struct_type != plugin_struct_row<T>.type) {
    reject_plugin_struct(
        what, fmt::format("was returned with struct_size {} and struct_type {}", value.struct_size, value.struct_type));
  }
  require_understood(value, what);
}

}  // namespace compute
