// SPDX-License-Identifier: Apache-2.0
// The C interface of memory and semaphores that other plugins, libraries and processes share.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>

#include "core/base/sized.hpp"
#include "core/interface/about.hpp"
#include "core/memory/tensor.hpp"
#include "core/runner/graph.hpp"
#include "core/streams/stream.hpp"

struct compute_semaphore : compute::Handle<compute::HandleKind::kSemaphore> {
  explicit compute_semaphore(compute::Device& device) : device(device) {}
  ~compute_semaphore() {
    if (plugin_semaphore != 0 && device.health.load() != COMPUTE_HEALTH_FORKED)
      device.external.semaphore_release(plugin_semaphore);
  }

  compute::Device& device;
  uint64_t plugin_semaphore = 0;
};

using namespace compute;

namespace {

void require_kind(const Device& device, uint32_t kind) {
  if (kind == COMPUTE_EXTERNAL_HOST_POINTER) return;
  throw Error(COMPUTE_ERROR_UNSUPPORTED,
              fmt::format("{} does not share external objects of kind {}; its memory is of the kind HOST_POINTER",
                          device.name, kind));
}

void require_storage(const Device& device, compute_dtype dtype) {
  if (!device.supports(dtype, COMPUTE_DTYPE_LEVEL_STORAGE))
    throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{} does not support {}", device.name, dtype_name(dtype)));
}

compute_external empty_external(uint32_t kind) {
  compute_external external{};
  external.struct_size = sizeof external;
  external.struct_type = COMPUTE_STRUCT_EXTERNAL;
  external.kind = kind;
  external.descriptor = -1;
  return external;
}

// So that nothing fails once there is a descriptor.
void require_fillable(const compute_external& out_external) {
  require_struct_size(out_external.struct_size, "out_external", COMPUTE_EXTERNAL_SIZE_1);
  check_chain(out_external.next, "out_external");
}

void close_descriptor(const compute_external& external) noexcept {
  if (external.descriptor >= 0) close(external.descriptor);
}

// Whole pages, as other devices import them.
Tensor* empty_host_tensor(const char* who, compute_dtype dtype, std::span<const int64_t> shape, int64_t size_bytes,
                          compute_external& external) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  external.size_bytes = std::max((size_bytes + page - 1) / page, int64_t{1}) * page;
  void* const address = mmap(nullptr, static_cast<size_t>(external.size_bytes), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  external.address = address;
  const auto unmap = [](void* data, void* size) { munmap(data, reinterpret_cast<uintptr_t>(size)); };
  try {
    return wrap_host_memory(who, dtype, shape, nullptr, address, COMPUTE_WRAP_EXPOSED, unmap,
                            reinterpret_cast<void*>(static_cast<uintptr_t>(external.size_bytes)));
  } catch (...) {
    munmap(address, static_cast<size_t>(external.size_bytes));
    throw;
  }
}

BufferReference buffer_over(Device& device, uint64_t handle, const compute_external& external) {
  BufferReference buffer;
  try {
    buffer.reset(new Buffer(device, external.size_bytes - external.offset_bytes));
  } catch (...) {
    device.table.memory_free(-1, handle);
    throw;
  }
  buffer->handle = handle;
  buffer->imported = true;
  const uintptr_t first = reinterpret_cast<uintptr_t>(external.address) + static_cast<uintptr_t>(external.offset_bytes);
  buffer->misalignment = static_cast<int64_t>(first % 64);
  return buffer;
}

Tensor* empty_device_tensor(Device& device, compute_dtype dtype, std::span<const int64_t> shape, int64_t size_bytes,
                            compute_external& external) {
  uint64_t handle = 0;
  const int64_t alignment = std::max<int64_t>(device.heaps[0].base_alignment, 64);
  device.check(device.external.memory_create(std::max<int64_t>(size_bytes, 1), alignment, &handle, &external));
  try {
    BufferReference buffer = buffer_over(device, handle, external);
    if (external.offset_bytes < 0 || external.size_bytes - external.offset_bytes < size_bytes) {
      throw Error(COMPUTE_ERROR_PLUGIN_REJECTED,
                  fmt::format("{}: memory_create returned {} bytes from {} on for {}", device.name, external.size_bytes,
                              external.offset_bytes, size_bytes));
    }
    const auto strides = row_major_array(shape);
    return new Tensor(std::move(buffer), dtype, shape, {strides.data(), shape.size()}, 0);
  } catch (...) {
    close_descriptor(external);
    throw;
  }
}

Tensor* import_tensor(const char* who, Device& device, const compute_external& external, compute_dtype dtype,
                      std::span<const int64_t> shape, const int64_t* given_strides, int64_t offset_bytes) {
  const auto settled = settled_strides(shape, given_strides);
  const std::span<const int64_t> strides(settled.data(), shape.size());
  const Reach reach = checked_reach(who, dtype, shape, strides, reinterpret_cast<const void*>(uintptr_t{1} << 46));
  if (external.offset_bytes < 0 || external.offset_bytes > external.size_bytes) {
    throw Error(COMPUTE_ERROR_OUT_OF_RANGE, fmt::format("{}: external.offset_bytes is {} of {} bytes", who,
                                                        external.offset_bytes, external.size_bytes));
  }
  const int64_t size_bytes = external.size_bytes - external.offset_bytes;
  if (reach.high > reach.low &&
      (offset_bytes > size_bytes || offset_bytes + reach.low < 0 || reach.high > size_bytes - offset_bytes)) {
    throw Error(COMPUTE_ERROR_OUT_OF_RANGE,
                fmt::format("{}: the tensor takes bytes {} to {} of memory of {} bytes", who, offset_bytes + reach.low,
                            offset_bytes + reach.high, size_bytes));
  }
  if (device.is_host) {
    require_kind(device, external.kind);
    require_not_null(external.address, "external.address");
    auto* const address = static_cast<uint8_t*>(external.address) + external.offset_bytes + offset_bytes;
    return wrap_host_memory(who, dtype, shape, given_strides, address, COMPUTE_WRAP_EXPOSED, nullptr, nullptr);
  }
  uint64_t handle = 0;
  device.check(device.external.memory_import(external, &handle));
  return new Tensor(buffer_over(device, handle, external), dtype, shape, strides, offset_bytes);
}

Timeline& usable_timeline(const compute_semaphore& semaphore, compute_stream* stream, const char* who) {
  compute_stream& self = checked(stream);
  self.device.require_usable();
  if (&self.device != &semaphore.device) {
    throw Error(COMPUTE_ERROR_DEVICE_MISMATCH, fmt::format("{}: the semaphore is of {}, but the stream is on {}", who,
                                                           semaphore.device.name, self.device.name));
  }
  Timeline& timeline = self.timeline;
  if (timeline.recording.load(std::memory_order_relaxed) != nullptr) {
    Error error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{} is not possible while the stream is recording a graph", who));
    note_recording_error(timeline, error);
    throw error;
  }
  return timeline;
}

compute_semaphore* make_semaphore(Device& device, uint64_t plugin_semaphore) {
  std::unique_ptr<compute_semaphore> made;
  try {
    made = std::make_unique<compute_semaphore>(device);
  } catch (...) {
    device.external.semaphore_release(plugin_semaphore);
    throw;
  }
  made->plugin_semaphore = plugin_semaphore;
  return made.release();
}

void require_semaphores(const Device& device) {
  device.require_usable();
  if (device.is_host) throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{} does not share semaphores", device.name));
}

}  // namespace

extern "C" {

compute_error* compute_tensor_empty_external(compute_device* device, uint32_t kind, compute_dtype dtype, int32_t rank,
                                             const int64_t* shape, compute_external* out_external,
                                             compute_tensor** out_tensor) {
  clear_sized(out_external);
  if (out_tensor != nullptr) *out_tensor = nullptr;
  return guard(about(device), [&] {
    constexpr const char* kWho = "compute_tensor_empty_external";
    require_not_null(out_external, "out_external");
    require_not_null(out_tensor, "out_tensor");
    require_fillable(*out_external);
    Device& self = checked(device);
    const Running running;
    const int64_t count = checked_shape(kWho, dtype, rank, shape);
    self.require_usable();
    require_storage(self, dtype);
    const std::span<const int64_t> extents(shape, static_cast<size_t>(rank));
    const int64_t size_bytes = count * dtype_size(dtype);
    compute_external external = empty_external(kind);
    if (self.is_host) require_kind(self, kind);
    TensorReference made(self.is_host ? empty_host_tensor(kWho, dtype, extents, size_bytes, external)
                                      : empty_device_tensor(self, dtype, extents, size_bytes, external));
    write_sized(external, out_external, "out_external");
    *out_tensor = made.release();
  });
}

compute_error* compute_tensor_from_external(compute_device* device, const compute_external* external,
                                            compute_dtype dtype, int32_t rank, const int64_t* shape,
                                            const int64_t* strides, int64_t offset_bytes, compute_tensor** out_tensor) {
  if (out_tensor != nullptr) *out_tensor = nullptr;
  return guard(about(device), [&] {
    constexpr const char* kWho = "compute_tensor_from_external";
    require_not_null(out_tensor, "out_tensor");
    require_not_null(external, "external");
    Device& self = checked(device);
    const Running running;
    self.require_usable();
    const compute_external given = read_sized(external, "external");
    checked_shape(kWho, dtype, rank, shape);
    require_storage(self, dtype);
    const int64_t alignment = is_complex(dtype) ? dtype_size(dtype) / 2 : dtype_size(dtype);
    if (offset_bytes < 0 || offset_bytes % alignment != 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: offset_bytes is {}; it must be a multiple of {}", kWho, offset_bytes, alignment));
    }
    *out_tensor = import_tensor(kWho, self, given, dtype, {shape, static_cast<size_t>(rank)}, strides, offset_bytes);
  });
}

compute_error* compute_semaphore_create(compute_device* device, uint32_t kind, compute_external* out_external,
                                        compute_semaphore** out_semaphore) {
  clear_sized(out_external);
  if (out_semaphore != nullptr) *out_semaphore = nullptr;
  return guard(about(device), [&] {
    require_not_null(out_external, "out_external");
    require_not_null(out_semaphore, "out_semaphore");
    require_fillable(*out_external);
    Device& self = checked(device);
    const Running running;
    require_semaphores(self);
    compute_external external = empty_external(kind);
    uint64_t made = 0;
    self.check(self.external.semaphore_create(&made, &external));
    try {
      write_sized(external, out_external, "out_external");
      *out_semaphore = make_semaphore(self, made);
    } catch (...) {
      close_descriptor(external);
      throw;
    }
  });
}

compute_error* compute_semaphore_from_external(compute_device* device, const compute_external* external,
                                               compute_semaphore** out_semaphore) {
  if (out_semaphore != nullptr) *out_semaphore = nullptr;
  return guard(about(device), [&] {
    require_not_null(external, "external");
    require_not_null(out_semaphore, "out_semaphore");
    Device& self = checked(device);
    const Running running;
    require_semaphores(self);
    const compute_external given = read_sized(external, "external");
    uint64_t made = 0;
    self.check(self.external.semaphore_import(given, &made));
    *out_semaphore = make_semaphore(self, made);
  });
}

compute_error* compute_semaphore_signal(compute_semaphore* semaphore, compute_stream* stream, uint64_t value) {
  return guard(about(semaphore, stream), [&] {
    compute_semaphore& self = checked(semaphore);
    const Running running;
    Timeline& timeline = usable_timeline(self, stream, "compute_semaphore_signal");
    std::lock_guard guard(timeline.lock);
    timeline.require_healthy();
    self.device.check(self.device.external.semaphore_signal(timeline.plugin_stream, self.plugin_semaphore, value));
    timeline.next("compute_semaphore_signal");
  });
}

compute_error* compute_semaphore_wait(compute_semaphore* semaphore, compute_stream* stream, uint64_t value) {
  return guard(about(semaphore, stream), [&] {
    compute_semaphore& self = checked(semaphore);
    const Running running;
    Timeline& timeline = usable_timeline(self, stream, "compute_semaphore_wait");
    std::lock_guard guard(timeline.lock);
    timeline.require_healthy();
    self.device.check(self.device.external.semaphore_wait(timeline.plugin_stream, self.plugin_semaphore, value));
    timeline.next("compute_semaphore_wait");  // work: synchronizing, shutdown and the watch for hangs count it
    timeline.times.separate();
  });
}

void compute_semaphore_retain(compute_semaphore* semaphore) {
  if (semaphore != nullptr && semaphore->is_alive()) semaphore->retain();
}
void compute_semaphore_release(compute_semaphore* semaphore) { release_handle(semaphore); }

}  // extern "C"
