// SPDX-License-Identifier: Apache-2.0
// The C interface of tensors: making them and asking about them. Views are in view_api.cpp, data in transfer_api.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "core/interface/about.hpp"
#include "core/lifetime/open_device.hpp"
#include "core/memory/host_copy.hpp"
#include "core/memory/tensor.hpp"
#include "core/runner/planned_call.hpp"
#include "core/runner/run_op.hpp"
#include "core/streams/submission.hpp"
#include "core/text/printable.hpp"

using namespace compute;

namespace {

std::span<const int64_t> as_span(const int64_t* values, int32_t rank) { return {values, static_cast<size_t>(rank)}; }

void require_storage(const Device& device, compute_dtype dtype) {
  if (!device.supports(dtype, COMPUTE_DTYPE_LEVEL_STORAGE)) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{} does not support {}", device.name, dtype_name(dtype)));
  }
}

// Wrapped ranges of the program's memory, by end address: overlapping wraps share one buffer and so one hazard record.
struct WrappedRanges {
  std::mutex mutex;
  struct Range {
    uintptr_t begin;
    Buffer* buffer;
  };
  std::map<uintptr_t, Range> by_end;
};

WrappedRanges& wrapped_ranges() {
  static auto* const immortal = new WrappedRanges;
  return *immortal;
}

// The programs' deleters on one buffer: each wrap of a range inside it brings its own.
struct Deleter {
  compute_deleter function;
  void* data;
  void* user_data;
  std::unique_ptr<Deleter> next;
};

struct Deleters {
  std::unique_ptr<Deleter> first;  // guarded by WrappedRanges::mutex while the buffer lives
  bool hold_all = false;           // likewise: the wrap that made the buffer has one, which keeps the whole range
};

void run_deleters(void*, void* user_data) {
  const std::unique_ptr<Deleters> deleters(static_cast<Deleters*>(user_data));
  for (std::unique_ptr<Deleter> one = std::move(deleters->first); one != nullptr; one = std::move(one->next)) {
    one->function(one->data, one->user_data);
  }
}

/// Keeps the deleter until the buffer goes. If the outermost wrap keeps the memory anyway, the deleter is called at
/// once: the object that it frees may hold a tensor over the same memory, and would never be freed.
void add_deleter(Buffer& buffer, std::unique_ptr<Deleter> deleter, bool outermost) noexcept {
  {
    const std::lock_guard guard(wrapped_ranges().mutex);
    auto& deleters = *static_cast<Deleters*>(buffer.deleter_user);
    if (outermost || !deleters.hold_all) {
      deleters.hold_all |= outermost;
      deleter->next = std::move(deleters.first);
      deleters.first = std::move(deleter);
      return;
    }
  }
  deleter->function(deleter->data, deleter->user_data);
}

// The buffer for [begin, end): a new one, or the buffer of a wrap that contains the range.
BufferReference wrap_range(const char* who, uintptr_t begin, uintptr_t end, int32_t promise, bool& out_new) {
  out_new = false;
  WrappedRanges& ranges = wrapped_ranges();
  BufferReference found, made;  // outlive the lock, because a destroyed buffer removes itself from the ranges
  std::lock_guard guard(ranges.mutex);
  for (auto it = ranges.by_end.upper_bound(begin); it != ranges.by_end.end() && it->second.begin < end;) {
    Buffer* buffer = it->second.buffer;
    // A buffer whose last reference is just going does not come back.
    int64_t references = buffer->references.load();
    while (references > 0 && !buffer->references.compare_exchange_weak(references, references + 1)) {
    }
    if (references == 0) {
      it = ranges.by_end.erase(it);
      continue;
    }
    found.reset(buffer);
    if (it->second.begin > begin || it->first < end) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED,
                  fmt::format("{}: the range partly overlaps a wrapped range; wrap the larger one first", who));
    }
    if (buffer->promise != promise) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: the range is already wrapped with another promise", who));
    }
    return found;
  }
  auto deleters = std::make_unique<Deleters>();
  made.reset(new Buffer(host_device(), static_cast<int64_t>(end - begin)));
  if (end > begin) ranges.by_end[end] = {begin, made.get()};
  made->handle = begin;
  made->misalignment = static_cast<int64_t>(begin % 64);
  made->promise = promise;
  made->deleter = run_deleters;
  made->deleter_user = deleters.release();
  out_new = true;
  return made;
}

Tensor* empty_tensor(const char* who, compute_device* device, compute_dtype dtype, int32_t rank, const int64_t* shape) {
  Device& self = checked(device);
  const Running running;
  checked_shape(who, dtype, rank, shape);
  self.require_usable();
  require_storage(self, dtype);
  return make_tensor(self, dtype, as_span(shape, rank), &default_timeline(self));
}

}  // namespace

namespace compute {

Tensor* wrap_host_memory(const char* who, compute_dtype dtype, std::span<const int64_t> shape, const int64_t* strides,
                         void* data, int32_t promise, compute_deleter deleter, void* user_data) {
  const int64_t size = dtype_size(dtype);
  const int64_t alignment = is_complex(dtype) ? size / 2 : size;
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment) != 0) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: data is not aligned to {} bytes", who, alignment));
  }
  const auto settled = settled_strides(shape, strides);
  const std::span<const int64_t> used(settled.data(), shape.size());
  const auto [low, high] = checked_reach(who, dtype, shape, used, data);
  const auto address = reinterpret_cast<uintptr_t>(data);
  std::unique_ptr<Deleter> last_use;
  if (deleter != nullptr) last_use.reset(new Deleter{deleter, data, user_data, nullptr});
  bool outermost = false;
  BufferReference buffer = wrap_range(who, address + static_cast<uintptr_t>(low),
                                      address + static_cast<uintptr_t>(high), promise, outermost);
  const auto offset = static_cast<int64_t>(address - static_cast<uintptr_t>(buffer->handle));
  Tensor* tensor = new Tensor(std::move(buffer), dtype, shape, used, offset);
  if (last_use != nullptr) add_deleter(*tensor->buffer, std::move(last_use), outermost);  // nothing fails from here on
  return tensor;
}

void forget_wrapped(const Buffer& buffer) noexcept {
  WrappedRanges& ranges = wrapped_ranges();
  std::lock_guard guard(ranges.mutex);
  const auto found =
      ranges.by_end.find(static_cast<uintptr_t>(buffer.handle) + static_cast<uintptr_t>(buffer.size_bytes));
  if (found != ranges.by_end.end() && found->second.buffer == &buffer) ranges.by_end.erase(found);
}

}  // namespace compute

extern "C" {

int64_t compute_dtype_size(compute_dtype dtype) { return dtype_size(dtype); }
compute_error* compute_dtype_from_name(const char* name, compute_dtype* out_dtype) {
  if (out_dtype != nullptr) *out_dtype = COMPUTE_DTYPE_NONE;
  return guard([&] {
    require_not_null(name, "name");
    require_not_null(out_dtype, "out_dtype");
    *out_dtype = dtype_from_name(name);
    if (*out_dtype == COMPUTE_DTYPE_NONE)
      throw Error(COMPUTE_ERROR_NOT_FOUND, fmt::format("there is no dtype {}", in_quotes(name)));
  });
}

const char* compute_dtype_name(compute_dtype dtype) {
  const char* name = dtype_info(dtype).name;
  return name != nullptr ? name : "";
}

compute_error* compute_tensor_empty(compute_device* device, compute_dtype dtype, int32_t rank, const int64_t* shape,
                                    compute_tensor** out_tensor) {
  if (out_tensor != nullptr) *out_tensor = nullptr;
  return guard(about(device), [&] {
    require_not_null(out_tensor, "out_tensor");
    *out_tensor = empty_tensor("compute_tensor_empty", device, dtype, rank, shape);
  });
}

compute_error* compute_tensor_full(compute_device* device, compute_dtype dtype, int32_t rank, const int64_t* shape,
                                   const void* value, compute_tensor** out_tensor) {
  if (out_tensor != nullptr) *out_tensor = nullptr;
  return guard(about(device), [&] {
    require_not_null(out_tensor, "out_tensor");
    Device& self = checked(device);
    const Running running;
    checked_shape("compute_tensor_full", dtype, rank, shape);
    require_not_null(value, "value");
    self.require_usable();
    require_storage(self, dtype);
    Timeline& timeline = default_timeline(self);
    TensorReference tensor(make_tensor(self, dtype, as_span(shape, rank), &timeline));
    const int64_t bytes = tensor->buffer->size_bytes;
    if (bytes > 0) {
      const auto size = static_cast<int32_t>(dtype_size(dtype));
      Use use{tensor->buffer, true, true};
      Submission submission(timeline, {&use, 1}, "fill", 1, bytes);
      if (self.plugin != nullptr) {
        const compute_plugin_operand place = operand_at(*tensor->buffer, 0);
        submission.check(self.table.fill(timeline.plugin_stream, place, bytes, value, size));
      } else {
        fill_bytes(tensor->buffer->host_address(), bytes, value, size);
      }
    }
    *out_tensor = tensor.release();
  });
}

compute_error* compute_tensor_from_host(compute_device* device, compute_dtype dtype, int32_t rank, const int64_t* shape,
                                        const void* data, compute_tensor** out_tensor) {
  if (out_tensor != nullptr) *out_tensor = nullptr;
  return guard(about(device), [&] {
    require_not_null(out_tensor, "out_tensor");
    TensorReference tensor(empty_tensor("compute_tensor_from_host", device, dtype, rank, shape));
    const int64_t bytes = compute_tensor_size_bytes(tensor.get());
    if (bytes > 0) {
      require_not_null(data, "data");
      throw_if(compute_tensor_write(tensor.get(), data, bytes));
    }
    *out_tensor = tensor.release();
  });
}

compute_error* compute_tensor_wrap_host(compute_dtype dtype, int32_t rank, const int64_t* shape, const int64_t* strides,
                                        void* data, int32_t promise, compute_deleter deleter, void* user_data,
                                        compute_tensor** out_tensor) {
  if (out_tensor != nullptr) *out_tensor = nullptr;
  return guard([&] {
    constexpr const char* kName = "compute_tensor_wrap_host";
    require_not_null(out_tensor, "out_tensor");
    const Running running;
    const int64_t count = checked_shape(kName, dtype, rank, shape);
    if (promise < COMPUTE_WRAP_IMMUTABLE || promise > COMPUTE_WRAP_EXPOSED) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: promise {} is not a COMPUTE_WRAP_ value", kName, promise));
    }
    if (count > 0) require_not_null(data, "data");
    *out_tensor = wrap_host_memory(kName, dtype, as_span(shape, rank), strides, data, promise, deleter, user_data);
  });
}

compute_error* compute_tensor_touch(compute_tensor* tensor) {
  return guard(about(tensor), [&] {
    Tensor& self = checked(tensor);
    const Running running;
    if (self.buffer == nullptr || self.buffer->promise != COMPUTE_WRAP_TRACKED) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "compute_tensor_touch: the tensor is not wrapped as tracked memory");
    }
    wait_for_buffer(*self.buffer, true);
    forget_copies(*self.buffer);
  });
}

compute_error* compute_tensor_scalar(compute_dtype dtype, const void* value, uint32_t flags,
                                     compute_tensor** out_tensor) {
  if (out_tensor != nullptr) *out_tensor = nullptr;
  return guard([&] {
    require_not_null(out_tensor, "out_tensor");
    checked_shape("compute_tensor_scalar", dtype, 0, nullptr);
    require_not_null(value, "value");
    if ((flags & ~uint32_t{COMPUTE_SCALAR_WEAK}) != 0)
      throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("compute_tensor_scalar: flags {:#x} are not supported",
                                                         flags & ~uint32_t{COMPUTE_SCALAR_WEAK}));
    *out_tensor = new Tensor(dtype, value, (flags & COMPUTE_SCALAR_WEAK) != 0, Tensor::Kind::kScalar);
  });
}

compute_error* compute_tensor_slot(compute_dtype dtype, compute_tensor** out_tensor) {
  if (out_tensor != nullptr) *out_tensor = nullptr;
  return guard([&] {
    require_not_null(out_tensor, "out_tensor");
    checked_shape("compute_tensor_slot", dtype, 0, nullptr);
    *out_tensor = new Tensor(dtype, nullptr, false, Tensor::Kind::kSlot);
  });
}

void compute_tensor_retain(compute_tensor* tensor) {
  if (tensor != nullptr && tensor->is_alive()) tensor->retain();
}
void compute_tensor_release(compute_tensor* tensor) { release_handle(tensor); }

compute_dtype compute_tensor_dtype(const compute_tensor* tensor) {
  return tensor != nullptr && tensor->is_alive() ? tensor->dtype : COMPUTE_DTYPE_NONE;
}
int32_t compute_tensor_rank(const compute_tensor* tensor) {
  return tensor != nullptr && tensor->is_alive() ? tensor->rank : 0;
}
const int64_t* compute_tensor_shape(const compute_tensor* tensor) {
  return tensor != nullptr && tensor->is_alive() ? tensor->shape() : nullptr;
}
const int64_t* compute_tensor_strides(const compute_tensor* tensor) {
  return tensor != nullptr && tensor->is_alive() ? tensor->strides() : nullptr;
}
int64_t compute_tensor_offset_bytes(const compute_tensor* tensor) {
  return tensor != nullptr && tensor->is_alive() ? tensor->offset_bytes : 0;
}
int64_t compute_tensor_element_count(const compute_tensor* tensor) {
  return tensor != nullptr && tensor->is_alive() ? tensor->element_count : 0;
}
int64_t compute_tensor_size_bytes(const compute_tensor* tensor) {
  return tensor != nullptr && tensor->is_alive() ? tensor->element_count * dtype_size(tensor->dtype) : 0;
}
compute_device* compute_tensor_device(const compute_tensor* tensor) {
  if (tensor == nullptr || !tensor->is_alive()) return nullptr;
  try {
    return &device_of(*tensor);
  } catch (...) {
    return nullptr;
  }
}
int32_t compute_tensor_shares_buffer(const compute_tensor* a, const compute_tensor* b) {
  if (a == nullptr || b == nullptr || !a->is_alive() || !b->is_alive()) return 0;
  return a->buffer != nullptr && a->buffer == b->buffer ? 1 : 0;
}

compute_error* compute_tensor_set_label(compute_tensor* tensor, const char* label) {
  return guard(about(tensor), [&] {
    Tensor& self = checked(tensor);
    require_not_null(label, "label");
    self.set_label(label);
    if (self.buffer != nullptr && self.buffer->block) self.buffer->device.memory->set_label(self.buffer->block, label);
  });
}
compute_error* compute_tensor_set_transfers(compute_tensor* tensor, int32_t transfers) {
  return guard(about(tensor), [&] {
    Tensor& self = checked(tensor);
    if (transfers < COMPUTE_TRANSFERS_DEFAULT || transfers > COMPUTE_TRANSFERS_ERROR)
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("transfers is {}; see COMPUTE_TRANSFERS_", transfers));
    if (self.buffer == nullptr) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "a scalar is never copied between devices");
    self.buffer->transfers.store(transfers, std::memory_order_relaxed);
  });
}

const char* compute_tensor_label(const compute_tensor* tensor) {
  return tensor != nullptr && tensor->is_alive() ? tensor->label() : "";
}

}  // extern "C"
