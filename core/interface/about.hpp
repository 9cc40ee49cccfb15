// SPDX-License-Identifier: Apache-2.0
// Which device a call is about, for its errors.
#pragma once

#include <compute/compute.h>

#include <utility>

#include "core/base/error.hpp"
#include "core/memory/tensor.hpp"
#include "core/selection/device.hpp"
#include "core/streams/timeline.hpp"

namespace compute {

// The device of a handle that may be NULL or released; NULL if there is none.
template <class T>
const Device* device_named_by(const T* handle) noexcept {
  if (handle == nullptr || !handle->is_alive()) return nullptr;
  if constexpr (requires { handle->timeline.device; }) {
    return &handle->timeline.device;
  } else if constexpr (requires { handle->buffer; }) {
    return handle->buffer != nullptr ? &handle->buffer->device : nullptr;
  } else if constexpr (requires { handle->device.table; }) {
    return &handle->device;
  } else {
    return handle;
  }
}

// guard() whose error names the device of the first of `handles` that has one.
template <class F, class... Handles>
compute_error* guard_about(const char* function, F&& f, const Handles*... handles) noexcept {
  const auto run = [&] {
    try {
      f();
    } catch (Error& error) {
      const Device* device = nullptr;
      ((device = device != nullptr ? device : device_named_by(handles)), ...);
      if (device != nullptr && error.device.empty()) error.device = device->name;
      throw;
    }
  };
  return guard(run, function);
}

}  // namespace compute
