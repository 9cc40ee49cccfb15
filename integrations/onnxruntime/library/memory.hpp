// SPDX-License-Identifier: Apache-2.0
// Memory of a device other than cpu for ONNX Runtime, so that IO binding keeps tensors there.
#pragma once

#include <compute/compute.hpp>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "node.hpp"

namespace onnxruntime_compute {

/// Memory of a device, at addresses that stand for it: a range of the address space that nothing can be read from.
/// ONNX Runtime computes with such addresses, and devices may have none of their own.
class DeviceMemory {
 public:
  static DeviceMemory& of_process();

  /// Memory is taken at first use. NULL if there is no room for addresses.
  void* allocate(const compute::Device& device, size_t size_bytes);
  void release(void* address);

  /// The elements at an address; none if the address is the host's.
  std::optional<Tensor> find(const void* address, DType dtype, const Shape& shape);

 private:
  // A view has elements of the size of its tensor's, so a block has memory for each size that is used in it: where
  // elements of one size lie, there are none of another.
  struct Block {
    compute::Device device;
    size_t size_bytes = 0;
    std::map<int64_t, Tensor> by_element_size{};
  };
  std::mutex lock_;
  std::map<uintptr_t, Block> blocks_;
};

/// An allocator of ONNX Runtime; release_allocator takes it back.
OrtAllocator* make_allocator(const compute::Device& device, const OrtMemoryInfo* info);
void release_allocator(OrtAllocator* allocator);

/// Copies between the host and memory of `info`, and within it.
OrtDataTransferImpl* make_data_transfer(const OrtMemoryInfo* info);

}  // namespace onnxruntime_compute
