// SPDX-License-Identifier: Apache-2.0
// The C interface of data: reading, writing, moving and mapping tensors.
#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "core/base/sized.hpp"
#include "core/interface/about.hpp"
#include "core/lifetime/open_device.hpp"
#include "core/memory/host_copy.hpp"
#include "core/memory/staging.hpp"
#include "core/memory/tensor.hpp"
#include "core/memory/transfer_count.hpp"
#include "core/observation/observed.hpp"
#include "core/ops/infer.hpp"
#include "core/ops/shapes.hpp"
#include "core/runner/call.hpp"
#include "core/runner/graph.hpp"
#include "core/runner/run_op.hpp"
#include "core/streams/stream.hpp"
#include "core/streams/submission.hpp"

using namespace compute;

namespace {

void check_size(const char* who, const Tensor& tensor, int64_t size_bytes) {
  const int64_t wanted = tensor.element_count * dtype_size(tensor.dtype);
  if (size_bytes != wanted) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}: size_bytes is {}, but the tensor has {} bytes", who, size_bytes, wanted));
  }
}

void require_writable(const char* who, const Tensor& tensor) {
  if (tensor.buffer == nullptr)
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: a scalar cannot be written", who));
  if (tensor.buffer->promise == COMPUTE_WRAP_IMMUTABLE) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: the tensor is in immutable memory", who));
  }
  if (overlaps_itself(tensor)) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}: strides {} make elements of shape {} overlap", who, shape_text(tensor.strides_span()),
                            shape_text(tensor.shape_span())));
  }
}

void require_not_recording(const char* who, const Timeline& timeline) {
  if (timeline.recording.load(std::memory_order_relaxed) == nullptr) return;
  Error error(COMPUTE_ERROR_INVALID_ARGUMENT,
              fmt::format("{}: not possible while the stream is recording a graph", who));
  note_recording_error(const_cast<Timeline&>(timeline), error);
  throw error;
}

bool is_whole(const Tensor& tensor) {
  return tensor.offset_bytes == 0 && tensor.element_count * dtype_size(tensor.dtype) == tensor.buffer->size_bytes;
}

// Row-major elements between `data` and a tensor of the host, on the calling thread.
void copy_on_host(Tensor& tensor, void* data, bool write) {
  Buffer& buffer = *tensor.buffer;
  bring_home(buffer);
  Timeline& timeline = default_timeline(buffer.device);
  Use use{&buffer, write, write && is_whole(tensor)};
  Submission submission(timeline, {&use, 1}, write ? "write" : "read");
  const auto dense = row_major_array(tensor.shape_span());
  const std::span<const int64_t> packed(dense.data(), static_cast<size_t>(tensor.rank));
  uint8_t* memory = buffer.host_address() + tensor.offset_bytes;
  if (write) {
    copy_strided(data, packed, memory, tensor.strides_span(), tensor.shape_span(), dtype_size(tensor.dtype));
  } else {
    copy_strided(memory, tensor.strides_span(), data, packed, tensor.shape_span(), dtype_size(tensor.dtype));
  }
}

// Copies one element; common sizes are inlined.
void copy_element(void* dst, const void* src, int64_t size_bytes) {
  if (size_bytes == 4) {
    std::memcpy(dst, src, 4);
  } else if (size_bytes == 8) {
    std::memcpy(dst, src, 8);
  } else {
    std::memcpy(dst, src, static_cast<size_t>(size_bytes));
  }
}

// At most so many bytes are copied under a buffer's lock.
constexpr int64_t kBytesAtOnce = 1024;

// Few elements of host memory that lie side by side, if they have values and no work writes them any more. They are
// copied under the lock that a write takes before it begins, so they need no submission. False: nothing was read.
bool read_at_once(Buffer& buffer, int64_t offset_bytes, int64_t size_bytes, void* dst) {
  const bool is_home = buffer.device.is_host && buffer.newest.load(std::memory_order_acquire) == nullptr;
  if (!is_home || observes(kWatchesWork)) return false;
  const std::lock_guard guard(buffer.lock);
  const Access& last = buffer.last_write;
  const bool has_ended =
      last.timeline == nullptr || (last.timeline->has_ended(last.number) && !last.timeline->has_unsettled());
  if (!has_ended || any_failure()) return false;  // checked last: work that has ended may have failed just before
  copy_element(dst, buffer.host_address() + offset_bytes, size_bytes);
  return true;
}

// The same for a write: if no work reads or writes the memory any more. Copies on other devices become stale.
bool write_at_once(Buffer& buffer, int64_t offset_bytes, int64_t size_bytes, const void* src) {
  const bool is_home = buffer.device.is_host && buffer.newest.load(std::memory_order_acquire) == nullptr;
  if (!is_home || observes(kWatchesWork)) return false;
  const std::lock_guard guard(buffer.lock);
  for (const Access* const last : {&buffer.last_write, &buffer.last_read}) {
    if (last->timeline == nullptr) continue;
    if (!last->timeline->has_ended(last->number) || last->timeline->has_unsettled()) return false;
  }
  if (!buffer.more_reads.empty() || any_failure()) return false;  // checked last, as above
  copy_element(buffer.host_address() + offset_bytes, src, size_bytes);
  buffer.version.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// The offset of an element in the buffer.
int64_t checked_offset(const char* who, const Tensor& tensor, int32_t rank, const int64_t* indices) {
  if (rank != tensor.rank) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}: got {} indices for a tensor of rank {}", who, rank, tensor.rank));
  }
  if (rank > 0) require_not_null(indices, "indices");
  int64_t elements = 0;
  for (int32_t i = 0; i < rank; ++i) {
    if (indices[i] < 0 || indices[i] >= tensor.shape()[i]) {
      throw Error(COMPUTE_ERROR_OUT_OF_RANGE, fmt::format("{}: index {} is out of range for axis {} of extent {}", who,
                                                          indices[i], i, tensor.shape()[i]));
    }
    elements += indices[i] * tensor.strides()[i];
  }
  return tensor.offset_bytes + elements * dtype_size(tensor.dtype);
}

void copy_plainly(Submission& submission, compute_plugin_operand place, void* data, int64_t size_bytes, bool write,
                  const compute_plugin_operand* pinned = nullptr) {
  Timeline& timeline = submission.timeline();
  const DeviceTable& table = timeline.device.table;
  submission.check(write ? table.copy_from_host(timeline.plugin_stream, data, place, size_bytes, pinned)
                         : table.copy_to_host(timeline.plugin_stream, place, data, size_bytes, pinned));
}

// Of `tensor` and host memory.
void count_copy(Submission& submission, const Tensor& tensor, bool write, int64_t bytes) {
  Device* const device = &tensor.buffer->device;
  const Subject subject = subject_of(tensor);
  count_transfer(submission, {write ? nullptr : device, write ? device : nullptr, bytes, false,
                              write ? "write" : "read", &subject});
}

// Copies a row-major tensor to or from host memory, which may be used when this returns. `pinned` is the place of that
// memory in a heap of the device; without it the copy is staged.
void copy_now(Tensor& tensor, void* data, bool write, Timeline& timeline, const compute_plugin_operand* pinned) {
  Buffer& buffer = *tensor.buffer;
  Device& device = buffer.device;
  const int64_t bytes = tensor.element_count * dtype_size(tensor.dtype);
  if (bytes == 0) return;
  Use use{&buffer, write, write && is_whole(tensor)};
  uint64_t number = 0;
  bool finished = false;
  {
    const bool staged = pinned == nullptr;
    Submission submission(timeline, {&use, 1}, write ? "write" : "read", staged ? transfer_numbers(device, bytes) : 1,
                          bytes);
    number = submission.number();
    const compute_plugin_operand place = operand_at(buffer, tensor.offset_bytes);
    if (staged) {
      finished = write ? copy_to_device(submission, data, place, bytes) : copy_to_host(submission, place, data, bytes);
    } else {
      copy_plainly(submission, place, data, bytes, write, pinned);
    }
    if (!device.is_host) count_copy(submission, tensor, write, bytes);
  }
  if (!write || !finished) timeline.wait_for_own(number);
}

// Queues the copy of a row-major tensor to or from host memory; returns its number.
uint64_t queue_copy(Tensor& tensor, void* data, bool write, Timeline& timeline) {
  Buffer& buffer = *tensor.buffer;
  Device& device = buffer.device;
  const int64_t bytes = tensor.element_count * dtype_size(tensor.dtype);
  Use use{&buffer, write, write && is_whole(tensor)};
  uint64_t number = 0;
  {
    Submission submission(timeline, {&use, 1}, write ? "write" : "read", 1, bytes);
    number = submission.number();
    copy_plainly(submission, operand_at(buffer, tensor.offset_bytes), data, bytes, write);
    if (!device.is_host) count_copy(submission, tensor, write, bytes);
  }
  return number;
}

// The tensor in row-major form; `packed` keeps a copy that had to be made.
Tensor& row_major(Tensor& tensor, Timeline& timeline, TensorReference& packed) {
  if (tensor.is_row_major) return tensor;
  packed = pack(tensor, timeline);
  return *packed;
}

// The default timeline, unless a copy there would wait for work queued after the last write. In that case waits for the
// write here, and returns another timeline, on which copies wait only for each other.
Timeline& timeline_to_read(Buffer& buffer) {
  Timeline& timeline = default_timeline(buffer.device);
  Access last_write;
  {
    std::lock_guard guard(buffer.lock);
    last_write = buffer.last_write;
  }
  const bool is_there = last_write.timeline == &timeline;
  if (!timeline.has_work_behind(is_there ? last_write.number : 0)) return timeline;
  if (last_write.timeline != nullptr) last_write.timeline->require_end(last_write.number);
  return reading_timeline(buffer.device);
}

void read(Tensor& tensor, void* dst, const compute_plugin_operand* pinned = nullptr) {
  if (tensor.buffer == nullptr) {
    std::memcpy(dst, tensor.bits.data(), static_cast<size_t>(dtype_size(tensor.dtype)));
    return;
  }
  Device& device = tensor.buffer->device;
  if (device.is_host) {
    copy_on_host(tensor, dst, false);
    return;
  }
  device.require_usable();
  Timeline& timeline = timeline_to_read(*tensor.buffer);
  TensorReference packed;
  Tensor& source = row_major(tensor, timeline, packed);
  copy_now(source, dst, false, timeline, pinned);
}

void write(Tensor& tensor, const void* src, const compute_plugin_operand* pinned = nullptr) {
  Device& device = tensor.buffer->device;
  auto* data = const_cast<void*>(src);
  if (device.is_host) {
    copy_on_host(tensor, data, true);
    return;
  }
  device.require_usable();
  Timeline& timeline = default_timeline(device);
  if (tensor.is_row_major) {
    copy_now(tensor, data, true, timeline, pinned);
    return;
  }
  TensorReference packed(make_tensor(device, tensor.dtype, tensor.shape_span(), &timeline));
  copy_now(*packed, data, true, timeline, pinned);
  copy_into(*packed, tensor, timeline);
}

// A row-major tensor on `device` with the elements of `tensor`, which is elsewhere. The copy is queued, not waited for,
// where one of the two is the host.
Tensor* move(Tensor& tensor, Device& device) {
  if (tensor.buffer == nullptr) {
    TensorReference made(make_tensor(device, tensor.dtype, {}, &default_timeline(device)));
    write(*made, tensor.bits.data());
    return made.release();
  }
  Device& source = tensor.buffer->device;
  source.require_usable();
  device.require_usable();
  TensorReference made(make_tensor(device, tensor.dtype, tensor.shape_span(), &default_timeline(device)));
  const int64_t bytes = tensor.element_count * dtype_size(tensor.dtype);
  if (bytes == 0) return made.release();
  if (!device.supports(tensor.dtype, COMPUTE_DTYPE_LEVEL_STORAGE)) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("{} does not support {}", device.name, dtype_name(tensor.dtype)));
  }
  TensorReference packed;
  const Subject subject = subject_of(tensor);
  if (source.is_host) {
    bring_home(*tensor.buffer);
    Tensor* from = &tensor;
    if (!tensor.is_row_major) {
      packed.reset(make_tensor(source, tensor.dtype, tensor.shape_span(), nullptr));
      copy_on_host(tensor, packed->buffer->host_address(), false);
      from = packed.get();
    }
    Timeline& timeline = default_timeline(device);
    std::array<Use, 2> uses{{{from->buffer, false, false}, {made->buffer, true, true}}};
    Submission submission(timeline, uses, "to_device", transfer_numbers(device, bytes), bytes);
    copy_to_device(submission, from->buffer->host_address() + from->offset_bytes, operand_at(*made->buffer, 0), bytes);
    count_transfer(submission, {nullptr, &device, bytes, false, "to_device", &subject});
    return made.release();
  }
  Timeline& timeline = default_timeline(source);
  Tensor& from = row_major(tensor, timeline, packed);
  if (device.is_host) {
    std::array<Use, 2> uses{{{from.buffer, false, false}, {made->buffer, true, true}}};
    Submission submission(timeline, uses, "to_device", transfer_numbers(source, bytes), bytes);
    copy_to_host(submission, operand_at(*from.buffer, from.offset_bytes), made->buffer->host_address(), bytes);
    count_transfer(submission, {&source, nullptr, bytes, false, "to_device", &subject});
    return made.release();
  }
  if (source.plugin == device.plugin && device.table.has_copy_peer()) {
    Timeline& target = default_timeline(device);
    std::array<Use, 2> uses{{{from.buffer, false, false}, {made->buffer, true, true}}};
    Submission submission(target, uses, "to_device", 1, bytes);
    const compute_plugin_operand src = operand_at(*from.buffer, from.offset_bytes), dst = operand_at(*made->buffer, 0);
    compute_error* error = device.table.copy_peer(target.plugin_stream, source.table, src, dst, bytes);
    if (error == nullptr || error->code != COMPUTE_ERROR_UNSUPPORTED) {
      submission.check(error);
      count_transfer(submission, {&source, &device, bytes, false, "to_device", &subject});
      return made.release();
    }
    compute_error_free(error);  // not between these two: by way of the host
  }
  BufferReference staging(make_buffer(host_device(), bytes, nullptr, MemoryUse::kTemporary));
  read(from, staging->host_address());
  write(*made, staging->host_address());
  return made.release();
}

// A row-major copy of a tensor that the host cannot address: in pinned memory where its device has some, so that it
// takes one copy by the device.
class HostCopy {
 public:
  explicit HostCopy(const Tensor& tensor) {
    const int64_t bytes = tensor.element_count * dtype_size(tensor.dtype);
    if (device_of(tensor).pinned) {
      try {
        const Block& block = pinned_.emplace(*device_of(tensor).pinned, bytes, MemoryUse::kTemporary).block();
        place_ = {block.buffer, block.offset_bytes};
        if (debugs_memory()) fill_bytes(data(), bytes, kNewPattern.data(), 2);
        return;
      } catch (const Error&) {
        // The system has no more memory to pin. Pageable memory serves as well.
      }
    }
    buffer_.reset(make_buffer(host_device(), bytes, nullptr, MemoryUse::kTemporary));
  }
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;

  void* data() const noexcept { return pinned_ ? pinned_->block().host() : buffer_->host_address(); }
  // In a heap of the tensor's device; NULL if it is not.
  const compute_plugin_operand* place() const noexcept { return pinned_ ? &place_ : nullptr; }

 private:
  std::optional<OwnedBlock> pinned_;
  compute_plugin_operand place_{};
  BufferReference buffer_;
};

// An element with the given offset, after the work that writes it.
[[gnu::noinline]] void read_element_slowly(Tensor& tensor, int64_t offset_bytes, void* dst) {
  const DefaultFloatEnvironment environment;
  if (tensor.buffer == nullptr) return read(tensor, dst);
  const TensorReference element(make_view(tensor, tensor.dtype, {}, {}, offset_bytes));
  read(*element, dst);
}

// Addresses handed out by compute_tensor_map.
struct Mapping {
  TensorReference tensor;
  uint32_t access = 0;
  std::unique_ptr<HostCopy> copy;  // of a tensor that the host cannot address
  void* plugin_map = nullptr;      // the result of memory_map, for memory that only the plugin can map
};

void wait_to_map(Tensor& tensor, uint32_t access) {
  if ((access & COMPUTE_ACCESS_READ) == 0 && is_whole(tensor)) {
    wait_to_overwrite(*tensor.buffer);
  } else {
    wait_for_buffer(*tensor.buffer, (access & COMPUTE_ACCESS_WRITE) != 0);
  }
}

int32_t plugin_access(uint32_t access) noexcept {
  return ((access & COMPUTE_ACCESS_READ) != 0 ? COMPUTE_PLUGIN_ACCESS_READ : 0) |
         ((access & COMPUTE_ACCESS_WRITE) != 0 ? COMPUTE_PLUGIN_ACCESS_WRITE : 0);
}

// The memory of a tensor that the plugin can make visible to the host, at its first element; NULL if it cannot.
void* map_in_place(Tensor& tensor, uint32_t access, Mapping& mapping) {
  Buffer& buffer = *tensor.buffer;
  Device& device = buffer.device;
  if (!buffer.block || (device.heaps[0].flags & COMPUTE_PLUGIN_HEAP_HOST_VISIBLE) == 0) return nullptr;
  if (!device.table.has_memory_map() || device.memory->is_lent()) return nullptr;  // lent memory is of no heap
  device.require_usable();
  wait_to_map(tensor, access);
  int64_t begin = 0, end = 0;
  tensor.byte_range(&begin, &end);
  const compute_plugin_operand place = operand_at(buffer, begin);
  compute_error* error = device.table.memory_map(0, place, end - begin, plugin_access(access), &mapping.plugin_map);
  if (error != nullptr && error->code == COMPUTE_ERROR_UNSUPPORTED) {
    compute_error_free(error);
    return nullptr;
  }
  device.check(error);
  return static_cast<uint8_t*>(mapping.plugin_map) + (tensor.offset_bytes - begin);
}

void unmap_in_place(Mapping& mapping) noexcept {
  Buffer& buffer = *mapping.tensor->buffer;
  if (buffer.device.health.load() == COMPUTE_HEALTH_FORKED) return;
  int64_t begin = 0, end = 0;
  mapping.tensor->byte_range(&begin, &end);
  buffer.device.table.memory_unmap(0, operand_at(buffer, begin), end - begin, plugin_access(mapping.access),
                                   mapping.plugin_map);
}

struct Mappings {
  std::mutex mutex;
  std::unordered_multimap<const void*, Mapping> by_address;
};

Mappings& mappings() {
  static auto* const immortal = new Mappings;
  return *immortal;
}

}  // namespace

extern "C" {

compute_error* compute_tensor_read(compute_tensor* tensor, void* dst, int64_t size_bytes) {
  return guard<CallerErrno>(about(tensor), [&] {
    constexpr const char* kName = "compute_tensor_read";
    Tensor& self = checked(tensor);
    const Running running;
    check_size(kName, self, size_bytes);
    if (size_bytes == 0) return;
    require_not_null(dst, "dst");
    const bool are_few = self.buffer != nullptr && size_bytes <= kBytesAtOnce && self.is_row_major;
    if (are_few && read_at_once(*self.buffer, self.offset_bytes, size_bytes, dst)) return;
    const DefaultFloatEnvironment environment;
    read(self, dst);
  });
}

compute_error* compute_tensor_read_element(compute_tensor* tensor, int32_t rank, const int64_t* indices, void* dst,
                                           int64_t size_bytes) {
  return guard<CallerErrno>(about(tensor), [=] {
    constexpr const char* kName = "compute_tensor_read_element";
    Tensor& self = checked(tensor);
    const Running running;
    const int64_t offset_bytes = checked_offset(kName, self, rank, indices);
    const int64_t wanted = dtype_size(self.dtype);
    if (size_bytes != wanted) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: size_bytes is {}, but an element has {} bytes", kName, size_bytes, wanted));
    }
    require_not_null(dst, "dst");
    if (self.buffer != nullptr && read_at_once(*self.buffer, offset_bytes, size_bytes, dst)) [[likely]]
      return;
    read_element_slowly(self, offset_bytes, dst);
  });
}

compute_error* compute_tensor_write(compute_tensor* tensor, const void* src, int64_t size_bytes) {
  return guard(about(tensor), [&] {
    constexpr const char* kName = "compute_tensor_write";
    Tensor& self = checked(tensor);
    const Running running;
    require_writable(kName, self);
    check_size(kName, self, size_bytes);
    if (size_bytes == 0) return;
    require_not_null(src, "src");
    const bool are_few = size_bytes <= kBytesAtOnce && self.is_row_major;
    if (are_few && write_at_once(*self.buffer, self.offset_bytes, size_bytes, src)) return;
    write(self, src);
  });
}

compute_error* compute_tensor_read_async(compute_tensor* tensor, void* dst, int64_t size_bytes,
                                         compute_stream* stream) {
  return guard(about(tensor, stream), [&] {
    constexpr const char* kName = "compute_tensor_read_async";
    Tensor& self = checked(tensor);
    compute_stream& queue = checked(stream);
    const Running running;
    check_size(kName, self, size_bytes);
    require_not_recording(kName, queue.timeline);
    if (size_bytes == 0) return;
    require_not_null(dst, "dst");
    if (self.buffer == nullptr)
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: a scalar has no memory; use compute_tensor_read", kName));
    if (&self.buffer->device != &queue.device) {
      throw Error(COMPUTE_ERROR_DEVICE_MISMATCH, fmt::format("{}: the tensor is on {}, but the stream is on {}", kName,
                                                             device_of(self).name, queue.device.name));
    }
    queue.device.require_usable();
    if (queue.device.is_host) bring_home(*self.buffer);
    TensorReference packed;
    queue_copy(row_major(self, queue.timeline, packed), dst, false, queue.timeline);
  });
}

compute_error* compute_tensor_write_async(compute_tensor* tensor, const void* src, int64_t size_bytes,
                                          compute_stream* stream) {
  return guard(about(tensor, stream), [&] {
    constexpr const char* kName = "compute_tensor_write_async";
    Tensor& self = checked(tensor);
    compute_stream& queue = checked(stream);
    const Running running;
    require_writable(kName, self);
    check_size(kName, self, size_bytes);
    require_not_recording(kName, queue.timeline);
    if (size_bytes == 0) return;
    require_not_null(src, "src");
    if (&self.buffer->device != &queue.device) {
      throw Error(COMPUTE_ERROR_DEVICE_MISMATCH, fmt::format("{}: the tensor is on {}, but the stream is on {}", kName,
                                                             device_of(self).name, queue.device.name));
    }
    queue.device.require_usable();
    if (queue.device.is_host) bring_home(*self.buffer);
    auto* data = const_cast<void*>(src);
    if (self.is_row_major) {
      queue_copy(self, data, true, queue.timeline);
      return;
    }
    TensorReference packed(make_tensor(queue.device, self.dtype, self.shape_span(), &queue.timeline));
    queue_copy(*packed, data, true, queue.timeline);
    copy_into(*packed, self, queue.timeline);
  });
}

compute_error* compute_tensor_to_device(compute_tensor* tensor, compute_device* device, compute_tensor** out_tensor) {
  if (out_tensor != nullptr) *out_tensor = nullptr;
  return guard(about(tensor, device), [&] {
    require_not_null(out_tensor, "out_tensor");
    Tensor& self = checked(tensor);
    Device& target = checked(device);
    const Running running;
    if (self.buffer != nullptr && &self.buffer->device == &target) {
      self.retain();
      *out_tensor = &self;
      return;
    }
    *out_tensor = move(self, target);
  });
}

compute_error* compute_tensor_map(compute_tensor* tensor, uint32_t access, void** out_data, int32_t* out_is_copy) {
  if (out_data != nullptr) *out_data = nullptr;
  if (out_is_copy != nullptr) *out_is_copy = 0;
  return guard(about(tensor), [&] {
    constexpr const char* kName = "compute_tensor_map";
    require_not_null(out_data, "out_data");
    require_not_null(out_is_copy, "out_is_copy");
    Tensor& self = checked(tensor);
    const Running running;
    if (const compute_error_code code = access_error(access))
      throw Error(code, fmt::format("{}: access {:#x} is not of COMPUTE_ACCESS_", kName, access));
    const bool writes = (access & COMPUTE_ACCESS_WRITE) != 0;
    if (self.buffer == nullptr)
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: a scalar has no memory", kName));
    if (writes) require_writable(kName, self);
    if (self.element_count == 0) return;
    Buffer& buffer = *self.buffer;
    Mapping mapping;
    mapping.access = access;
    self.retain();
    mapping.tensor.reset(&self);
    void* data = nullptr;
    if (buffer.device.is_host) {
      bring_home(buffer);
      wait_to_map(self, access);
      data = buffer.host_address() + self.offset_bytes;
    } else if ((data = map_in_place(self, access, mapping)) == nullptr) {
      mapping.copy = std::make_unique<HostCopy>(self);
      data = mapping.copy->data();
      if ((access & COMPUTE_ACCESS_READ) != 0) {
        read(self, data, mapping.copy->place());
      } else {
        wait_to_map(self, access);  // reports errors that would make the copy back fail
      }
      *out_is_copy = 1;
    }
    {
      std::lock_guard guard(mappings().mutex);
      mappings().by_address.emplace(data, std::move(mapping));
    }
    if (writes && buffer.device.is_host) buffer.exposed.fetch_add(1, std::memory_order_acq_rel);
    *out_data = data;
  });
}

compute_error* compute_tensor_unmap(compute_tensor* tensor, void* data) {
  return guard(about(tensor), [&] {
    Tensor& self = checked(tensor);
    const Running running;
    if (data == nullptr && self.element_count == 0) return;
    Mapping mapping;
    {
      std::lock_guard guard(mappings().mutex);
      const auto [first, last] = mappings().by_address.equal_range(data);
      const auto found =
          std::find_if(first, last, [&](const auto& entry) { return entry.second.tensor.get() == &self; });
      if (found == last) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                    fmt::format("compute_tensor_unmap: {} is not mapped for this tensor", fmt::ptr(data)));
      }
      mapping = std::move(found->second);
      mappings().by_address.erase(found);
    }
    if (mapping.plugin_map != nullptr) {
      unmap_in_place(mapping);
      return;
    }
    if ((mapping.access & COMPUTE_ACCESS_WRITE) == 0) return;
    if (mapping.copy) {
      write(self, data, mapping.copy->place());
      return;
    }
    self.buffer->version.fetch_add(1, std::memory_order_acq_rel);
    self.buffer->exposed.fetch_sub(1, std::memory_order_acq_rel);
  });
}

compute_error* compute_tensor_synchronize(compute_tensor* tensor) {
  return guard(about(tensor), [&] {
    Tensor& self = checked(tensor);
    const Running running;
    if (self.buffer == nullptr) return;
    if (self.buffer->promise != 0) bring_home(*self.buffer);  // the program reads its memory directly
    if (const BufferReference newest = newest_copy(*self.buffer)) wait_for_buffer(*newest, false);
    wait_for_buffer(*self.buffer, false);
  });
}

}  // extern "C"
