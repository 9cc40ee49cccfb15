// SPDX-License-Identifier: Apache-2.0
// User kernels, in OpenCL C and in the portable dialect.
#pragma once

#include <compute/plugin.h>

#include "plugins/opencl/device.hpp"
#include "plugins/opencl/stream.hpp"

namespace compute::opencl {

struct UserKernel {
  std::shared_ptr<CompiledKernel> compiled;
  int32_t argument_count = 0;
  int32_t max_group_size = 0;
};

std::unique_ptr<UserKernel> compile_user_kernel(Device& device, const compute_plugin_kernel_source& source);

void launch_user_kernel(const UserKernel& kernel, Stream& stream, const compute_plugin_launch& launch);

}  // namespace compute::opencl
