// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/kernel.hpp"

#include <vector>

#include "plugins/common/op/core.hpp"
#include "plugins/common/op/kernel_op.hpp"
#include "plugins/opencl/dialect/dialect.hpp"
#include "plugins/opencl/offsets.hpp"

namespace compute::opencl {
namespace {

enum : int32_t {
  kTensor = COMPUTE_PLUGIN_ARGUMENT_TENSOR,
  kValue = COMPUTE_PLUGIN_ARGUMENT_VALUE,
  kLocalMemory = COMPUTE_PLUGIN_ARGUMENT_LOCAL_MEMORY
};

const char* kind_text(int32_t kind) {
  return kind == kTensor ? "a tensor" : kind == kValue ? "a value" : "local memory";
}

// The size of a type of OpenCL C or the portable dialect; 0 for other types.
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

// Measures the sizes of the program's types: a kernel requires them as its group size, which the compiler reports.
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

// `has_offset` is as in OffsetSource, or empty.
std::vector<KernelParameter> parameters_of(cl_kernel kernel, bool is_portable, const std::vector<bool>& has_offset) {
  cl_uint count = 0;
  check(api().clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr), "clGetKernelInfo");
  std::vector<KernelParameter> parameters;
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
    KernelParameter& parameter = parameters.emplace_back();
    const size_t own = parameters.size() - 1;
    parameter.has_offset = own < has_offset.size() && has_offset[own];
    if (api().clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, nullptr) ==
        CL_SUCCESS) {
      parameter.kind = space == CL_KERNEL_ARG_ADDRESS_PRIVATE ? kValue
                       : space == CL_KERNEL_ARG_ADDRESS_LOCAL ? kLocalMemory
                                                              : kTensor;
      parameter.type = text(CL_KERNEL_ARG_TYPE_NAME);
      parameter.name = text(CL_KERNEL_ARG_NAME);
      if (parameter.has_offset && parameter.name.starts_with(kBasePrefix)) parameter.name.erase(0, kBasePrefix.size());
      if (parameter.kind == kValue) parameter.size_bytes = size_of(parameter.type, is_portable);
    }
    if (parameter.has_offset) ++i;  // past it
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

// The part of a buffer that begins at the tensor, for a kernel without offsets.
Memory part_of(const UserKernel& kernel, const compute_plugin_kernel_argument& argument, int32_t index,
               const Stream& stream) {
  const int64_t offset = argument.tensor.offset_bytes, unit = stream.device()->info().base_alignment;
  if (offset % unit != 0) {
    throw common::Error(COMPUTE_ERROR_UNSUPPORTED,
                        argument_text(kernel, index) + " starts " + std::to_string(offset) +
                            " bytes into its buffer; this device requires multiples of " + std::to_string(unit) +
                            " for a kernel that a macro defines; define it without a macro, or pass a copy",
                        index);
  }
  const size_t region[2] = {static_cast<size_t>(offset),
                            static_cast<size_t>(buffer_of(argument.tensor.buffer)->size_bytes - offset)};
  cl_int status = CL_SUCCESS;
  Memory part(api().clCreateSubBuffer(memory_of(argument.tensor.buffer), CL_MEM_READ_WRITE,
                                      CL_BUFFER_CREATE_TYPE_REGION, region, &status));
  check(status, "clCreateSubBuffer");
  return part;
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
  const size_t source_begin = text.size();
  text += common::view(source.source);
  // Without it drivers need not know parameters; PoCL then takes any size for a value.
  std::string options = "-cl-kernel-arg-info ";
  if (is_portable) {
    for (const std::string& option : compile_options(device.dialect())) options += option + " ";
  }
  options += common::view(source.options);
  auto kernel = std::make_unique<UserKernel>();
  kernel->name = common::view(source.name);
  std::vector<bool> has_offset;
  if (std::optional<OffsetSource> changed = with_offsets(common::view(source.source), kernel->name)) {
    try {
      std::string changed_text = text.substr(0, source_begin) + changed->text;
      kernel->compiled = device.compile(changed_text, kernel->name, options);
      text = std::move(changed_text);
      has_offset = std::move(changed->has_offset);
    } catch (const common::Error& error) {
      if (error.code != COMPUTE_ERROR_COMPILE_FAILED) throw;
    }
  }
  // Messages of the compiler are about the source as it was given.
  if (kernel->compiled == nullptr) kernel->compiled = device.compile(text, kernel->name, options);
  const cl_kernel object = kernel->compiled->kernel.get();
  kernel->parameters = parameters_of(object, is_portable, has_offset);
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
  std::vector<Memory> views;  // commands retain the objects that they use
  std::lock_guard lock(kernel.compiled->mutex);
  const cl_kernel object = kernel.compiled->kernel.get();
  cl_uint index = 0;  // of the compiled kernel's parameter
  for (int32_t i = 0; i < launch.argument_count; ++i, ++index) {
    const auto& argument = *common::at_step(launch.arguments, i);
    cl_int status = CL_SUCCESS;
    if (argument.kind == kTensor) {
      cl_mem memory = memory_of(argument.tensor.buffer);
      const int64_t offset = argument.tensor.offset_bytes;
      const bool has_offset = kernel.parameters[static_cast<size_t>(i)].has_offset;
      if (!has_offset && offset != 0) {
        views.push_back(part_of(kernel, argument, i, stream));
        memory = views.back().get();
      }
      status = api().clSetKernelArg(object, index, sizeof memory, &memory);
      if (has_offset && status == CL_SUCCESS) status = api().clSetKernelArg(object, ++index, sizeof offset, &offset);
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

// ---- The primitive --------------------------------------------------------------------------------------------------

namespace {

class UserKernelPlan final : public Plan {
 public:
  UserKernelPlan(Device& device, const common::Op& op)
      : op_(op), kernel_(compile_user_kernel(device, common::KernelOp::source_of(op))) {
    kernels_compiled = 1;
  }

  void run(const compute_plugin_run& run, Stream& stream) const override {
    op_.with_launch(run, [&](const compute_plugin_launch& launch) { launch_user_kernel(*kernel_, stream, launch); });
  }

 private:
  const common::KernelOp op_;
  const std::unique_ptr<const UserKernel> kernel_;
};

}  // namespace

std::optional<common::Refusal> refuse_user_kernel(const common::Op& op) {
  if (std::optional<common::Refusal> refusal = common::refuse_unaligned(op)) return refusal;
  return common::refuse_kernel_op(op, "OpenCL", "opencl-c");
}

std::unique_ptr<Plan> prepare_user_kernel(Device& device, const common::Op& op) {
  return std::make_unique<UserKernelPlan>(device, op);
}

}  // namespace compute::opencl
