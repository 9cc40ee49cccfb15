// SPDX-License-Identifier: Apache-2.0
#include "core/interface/dlpack.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "core/execution/life.hpp"
#include "core/execution/opened_devices.hpp"
#include "core/memory/tensor.hpp"

using namespace compute;

namespace {

constexpr const char* kFrom = "compute_tensor_from_dlpack";
constexpr const char* kTo = "compute_tensor_to_dlpack";

struct DtypeCode {
  compute_dtype dtype;
  uint8_t code;
  uint8_t bits;
};

constexpr DtypeCode kCodes[] = {
    {COMPUTE_DTYPE_BOOL, kDlBool, 8},
    {COMPUTE_DTYPE_INT8, kDlInt, 8},
    {COMPUTE_DTYPE_INT16, kDlInt, 16},
    {COMPUTE_DTYPE_INT32, kDlInt, 32},
    {COMPUTE_DTYPE_INT64, kDlInt, 64},
    {COMPUTE_DTYPE_UINT8, kDlUint, 8},
    {COMPUTE_DTYPE_UINT16, kDlUint, 16},
    {COMPUTE_DTYPE_UINT32, kDlUint, 32},
    {COMPUTE_DTYPE_UINT64, kDlUint, 64},
    {COMPUTE_DTYPE_FLOAT16, kDlFloat, 16},
    {COMPUTE_DTYPE_BFLOAT16, kDlBfloat, 16},
    {COMPUTE_DTYPE_FLOAT32, kDlFloat, 32},
    {COMPUTE_DTYPE_FLOAT64, kDlFloat, 64},
    {COMPUTE_DTYPE_COMPLEX64, kDlComplex, 64},
    {COMPUTE_DTYPE_COMPLEX128, kDlComplex, 128},
};

compute_dtype dtype_of(const DLDataType& type) {
  for (const DtypeCode& row : kCodes) {
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return row.dtype;
  }
  throw Error(COMPUTE_ERROR_UNSUPPORTED,
              fmt::format("{}: managed->dl_tensor.dtype: no dtype has code {}, {} bits and {} lanes", kFrom, type.code,
                          type.bits, type.lanes));
}

void call_deleter(void*, void* user_data) {
  auto* managed = static_cast<DLManagedTensorVersioned*>(user_data);
  if (managed->deleter != nullptr) managed->deleter(managed);
}

// An export: what the consumer holds, and what keeps the memory alive.
struct Export {
  DLManagedTensorVersioned managed{};
  TensorReference tensor;
  std::array<int64_t, 2 * COMPUTE_MAX_RANK> dims{};
  bool exposes = false;
};

void delete_export(DLManagedTensorVersioned* managed) {
  std::unique_ptr<Export> exported(static_cast<Export*>(managed->manager_ctx));
  const InUse in_use;
  Buffer& buffer = *exported->tensor->buffer;
  if (!in_use.may_go_on()) {
    give_back_export(buffer.device);
    return;
  }
  buffer.device.exports.fetch_sub(1, std::memory_order_acq_rel);
  if (!exported->exposes) return;
  buffer.version.fetch_add(1, std::memory_order_acq_rel);
  buffer.exposed.fetch_sub(1, std::memory_order_acq_rel);
}

void self_import(DLManagedTensorVersioned* managed, compute_tensor** out_tensor) {
  const Tensor& from = *static_cast<Export*>(managed->manager_ctx)->tensor;
  *out_tensor = make_view(from, from.dtype, from.shape_span(), from.strides_span(), from.offset_bytes);
  delete_export(managed);
}

}  // namespace

extern "C" {

compute_error* compute_tensor_from_dlpack(DLManagedTensorVersioned* managed, compute_tensor** out_tensor) {
  if (out_tensor != nullptr) *out_tensor = nullptr;
  return guard([&] {
    require_not_null(out_tensor, "out_tensor");
    require_not_null(managed, "managed");
    const Running running;
    if (managed->version.major != 1) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{}: managed->version is {}.{}; 1.x is understood", kFrom,
                                                         managed->version.major, managed->version.minor));
    }
    if (managed->deleter ==
        delete_export) {  // one of ours comes home: it shares its buffer, and with it hazards and overlaps
      self_import(managed, out_tensor);
      return;
    }
    const DLTensor& given = managed->dl_tensor;
    const compute_dtype dtype = dtype_of(given.dtype);
    if (given.ndim > 0) require_not_null(given.shape, "managed->dl_tensor.shape");
    constexpr const char* kTensor = "compute_tensor_from_dlpack: managed->dl_tensor";
    const int64_t count = checked_shape(kTensor, dtype, given.ndim, given.shape);
    if (count > 0) require_not_null(given.data, "managed->dl_tensor.data");
    const std::span<const int64_t> shape(given.shape, static_cast<size_t>(given.ndim));
    auto* data = reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(given.data) + given.byte_offset);
    const bool read_only = (managed->flags & kDlReadOnly) != 0;
    if (given.device.device_type == kDlCpu || given.device.device_type == kDlPinnedHost) {
      *out_tensor = wrap_host_memory(kTensor, dtype, shape, given.strides, data,
                                     read_only ? COMPUTE_WRAP_IMMUTABLE : COMPUTE_WRAP_EXPOSED, call_deleter, managed);
      return;
    }
    const auto settled = settled_strides(shape, given.strides);
    const std::span<const int64_t> strides(settled.data(), shape.size());
    const Reach reach = checked_reach(kTensor, dtype, shape, strides, data);
    for (Device* device : open_devices()) {
      if (!device->table.has_memory_import()) continue;
      compute_plugin_import import{};
      import.struct_size = sizeof import;
      import.struct_type = COMPUTE_PLUGIN_STRUCT_IMPORT;
      import.dlpack_device_type = given.device.device_type;
      import.dlpack_device_id = given.device.device_id;
      import.data = data + reach.low;
      import.size_bytes = reach.high - reach.low;
      uint64_t handle = 0;
      if (compute_error* refused = device->table.memory_import(import, &handle)) {
        Error error = Error::adopt(refused);
        if (error.code == COMPUTE_ERROR_UNSUPPORTED) continue;  // another device's memory
        error.message = fmt::format("{}: {} could not import the memory: {}", kFrom, device->name, error.message);
        throw error;
      }
      BufferReference buffer(new Buffer(*device, import.size_bytes));
      buffer->handle = handle;
      buffer->imported = true;
      auto tensor = std::make_unique<Tensor>(std::move(buffer), dtype, shape, strides, -reach.low);
      tensor->buffer->deleter = call_deleter;
      tensor->buffer->deleter_user = managed;
      *out_tensor = tensor.release();
      return;
    }
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("{}: no open device takes memory of managed->dl_tensor.device, DLPack's device type {}",
                            kFrom, given.device.device_type));
  });
}

compute_error* compute_tensor_to_dlpack(compute_tensor* tensor, int64_t stream,
                                        DLManagedTensorVersioned** out_managed) {
  if (out_managed != nullptr) *out_managed = nullptr;
  return guard([&] {
    require_not_null(out_managed, "out_managed");
    Tensor& self = checked(tensor);
    const Running running;
    if (self.buffer == nullptr)
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: a scalar has no memory", kTo));
    Device& device = self.buffer->device;
    DLDevice place = {kDlCpu, 0};
    uint8_t* base = nullptr;
    if (device.is_host) {
      bring_home(*self.buffer);
      base = self.buffer->host_address();
    } else {
      device.require_usable();
      if (!device.native.has_dlpack_device() || !device.native.has_buffer_handle()) {
        throw Error(COMPUTE_ERROR_UNSUPPORTED,
                    fmt::format("{}: {} exports no memory; move the tensor to cpu", kTo, device.name));
      }
      device.check(device.native.dlpack_device(&place.device_type, &place.device_id));
      uint64_t handle = 0;
      if (self.element_count > 0) device.check(device.native.buffer_handle(self.buffer->handle, &handle));
      base = reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(handle)) + self.buffer->base_offset;
    }
    auto exported = std::make_unique<Export>();
    self.retain();
    exported->tensor.reset(&self);
    DLManagedTensorVersioned& managed = exported->managed;
    managed.version = {1, 1};
    managed.manager_ctx = exported.get();
    managed.deleter = delete_export;
    exported->exposes = self.buffer->promise != COMPUTE_WRAP_IMMUTABLE;
    managed.flags = exported->exposes ? 0 : uint64_t{kDlReadOnly};
    for (int32_t i = 0; i < self.rank; ++i) {
      exported->dims[static_cast<size_t>(i)] = self.shape()[i];
      exported->dims[static_cast<size_t>(COMPUTE_MAX_RANK + i)] = self.strides()[i];
    }
    DLTensor& view = managed.dl_tensor;
    view.data = self.element_count > 0 ? base + self.offset_bytes : nullptr;
    view.device = place;
    view.ndim = self.rank;
    for (const DtypeCode& row : kCodes) {
      if (row.dtype == self.dtype) view.dtype = {row.code, row.bits, 1};
    }
    view.shape = exported->dims.data();
    view.strides = exported->dims.data() + COMPUTE_MAX_RANK;
    view.byte_offset = 0;
    // Work of the consumer's stream then comes after all that is pending here, whichever stream that is.
    if (stream != -1) {
      wait_for_buffer(*self.buffer, true);
    } else {
      require_values(*self.buffer);
      wait_for_inherited(*self.buffer);  // of which the consumer cannot know
    }
    if (exported->exposes) self.buffer->exposed.fetch_add(1, std::memory_order_acq_rel);
    device.exports.fetch_add(1, std::memory_order_acq_rel);
    *out_managed = &exported.release()->managed;
  });
}

}  // extern "C"
