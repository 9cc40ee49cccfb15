// SPDX-License-Identifier: Apache-2.0
// The C interface of the objects below a plugin.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/base/sized.hpp"
#include "core/interface/about.hpp"
#include "core/memory/tensor.hpp"
#include "core/runner/planned_call.hpp"
#include "core/streams/stream.hpp"

using namespace compute;

namespace {

// Zeroes the struct of the program, which may be of a kind that this library does not know, and gives it its type. An
// invalid size is left for require_handle to report.
void clear_handle(uint32_t kind, void* out_handle) noexcept {
  auto* out = static_cast<compute_struct_header*>(out_handle);
  if (out == nullptr || out->struct_size < kSmallestStruct || out->struct_size > kGreatestStruct) return;
  out->struct_type = kind;
  std::memset(out + 1, 0, out->struct_size - sizeof *out);
}

void require_handle(const void* out_handle) {
  require_not_null(out_handle, "out_handle");
  const auto& out = *static_cast<const compute_struct_header*>(out_handle);
  require_struct_size(out.struct_size, "out_handle");
  check_chain(out.next, "out_handle");
}

// `fill` calls the plugin.
template <class Fill>
void give_handle(Device& device, uint32_t kind, void* out_handle, const char* what, Fill&& fill) {
  device.require_usable();
  if (device.is_host) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("{} does not provide native handles of {} of kind {}", device.name, what, kind));
  }
  try {
    device.check(fill());
  } catch (...) {
    clear_handle(kind, out_handle);
    throw;
  }
}

// The memory of `cpu` itself.
void give_address(Tensor& tensor, void* out_handle) {
  bring_home(*tensor.buffer);
  require_values(*tensor.buffer);
  wait_for_inherited(*tensor.buffer);
  if (tensor.buffer->promise != COMPUTE_WRAP_IMMUTABLE) forget_copies(*tensor.buffer);
  if (tensor.element_count == 0) return;
  const compute_native_host value{0, 0, nullptr, tensor.buffer->host_address() + tensor.offset_bytes};
  const size_t size =
      std::min<size_t>(static_cast<const compute_struct_header*>(out_handle)->struct_size, sizeof value);
  std::memcpy(static_cast<uint8_t*>(out_handle) + kSmallestStruct,
              reinterpret_cast<const uint8_t*>(&value) + kSmallestStruct, size - kSmallestStruct);
}

}  // namespace

extern "C" {

compute_error* compute_device_native_handle(compute_device* device, uint32_t kind, void* out_handle) {
  clear_handle(kind, out_handle);
  return guard(about(device), [&] {
    require_handle(out_handle);
    Device& self = checked(device);
    const Running running;
    give_handle(self, kind, out_handle, "devices", [&] { return self.native.device_handle(kind, out_handle); });
  });
}

compute_error* compute_stream_native_handle(compute_stream* stream, uint32_t kind, void* out_handle) {
  clear_handle(kind, out_handle);
  return guard(about(stream), [&] {
    require_handle(out_handle);
    compute_stream& self = checked(stream);
    const Running running;
    give_handle(self.device, kind, out_handle, "streams", [&] {
      self.timeline.times.always_separate();
      const std::lock_guard guard(self.timeline.lock);
      return self.device.native.stream_handle(self.timeline.plugin_stream, kind, out_handle);
    });
  });
}

compute_error* compute_tensor_native_handle(compute_tensor* tensor, uint32_t kind, void* out_handle) {
  clear_handle(kind, out_handle);
  return guard(about(tensor), [&] {
    require_handle(out_handle);
    Tensor& self = checked(tensor);
    const Running running;
    if (self.buffer == nullptr)
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "compute_tensor_native_handle: a scalar has no memory");
    Device& device = self.buffer->device;
    if (device.is_host && kind == COMPUTE_NATIVE_HOST) return give_address(self, out_handle);
    give_handle(device, kind, out_handle, "memory", [&]() -> compute_error* {
      if (self.element_count == 0) return device.native.device_handle(kind, out_handle);  // it has no memory
      wait_for_inherited(*self.buffer);
      return device.native.buffer_handle(operand_at(*self.buffer, self.offset_bytes), kind, out_handle);
    });
  });
}

}  // extern "C"
