// SPDX-License-Identifier: Apache-2.0
// Kernels of programs, in SPIR-V or in GLSL. plugin.h states where they find their arguments and the size of a group.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "api.hpp"

namespace vulkan {

struct Device;
struct Stream;

struct UserKernel {
  explicit UserKernel(Device& d) : device(d) {}
  ~UserKernel();
  UserKernel(const UserKernel&) = delete;
  UserKernel& operator=(const UserKernel&) = delete;

  Device& device;
  std::vector<uint32_t> spirv;
  std::string entry;
  std::mutex mutex;
  std::map<std::vector<uint32_t>, VkPipeline> pipelines;  // by the specialization constants

  // The constants are the size of a group, then the bytes of each array in local memory.
  VkPipeline pipeline(const std::vector<uint32_t>& constants);
};

bool is_kernel_language(std::string_view language);

// Throws UNSUPPORTED for other languages, COMPILE_FAILED with the compiler's log.
std::unique_ptr<UserKernel> compile_user_kernel(Device& device, std::string_view language, std::string_view source,
                                                std::string_view name);

void launch_user_kernel(UserKernel& kernel, Stream& stream, const compute_plugin_launch& launch);

}  // namespace vulkan
