// SPDX-License-Identifier: Apache-2.0
// Structs whose size the other side chose: read what is there, write what fits.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/error.hpp"
#include "core/plugin.hpp"

namespace compute {

constexpr uint32_t kSmallestStruct = 16;     // struct_size, struct_type, next
constexpr uint32_t kGreatestStruct = 65536;  // beyond it the size was never set

inline void require_struct_size(uint32_t size, const char* name) {
  if (size < kSmallestStruct || size > kGreatestStruct) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}.struct_size is {}; set it to sizeof the struct", name, size));
  }
}

// The same for the step of an array, whose elements are aligned.
inline void require_struct_step(uint32_t size, const char* name) {
  require_struct_size(size, name);
  if (size % alignof(void*) != 0) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}.struct_size is {}, no multiple of {}: its elements would not be aligned", name, size, alignof(void*)));
  }
}

// A struct of the caller, with zeros for what its program did not know.
template <class T>
T read_sized(const T* given, const char* name) {
  require_struct_size(given->struct_size, name);
  return copy_sized(given, given->struct_size);
}

// The COMPUTE_STRUCT_ of a struct that core fills for programs.
template <class T>
inline constexpr uint32_t struct_type_of = COMPUTE_STRUCT_NONE;
template <>
inline constexpr uint32_t struct_type_of<compute_device_info> = COMPUTE_STRUCT_DEVICE_INFO;
template <>
inline constexpr uint32_t struct_type_of<compute_device_attribute> = COMPUTE_STRUCT_DEVICE_ATTRIBUTE;
template <>
inline constexpr uint32_t struct_type_of<compute_device_statistics> = COMPUTE_STRUCT_DEVICE_STATISTICS;
template <>
inline constexpr uint32_t struct_type_of<compute_op_info> = COMPUTE_STRUCT_OP_INFO;
template <>
inline constexpr uint32_t struct_type_of<compute_graph_info> = COMPUTE_STRUCT_GRAPH_INFO;

// Zeroes an out-struct of any size but for its size and `next`: stands before whatever can fail. A size that cannot be one is left
// to write_sized to report.
template <class T>
void clear_sized(T* out) noexcept {
  static_assert(struct_type_of<T> != COMPUTE_STRUCT_NONE);
  if (out == nullptr || out->struct_size < kSmallestStruct || out->struct_size > kGreatestStruct) return;
  out->struct_type = struct_type_of<T>;
  std::memset(reinterpret_cast<uint8_t*>(out) + kSmallestStruct, 0, out->struct_size - kSmallestStruct);
}

// Writes a struct that the caller may have compiled smaller or larger than ours: every byte of it.
template <class T>
void write_sized(const T& value, T* out, const char* name) {
  require_struct_size(out->struct_size, name);
  clear_sized(out);
  const size_t known = std::min<size_t>(out->struct_size, sizeof value);
  std::memcpy(reinterpret_cast<uint8_t*>(out) + kSmallestStruct, reinterpret_cast<const uint8_t*>(&value) + kSmallestStruct,
              known - kSmallestStruct);
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
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}[{}].struct_size is {}, that of the first is {}", name, index,
                                                            at->struct_size, array->struct_size));
  }
  return copy_sized(at, at->struct_size);
}

// Fills an array of the caller, of which only the first struct_size and `next` need be set.
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

}  // namespace compute
