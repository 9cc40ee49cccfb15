// SPDX-License-Identifier: Apache-2.0
// The physical devices, and the features of each that decide how kernels are written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api.hpp"

namespace vulkan {

// What kernels may use. Part of the key of every stored kernel through Physical::identity.
struct Features {
  bool float64 = false;
  bool int64_atomics = false;
  bool shuffle = false;  // subgroup operations of the kind shuffle, in subgroups without gaps
  bool ballot = false;   // of the kind ballot
  // VK_KHR_shader_float_controls, by size of the floats: [0] float32, [1] float64.
  bool keeps_subnormals[2] = {}, rounds_to_even[2] = {}, keeps_special_values[2] = {};
  uint32_t subgroup_size = 0, subgroup_size_min = 0, subgroup_size_max = 0;  // the first: of our kernels
  uint32_t push_bytes = 128, shared_bytes = 16384, group_size = 128, group_count = 65535;
};

struct Physical {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties = {};
  Features features;
  std::string driver, uuid, pci_address, identity;
  std::string unusable;  // why, or ""
  uint32_t queue_family = 0, queue_count = 0;
  uint32_t timestamp_bits = 0;
  bool has_times = false, has_memory_budget = false;
  bool is_unified = false;  // all memory of the device is visible to the host
  int32_t kind = 0;         // COMPUTE_DEVICE_KIND_
  int64_t memory_bytes = -1;
};

// Lists the devices at the first call.
const std::vector<Physical>& physical_devices();

}  // namespace vulkan
