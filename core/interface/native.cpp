// SPDX-License-Identifier: Apache-2.0
// The C interface of vendors' own handles.
#include <fmt/format.h>

#include "core/interface/about.hpp"
#include "core/memory/tensor.hpp"
#include "core/streams/stream.hpp"

using namespace compute;

namespace {

void require_native(const Device& device, bool is_there, const char* what) {
  device.require_usable();
  if (is_there) return;
  throw Error(COMPUTE_ERROR_UNSUPPORTED,
              fmt::format("{} does not provide native handles of {}{}", device.name, what,
                          device.is_host ? "; use compute_tensor_map to get addresses" : ""));
}

}  // namespace

extern "C" {

compute_error* compute_device_native_handle(compute_device* device, uint64_t* out_handle) {
  if (out_handle != nullptr) *out_handle = 0;
  return guard(about(device), [&] {
    require_not_null(out_handle, "out_handle");
    Device& self = checked(device);
    const Running running;
    require_native(self, self.native.has_device_handle(), "devices");
    self.check(self.native.device_handle(out_handle));
  });
}

compute_error* compute_stream_native_handle(compute_stream* stream, uint64_t* out_handle) {
  if (out_handle != nullptr) *out_handle = 0;
  return guard(about(stream), [&] {
    require_not_null(out_handle, "out_handle");
    compute_stream& self = checked(stream);
    const Running running;
    const NativeTable& native = self.device.native;
    require_native(self.device, native.has_stream_handle(), "streams");
    self.timeline.times.always_separate();
    self.device.check(native.stream_handle(self.timeline.plugin_stream, out_handle));
  });
}

compute_error* compute_tensor_native_handle(compute_tensor* tensor, uint64_t* out_handle, int64_t* out_offset_bytes) {
  if (out_handle != nullptr) *out_handle = 0;
  if (out_offset_bytes != nullptr) *out_offset_bytes = 0;
  return guard(about(tensor), [&] {
    require_not_null(out_handle, "out_handle");
    require_not_null(out_offset_bytes, "out_offset_bytes");
    Tensor& self = checked(tensor);
    const Running running;
    if (self.buffer == nullptr)
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "compute_tensor_native_handle: a scalar has no memory");
    Device& device = self.buffer->device;
    require_native(device, device.native.has_buffer_handle(), "memory");
    if (self.element_count == 0) return;  // an empty tensor has no memory
    wait_for_inherited(*self.buffer);
    device.check(device.native.buffer_handle(self.buffer->handle, out_handle));
    *out_offset_bytes = self.buffer->base_offset + self.offset_bytes;
  });
}

}  // extern "C"
