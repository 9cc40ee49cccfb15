// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <exception>
#include <memory>
#include <stdexcept>

namespace onnxruntime_compute {

DeviceMemory& DeviceMemory::of_process() {
  static DeviceMemory* const all = new DeviceMemory;  // allocators are released at exit, in any order
  return *all;
}

namespace {

// Greater blocks are addresses alone.
constexpr size_t kSmall = size_t{1} << 20;
constexpr size_t kMostUnused = 16;

}  // namespace

void* DeviceMemory::allocate(const compute::Device& device, size_t size_bytes) {
  if (size_bytes == 0) return nullptr;
  const bool is_small = size_bytes <= kSmall;
  const size_t room = is_small ? std::bit_ceil(std::max<size_t>(size_bytes, 4096)) : size_bytes;
  const std::lock_guard guard(lock_);
  const auto found =
      std::find_if(unused_.begin(), unused_.end(), [&](const auto& one) { return one.second == room && is_small; });
  void* address = nullptr;
  if (found != unused_.end()) {
    address = found->first;
    unused_.erase(found);
  } else {
    address = mmap(nullptr, room, is_small ? PROT_READ | PROT_WRITE : PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) return nullptr;
  }
  blocks_[reinterpret_cast<uintptr_t>(address)] = {device, room};
  return address;
}

void DeviceMemory::release(void* address) {
  if (address == nullptr) return;
  Block block;
  {
    const std::lock_guard guard(lock_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(address));
    if (found == blocks_.end()) return;
    block = std::move(found->second);
    blocks_.erase(found);
    if (block.size_bytes <= kSmall && unused_.size() < kMostUnused) {
      unused_.emplace_back(address, block.size_bytes);
      return;
    }
  }
  munmap(address, block.size_bytes);
}

// The end if the address is the host's.
DeviceMemory::Blocks::iterator DeviceMemory::block_of(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto found = blocks_.upper_bound(at);
  if (found == blocks_.begin()) return blocks_.end();
  --found;
  return at < found->first + found->second.size_bytes ? found : blocks_.end();
}

const Tensor& DeviceMemory::memory_of(Blocks::value_type& entry, DType dtype) {
  Block& block = entry.second;
  Tensor& memory = block.by_element_size[dtype.size()];
  if (memory.defined()) return memory;
  const auto size_bytes = static_cast<int64_t>(block.size_bytes);
  memory = block.device.empty(bits_of(dtype.size()), {(size_bytes + dtype.size() - 1) / dtype.size()});
  // Blocks that are both have a size that every element's divides.
  if (block.is_written) memory.write(reinterpret_cast<const void*>(entry.first), size_bytes);
  return memory;
}

Tensor DeviceMemory::part(const Tensor& memory, size_t offset, DType dtype, const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return memory.view(dtype, shape, strides, memory.offset_bytes() + static_cast<int64_t>(offset));
}

std::optional<Tensor> DeviceMemory::find(const void* address, DType dtype, const Shape& shape) {
  const std::lock_guard guard(lock_);
  const auto found = block_of(address);
  if (found == blocks_.end()) return {};
  return part(memory_of(*found, dtype), reinterpret_cast<uintptr_t>(address) - found->first, dtype, shape);
}

std::optional<Tensor> DeviceMemory::find_there(const void* address, DType dtype, const Shape& shape) {
  const std::lock_guard guard(lock_);
  const auto found = block_of(address);
  if (found == blocks_.end()) return {};
  const Block& block = found->second;
  if (block.size_bytes <= kSmall && !block.by_element_size.contains(dtype.size())) return {};
  return part(memory_of(*found, dtype), reinterpret_cast<uintptr_t>(address) - found->first, dtype, shape);
}

void DeviceMemory::note_written(const void* address) {
  const std::lock_guard guard(lock_);
  const auto found = block_of(address);
  if (found != blocks_.end()) found->second.is_written = true;
}

namespace {

struct Allocator : OrtAllocator {
  compute::Device device;
  const OrtMemoryInfo* info = nullptr;
};

struct DataTransfer : OrtDataTransferImpl {
  const OrtMemoryInfo* info = nullptr;
};

void* allocate(OrtAllocator* self, size_t size_bytes) {
  try {
    return DeviceMemory::of_process().allocate(static_cast<Allocator*>(self)->device, size_bytes);
  } catch (const std::exception&) {
    return nullptr;
  }
}

void copy_value(const OrtValue* from, OrtValue* to) {
  const TensorFacts facts = tensor_facts(from);
  const void* src = nullptr;
  void* dst = nullptr;
  check_ort(ort.GetTensorData(from, &src));
  check_ort(ort.GetTensorMutableData(to, &dst));
  size_t size_bytes = 0;
  check_ort(ort.GetTensorSizeInBytes(from, &size_bytes));
  if (size_bytes == 0) return;
  if (facts.dtype == DType()) throw std::runtime_error("an element type that has no dtype cannot be copied");
  DeviceMemory& memory = DeviceMemory::of_process();
  const auto from_device = memory.find_there(src, facts.dtype, facts.shape);
  const auto to_device = memory.find_there(dst, facts.dtype, facts.shape);
  if (from_device && to_device) {
    to_device->assign(*from_device);
  } else if (from_device) {
    from_device->read(dst, static_cast<int64_t>(size_bytes));
    memory.note_written(dst);
  } else if (to_device) {
    to_device->write(src, static_cast<int64_t>(size_bytes));
  } else {
    std::copy_n(static_cast<const std::byte*>(src), size_bytes, static_cast<std::byte*>(dst));
    memory.note_written(dst);
  }
}

}  // namespace

OrtAllocator* make_allocator(const compute::Device& device, const OrtMemoryInfo* info) {
  auto made = std::make_unique<Allocator>();
  static_cast<OrtAllocator&>(*made) = {};
  made->version = kInterface;
  made->Alloc = allocate;
  made->Reserve = allocate;
  made->Free = [](OrtAllocator*, void* address) { DeviceMemory::of_process().release(address); };
  made->Info = [](const OrtAllocator* self) { return static_cast<const Allocator*>(self)->info; };
  made->device = device;
  made->info = info;
  return made.release();
}

void release_allocator(OrtAllocator* allocator) { delete static_cast<Allocator*>(allocator); }

OrtDataTransferImpl* make_data_transfer(const OrtMemoryInfo* info) {
  auto made = std::make_unique<DataTransfer>();
  static_cast<OrtDataTransferImpl&>(*made) = {};
  made->version = kInterface;
  made->info = info;
  made->Release = [](OrtDataTransferImpl* self) { delete static_cast<DataTransfer*>(self); };
  made->CanCopy = [](const OrtDataTransferImpl* self, const OrtMemoryDevice* from, const OrtMemoryDevice* to) {
    const OrtMemoryDevice* const ours = ort.MemoryInfo_GetMemoryDevice(static_cast<const DataTransfer*>(self)->info);
    const bool from_us = ort.MemoryDevice_AreEqual(from, ours), to_us = ort.MemoryDevice_AreEqual(to, ours);
    return (from_us || ort.MemoryDevice_GetDeviceType(from) == 0) &&
           (to_us || ort.MemoryDevice_GetDeviceType(to) == 0) && (from_us || to_us);
  };
  made->CopyTensors = [](OrtDataTransferImpl*, const OrtValue** from, OrtValue** to, OrtSyncStream**, size_t count) {
    return guarded([&] {
      for (size_t i = 0; i < count; ++i) copy_value(from[i], to[i]);
    });
  };
  return made.release();
}

}  // namespace onnxruntime_compute
