// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <compute_kit/polling.hpp>
#include <compute_kit/signals_blocked.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "compiler.hpp"
#include "core.hpp"
#include "stream.hpp"
#include "user_kernel.hpp"

namespace vulkan {
Device::Device(const Physical& p) : physical(p), caps(), spin_ns(compute::common::spin_time_ns()) {
  const compute::common::SignalsBlocked blocked;  // drivers start threads here
  const std::vector<float> priorities(p.queue_count, 1.0f);
  VkDeviceQueueCreateInfo queue = {};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = p.queue_family;
  queue.queueCount = p.queue_count;
  queue.pQueuePriorities = priorities.data();
  VkPhysicalDeviceVulkan12Features f12 = {};
  f12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  f12.bufferDeviceAddress = f12.timelineSemaphore = f12.storageBuffer8BitAccess = f12.shaderInt8 = VK_TRUE;
  f12.hostQueryReset = p.has_times ? VK_TRUE : VK_FALSE;
  f12.shaderBufferInt64Atomics = p.features.int64_atomics ? VK_TRUE : VK_FALSE;
  VkPhysicalDeviceVulkan11Features f11 = {};
  f11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  f11.storageBuffer16BitAccess = VK_TRUE;
  f11.pNext = &f12;
  VkPhysicalDeviceFeatures2 f = {};
  f.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  f.pNext = &f11;
  f.features.shaderInt64 = f.features.shaderInt16 = VK_TRUE;
  f.features.shaderFloat64 = p.features.float64 ? VK_TRUE : VK_FALSE;
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT size_control = {};
  size_control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT;
  size_control.computeFullSubgroups = VK_TRUE;
  if (p.features.shuffle) f12.pNext = &size_control;
  std::vector<const char*> extensions;
  if (p.features.shuffle) extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  if (p.has_times) extensions.push_back(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &f;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  check(vkCreateDevice(p.handle, &info, nullptr, &handle), "vkCreateDevice");
  queues.resize(p.queue_count);
  queue_mutexes = std::make_unique<std::mutex[]>(p.queue_count);
  for (uint32_t i = 0; i < p.queue_count; ++i) vkGetDeviceQueue(handle, p.queue_family, i, &queues[i]);

  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, p.features.push_bytes};
  VkPipelineLayoutCreateInfo layout_info = {};
  layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout_info.pushConstantRangeCount = 1;
  layout_info.pPushConstantRanges = &range;
  check(vkCreatePipelineLayout(handle, &layout_info, nullptr, &layout), "vkCreatePipelineLayout");
  choose_memory();
}

Device::~Device() {
  vkDeviceWaitIdle(handle);
  streams.clear();
  user_kernels.clear();
  for (const auto& [key, kernel] : kernels_) vkDestroyPipeline(handle, kernel->pipeline, nullptr);
  vkDestroyPipelineLayout(handle, layout, nullptr);
  while (!by_address_.empty()) free(by_address_.begin()->second);
  vkDestroyDevice(handle, nullptr);
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

namespace {

VkBufferCreateInfo buffer_info(int64_t bytes) {
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = static_cast<VkDeviceSize>(bytes);
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  return info;
}

}  // namespace

void Device::choose_memory() {
  vkGetPhysicalDeviceMemoryProperties(physical.handle, &memory_);
  const VkBufferCreateInfo info = buffer_info(65536);
  VkBuffer probe = VK_NULL_HANDLE;
  check(vkCreateBuffer(handle, &info, nullptr, &probe), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(handle, probe, &needs);
  vkDestroyBuffer(handle, probe, nullptr);

  // The type with the `wanted` properties whose heap is the largest, the first of these.
  const auto choose = [&](VkMemoryPropertyFlags wanted, VkMemoryPropertyFlags unwanted) {
    int best = -1;
    VkDeviceSize best_size = 0;
    for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
      const VkMemoryType& type = memory_.memoryTypes[i];
      if ((needs.memoryTypeBits & (1u << i)) == 0) continue;
      if ((type.propertyFlags & wanted) != wanted || (type.propertyFlags & unwanted) != 0) continue;
      const VkDeviceSize size = memory_.memoryHeaps[type.heapIndex].size;
      if (best < 0 || size > best_size) best = static_cast<int>(i), best_size = size;
    }
    return best;
  };
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags kCached = kVisible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  // Protected, lazily allocated and vendor-specific memory (uncached by the device) is of no use.
  constexpr VkMemoryPropertyFlags kSpecial = ~(kLocal | kCached);
  const auto first_of = [](std::initializer_list<int> candidates) {
    for (const int candidate : candidates)
      if (candidate >= 0) return static_cast<uint32_t>(candidate);
    throw Failure(COMPUTE_ERROR_UNSUPPORTED, "vulkan: the driver offers no coherent memory that the host can see");
  };
  const int unified = physical.is_unified ? choose(kLocal | kCached, kSpecial) : -1;
  heap_types_[0] =
      first_of({unified, choose(kLocal, kVisible | kSpecial), choose(kLocal, kSpecial), choose(kVisible, kSpecial)});
  heap_types_[1] =
      first_of({choose(kCached, kLocal | kSpecial), choose(kCached, kSpecial), choose(kVisible, kSpecial)});
  heap_types_[2] = first_of({choose(kVisible, VK_MEMORY_PROPERTY_HOST_CACHED_BIT | kLocal | kSpecial),
                             choose(kVisible, kLocal | kSpecial), choose(kVisible, kSpecial)});
  argument_type_ = first_of({choose(kLocal | kVisible, kSpecial), choose(kVisible, kSpecial)});
  // Write-combined memory serves uploads alone. If the device has no such type, one heap serves both directions.
  const VkMemoryType& upload = memory_.memoryTypes[heap_types_[2]];
  const bool has_upload = heap_types_[2] != heap_types_[1] && (upload.propertyFlags & kLocal) == 0;

  VkPhysicalDeviceMaintenance3Properties m3 = {};
  m3.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  VkPhysicalDeviceProperties2 properties = {};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &m3;
  vkGetPhysicalDeviceProperties2(physical.handle, &properties);
  for (size_t i = 0; i < heaps_.size(); ++i) {
    const VkMemoryType& type = memory_.memoryTypes[heap_types_[i]];
    compute_plugin_heap& heap = heaps_[i];
    heap.struct_size = sizeof heap;
    heap.struct_type = COMPUTE_PLUGIN_STRUCT_HEAP;
    if ((type.propertyFlags & kVisible) == kVisible) heap.flags |= COMPUTE_PLUGIN_HEAP_HOST_VISIBLE;
    if (i > 0) heap.flags |= COMPUTE_PLUGIN_HEAP_PINNED | COMPUTE_PLUGIN_HEAP_HOST_SPACE;
    heap.suballocation = COMPUTE_PLUGIN_SUBALLOCATE_OFFSET;
    heap.size_bytes = static_cast<int64_t>(memory_.memoryHeaps[type.heapIndex].size);
    heap.max_allocation_bytes = static_cast<int64_t>(std::min<uint64_t>(m3.maxMemoryAllocationSize, INT64_MAX));
    heap.offset_alignment = heap.base_alignment = 64;
    heap.role = i == 0       ? COMPUTE_PLUGIN_HEAP_ROLE_DEVICE
                : i == 2     ? COMPUTE_PLUGIN_HEAP_ROLE_UPLOAD
                : has_upload ? COMPUTE_PLUGIN_HEAP_ROLE_READBACK
                             : COMPUTE_PLUGIN_HEAP_ROLE_ANY;
  }
  caps.struct_size = sizeof caps;
  caps.struct_type = COMPUTE_PLUGIN_STRUCT_CAPS;
  caps.heap_count = has_upload ? 3 : 2;
  caps.heaps = heaps_.data();
}

Buffer* Device::allocate(uint32_t memory_type, int64_t bytes, int64_t most_bytes) {
  if (bytes > most_bytes) {
    throw Failure(COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY, "vulkan: " + std::to_string(bytes) +
                                                          " bytes are more than maxMemoryAllocationSize, " +
                                                          std::to_string(most_bytes));
  }
  auto buffer = std::make_unique<Buffer>();
  buffer->size = bytes;
  const VkBufferCreateInfo info = buffer_info(bytes);
  check(vkCreateBuffer(handle, &info, nullptr, &buffer->buffer), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(handle, buffer->buffer, &needs);
  VkMemoryAllocateFlagsInfo flags = {};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocation = {};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.pNext = &flags;
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = memory_type;
  VkResult result = vkAllocateMemory(handle, &allocation, nullptr, &buffer->memory);
  if (result == VK_SUCCESS) result = vkBindBufferMemory(handle, buffer->buffer, buffer->memory, 0);
  if (result == VK_SUCCESS &&
      (memory_.memoryTypes[memory_type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0) {
    result = vkMapMemory(handle, buffer->memory, 0, VK_WHOLE_SIZE, 0, reinterpret_cast<void**>(&buffer->host));
  }
  if (result != VK_SUCCESS) {
    if (buffer->memory != VK_NULL_HANDLE) vkFreeMemory(handle, buffer->memory, nullptr);
    vkDestroyBuffer(handle, buffer->buffer, nullptr);
    // Drivers for processors report their memory as the host's.
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_MEMORY_MAP_FAILED)
      result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    check(result, ("vkAllocateMemory of " + std::to_string(bytes) + " bytes").c_str());
  }
  VkBufferDeviceAddressInfo address = {};
  address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address.buffer = buffer->buffer;
  buffer->address = vkGetBufferDeviceAddress(handle, &address);
  const std::unique_lock lock(buffers_mutex_);
  by_address_[buffer->address] = buffer.get();
  return buffer.release();
}

Buffer* Device::allocate_in_heap(int32_t heap, int64_t bytes) {
  if (heap < 0 || heap >= caps.heap_count) throw Failure(COMPUTE_ERROR_INTERNAL, "vulkan: no such heap");
  const auto index = static_cast<size_t>(heap);
  return allocate(heap_types_[index], bytes, heaps_[index].max_allocation_bytes);
}

Buffer* Device::allocate_arguments(int64_t bytes) { return allocate(argument_type_, bytes, INT64_MAX); }

void Device::free(Buffer* buffer) {
  {
    const std::unique_lock lock(buffers_mutex_);
    by_address_.erase(buffer->address);
  }
  vkDestroyBuffer(handle, buffer->buffer, nullptr);
  vkFreeMemory(handle, buffer->memory, nullptr);
  delete buffer;
}

Buffer& Device::find(const compute_plugin_operand& operand, int64_t* offset) {
  const std::shared_lock lock(buffers_mutex_);
  const uint64_t place = address_of(operand);
  auto at = by_address_.upper_bound(place);
  if (at != by_address_.begin()) {
    --at;
    *offset = static_cast<int64_t>(place - at->first);
    if (*offset < at->second->size) return *at->second;
  }
  throw Failure(COMPUTE_ERROR_INTERNAL, "vulkan: an operand is in no buffer of the device");
}

void Device::memory_info(int32_t heap, int64_t* out_free, int64_t* out_total) const {
  const uint32_t index = memory_.memoryTypes[heap_types_[static_cast<size_t>(heap)]].heapIndex;
  *out_total = static_cast<int64_t>(memory_.memoryHeaps[index].size);
  *out_free = -1;
  if (!physical.has_memory_budget) return;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 properties = {};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  properties.pNext = &budget;
  vkGetPhysicalDeviceMemoryProperties2(physical.handle, &properties);
  const VkDeviceSize all = budget.heapBudget[index], used = budget.heapUsage[index];
  if (all != 0) *out_free = static_cast<int64_t>(all > used ? all - used : 0);
}

// ---- Kernels --------------------------------------------------------------------------------------------------------

VkPipeline Device::make_pipeline(const std::vector<uint32_t>& spirv, const char* entry, VkPipelineLayout with_layout,
                                 const VkSpecializationInfo* constants, std::string* cache_data, bool full_subgroups) {
  VkShaderModuleCreateInfo module_info = {};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = spirv.size() * sizeof(uint32_t);
  module_info.pCode = spirv.data();
  VkShaderModule module = VK_NULL_HANDLE;
  check(vkCreateShaderModule(handle, &module_info, nullptr, &module), "vkCreateShaderModule");
  VkPipelineCacheCreateInfo cache_info = {};
  cache_info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  if (cache_data != nullptr)
    cache_info.initialDataSize = cache_data->size(), cache_info.pInitialData = cache_data->data();
  VkPipelineCache cache = VK_NULL_HANDLE;
  if (cache_data != nullptr) vkCreatePipelineCache(handle, &cache_info, nullptr, &cache);
  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  if (full_subgroups) info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
  info.stage.pName = entry;
  info.stage.pSpecializationInfo = constants;
  info.layout = with_layout;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = vkCreateComputePipelines(handle, cache, 1, &info, nullptr, &pipeline);
  vkDestroyShaderModule(handle, module, nullptr);
  if (cache != VK_NULL_HANDLE) {
    size_t size = 0;
    if (result == VK_SUCCESS && vkGetPipelineCacheData(handle, cache, &size, nullptr) == VK_SUCCESS) {
      cache_data->resize(size);
      if (vkGetPipelineCacheData(handle, cache, &size, cache_data->data()) != VK_SUCCESS) size = 0;
      cache_data->resize(size);
    }
    vkDestroyPipelineCache(handle, cache, nullptr);
  }
  check(result, "vkCreateComputePipelines");
  return pipeline;
}

Kernel* Device::find_kernel(const std::string& key) {
  const std::shared_lock lock(kernels_mutex_);
  const auto found = kernels_.find(key);
  return found == kernels_.end() ? nullptr : found->second.get();
}

Kernel* Device::add_kernel(const std::string& key, const std::string& source, bool full_subgroups, int64_t* compiled) {
  const compute::common::SignalsBlocked blocked;
  const auto start = std::chrono::steady_clock::now();
  // A stored kernel is its SPIR-V, preceded by the number of words, then what the driver made of it.
  const std::string blob_key = "vulkan kernel 1 " + physical.identity + "\n" + source;
  std::string blob;
  core->blob_load(
      blob_key.data(), std::ssize(blob_key),
      [](void* context, const void* data, int64_t size_bytes) {
        static_cast<std::string*>(context)->assign(static_cast<const char*>(data), static_cast<size_t>(size_bytes));
      },
      &blob);
  std::vector<uint32_t> spirv;
  std::string cache_data;
  if (uint64_t words = 0; blob.size() >= sizeof words) {
    std::memcpy(&words, blob.data(), sizeof words);
    const size_t bytes = static_cast<size_t>(words) * sizeof(uint32_t);
    if (words < blob.size() && sizeof words + bytes <= blob.size()) {
      spirv.resize(static_cast<size_t>(words));
      std::memcpy(spirv.data(), blob.data() + sizeof words, bytes);
      cache_data = blob.substr(sizeof words + bytes);
    }
  }
  const bool is_stored = !spirv.empty();
  if (!is_stored) spirv = compile_glsl(source, physical.features);
  const std::string before = cache_data;
  auto kernel = std::make_unique<Kernel>();
  kernel->pipeline = make_pipeline(spirv, "main", layout, nullptr, &cache_data, full_subgroups);
  if (!is_stored || cache_data != before) {
    const uint64_t words = spirv.size();
    blob.assign(reinterpret_cast<const char*>(&words), sizeof words);
    blob.append(reinterpret_cast<const char*>(spirv.data()), spirv.size() * sizeof(uint32_t));
    blob += cache_data;
    core->blob_store(blob_key.data(), std::ssize(blob_key), blob.data(), std::ssize(blob));
  }
  if (compiled != nullptr && !is_stored) ++*compiled;
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  log_line(COMPUTE_LOG_DEBUG, "compile",
           "vulkan: " + std::string(is_stored ? "loaded" : "compiled") + " a kernel of " +
               std::to_string(source.size()) + " bytes in " + std::to_string(took.count()) + " ms");
  const std::unique_lock lock(kernels_mutex_);
  std::unique_ptr<Kernel>& slot = kernels_[key];
  if (slot != nullptr) {
    vkDestroyPipeline(handle, kernel->pipeline, nullptr);  // another thread was faster
  } else {
    slot = std::move(kernel);
  }
  return slot.get();
}

}  // namespace vulkan
