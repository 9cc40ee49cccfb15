// SPDX-License-Identifier: Apache-2.0
// Which device a call is about, for its errors.
#pragma once

#include <compute/compute.h>

#include <tuple>

#include "core/base/error.hpp"
#include "core/devices/device.hpp"
#include "core/memory/tensor.hpp"
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

// The handles that a call is about.
template <class... Handles>
struct About {
  std::tuple<const Handles*...> handles;

  const Device* device() const noexcept {
    const Device* found = nullptr;
    std::apply([&](const auto*... each) { ((found = found != nullptr ? found : device_named_by(each)), ...); },
               handles);
    return found;
  }
};

template <class... Handles>
About<Handles...> about(const Handles*... handles) noexcept {
  return {{handles...}};
}

// guard() whose error names the device of the first handle that has one.
template <class World = CallerWorld, class F, class... Handles>
compute_error* guard(const About<Handles...>& subject, F&& f, const char* function = __builtin_FUNCTION()) noexcept {
  const auto run = [&] {
    try {
      f();
    } catch (Error& error) {
      const Device* device = subject.device();
      if (device != nullptr && error.device.empty()) error.device = device->name;
      throw;
    }
  };
  return guard<World>(run, function);
}

}  // namespace compute
