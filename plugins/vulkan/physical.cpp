// SPDX-License-Identifier: Apache-2.0
#include "physical.hpp"

#include <compute/plugin.h>
#include <compute_kit/signals_blocked.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace vulkan {
namespace {

std::string hex(const uint8_t* bytes, bool dashes) {
  std::string out;
  for (int i = 0; i < 16; ++i) {
    char byte[3];
    snprintf(byte, sizeof byte, "%02x", bytes[i]);
    if (dashes && (i == 4 || i == 6 || i == 8 || i == 10)) out += '-';
    out += byte;
  }
  return out;
}

std::vector<std::string> extensions_of(VkPhysicalDevice handle) {
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> properties(count);
  vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, properties.data());
  properties.resize(count);
  std::vector<std::string> names;
  for (const VkExtensionProperties& property : properties) names.emplace_back(property.extensionName);
  return names;
}

void choose_queues(Physical& p) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(p.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(p.handle, &count, families.data());
  // A family without graphics is preferred: its queues run beside what draws the screen.
  for (const bool with_graphics : {false, true}) {
    for (uint32_t i = 0; i < count && p.queue_count == 0; ++i) {
      const VkQueueFamilyProperties& family = families[i];
      if ((family.queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
      if (((family.queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0) != with_graphics) continue;
      p.queue_family = i;
      p.timestamp_bits = family.timestampValidBits;
      p.queue_count = std::min(family.queueCount, 8u);
    }
  }
}

void describe_memory(Physical& p) {
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(p.handle, &memory);
  p.memory_bytes = 0;
  p.is_unified = true;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
      p.memory_bytes = std::max(p.memory_bytes, static_cast<int64_t>(memory.memoryHeaps[i].size));
    else
      p.is_unified = false;
  }
}

Physical describe(VkPhysicalDevice handle) {
  Physical p;
  p.handle = handle;
  vkGetPhysicalDeviceProperties(handle, &p.properties);
  switch (p.properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      p.kind = COMPUTE_DEVICE_KIND_DISCRETE_GPU;
      break;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      p.kind = COMPUTE_DEVICE_KIND_INTEGRATED_GPU;
      break;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      p.kind = COMPUTE_DEVICE_KIND_CPU;
      break;
    default:
      p.kind = COMPUTE_DEVICE_KIND_ACCELERATOR;
  }
  describe_memory(p);
  if (p.properties.apiVersion < VK_API_VERSION_1_2) {
    p.unusable = "the driver is older than Vulkan 1.2";
    return p;
  }

  const std::vector<std::string> extensions = extensions_of(handle);
  const auto has = [&](const char* name) {
    return std::find(extensions.begin(), extensions.end(), name) != extensions.end();
  };
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {};
  pci.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT;
  VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes = {};
  sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT;
  VkPhysicalDeviceVulkan12Properties p12 = {};
  p12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  VkPhysicalDeviceVulkan11Properties p11 = {};
  p11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  VkPhysicalDeviceProperties2 properties = {};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &p11;
  p11.pNext = &p12;
  void** tail = &p12.pNext;
  if (has(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) *tail = &pci, tail = &pci.pNext;
  if (has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) *tail = &sizes;
  vkGetPhysicalDeviceProperties2(handle, &properties);
  p.driver = std::string(p12.driverName) + " " + p12.driverInfo;
  p.uuid = hex(p11.deviceUUID, true);
  if (has(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) {
    char address[48];
    snprintf(address, sizeof address, "%04x:%02x:%02x.%x", pci.pciDomain, pci.pciBus, pci.pciDevice, pci.pciFunction);
    p.pci_address = address;
  }
  p.identity = hex(p.properties.pipelineCacheUUID, false) + " " + std::to_string(p.properties.driverVersion) + " " +
               std::to_string(p.properties.vendorID) + ":" + std::to_string(p.properties.deviceID);

  VkPhysicalDeviceVulkan12Features f12 = {};
  f12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceVulkan11Features f11 = {};
  f11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT size_control = {};
  size_control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT;
  VkPhysicalDeviceFeatures2 f = {};
  f.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  f.pNext = &f11;
  f11.pNext = &f12;
  if (has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) f12.pNext = &size_control;
  vkGetPhysicalDeviceFeatures2(handle, &f);

  Features& features = p.features;
  const VkPhysicalDeviceLimits& limits = p.properties.limits;
  features.float64 = f.features.shaderFloat64 == VK_TRUE;
  features.int64_atomics = f12.shaderBufferInt64Atomics == VK_TRUE;
  features.shuffle = (p11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                     (p11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0 &&
                     size_control.computeFullSubgroups == VK_TRUE;
  features.keeps_subnormals[0] = p12.shaderDenormPreserveFloat32 == VK_TRUE;
  features.keeps_subnormals[1] = p12.shaderDenormPreserveFloat64 == VK_TRUE;
  features.rounds_to_even[0] = p12.shaderRoundingModeRTEFloat32 == VK_TRUE;
  features.rounds_to_even[1] = p12.shaderRoundingModeRTEFloat64 == VK_TRUE;
  features.keeps_special_values[0] = p12.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE;
  features.keeps_special_values[1] = p12.shaderSignedZeroInfNanPreserveFloat64 == VK_TRUE;
  // Modes of one size alone may be set only if the sizes are independent.
  if (p12.denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE)
    features.keeps_subnormals[1] = features.keeps_subnormals[0] &= features.keeps_subnormals[1];
  if (p12.roundingModeIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE)
    features.rounds_to_even[1] = features.rounds_to_even[0] &= features.rounds_to_even[1];
  features.ballot = (p11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_BALLOT_BIT) != 0;
  features.subgroup_size = features.subgroup_size_min = features.subgroup_size_max = p11.subgroupSize;
  if (sizes.minSubgroupSize != 0) {
    features.subgroup_size_min = sizes.minSubgroupSize;
    features.subgroup_size_max = sizes.maxSubgroupSize;
  }
  features.push_bytes = std::min(limits.maxPushConstantsSize, 256u);
  features.shared_bytes = limits.maxComputeSharedMemorySize;
  features.group_size = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  features.group_count = std::min(
      {limits.maxComputeWorkGroupCount[0], limits.maxComputeWorkGroupCount[1], limits.maxComputeWorkGroupCount[2]});

  choose_queues(p);
  p.has_times =
      has(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME) && f12.hostQueryReset == VK_TRUE && p.timestamp_bits >= 32;
  p.has_memory_budget = has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);

  const auto require = [&](bool present, const char* feature) {
    if (!present && p.unusable.empty()) p.unusable = std::string("the driver lacks the feature ") + feature;
  };
  require(f12.bufferDeviceAddress == VK_TRUE, "bufferDeviceAddress");
  require(f12.timelineSemaphore == VK_TRUE, "timelineSemaphore");
  require(f.features.shaderInt64 == VK_TRUE, "shaderInt64");
  require(f12.storageBuffer8BitAccess == VK_TRUE, "storageBuffer8BitAccess");
  require(f11.storageBuffer16BitAccess == VK_TRUE, "storageBuffer16BitAccess");
  require(f12.shaderInt8 == VK_TRUE, "shaderInt8");
  require(f.features.shaderInt16 == VK_TRUE, "shaderInt16");
  require(features.group_size >= 256, "work-groups of 256 invocations");
  if (p.queue_count == 0 && p.unusable.empty()) p.unusable = "the device has no queue for compute";
  return p;
}

}  // namespace

const std::vector<Physical>& physical_devices() {
  // Never destroyed: other threads may use a device while the process ends.
  static const std::vector<Physical>& all = *[] {
    auto* list = new std::vector<Physical>();
    const VkInstance instance = open_api(nullptr);
    if (instance == VK_NULL_HANDLE) return list;
    const compute::common::SignalsBlocked blocked;
    uint32_t count = 0;
    vkEnumeratePhysicalDevices(instance, &count, nullptr);
    std::vector<VkPhysicalDevice> handles(count);
    vkEnumeratePhysicalDevices(instance, &count, handles.data());
    handles.resize(count);
    for (const VkPhysicalDevice handle : handles) list->push_back(describe(handle));
    return list;
  }();
  return all;
}

}  // namespace vulkan
