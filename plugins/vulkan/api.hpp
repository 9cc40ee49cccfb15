// SPDX-License-Identifier: Apache-2.0
// The Vulkan loader, opened at run time, and the functions that the plugin takes from it.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <string>

namespace vulkan {

#define VULKAN_GLOBAL_FUNCTIONS(X) X(vkCreateInstance) X(vkEnumerateInstanceVersion)
#define VULKAN_INSTANCE_FUNCTIONS(X)          \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties)            \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceMemoryProperties2)     \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkEnumerateDeviceExtensionProperties) X(vkCreateDevice) X(vkGetDeviceProcAddr)
#define VULKAN_DEVICE_FUNCTIONS(X) \
  X(vkDestroyDevice)               \
  X(vkGetDeviceQueue)              \
  X(vkCreateBuffer)                \
  X(vkDestroyBuffer)               \
  X(vkGetBufferMemoryRequirements) \
  X(vkAllocateMemory)              \
  X(vkFreeMemory)                  \
  X(vkBindBufferMemory)            \
  X(vkMapMemory)                   \
  X(vkGetBufferDeviceAddress)      \
  X(vkCreateSemaphore)             \
  X(vkDestroySemaphore)            \
  X(vkGetSemaphoreCounterValue)    \
  X(vkWaitSemaphores)              \
  X(vkSignalSemaphore)             \
  X(vkCreateCommandPool)           \
  X(vkDestroyCommandPool)          \
  X(vkAllocateCommandBuffers)      \
  X(vkBeginCommandBuffer)          \
  X(vkEndCommandBuffer)            \
  X(vkQueueSubmit)                 \
  X(vkDeviceWaitIdle)              \
  X(vkCmdCopyBuffer)               \
  X(vkCmdFillBuffer)               \
  X(vkCmdPipelineBarrier)          \
  X(vkCmdBindPipeline)             \
  X(vkCmdPushConstants)            \
  X(vkCmdDispatch)                 \
  X(vkCreateShaderModule)          \
  X(vkDestroyShaderModule)         \
  X(vkCreatePipelineLayout)        \
  X(vkDestroyPipelineLayout)       \
  X(vkCreatePipelineCache)         \
  X(vkDestroyPipelineCache)        \
  X(vkGetPipelineCacheData)        \
  X(vkCreateComputePipelines)      \
  X(vkDestroyPipeline)             \
  X(vkCreateQueryPool)             \
  X(vkDestroyQueryPool)            \
  X(vkResetQueryPool) X(vkGetQueryPoolResults) X(vkCmdWriteTimestamp) X(vkGetCalibratedTimestampsEXT)

#define VULKAN_DECLARE(name) extern PFN_##name name;
VULKAN_GLOBAL_FUNCTIONS(VULKAN_DECLARE)
VULKAN_INSTANCE_FUNCTIONS(VULKAN_DECLARE)
VULKAN_DEVICE_FUNCTIONS(VULKAN_DECLARE)
#undef VULKAN_DECLARE

extern PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;

struct LoaderReport {
  std::string tried;  // names, one per line
  std::string found;  // "" if the loader was not found
  std::string error;  // "" if the instance was created
  bool no_driver = false;
};

// Opens the loader and creates the instance at the first call. NULL: see `report`.
VkInstance open_api(LoaderReport* report);

// Throws if `result` is an error. A lost device is CONTEXT_LOST: it can be opened again.
void check(VkResult result, const char* what);

}  // namespace vulkan
