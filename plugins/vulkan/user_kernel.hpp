// SPDX-License-Identifier: Apache-2.0
// Kernels of programs, in GLSL or SPIR-V.
//
// The arguments are the members of the push constants, in order: the address of a tensor as a uint64_t or a buffer
// reference, a value with its own size and alignment. The size of a group is in the specialization constants 0, 1 and 2:
//   layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
#pragma once

#include <compute/plugin.h>

#include <array>
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
  std::map<std::array<uint32_t, 3>, VkPipeline> pipelines;  // by the size of a group

  VkPipeline pipeline(const int64_t* group_size);
};

bool is_kernel_language(std::string_view language);

// Throws UNSUPPORTED for other languages, COMPILE_FAILED with the compiler's log.
std::unique_ptr<UserKernel> compile_user_kernel(Device& device, std::string_view language, std::string_view source,
                                                std::string_view name);

void launch_user_kernel(UserKernel& kernel, Stream& stream, const compute_plugin_launch& launch);

}  // namespace vulkan
