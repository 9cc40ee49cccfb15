// SPDX-License-Identifier: Apache-2.0
// The C interface of vendors' own handles.
#include <fmt/format.h>

#include "core/stream.hpp"
#include "core/tensor.hpp"

using namespace compute;

namespace {

// The plugin's function for one kind of handle.
template <class F>
F native_function(const Device& device, F compute_plugin_native_table::* slot, const char* what) {
  device.require_usable();
  if (device.native != nullptr && device.native->*slot != nullptr) return device.native->*slot;
  throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{} hands out no native handles of {}{}", device.name, what,
                                                     device.is_host ? "; compute_tensor_map gives addresses" : ""));
}

}  // namespace

extern "C" {

compute_error* compute_device_native_handle(compute_device* device, uint64_t* out_handle) {
  if (out_handle != nullptr) *out_handle = 0;
  return guard([&] {
    require_not_null(out_handle, "out_handle");
    Device& self = checked(device);
    const Running running;
    self.check(native_function(self, &compute_plugin_native_table::device_handle, "devices")(self.plugin_device, out_handle));
  });
}

compute_error* compute_stream_native_handle(compute_stream* stream, uint64_t* out_handle) {
  if (out_handle != nullptr) *out_handle = 0;
  return guard([&] {
    require_not_null(out_handle, "out_handle");
    compute_stream& self = checked(stream);
    const Running running;
    self.device.check(native_function(self.device, &compute_plugin_native_table::stream_handle, "streams")(self.timeline.plugin_stream,
                                                                                                         out_handle));
  });
}

compute_error* compute_tensor_native_handle(compute_tensor* tensor, uint64_t* out_handle, int64_t* out_offset_bytes) {
  if (out_handle != nullptr) *out_handle = 0;
  if (out_offset_bytes != nullptr) *out_offset_bytes = 0;
  return guard([&] {
    require_not_null(out_handle, "out_handle");
    require_not_null(out_offset_bytes, "out_offset_bytes");
    Tensor& self = checked(tensor);
    const Running running;
    if (self.buffer == nullptr) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "compute_tensor_native_handle: a scalar has no memory");
    Device& device = self.buffer->device;
    const auto handle_of = native_function(device, &compute_plugin_native_table::buffer_handle, "memory");
    if (self.element_count == 0) return;  // without elements there is no memory
    device.check(handle_of(device.plugin_device, self.buffer->handle, out_handle));
    *out_offset_bytes = self.buffer->base_offset + self.offset_bytes;
  });
}

}  // extern "C"
