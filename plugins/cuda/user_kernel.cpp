// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/user_kernel.hpp"

#include <algorithm>

#include "plugins/common/op/kernel_op.hpp"
#include "plugins/common/source/generator.hpp"
#include "plugins/cuda/compiler.hpp"
#include "plugins/cuda/dialect/dialect.hpp"
#include "plugins/cuda/graph.hpp"
#include "plugins/cuda/kernel_table.hpp"

namespace compute::cuda {
namespace {

enum : int32_t { kTensor = 1, kValue = 2, kLocalMemory = 3 };

constexpr size_t kMostParameters = 4096;  // bytes of parameters, so more than there can be

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (c != ' ' && c != '\t' && c != '\n') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

// A kernel that is compiled already. The driver compiles PTX.
Program compiled_program(std::string code, std::string entry, bool is_ptx) {
  Program program;
  if (is_ptx) program.parameters = parameters_of(code, entry);
  program.code = std::move(code);
  program.entry = std::move(entry);
  return program;
}

}  // namespace

UserKernel::UserKernel(Device& device, const compute_plugin_kernel_source& source)
    : device_(device), name_(common::view(source.name)), noted_name_(device.keep_name(name_)) {
  const std::string_view language = common::view(source.language);
  std::string text(common::view(source.source));
  std::vector<std::string> options = words_of(common::view(source.options));
  const bool is_ptx = language == "ptx", is_compiled = is_ptx || language == "cubin";
  if (language == "portable") {
    text = common::portable_prelude(device.dialect()) + "\n#line 1\n" + text;
    for (std::string& option : compile_options()) options.push_back(std::move(option));
  } else if (language != "cuda-c" && !is_compiled) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                "kernel " + name_ + ": language " + std::string(language) +
                    " is not supported; cuda devices accept cuda-c, portable, ptx and cubin");
  }
  const Program program = is_compiled ? compiled_program(std::move(text), name_, is_ptx)
                                      : compile(text, name_, device.info().compute_capability, options);
  kernel_ = load(program);
  was_compiled_ = program.was_compiled;
  parameters_ = program.parameters;
  // The driver knows the sizes; the compiler's output also says which parameters are pointers.
  if (cu.func_get_param_info != nullptr) {
    size_t count = 0, offset = 0, bytes = 0;
    if (!parameters_) parameters_.emplace();
    while (count < kMostParameters &&
           cu.func_get_param_info(kernel_.function, count, &offset, &bytes) == CUDA_SUCCESS) {
      if (count == parameters_->size()) parameters_->emplace_back();
      (*parameters_)[count++].bytes = static_cast<int32_t>(bytes);
    }
    parameters_->resize(count);
  }
  int threads = 0;
  cu.func_get_attribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel_.function);
  max_group_size_ = threads;
}

UserKernel::~UserKernel() {
  try {
    const Current current = device_.current();
    cu.module_unload(kernel_.module);
  } catch (...) {
    // The context is gone, and its modules with it.
  }
}

void UserKernel::check_argument(const compute_plugin_kernel_argument& argument, size_t parameter, int32_t index) const {
  const auto refuse = [&](const std::string& reason) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                "kernel " + name_ + ": argument " + std::to_string(index) + " " + reason, index);
  };
  if (!parameters_ || parameter >= parameters_->size()) return;
  const KernelParameter& expected = (*parameters_)[parameter];
  if (argument.kind == kTensor) {
    if (expected.bytes != 0 && expected.bytes != static_cast<int32_t>(sizeof(CUdeviceptr))) {
      refuse("is a tensor; the kernel takes a value of " + std::to_string(expected.bytes) + " bytes");
    }
    if (expected.kind == 'v') refuse("is a tensor; the kernel takes a value");
  } else {
    if (expected.kind == 'p') refuse("is a value; the kernel takes a pointer: pass a tensor");
    if (expected.bytes != 0 && expected.bytes != argument.value_size) {
      refuse("has " + std::to_string(argument.value_size) + " bytes; the kernel takes " +
             std::to_string(expected.bytes));
    }
  }
}

void UserKernel::launch(const compute_plugin_launch& launch) const {
  const auto refuse = [&](const std::string& reason) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "kernel " + name_ + ": " + reason);
  };
  std::vector<void*> pointers;
  std::vector<uint64_t> addresses(static_cast<size_t>(launch.argument_count));
  int64_t shared_bytes = 0;
  for (int32_t i = 0; i < launch.argument_count; ++i) {
    const compute_plugin_kernel_argument& argument = *common::at_step(launch.arguments, i);
    if (argument.kind == kLocalMemory) {
      shared_bytes += argument.value_size;  // CUDA has one block of it, which is not a parameter
      continue;
    }
    check_argument(argument, pointers.size(), i);
    if (argument.kind == kTensor) {
      uint64_t& address = addresses[static_cast<size_t>(i)];
      address = argument.tensor.buffer + static_cast<uint64_t>(argument.tensor.offset_bytes);
      pointers.push_back(&address);
    } else {
      pointers.push_back(const_cast<void*>(argument.value));
    }
  }
  if (parameters_ && pointers.size() != parameters_->size()) {
    refuse("expected " + std::to_string(parameters_->size()) + " arguments, got " + std::to_string(pointers.size()));
  }
  const int64_t group_size = launch.group_size[0] * launch.group_size[1] * launch.group_size[2];
  if (group_size > max_group_size_) {
    refuse("group size " + std::to_string(group_size) + " exceeds the kernel's limit of " +
           std::to_string(max_group_size_));
  }
  static constexpr int64_t kMostGroups[3] = {INT32_MAX, 65535, 65535};
  for (int axis = 0; axis < 3; ++axis) {
    if (launch.groups[axis] > kMostGroups[axis]) {
      refuse(std::to_string(launch.groups[axis]) + " groups along axis " + std::to_string(axis) +
             " exceed CUDA's limit of " + std::to_string(kMostGroups[axis]));
    }
  }
  if (shared_bytes > device_.info().shared_bytes_per_block_opt_in) {
    refuse(std::to_string(shared_bytes) + " bytes of local memory exceed the device's limit of " +
           std::to_string(device_.info().shared_bytes_per_block_opt_in) + " per group");
  }
  if (shared_bytes > device_.info().shared_bytes_per_block) {
    check(cu.func_set_attribute(kernel_.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                static_cast<int>(shared_bytes)),
          "raising a kernel's local memory");
  }
  Stream& stream = *reinterpret_cast<Stream*>(static_cast<uintptr_t>(launch.stream));
  stream.require_good();
  stream.note_launch(noted_name_);
  const auto extent = [](int64_t value) { return static_cast<unsigned>(value); };
  const CUresult result =
      cu.launch_kernel(kernel_.function, extent(launch.groups[0]), extent(launch.groups[1]), extent(launch.groups[2]),
                       extent(launch.group_size[0]), extent(launch.group_size[1]), extent(launch.group_size[2]),
                       static_cast<unsigned>(shared_bytes), stream.handle(), pointers.data(), nullptr);
  if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES) {
    Error error = error_of(result, "kernel " + name_);
    error.code = COMPUTE_ERROR_INVALID_ARGUMENT;
    throw error;
  }
  if (result != CUDA_SUCCESS) throw stream.failure(result, "launching a kernel");
}

// ---- The primitive --------------------------------------------------------------------------------------------------

namespace {

class UserKernelPlan final : public Plan {
 public:
  UserKernelPlan(Device& device, const common::Op& op) : op_(op), kernel_(device, common::KernelOp::source_of(op)) {
    kernels_compiled = kernel_.was_compiled() ? 1 : 0;
  }

  void run(const compute_plugin_run& run, Stream& stream) const override {
    op_.with_launch(run, [&](compute_plugin_launch launch) {
      launch.stream = common::handle_of(&stream);
      kernel_.launch(launch);
    });
  }

  void add_to(GraphBuilder& graph, const compute_plugin_run& run, const int32_t* slots) const override {
    graph.capture(*this, run, op_.tensor_count(), op_.scalar_count(), slots);
  }

 private:
  const common::KernelOp op_;
  const UserKernel kernel_;
};

}  // namespace

std::optional<common::Refusal> refuse_user_kernel(const common::Op& op) {
  if (std::optional<common::Refusal> refusal = common::refuse_unaligned(op)) return refusal;
  return common::refuse_kernel_op(op, "cuda", "cuda-c");
}

std::unique_ptr<Plan> prepare_user_kernel(Device& device, const common::Op& op) {
  return std::make_unique<UserKernelPlan>(device, op);
}

}  // namespace compute::cuda
