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

constexpr uint32_t kSmallestStruct = 16;  // struct_size, struct_type, next

inline void require_struct_size(uint32_t size, const char* name) {
  if (size < kSmallestStruct) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}.struct_size is {}; set it to sizeof the struct", name, size));
  }
}

// A struct of the caller, with zeros for what its program did not know.
template <class T>
T read_sized(const T* given, const char* name) {
  require_struct_size(given->struct_size, name);
  return copy_sized(given, given->struct_size);
}

// Writes a struct that the caller may have compiled smaller or larger than ours.
template <class T>
void write_sized(const T& value, T* out, const char* name = "struct") {
  const uint32_t size = out->struct_size, type = out->struct_type;
  const void* next = out->next;
  require_struct_size(size, name);
  std::memcpy(static_cast<void*>(out), &value, std::min<size_t>(size, sizeof value));
  out->struct_size = size;
  out->struct_type = type;
  out->next = next;
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
  require_struct_size(array->struct_size, name);
  const T* at = at_step(array, index);
  if (at->struct_size != array->struct_size) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}[{}].struct_size is {}, that of the first is {}", name, index,
                                                            at->struct_size, array->struct_size));
  }
  return copy_sized(at, at->struct_size);
}

// Fills an array of the caller. Only its first struct_size need be set.
template <class T, class F>
void write_sized_array(T* array, int64_t count, const char* name, F&& value_at) {
  const uint32_t step = array->struct_size;
  require_struct_size(step, name);
  for (int64_t i = 0; i < count; ++i) {
    T* at = at_step(array, i);
    at->struct_size = step;
    write_sized(value_at(i), at, name);
  }
}

}  // namespace compute
