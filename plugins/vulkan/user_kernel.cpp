// SPDX-License-Identifier: Apache-2.0
#include "user_kernel.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "compiler.hpp"
#include "core.hpp"
#include "device.hpp"
#include "stream.hpp"

namespace vulkan {

UserKernel::~UserKernel() {
  for (const auto& [size, pipeline] : pipelines) vkDestroyPipeline(device.handle, pipeline, nullptr);
}

bool is_kernel_language(std::string_view language) { return language == "glsl" || language == "spirv"; }

std::unique_ptr<UserKernel> compile_user_kernel(Device& device, std::string_view language, std::string_view source,
                                                std::string_view name) {
  auto kernel = std::make_unique<UserKernel>(device);
  if (language == "glsl") {
    // GLSL calls every entry point main; the name that the program chose is for messages.
    kernel->spirv = compile_user_glsl(std::string(source));
    kernel->entry = "main";
  } else if (language == "spirv") {
    constexpr uint32_t kMagic = 0x07230203;
    kernel->spirv.resize(source.size() / sizeof(uint32_t));
    std::memcpy(kernel->spirv.data(), source.data(), kernel->spirv.size() * sizeof(uint32_t));
    if (source.size() < 20 || source.size() % sizeof(uint32_t) != 0 || kernel->spirv[0] != kMagic)
      throw Failure(COMPUTE_ERROR_COMPILE_FAILED, "vulkan: the source is not SPIR-V");
    kernel->entry = name;
  } else {
    throw Failure(COMPUTE_ERROR_UNSUPPORTED,
                  "vulkan: kernels are written in glsl or spirv, not in " + std::string(language));
  }
  return kernel;
}

VkPipeline UserKernel::pipeline(const std::vector<uint32_t>& constants) {
  const std::lock_guard lock(mutex);
  VkPipeline& slot = pipelines[constants];
  if (slot != VK_NULL_HANDLE) return slot;
  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t i = 0; i < constants.size(); ++i) entries.push_back({i, 4 * i, 4});
  VkSpecializationInfo info = {};
  info.mapEntryCount = static_cast<uint32_t>(entries.size());
  info.pMapEntries = entries.data();
  info.dataSize = 4 * constants.size();
  info.pData = constants.data();
  slot = device.make_pipeline(spirv, entry.c_str(), device.layout, &info, nullptr);
  return slot;
}

void launch_user_kernel(UserKernel& kernel, Stream& stream, const compute_plugin_launch& launch) {
  Device& device = kernel.device;
  const Features& features = device.physical.features;
  const auto* limits = device.physical.properties.limits.maxComputeWorkGroupSize;
  int64_t items = 1;
  for (int i = 0; i < 3; ++i) {
    items *= launch.group_size[i];
    if (launch.groups[i] > features.group_count || launch.group_size[i] > limits[i])
      throw Failure(COMPUTE_ERROR_INVALID_ARGUMENT, "vulkan: the launch is larger than the device allows");
  }
  if (items > features.group_size) throw Failure(COMPUTE_ERROR_INVALID_ARGUMENT, "vulkan: the groups are too large");
  std::vector<uint32_t> constants;
  for (int i = 0; i < 3; ++i) constants.push_back(static_cast<uint32_t>(launch.group_size[i]));
  std::array<std::byte, 256> push = {};
  size_t used = 0;
  const auto append = [&](const void* data, size_t size) {
    const size_t alignment = std::clamp<size_t>(size, 1, 16);
    used = (used + alignment - 1) / alignment * alignment;
    if (used + size > features.push_bytes) {
      throw Failure(COMPUTE_ERROR_UNSUPPORTED, "vulkan: the arguments are more than the device's push constants, " +
                                                   std::to_string(features.push_bytes) + " bytes");
    }
    std::memcpy(push.data() + used, data, size);
    used += size;
  };
  for (int32_t i = 0; i < launch.argument_count; ++i) {
    const compute_plugin_kernel_argument& argument = element(launch.arguments, i);
    understand(argument, "an argument of the launch");
    if (argument.kind == COMPUTE_PLUGIN_ARGUMENT_TENSOR) {
      const uint64_t address = address_of(argument.tensor);
      append(&address, sizeof address);
    } else if (argument.kind == COMPUTE_PLUGIN_ARGUMENT_VALUE) {
      append(argument.value, static_cast<size_t>(argument.value_size));
    } else if (argument.kind == COMPUTE_PLUGIN_ARGUMENT_LOCAL_MEMORY) {
      constants.push_back(static_cast<uint32_t>(argument.value_size));
    } else {
      throw Failure(COMPUTE_ERROR_UNSUPPORTED, "vulkan: an argument of an unknown kind");
    }
  }
  const uint32_t groups[3] = {static_cast<uint32_t>(launch.groups[0]), static_cast<uint32_t>(launch.groups[1]),
                              static_cast<uint32_t>(launch.groups[2])};
  stream.dispatch(kernel.pipeline(constants), device.layout, push.data(), static_cast<uint32_t>((used + 3) / 4 * 4),
                  groups);
  stream.offer();
}

}  // namespace vulkan
