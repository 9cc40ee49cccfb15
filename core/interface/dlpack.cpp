// SPDX-License-Identifier: Apache-2.0
#include "core/interface/dlpack.hpp"
#include "core/interface/about.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "core/devices/opened_devices.hpp"
#include "core/lifetime/life.hpp"
#include "core/lifetime/open_device.hpp"
#include "core/memory/tensor.hpp"
#include "core/process/log.hpp"
#include "core/runner/planned_call.hpp"
#include "core/streams/timeline.hpp"

using namespace compute;

namespace {

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
    {COMPUTE_DTYPE_FLOAT8_E4M3FN, kDlFloat8E4m3fn, 8},
    {COMPUTE_DTYPE_FLOAT8_E5M2, kDlFloat8E5m2, 8},
};

// `what` is the DLTensor's name in messages.
compute_dtype dtype_of(const DLDataType& type, const std::string& what) {
  for (const DtypeCode& row : kCodes) {
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return row.dtype;
  }
  throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{}.dtype: code {}, {} bits and {} lanes are not supported", what,
                                                     type.code, type.bits, type.lanes));
}

// ---- The two structs ------------------------------------------------------------------------------------------------

// The first fields of a DLTensor.
struct DlTensorStart {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
};

// Whether bytes look like a DLTensor: its numbers are small, unlike pointers.
bool looks_like_tensor(const DlTensorStart& start) {
  return start.device.device_type > 0 && start.device.device_type < 64 && start.device.device_id >= 0 &&
         start.device.device_id < 4096 && start.ndim >= 0 && start.ndim <= 64 && start.dtype.code < 64 &&
         start.dtype.bits > 0 && start.dtype.lanes > 0;
}

void require_version(const char* who, const DLManagedTensorVersioned& managed) {
  if (managed.version.major == 1) return;
  DlTensorStart start;  // an unversioned struct begins with its DLTensor
  std::memcpy(&start, &managed, sizeof start);
  if (looks_like_tensor(start)) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{0}: managed has no version: this looks like an "
                                                            "unversioned DLManagedTensor; pass it to {0}_unversioned",
                                                            who));
  }
  throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{}: managed->version is {}.{}; only 1.x is supported", who,
                                                     managed.version.major, managed.version.minor));
}

void require_version(const char* who, const DLManagedTensor& managed) {
  DLPackVersion version;  // which a versioned struct begins with
  std::memcpy(&version, &managed, sizeof version);
  DlTensorStart start;
  std::memcpy(&start, &managed, sizeof start);
  if (version.major != 1 || version.minor >= 4096 || looks_like_tensor(start)) return;
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
              fmt::format("{}: this looks like a DLManagedTensorVersioned of version {}.{}; pass it to "
                          "compute_tensor_from_dlpack",
                          who, version.major, version.minor));
}

bool is_read_only(const DLManagedTensorVersioned& managed) { return (managed.flags & kDlReadOnly) != 0; }
bool is_read_only(const DLManagedTensor&) { return false; }

template <class Managed>
void call_deleter(void*, void* user_data) {
  auto* managed = static_cast<Managed*>(user_data);
  if (managed->deleter != nullptr) managed->deleter(managed);
}

// An export: the consumer's struct, and the reference that keeps the memory alive.
template <class Managed>
struct Export {
  Managed managed{};
  TensorReference tensor;
  std::array<int64_t, 2 * COMPUTE_MAX_RANK> dims{};
  bool exposes = false;
};

template <class Managed>
void delete_export(Managed* managed) {
  std::unique_ptr<Export<Managed>> exported(static_cast<Export<Managed>*>(managed->manager_ctx));
  const InUse in_use;
  Buffer& buffer = *exported->tensor->buffer;
  if (is_shut_down()) {
    give_back_export(buffer.device);
    return;
  }
  buffer.device.exports.fetch_sub(1, std::memory_order_acq_rel);
  if (!exported->exposes) return;
  buffer.version.fetch_add(1, std::memory_order_acq_rel);
  buffer.exposed.fetch_sub(1, std::memory_order_acq_rel);
}

// ---- Import ---------------------------------------------------------------------------------------------------------

// A tensor from another library, and its deleter.
struct Import {
  const char* who;  // the function, for messages
  std::string what;
  const DLTensor& tensor;
  bool read_only;
  compute_deleter deleter;
  void* managed;
};

// Memory of a device, by the first open device that takes it.
Tensor* import_device_memory(const Import& from, compute_dtype dtype, std::span<const int64_t> shape) {
  const DLTensor& given = from.tensor;
  const bool is_object =
      given.device.device_type == kDlMemoryObject;  // `data` is not an address, and the offset starts at 0
  auto* first = reinterpret_cast<uint8_t*>((is_object ? 0 : reinterpret_cast<uintptr_t>(given.data)) +
                                           static_cast<uintptr_t>(given.byte_offset));
  constexpr uint64_t kGreatestOffset = uint64_t{1} << 60;
  if (is_object && given.byte_offset > kGreatestOffset) {
    throw Error(COMPUTE_ERROR_OUT_OF_RANGE,
                fmt::format("{}.byte_offset {} exceeds the address space", from.what, given.byte_offset));
  }
  const int64_t alignment = is_complex(dtype) ? dtype_size(dtype) / 2 : dtype_size(dtype);
  if (reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(alignment) != 0) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: {} is not aligned to {} bytes", from.what,
                                                            is_object ? "byte_offset" : "data", alignment));
  }
  const auto settled = settled_strides(shape, given.strides);
  const std::span<const int64_t> strides(settled.data(), shape.size());
  const Reach reach = checked_reach(from.what.c_str(), dtype, shape, strides, first);
  compute_plugin_import import{};
  import.struct_size = sizeof import;
  import.struct_type = COMPUTE_PLUGIN_STRUCT_IMPORT;
  import.dlpack_device_type = given.device.device_type;
  import.dlpack_device_id = given.device.device_id;
  import.data = is_object ? given.data : first + reach.low;
  const int64_t offset = is_object ? static_cast<int64_t>(given.byte_offset) : -reach.low;
  import.size_bytes = reach.high > reach.low ? offset + reach.high : 0;
  std::string refusals;
  for (Device* device : open_devices()) {
    if (!device->table.has_memory_import()) continue;
    uint64_t handle = 0;
    if (compute_error* refused = device->table.memory_import(import, &handle)) {
      Error error = Error::adopt(refused);
      if (error.code == COMPUTE_ERROR_UNSUPPORTED) {  // another device's memory
        refusals += fmt::format("{}{}: {}", refusals.empty() ? " (" : "; ", device->name, error.message);
        continue;
      }
      error.message = fmt::format("{}: {} could not import the memory: {}", from.who, device->name, error.message);
      throw error;
    }
    BufferReference buffer(new Buffer(*device, import.size_bytes));
    buffer->handle = handle;
    buffer->imported = true;
    if (!is_object) buffer->misalignment = static_cast<int64_t>(reinterpret_cast<uintptr_t>(import.data) % 64);
    auto tensor = std::make_unique<Tensor>(std::move(buffer), dtype, shape, strides, offset);
    tensor->buffer->deleter = from.deleter;
    tensor->buffer->deleter_user = from.managed;
    return tensor.release();
  }
  throw Error(COMPUTE_ERROR_UNSUPPORTED,
              fmt::format("{}: no open device imports memory of managed->dl_tensor.device, DLPack device type {}{}{}",
                          from.who, given.device.device_type, refusals, refusals.empty() ? "" : ")"));
}

Tensor* import_memory(const Import& from) {
  const DLTensor& given = from.tensor;
  const compute_dtype dtype = dtype_of(given.dtype, from.what);
  if (given.ndim > 0) require_not_null(given.shape, "managed->dl_tensor.shape");
  const int64_t count = checked_shape(from.what.c_str(), dtype, given.ndim, given.shape);
  if (count > 0) require_not_null(given.data, "managed->dl_tensor.data");
  const std::span<const int64_t> shape(given.shape, static_cast<size_t>(given.ndim));
  if (given.device.device_type != kDlCpu && given.device.device_type != kDlPinnedHost)
    return import_device_memory(from, dtype, shape);
  auto* data = reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(given.data) + given.byte_offset);
  return wrap_host_memory(from.what.c_str(), dtype, shape, given.strides, data,
                          from.read_only ? COMPUTE_WRAP_IMMUTABLE : COMPUTE_WRAP_EXPOSED, from.deleter, from.managed);
}

template <class Managed>
compute_error* import_tensor(const char* who, Managed* managed, compute_tensor** out_tensor) {
  if (out_tensor != nullptr) *out_tensor = nullptr;
  return guard(
      [&] {
        require_not_null(out_tensor, "out_tensor");
        require_not_null(managed, "managed");
        const Running running;
        require_version(who, *managed);
        if (managed->deleter == delete_export<Managed>) {
          // A tensor of this library returns: it shares its buffer, and so hazards and overlaps.
          const Tensor& from = *static_cast<Export<Managed>*>(managed->manager_ctx)->tensor;
          *out_tensor = make_view(from, from.dtype, from.shape_span(), from.strides_span(), from.offset_bytes);
          delete_export(managed);
          return;
        }
        *out_tensor = import_memory({who, fmt::format("{}: managed->dl_tensor", who), managed->dl_tensor,
                                     is_read_only(*managed), call_deleter<Managed>, managed});
      },
      who);
}

// ---- Export ---------------------------------------------------------------------------------------------------------

Tensor& checked_memory(const char* who, compute_tensor* tensor) {
  Tensor& self = checked(tensor);
  if (self.buffer == nullptr)
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: a scalar has no memory", who));
  return self;
}

// The tensor as another library sees it. Host memory is brought up to date.
DLTensor view_of(const char* who, Tensor& self, int64_t* shape, int64_t* strides) {
  Device& device = self.buffer->device;
  DLTensor view{};
  view.device = {kDlCpu, 0};
  if (device.is_host) {
    bring_home(*self.buffer);
    if (self.element_count > 0) view.data = self.buffer->host_address() + self.offset_bytes;
  } else {
    device.require_usable();
    if (!device.native.has_dlpack()) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED,
                  fmt::format("{}: {} does not export memory; move the tensor to cpu", who, device.name));
    }
    compute_native_dlpack named = device.native.dlpack();
    if (self.element_count > 0)
      device.check(
          device.native.buffer_handle(operand_at(*self.buffer, self.offset_bytes), COMPUTE_NATIVE_DLPACK, &named));
    view.device = {named.device_type, named.device_id};
    view.data = reinterpret_cast<void*>(named.data);
    view.byte_offset = named.byte_offset;
  }
  view.ndim = self.rank;
  for (const DtypeCode& row : kCodes) {
    if (row.dtype == self.dtype) view.dtype = {row.code, row.bits, 1};
  }
  view.shape = shape;
  view.strides = strides;
  return view;
}

// Work of the consumer's stream then comes after all that is pending here, whichever stream that is.
void order_consumer(Tensor& self, int64_t stream) {
  if (stream != -1) {
    wait_for_buffer(*self.buffer, true);
  } else {
    require_values(*self.buffer);
    wait_for_inherited(*self.buffer);  // which the consumer cannot know about
  }
}

void fill_header(DLManagedTensorVersioned& managed, bool is_writable) {
  managed.version = {1, 1};
  managed.flags = is_writable ? 0 : uint64_t{kDlReadOnly};
}
void fill_header(DLManagedTensor&, bool is_writable) {
  if (is_writable) return;
  throw Error(COMPUTE_ERROR_UNSUPPORTED,
              "compute_tensor_to_dlpack_unversioned: the memory is immutable, which only "
              "DLManagedTensorVersioned can express; use compute_tensor_to_dlpack");
}

template <class Managed>
compute_error* export_tensor(const char* who, compute_tensor* tensor, int64_t stream, Managed** out_managed) {
  if (out_managed != nullptr) *out_managed = nullptr;
  return guard(
      [&] {
        require_not_null(out_managed, "out_managed");
        Tensor& self = checked_memory(who, tensor);
        const Running running;
        auto exported = std::make_unique<Export<Managed>>();
        Managed& managed = exported->managed;
        exported->exposes = self.buffer->promise != COMPUTE_WRAP_IMMUTABLE;
        fill_header(managed, exported->exposes);
        for (size_t i = 0; i < static_cast<size_t>(self.rank); ++i) {
          exported->dims[i] = self.shape()[i];
          exported->dims[COMPUTE_MAX_RANK + i] = self.strides()[i];
        }
        managed.dl_tensor = view_of(who, self, exported->dims.data(), exported->dims.data() + COMPUTE_MAX_RANK);
        managed.manager_ctx = exported.get();
        managed.deleter = delete_export<Managed>;
        self.retain();
        exported->tensor.reset(&self);
        order_consumer(self, stream);
        if (exported->exposes) self.buffer->exposed.fetch_add(1, std::memory_order_acq_rel);
        self.buffer->device.exports.fetch_add(1, std::memory_order_acq_rel);
        *out_managed = &exported.release()->managed;
      },
      who);
}

// ---- The C exchange API ---------------------------------------------------------------------------------------------

// The open device that DLPack numbers so; the newest, where one was opened again.
Device& device_of_dlpack(const char* who, int32_t type, int32_t id) {
  Device* found = nullptr;
  for (Device* device : open_devices()) {
    if (device->is_host || !device->native.has_dlpack() || device->health.load() != COMPUTE_HEALTH_GOOD) continue;
    const compute_native_dlpack own = device->native.dlpack();
    if (own.device_type == type && own.device_id == id) found = device;
  }
  if (found != nullptr) return *found;
  throw Error(COMPUTE_ERROR_NOT_FOUND,
              fmt::format("{}: no open device has DLPack device type {} and id {}", who, type, id));
}

// The exception that a Python binding raises.
const char* python_exception(compute_error_code code) {
  switch (code) {
    case COMPUTE_ERROR_INVALID_ARGUMENT:
      return "ValueError";
    case COMPUTE_ERROR_OUT_OF_RANGE:
      return "OverflowError";
    case COMPUTE_ERROR_UNSUPPORTED:
      return "BufferError";
    case COMPUTE_ERROR_OUT_OF_MEMORY:
    case COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY:
      return "MemoryError";
    default:
      return "RuntimeError";
  }
}

}  // namespace

extern "C" {

compute_error* compute_tensor_from_dlpack(DLManagedTensorVersioned* managed, compute_tensor** out_tensor) {
  return import_tensor("compute_tensor_from_dlpack", managed, out_tensor);
}

compute_error* compute_tensor_from_dlpack_unversioned(DLManagedTensor* managed, compute_tensor** out_tensor) {
  return import_tensor("compute_tensor_from_dlpack_unversioned", managed, out_tensor);
}

compute_error* compute_tensor_to_dlpack(compute_tensor* tensor, int64_t stream,
                                        DLManagedTensorVersioned** out_managed) {
  return export_tensor("compute_tensor_to_dlpack", tensor, stream, out_managed);
}

compute_error* compute_tensor_to_dlpack_unversioned(compute_tensor* tensor, int64_t stream,
                                                    DLManagedTensor** out_managed) {
  return export_tensor("compute_tensor_to_dlpack_unversioned", tensor, stream, out_managed);
}

compute_error* compute_tensor_to_dltensor(compute_tensor* tensor, void* out_dltensor) {
  if (out_dltensor != nullptr) std::memset(out_dltensor, 0, sizeof(DLTensor));
  return guard(about(tensor), [&] {
    require_not_null(out_dltensor, "out_dltensor");
    Tensor& self = checked_memory("compute_tensor_to_dltensor", tensor);
    const Running running;
    const DLTensor view = view_of("compute_tensor_to_dltensor", self, const_cast<int64_t*>(self.shape()),
                                  const_cast<int64_t*>(self.strides()));
    order_consumer(self, -1);
    // The program may write at any time, because nothing tells when its use of the view ends.
    if (self.buffer->device.is_host && self.buffer->promise != COMPUTE_WRAP_IMMUTABLE) forget_copies(*self.buffer);
    std::memcpy(out_dltensor, &view, sizeof view);
  });
}

int32_t compute_dlpack_allocate(const void* prototype, DLManagedTensorVersioned** out_managed, void* error_context,
                                compute_dlpack_error_callback set_error) {
  if (out_managed != nullptr) *out_managed = nullptr;
  TensorReference made;
  compute_error* error = guard([&] {
    constexpr const char* kWho = "compute_dlpack_allocate";
    require_not_null(prototype, "prototype");
    require_not_null(out_managed, "out_managed");
    const Running running;
    DLTensor wanted;
    std::memcpy(&wanted, prototype, sizeof wanted);
    Device& device = wanted.device.device_type == kDlCpu
                         ? host_device()
                         : device_of_dlpack(kWho, wanted.device.device_type, wanted.device.device_id);
    const compute_dtype dtype = dtype_of(wanted.dtype, fmt::format("{}: prototype", kWho));
    Tensor* tensor = nullptr;
    if (compute_error* refused = compute_tensor_empty(&device, dtype, wanted.ndim, wanted.shape, &tensor))
      throw Error::adopt(refused);
    made.reset(tensor);
  });
  if (error == nullptr) error = compute_tensor_to_dlpack(made.get(), -1, out_managed);
  if (error == nullptr) return 0;
  if (set_error != nullptr) {
    set_error(error_context, python_exception(compute_error_get_code(error)), compute_error_message(error));
  } else {
    log(COMPUTE_LOG_ERROR, "error", compute_error_message(error));
  }
  compute_error_free(error);
  return -1;
}

int32_t compute_dlpack_current_work_stream(int32_t device_type, int32_t device_id, void** out_stream) {
  if (out_stream != nullptr) *out_stream = nullptr;
  compute_error* error = guard([&] {
    constexpr const char* kWho = "compute_dlpack_current_work_stream";
    require_not_null(out_stream, "out_stream");
    if (device_type == kDlCpu || device_type == kDlPinnedHost) return;
    const Running running;
    Device& device = device_of_dlpack(kWho, device_type, device_id);
    if (device.immediate) return;  // work is complete when a call returns
    compute_native_dlpack named = device.native.dlpack();
    Timeline& timeline = default_timeline(device);
    timeline.times.always_separate();
    const std::lock_guard guard(timeline.lock);
    device.check(device.native.stream_handle(timeline.plugin_stream, COMPUTE_NATIVE_DLPACK, &named));
    *out_stream = reinterpret_cast<void*>(named.stream);
  });
  if (error == nullptr) return 0;
  log(COMPUTE_LOG_ERROR, "error", compute_error_message(error));
  compute_error_free(error);
  return -1;
}

}  // extern "C"
