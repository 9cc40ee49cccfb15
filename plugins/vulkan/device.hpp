// SPDX-License-Identifier: Apache-2.0
// An open device: its queues, its memory, and its compiled kernels.
#pragma once

#include <compute/plugin.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api.hpp"
#include "physical.hpp"

namespace vulkan {

struct Stream;
struct UserKernel;

// Memory with a VkBuffer over it. `host` is NULL if the host cannot see it.
struct Buffer {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t address = 0;  // of the device
  std::byte* host = nullptr;
  int64_t size = 0;
};

// A pipeline. Kernels take their arguments as 64-bit words: as push constants if they fit, else from memory, whose
// address is then the only push constant.
struct Kernel {
  VkPipeline pipeline = VK_NULL_HANDLE;
};

// The place of an operand in the memory of the device: the handle of a buffer is its device address.
inline uint64_t address_of(const compute_plugin_operand& operand) {
  return operand.buffer + static_cast<uint64_t>(operand.offset_bytes);
}

struct Device {
  explicit Device(const Physical& physical);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Physical& physical;
  VkDevice handle = VK_NULL_HANDLE;
  std::vector<VkQueue> queues;
  std::unique_ptr<std::mutex[]> queue_mutexes;
  std::atomic<uint32_t> next_queue{0};
  std::atomic<bool> is_lost{false};

  compute_plugin_caps caps;
  const int64_t spin_ns;  // that a wait asks the device without a pause
  bool is_fused[2] = {};  // fma of float32 and of float64 rounds once

  // Memory.
  Buffer* allocate_in_heap(int32_t heap, int64_t bytes);
  Buffer* allocate_arguments(int64_t bytes);  // the host writes, kernels read
  void free(Buffer* buffer);
  // The buffer that contains the place of an operand, and the offset in it.
  Buffer& find(const compute_plugin_operand& operand, int64_t* offset);
  void memory_info(int32_t heap, int64_t* out_free, int64_t* out_total) const;

  // Kernels. `key` names everything that the text depends on; text() makes it at the first use of the key.
  Kernel* find_kernel(const std::string& key);
  Kernel* add_kernel(const std::string& key, const std::string& source, bool full_subgroups, int64_t* compiled);
  VkPipeline make_pipeline(const std::vector<uint32_t>& spirv, const char* entry, VkPipelineLayout layout,
                           const VkSpecializationInfo* constants, std::string* cache_data, bool full_subgroups = false);
  VkPipelineLayout layout = VK_NULL_HANDLE;  // features.push_bytes of push constants

  std::mutex user_kernels_mutex;
  std::map<std::string, std::shared_ptr<UserKernel>> user_kernels;  // of ops that programs registered

  std::mutex streams_mutex;
  std::vector<std::unique_ptr<Stream>> streams;  // live and retired ones

 private:
  Buffer* allocate(uint32_t memory_type, int64_t bytes, int64_t most_bytes);
  void choose_memory();

  VkPhysicalDeviceMemoryProperties memory_ = {};
  std::array<uint32_t, 3> heap_types_ = {};
  uint32_t argument_type_ = 0;
  std::array<compute_plugin_heap, 3> heaps_ = {};
  std::shared_mutex buffers_mutex_;
  std::map<uint64_t, Buffer*> by_address_;

  std::shared_mutex kernels_mutex_;
  std::unordered_map<std::string, std::unique_ptr<Kernel>> kernels_;
};

}  // namespace vulkan
