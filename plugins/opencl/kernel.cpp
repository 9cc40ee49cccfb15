// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/kernel.hpp"

#include <vector>

#include "plugins/common/host.hpp"

namespace compute::opencl {

std::unique_ptr<UserKernel> compile_user_kernel(Device& device, const compute_plugin_kernel_source& source) {
  const std::string_view language = common::view(source.language);
  std::string text;
  if (language == "portable") {
    text = common::portable_prelude(device.dialect()) + "#line 1\n";
  } else if (language != "opencl-c") {
    throw common::Error(COMPUTE_ERROR_UNSUPPORTED, "kernels in " + std::string(language) + ": OpenCL devices take opencl-c and portable");
  }
  text += common::view(source.source);
  std::string options;
  if (language == "portable") {
    for (const std::string& option : common::compile_options(device.dialect())) options += option + " ";
  }
  options += common::view(source.options);
  auto kernel = std::make_unique<UserKernel>();
  kernel->compiled = device.compile(text, std::string(common::view(source.name)), options);
  const cl_kernel object = kernel->compiled->kernel.get();
  cl_uint count = 0;
  check(api().clGetKernelInfo(object, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr), "clGetKernelInfo");
  size_t most = 0;
  check(api().clGetKernelWorkGroupInfo(object, device.info().device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr),
        "clGetKernelWorkGroupInfo");
  kernel->argument_count = static_cast<int32_t>(count);
  kernel->max_group_size = static_cast<int32_t>(most);
  return kernel;
}

void launch_user_kernel(const UserKernel& kernel, Stream& stream, const compute_plugin_launch& launch) {
  const cl_command_queue queue = stream.queue();
  if (launch.argument_count != kernel.argument_count) {
    throw common::Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the kernel takes " + std::to_string(kernel.argument_count) + " arguments, " +
                                                            std::to_string(launch.argument_count) + " were given");
  }
  if (launch.local_memory_bytes != 0) {
    throw common::Error(COMPUTE_ERROR_UNSUPPORTED, "local_memory_bytes is " + std::to_string(launch.local_memory_bytes) +
                                                       "; in OpenCL local memory is an argument of kind COMPUTE_ARGUMENT_LOCAL_MEMORY");
  }
  const int64_t unit = stream.device()->info().base_alignment;
  std::vector<Memory> views;  // commands keep what they use
  std::lock_guard lock(kernel.compiled->mutex);
  const cl_kernel object = kernel.compiled->kernel.get();
  for (int32_t i = 0; i < launch.argument_count; ++i) {
    const auto& argument = *common::at_step(launch.arguments, i);
    const auto index = static_cast<cl_uint>(i);
    cl_int status = CL_SUCCESS;
    if (argument.kind == 1) {
      cl_mem memory = memory_of(argument.tensor.buffer);
      const int64_t offset = argument.tensor.offset_bytes;
      if (offset % unit != 0) {
        throw common::Error(COMPUTE_ERROR_UNSUPPORTED,
                            "argument " + std::to_string(i) + " begins " + std::to_string(offset) +
                                " bytes into its buffer; kernels on this device take multiples of " + std::to_string(unit) +
                                ": pass the whole tensor and the offset, or a copy",
                            i);
      }
      if (offset != 0) {
        const size_t region[2] = {static_cast<size_t>(offset), static_cast<size_t>(buffer_of(argument.tensor.buffer)->size_bytes - offset)};
        views.emplace_back(api().clCreateSubBuffer(memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, region, &status));
        check(status, "clCreateSubBuffer");
        memory = views.back().get();
      }
      status = api().clSetKernelArg(object, index, sizeof memory, &memory);
    } else if (argument.kind == 2) {
      status = api().clSetKernelArg(object, index, static_cast<size_t>(argument.value_size), argument.value);
    } else {
      status = api().clSetKernelArg(object, index, static_cast<size_t>(argument.value_size), nullptr);
    }
    if (status != CL_SUCCESS) {
      throw common::Error(COMPUTE_ERROR_INVALID_ARGUMENT, "argument " + std::to_string(i) + " does not fit the kernel's: " + status_text(status), i, status);
    }
  }
  size_t global_size[3], group_size[3];
  for (int axis = 0; axis < 3; ++axis) {
    group_size[axis] = static_cast<size_t>(launch.group_size[axis]);
    global_size[axis] = static_cast<size_t>(launch.groups[axis]) * group_size[axis];
  }
  const cl_int status = api().clEnqueueNDRangeKernel(queue, object, 3, nullptr, global_size, group_size, 0, nullptr, nullptr);
  if (status == -54 || status == -55) {
    throw common::Error(COMPUTE_ERROR_INVALID_ARGUMENT, "groups of " + std::to_string(group_size[0]) + " x " + std::to_string(group_size[1]) + " x " +
                                                            std::to_string(group_size[2]) + " are more than the device takes: " + status_text(status),
                        -1, status);
  }
  check(status, "clEnqueueNDRangeKernel");
}

}  // namespace compute::opencl
