// SPDX-License-Identifier: Apache-2.0
// Memory, streams and copies, and the slots of the device table.
#include "device.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace acme {
namespace {

constexpr int64_t kAlignment = 256;

// ---- Memory. TODO: the driver's. Core pools: it asks for large blocks and seldom. ----

compute_error* memory_allocate(uint64_t, const compute_plugin_allocation* request, uint64_t* out_buffer,
                               void** out_data) {
  *out_buffer = 0;
  *out_data = nullptr;
  return kit::guard([&] {
    kit::require_understood(request, "the allocation");
    const int64_t size = (request->size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* const memory = std::aligned_alloc(kAlignment, static_cast<size_t>(size));
    if (memory == nullptr)
      throw kit::Error(COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY, "acme: no " + std::to_string(size) + " bytes are free");
    *out_buffer = kit::handle_of(memory);
    *out_data = memory;  // of heaps that are HOST_SPACE
  });
}

void memory_free(uint64_t, int32_t, uint64_t buffer) { std::free(reinterpret_cast<void*>(buffer)); }

compute_error* memory_map(uint64_t, const compute_plugin_mapping* mapping, void** out_data) {
  *out_data = nullptr;
  return kit::guard([&] {
    kit::require_understood(mapping, "the mapping");
    *out_data = address({mapping->buffer, mapping->offset_bytes});
  });
}

void memory_unmap(uint64_t, const compute_plugin_mapping*, void*) {}

const compute_plugin_caps* caps(uint64_t) {
  static const compute_plugin_heap heap = [] {
    compute_plugin_heap value = {};
    value.struct_size = sizeof value;
    value.struct_type = COMPUTE_PLUGIN_STRUCT_HEAP;
    // The host reads and writes this heap directly. TODO: no flags for memory that the host cannot address, and a
    // second heap, PINNED | HOST_SPACE, for transfers.
    value.flags = COMPUTE_PLUGIN_HEAP_HOST_SPACE | COMPUTE_PLUGIN_HEAP_HOST_VISIBLE;
    value.role = COMPUTE_PLUGIN_HEAP_ROLE_SHARED;
    value.suballocation = COMPUTE_PLUGIN_SUBALLOCATE_OFFSET;
    value.size_bytes = -1;
    value.max_allocation_bytes = INT64_MAX;
    value.offset_alignment = 64;
    value.base_alignment = kAlignment;
    return value;
  }();
  static const compute_plugin_caps value = [] {
    compute_plugin_caps made = {};
    made.struct_size = sizeof made;
    made.struct_type = COMPUTE_PLUGIN_STRUCT_CAPS;
    made.heap_count = 1;
    made.heaps = &heap;
    return made;
  }();
  return &value;
}

void close(uint64_t device) { delete &kit::object<Device>(device); }

// ---- Streams and copies ----

compute_error* stream_create(uint64_t device, const compute_plugin_stream_options* options, uint64_t* out_stream) {
  *out_stream = 0;
  return kit::guard([&] {
    kit::require_understood(options, "the stream's options");
    *out_stream = kit::handle_of(new Stream(kit::object<Device>(device)));
  });
}

// The kit's slots call these.
struct Acme {
  using Device = acme::Device;
  using Stream = acme::Stream;
  using Plan = acme::Plan;

  struct Nothing {};
  // TODO: take the lock of a driver whose functions are not thread-safe.
  static Nothing entering(Device&) { return {}; }
  static Nothing submitting(Stream& stream) {
    stream.require_good();
    return {};
  }
  static std::optional<kit::Refusal> refuse(Device&, const kit::Op& op) { return acme::refuse(op); }
  static kit::PlanOrRefusal<Plan> prepare(Device& device, const kit::Op& op) {
    if (std::optional<kit::Refusal> refusal = acme::refuse(op)) return *std::move(refusal);
    return std::make_unique<Plan>(op, device);
  }
};
using Slots = kit::Slots<Acme>;

compute_error* copy_from_host(uint64_t stream, const void* src, const compute_plugin_operand*,
                              const compute_plugin_operand* dst, int64_t size_bytes, uint32_t flags) {
  return Slots::submit(stream, [&](Stream&) {
    kit::require_known_flags(flags, "the copy");
    std::memcpy(address(*dst), src, static_cast<size_t>(size_bytes));
  });
}

compute_error* copy_to_host(uint64_t stream, const compute_plugin_operand* src, void* dst,
                            const compute_plugin_operand*, int64_t size_bytes, uint32_t flags) {
  return Slots::submit(stream, [&](Stream&) {
    kit::require_known_flags(flags, "the copy");
    std::memcpy(dst, address(*src), static_cast<size_t>(size_bytes));
  });
}

compute_error* fill(uint64_t stream, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern,
                    int32_t pattern_size, uint32_t flags) {
  return Slots::submit(stream, [&](Stream&) {
    kit::require_known_flags(flags, "the fill");
    for (int64_t at = 0; at < size_bytes; at += pattern_size)
      std::memcpy(address(*dst) + at, pattern, static_cast<size_t>(pattern_size));
  });
}

}  // namespace

void Stream::require_good() {
  const std::lock_guard lock(mutex_);
  if (failure_) throw *failure_;
}

void Stream::mark(uint64_t number) {
  const std::lock_guard lock(mutex_);
  reached_ = number;
}

uint64_t Stream::reached(compute_error** failure) {
  const std::lock_guard lock(mutex_);
  if (failure_) *failure = kit::make_error(failure_->code, failure_->message);
  return reached_;
}

uint64_t Stream::sync(uint64_t, int64_t, compute_error** failure) { return reached(failure); }

void Stream::fail(const kit::Error& error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error;
}

void fill_slots(compute_plugin_device_table& table) {
  Slots::fill(table);
  table.caps = caps;
  table.close = close;
  table.memory_allocate = memory_allocate;
  table.memory_free = memory_free;
  table.memory_map = memory_map;
  table.memory_unmap = memory_unmap;
  table.stream_create = stream_create;
  table.copy_from_host = copy_from_host;
  table.copy_to_host = copy_to_host;
  table.fill = fill;
}

}  // namespace acme
