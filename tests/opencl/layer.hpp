// SPDX-License-Identifier: Apache-2.0
// What the two functions of a layer, as cl_layer.h declares them, have in common.
#pragma once

#include <CL/cl_layer.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

// The result of clGetLayerInfo; `text` is the layer's name.
template <size_t kSize>
cl_int layer_info(const char (&text)[kSize], cl_layer_info name, size_t size, void* value, size_t* out_size) {
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  const bool is_version = name == CL_LAYER_API_VERSION;
  if (!is_version && name != CL_LAYER_NAME) return CL_INVALID_VALUE;
  const size_t source_size = is_version ? sizeof version : kSize;
  if (value != nullptr) {
    if (size < source_size) return CL_INVALID_VALUE;
    std::memcpy(value, is_version ? static_cast<const void*>(&version) : text, source_size);
  }
  if (out_size != nullptr) *out_size = source_size;
  return CL_SUCCESS;
}

// The result of clInitLayer. `replace` sets the functions that the layer has in a copy of the table `next`.
template <class F>
cl_int start_layer(cl_uint count, const cl_icd_dispatch* next, cl_uint* out_count, const cl_icd_dispatch** out_dispatch,
                   const F& replace) {
  constexpr cl_uint kCount = sizeof(cl_icd_dispatch) / sizeof(void*);
  // The loader's table may be shorter than this header's: missing functions are never called.
  static cl_icd_dispatch dispatch{};
  std::memcpy(static_cast<void*>(&dispatch), next, std::min(count, kCount) * sizeof(void*));
  replace(dispatch);
  *out_count = kCount;
  *out_dispatch = &dispatch;
  return CL_SUCCESS;
}
