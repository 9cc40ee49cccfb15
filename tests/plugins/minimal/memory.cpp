// SPDX-License-Identifier: Apache-2.0
// Memory: raw blocks. Core pools them, reuses them in stream order and answers for limits and statistics.
#include <cstdlib>
#include <cstring>

#include "minimal.hpp"
#include "values.hpp"

namespace minimal {
namespace {

constexpr int64_t kAlignment = 256;

compute_error* memory_allocate(uint64_t device, const compute_plugin_allocation* request, uint64_t* out_buffer,
                               void** out_data) {
  *out_buffer = 0;
  return guard([&] {
    understand(*request, "the allocation");
    *out_buffer = from_handle<Device>(device).memory.allocate(request->heap, request->size_bytes, out_data);
  });
}

void memory_free(uint64_t device, int32_t heap, uint64_t buffer) {
  from_handle<Device>(device).memory.free(heap, buffer);
}

compute_error* memory_import(uint64_t device, const compute_plugin_import* import, uint64_t* out_buffer) {
  *out_buffer = 0;
  return guard([&] {
    understand(*import, "the import");
    Device& self = from_handle<Device>(device);
    if (import->dlpack_device_type != kDlExtDev || static_cast<uint64_t>(import->dlpack_device_id) != self.id)
      throw Failure(COMPUTE_ERROR_UNSUPPORTED, "minimal: the memory is another device's");
    *out_buffer = self.memory.adopt(import->data, import->size_bytes);
  });
}

compute_error* memory_map(uint64_t device, const compute_plugin_mapping* mapping, void** out_data) {
  *out_data = nullptr;
  return guard([&] {
    understand(*mapping, "the mapping");
    if (mapping->heap == kPrivateHeap && !memory_is_visible()) {
      throw Failure(COMPUTE_ERROR_INVALID_ARGUMENT, "minimal: the host cannot see this heap");
    }
    const compute_plugin_operand place = {mapping->buffer, mapping->offset_bytes};
    *out_data = from_handle<Device>(device).memory.resolve(place, 0, mapping->size_bytes);
  });
}

void memory_unmap(uint64_t, const compute_plugin_mapping*, void*) {}

}  // namespace

uint64_t Memory::allocate(int32_t heap, int64_t size_bytes, void** out_data) {
  std::lock_guard lock(mutex_);
  if (heap != kPrivateHeap) {
    log("memory", "minimal allocates in heap " + std::to_string(heap));
    const int64_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* data = std::aligned_alloc(kAlignment, static_cast<size_t>(rounded));
    if (data == nullptr) throw std::bad_alloc();
    const uint64_t buffer = ++last_;
    blocks_.emplace(buffer, Block{size_bytes, static_cast<std::byte*>(data), [data] { std::free(data); }});
    *out_data = data;
    return buffer;
  }
  if (size_bytes > capacity_bytes_ - used_bytes_) {
    throw Failure(COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY, "minimal: " + std::to_string(size_bytes) + " bytes asked for, " +
                                                          std::to_string(capacity_bytes_ - used_bytes_) + " of " +
                                                          std::to_string(capacity_bytes_) + " free");
  }
  auto* const storage = new std::byte[size_bytes + kAlignment];
  std::byte* const base = storage + (kAlignment - to_handle(storage) % kAlignment) % kAlignment;
  std::memset(base, 0xCB, size_bytes);  // so that no code relies on zeroed memory
  const uint64_t buffer = ++last_;
  blocks_.emplace(buffer, Block{size_bytes, base, [storage] { delete[] storage; }});
  used_bytes_ += size_bytes;
  return buffer;
}

uint64_t Memory::adopt(void* data, int64_t size_bytes, std::function<void()> release) {
  std::lock_guard lock(mutex_);
  const uint64_t buffer = ++last_;
  blocks_.emplace(buffer, Block{size_bytes, static_cast<std::byte*>(data), std::move(release)});
  return buffer;
}

// The heap of imported memory is -1.
void Memory::free(int32_t heap, uint64_t buffer) {
  std::lock_guard lock(mutex_);
  const auto block = blocks_.find(buffer);
  if (block == blocks_.end()) return;
  if (heap == kPrivateHeap) used_bytes_ -= block->second.size_bytes;
  if (block->second.release) block->second.release();
  blocks_.erase(block);
}

Memory::~Memory() {
  for (auto& [buffer, block] : blocks_) {
    if (block.release) block.release();
  }
}

// A device would fault where this one throws: a buffer that was freed, or bytes outside of it.
std::byte* Memory::resolve(compute_plugin_operand operand, int64_t first, int64_t end) const {
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(operand.buffer);
  if (found == blocks_.end()) {
    throw Failure(COMPUTE_ERROR_INTERNAL, "minimal: there is no buffer " + std::to_string(operand.buffer));
  }
  const Block& block = found->second;
  if (operand.offset_bytes + first < 0 || operand.offset_bytes + end > block.size_bytes) {
    throw Failure(COMPUTE_ERROR_INTERNAL, "minimal: bytes [" + std::to_string(operand.offset_bytes + first) + ", " +
                                              std::to_string(operand.offset_bytes + end) + ") of a buffer of " +
                                              std::to_string(block.size_bytes));
  }
  return block.base + operand.offset_bytes;
}

int64_t Memory::used_bytes() const {
  std::lock_guard lock(mutex_);
  return used_bytes_;
}

void fill_memory_slots(compute_plugin_device_table& table) {
  table.memory_allocate = memory_allocate;
  table.memory_free = memory_free;
  if (has_native_handles()) table.memory_import = memory_import;
  if (lacks("map")) return;
  table.memory_map = memory_map;
  table.memory_unmap = memory_unmap;
}

}  // namespace minimal
