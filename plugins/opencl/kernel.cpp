// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/kernel.hpp"

#include <vector>

#include "plugins/common/core.hpp"

namespace compute::opencl {
namespace {

enum : int32_t { kTensor = 1, kValue = 2, kLocalMemory = 3 };

const char* kind_text(int32_t kind) {
  return kind == kTensor ? "a tensor" : kind == kValue ? "a value" : "local memory";
}

// The size of a type that OpenCL C or the portable dialect has; 0 for others.
int64_t size_of(std::string_view type, bool is_portable) {
  struct Type {
    std::string_view name;
    int64_t size;
  };
  static constexpr Type kPortable[] = {{"i8", 1},  {"i16", 2}, {"i32", 4}, {"i64", 8}, {"u8", 1},  {"u16", 2},
                                       {"u32", 4}, {"u64", 8}, {"f32", 4}, {"f64", 8}, {"c64", 8}, {"c128", 16}};
  static constexpr Type kScalars[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"half", 2},  {"int", 4},
                                      {"uint", 4}, {"float", 4}, {"long", 8},  {"ulong", 8},  {"double", 8}};
  static constexpr Type kVectors[] = {{"", 1},  {"2", 2}, {"3", 4},
                                      {"4", 4}, {"8", 8}, {"16", 16}};  // three take the room of four
  for (const Type& known : kPortable) {
    if (is_portable && type == known.name) return known.size;
  }
  for (const Type& scalar : kScalars) {
    if (!type.starts_with(scalar.name)) continue;
    for (const Type& vector : kVectors) {
      if (type.substr(scalar.name.size()) == vector.name) return scalar.size * vector.size;
    }
  }
  return 0;
}

// Sizes of the program's own types: the compiler tells them as the group size that a kernel demands.
void measure_types(const Device& device, const std::string& text, const std::string& options,
                   std::vector<KernelParameter>& parameters) {
  std::string more = text + "\n";
  std::vector<std::pair<KernelParameter*, std::string>> measured;  // and the kernel
  for (KernelParameter& parameter : parameters) {
    if (parameter.kind != kValue || parameter.size_bytes != 0 || parameter.type.empty()) continue;
    measured.emplace_back(&parameter, "compute_size_of_" + std::to_string(measured.size()));
    more += "__kernel __attribute__((reqd_work_group_size(sizeof(" + parameter.type + "), 1, 1))) void " +
            measured.back().second + "(void) {}\n";
  }
  if (measured.empty()) return;
  try {
    const auto first = device.compile(more, measured[0].second, options);
    for (const auto& [parameter, name] : measured) {
      cl_int status = CL_SUCCESS;
      const Kernel kernel(api().clCreateKernel(first->program.get(), name.c_str(), &status));
      size_t group[3] = {};
      if (status == CL_SUCCESS &&
          api().clGetKernelWorkGroupInfo(kernel.get(), device.info().device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                         sizeof group, group, nullptr) == CL_SUCCESS) {
        parameter->size_bytes = static_cast<int64_t>(group[0]);
      }
    }
  } catch (const common::Error&) {
    // A type without a size, or with more bytes than a group can have items: the driver is left to check.
  }
}

std::vector<KernelParameter> parameters_of(cl_kernel kernel, bool is_portable) {
  cl_uint count = 0;
  check(api().clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr), "clGetKernelInfo");
  std::vector<KernelParameter> parameters(count);
  for (cl_uint i = 0; i < count; ++i) {
    const auto text = [&](cl_uint what) {
      size_t size = 0;
      if (api().clGetKernelArgInfo(kernel, i, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return std::string();
      std::string result(size, '\0');
      if (api().clGetKernelArgInfo(kernel, i, what, size, result.data(), nullptr) != CL_SUCCESS) return std::string();
      result.resize(result.find('\0') != std::string::npos ? result.find('\0') : size);
      return result;
    };
    cl_uint space = 0;
    KernelParameter& parameter = parameters[i];
    if (api().clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, nullptr) !=
        CL_SUCCESS)
      continue;
    parameter.kind = space == CL_KERNEL_ARG_ADDRESS_PRIVATE ? kValue
                     : space == CL_KERNEL_ARG_ADDRESS_LOCAL ? kLocalMemory
                                                            : kTensor;
    parameter.type = text(CL_KERNEL_ARG_TYPE_NAME);
    parameter.name = text(CL_KERNEL_ARG_NAME);
    if (parameter.kind == kValue) parameter.size_bytes = size_of(parameter.type, is_portable);
  }
  return parameters;
}

// "argument 2 (i64 n)"
std::string argument_text(const UserKernel& kernel, int32_t index) {
  const KernelParameter& parameter = kernel.parameters[static_cast<size_t>(index)];
  std::string text = "kernel " + kernel.name + ": argument " + std::to_string(index);
  if (!parameter.name.empty()) text += " (" + parameter.type + " " + parameter.name + ")";
  return text;
}

void check_argument(const UserKernel& kernel, const compute_plugin_kernel_argument& argument, int32_t index) {
  const KernelParameter& expected = kernel.parameters[static_cast<size_t>(index)];
  const auto refuse = [&](const std::string& why) {
    throw common::Error(COMPUTE_ERROR_INVALID_ARGUMENT, argument_text(kernel, index) + why, index);
  };
  if (expected.kind != 0 && argument.kind != expected.kind) {
    std::string wanted = kind_text(expected.kind);
    if (expected.size_bytes != 0) wanted += " of " + std::to_string(expected.size_bytes) + " bytes";
    refuse(std::string(" is ") + kind_text(argument.kind) + "; the kernel takes " + wanted);
  }
  if (argument.kind == kValue && expected.size_bytes != 0 && argument.value_size != expected.size_bytes) {
    refuse(" has " + std::to_string(argument.value_size) + " bytes; the kernel takes " +
           std::to_string(expected.size_bytes));
  }
}

}  // namespace

std::unique_ptr<UserKernel> compile_user_kernel(Device& device, const compute_plugin_kernel_source& source) {
  const std::string_view language = common::view(source.language);
  std::string text;
  const bool is_portable = language == "portable";
  if (is_portable) {
    text = common::portable_prelude(device.dialect()) + "#line 1\n";
  } else if (language != "opencl-c") {
    throw common::Error(
        COMPUTE_ERROR_UNSUPPORTED,
        "language " + std::string(language) + " is not supported; OpenCL devices accept opencl-c and portable");
  }
  text += common::view(source.source);
  // Without it drivers need not know parameters; PoCL then takes any size for a value.
  std::string options = "-cl-kernel-arg-info ";
  if (is_portable) {
    for (const std::string& option : common::compile_options(device.dialect())) options += option + " ";
  }
  options += common::view(source.options);
  auto kernel = std::make_unique<UserKernel>();
  kernel->name = common::view(source.name);
  kernel->compiled = device.compile(text, kernel->name, options);
  const cl_kernel object = kernel->compiled->kernel.get();
  kernel->parameters = parameters_of(object, is_portable);
  measure_types(device, text, options, kernel->parameters);
  size_t most = 0;
  check(api().clGetKernelWorkGroupInfo(object, device.info().device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                                       nullptr),
        "clGetKernelWorkGroupInfo");
  kernel->max_group_size = static_cast<int32_t>(most);
  return kernel;
}

void launch_user_kernel(const UserKernel& kernel, Stream& stream, const compute_plugin_launch& launch) {
  const cl_command_queue queue = stream.queue();
  if (static_cast<size_t>(launch.argument_count) != kernel.parameters.size()) {
    throw common::Error(COMPUTE_ERROR_INVALID_ARGUMENT, "kernel " + kernel.name + ": expected " +
                                                            std::to_string(kernel.parameters.size()) +
                                                            " arguments, got " + std::to_string(launch.argument_count));
  }
  for (int32_t i = 0; i < launch.argument_count; ++i) check_argument(kernel, *common::at_step(launch.arguments, i), i);
  if (launch.local_memory_bytes != 0) {
    throw common::Error(COMPUTE_ERROR_UNSUPPORTED,
                        "local_memory_bytes is " + std::to_string(launch.local_memory_bytes) +
                            "; on OpenCL pass local memory as an argument of kind COMPUTE_ARGUMENT_LOCAL_MEMORY");
  }
  const int64_t unit = stream.device()->info().base_alignment;
  std::vector<Memory> views;  // commands keep what they use
  std::lock_guard lock(kernel.compiled->mutex);
  const cl_kernel object = kernel.compiled->kernel.get();
  for (int32_t i = 0; i < launch.argument_count; ++i) {
    const auto& argument = *common::at_step(launch.arguments, i);
    const auto index = static_cast<cl_uint>(i);
    cl_int status = CL_SUCCESS;
    if (argument.kind == kTensor) {
      cl_mem memory = memory_of(argument.tensor.buffer);
      const int64_t offset = argument.tensor.offset_bytes;
      if (offset % unit != 0) {
        throw common::Error(COMPUTE_ERROR_UNSUPPORTED,
                            argument_text(kernel, i) + " starts " + std::to_string(offset) +
                                " bytes into its buffer; kernels on this device require multiples of " +
                                std::to_string(unit) + "; pass the whole tensor and an offset, or a copy",
                            i);
      }
      if (offset != 0) {
        const size_t region[2] = {static_cast<size_t>(offset),
                                  static_cast<size_t>(buffer_of(argument.tensor.buffer)->size_bytes - offset)};
        views.emplace_back(
            api().clCreateSubBuffer(memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, region, &status));
        check(status, "clCreateSubBuffer");
        memory = views.back().get();
      }
      status = api().clSetKernelArg(object, index, sizeof memory, &memory);
    } else if (argument.kind == kValue) {
      status = api().clSetKernelArg(object, index, static_cast<size_t>(argument.value_size), argument.value);
    } else {
      status = api().clSetKernelArg(object, index, static_cast<size_t>(argument.value_size), nullptr);
    }
    if (status != CL_SUCCESS) {
      const std::string size =
          argument.kind == kValue ? " of " + std::to_string(argument.value_size) + " bytes" : std::string();
      throw common::Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                          argument_text(kernel, i) + ": " + kind_text(argument.kind) + size +
                              " does not match the kernel's parameter: " + status_text(status),
                          i, status);
    }
  }
  size_t global_size[3], group_size[3];
  for (int axis = 0; axis < 3; ++axis) {
    group_size[axis] = static_cast<size_t>(launch.group_size[axis]);
    global_size[axis] = static_cast<size_t>(launch.groups[axis]) * group_size[axis];
  }
  const cl_int status = kernel.compiled->enqueue(queue, 3, global_size, group_size);
  if (status == -54 || status == -55) {
    throw common::Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                        "group size " + std::to_string(group_size[0]) + " x " + std::to_string(group_size[1]) + " x " +
                            std::to_string(group_size[2]) + " exceeds the device's limit: " + status_text(status),
                        -1, status);
  }
  check(status, "clEnqueueNDRangeKernel");
}

}  // namespace compute::opencl
