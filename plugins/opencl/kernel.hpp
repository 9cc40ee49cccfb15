// SPDX-License-Identifier: Apache-2.0
// User kernels, in OpenCL C and in the portable dialect.
#pragma once

#include <compute/plugin.h>

#include <string>
#include <vector>

#include "plugins/opencl/device.hpp"
#include "plugins/opencl/plan.hpp"
#include "plugins/opencl/stream.hpp"

namespace compute::opencl {

// A parameter as the source declares it, if the driver reports it.
struct KernelParameter {
  int32_t kind = 0;        // of its argument; 0 if unknown
  int64_t size_bytes = 0;  // of a value; 0 if unknown
  std::string type, name;
  bool has_offset = false;  // an offset in bytes follows the pointer
};

struct UserKernel {
  std::shared_ptr<CompiledKernel> compiled;
  std::string name;
  std::vector<KernelParameter> parameters;
  int32_t max_group_size = 0;
};

std::unique_ptr<UserKernel> compile_user_kernel(Device& device, const compute_plugin_kernel_source& source);

void launch_user_kernel(const UserKernel& kernel, Stream& stream, const compute_plugin_launch& launch);

// The primitive `kernel`.
std::optional<common::Refusal> refuse_user_kernel(const common::Op& op);
std::unique_ptr<Plan> prepare_user_kernel(Device& device, const common::Op& op);

}  // namespace compute::opencl
