// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <stdexcept>

namespace onnxruntime_compute {

DeviceMemory& DeviceMemory::of_process() {
  static DeviceMemory* const all = new DeviceMemory;  // allocators are released at exit, in any order
  return *all;
}

void* DeviceMemory::allocate(const compute::Device& device, size_t size_bytes) {
  if (size_bytes == 0) return nullptr;
  void* const address = mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  const std::lock_guard guard(lock_);
  blocks_[reinterpret_cast<uintptr_t>(address)] = {device, size_bytes};
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
  }
  munmap(address, block.size_bytes);
}

std::optional<Tensor> DeviceMemory::find(const void* address, DType dtype, const Shape& shape) {
  const std::lock_guard guard(lock_);
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto found = blocks_.upper_bound(at);
  if (found == blocks_.begin()) return {};
  --found;
  if (at >= found->first + found->second.size_bytes) return {};
  Block& block = found->second;
  Tensor& memory = block.by_element_size[dtype.size()];
  if (!memory.defined()) {
    const DType bits = dtype.size() == 1   ? compute::uint8
                       : dtype.size() == 2 ? compute::uint16
                       : dtype.size() == 4 ? compute::uint32
                                           : compute::uint64;
    memory = block.device.empty(bits, {(static_cast<int64_t>(block.size_bytes) + dtype.size() - 1) / dtype.size()});
  }
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return memory.view(dtype, shape, strides, memory.offset_bytes() + static_cast<int64_t>(at - found->first));
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
  const auto there = memory.find(src, facts.dtype, facts.shape), here = memory.find(dst, facts.dtype, facts.shape);
  if (there && here) {
    here->assign(*there);
  } else if (there) {
    there->read(dst, static_cast<int64_t>(size_bytes));
  } else if (here) {
    here->write(src, static_cast<int64_t>(size_bytes));
  } else {
    std::copy_n(static_cast<const std::byte*>(src), size_bytes, static_cast<std::byte*>(dst));
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
