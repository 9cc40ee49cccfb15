// SPDX-License-Identifier: Apache-2.0
// Memory of a device other than cpu for ONNX Runtime, so that IO binding keeps tensors there.
#pragma once

#include <compute/compute.hpp>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "node.hpp"

namespace onnxruntime_compute {

/// Memory of a device, at addresses that stand for it. ONNX Runtime computes with such addresses, and devices may have
/// none of their own.
///
/// A small block is also memory of the host at its address. Elements that were written by the host lie there until they
/// are used on the device, so a network that runs on the host instead takes them where they are.
class DeviceMemory {
 public:
  static DeviceMemory& of_process();

  /// Memory of the device is taken at first use. NULL if there is no room for addresses.
  void* allocate(const compute::Device& device, size_t size_bytes);
  void release(void* address);

  /// The elements at an address, on the device; none if the address is the host's.
  std::optional<Tensor> find(const void* address, DType dtype, const Shape& shape);
  /// The same if they lie on the device already; none if the host reads and writes them at the address.
  std::optional<Tensor> find_there(const void* address, DType dtype, const Shape& shape);
  /// The host wrote elements at an address that find_there did not find.
  void note_written(const void* address);

 private:
  // A view has elements of the size of its tensor's, so a block has memory for each size that is used in it: where
  // elements of one size lie, there are none of another.
  struct Block {
    compute::Device device;
    size_t size_bytes = 0;
    bool is_written = false;  // by the host, at the address
    std::map<int64_t, Tensor> by_element_size{};
  };
  using Blocks = std::map<uintptr_t, Block>;
  Blocks::iterator block_of(const void* address);
  static const Tensor& memory_of(Blocks::value_type& entry, DType dtype);
  static Tensor part(const Tensor& memory, size_t offset, DType dtype, const Shape& shape);

  std::mutex lock_;
  Blocks blocks_;
  std::vector<std::pair<void*, size_t>> unused_;  // addresses of small blocks
};

/// An allocator of ONNX Runtime; release_allocator takes it back.
OrtAllocator* make_allocator(const compute::Device& device, const OrtMemoryInfo* info);
void release_allocator(OrtAllocator* allocator);

/// Copies between the host and memory of `info`, and within it.
OrtDataTransferImpl* make_data_transfer(const OrtMemoryInfo* info);

}  // namespace onnxruntime_compute
