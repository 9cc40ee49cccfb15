// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/user_kernels/user_kernel.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "plugins/common/op/kernel_op.hpp"
#include "plugins/cpu/threads/threads.hpp"
#include "plugins/cpu/user_kernels/fibers.hpp"

namespace compute::cpu {
namespace {

enum : int32_t {
  kTensor = COMPUTE_PLUGIN_ARGUMENT_TENSOR,
  kValue = COMPUTE_PLUGIN_ARGUMENT_VALUE,
  kLocalMemory = COMPUTE_PLUGIN_ARGUMENT_LOCAL_MEMORY
};

constexpr int64_t kItemsPerPiece = 8 << 10;  // below this a second thread does not pay

struct Shape {
  int64_t groups[3];
  int64_t group_size[3];
  int64_t items() const { return group_size[0] * group_size[1] * group_size[2]; }
};

// Undefined contents, aligned for every type of a kernel.
std::unique_ptr<char[]> make_local_memory(const Program& program, int32_t argument, int64_t size_bytes) {
  std::unique_ptr<char[]> memory(new (std::nothrow) char[static_cast<size_t>(size_bytes)]);
  if (memory == nullptr) {
    throw Error(COMPUTE_ERROR_OUT_OF_MEMORY,
                "kernel " + program.name() + ": argument " + std::to_string(argument) + ": no memory for " +
                    std::to_string(size_bytes) + " bytes of local memory",
                argument);
  }
  return memory;
}

// Runs all groups. `arguments` are the addresses of the values; `local_bytes` has an entry for each argument: the size
// of the local memory that the argument points to, or 0.
void run_groups(const Program& program, const Shape& shape, const std::vector<void*>& arguments,
                const std::vector<int64_t>& local_bytes) {
  int64_t count = 1;
  for (const int64_t groups : shape.groups) count *= groups;
  const bool has_local = std::any_of(local_bytes.begin(), local_bytes.end(), [](int64_t bytes) { return bytes != 0; });
  const int64_t grain = std::max<int64_t>(1, kItemsPerPiece / shape.items());
  parallel_for_uneven(count, grain, [&](int64_t begin, int64_t end) {
    if (!program.has_local_memory())
      throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, "kernel " + program.name() + ": no memory for a group's local memory");
    if (program.has_barrier() && !reserve_fibers(shape.items())) {
      throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, "kernel " + program.name() + ": no memory for the stacks of " +
                                                   std::to_string(shape.items()) + " work-items");
    }
    std::vector<void*> own;
    std::vector<std::unique_ptr<char[]>> local;
    std::vector<void*> pointers;
    void* const* given = arguments.data();
    if (has_local) {
      own = arguments;
      local.resize(own.size());
      pointers.resize(own.size());
      for (size_t i = 0; i < own.size(); ++i) {
        if (local_bytes[i] == 0) continue;
        local[i] = make_local_memory(program, static_cast<int32_t>(i), local_bytes[i]);
        pointers[i] = local[i].get();
        own[i] = &pointers[i];
      }
      given = own.data();
    }
    ProgramGroups groups{};
    groups.begin = begin;
    groups.end = end;
    for (int axis = 0; axis < 3; ++axis) {
      groups.groups[axis] = shape.groups[axis];
      groups.size[axis] = static_cast<int32_t>(shape.group_size[axis]);
    }
    groups.has_barrier = program.has_barrier() ? 1 : 0;
    groups.arguments = given;
    groups.meet = meet;
    groups.together = run_together;
    program.run(groups);
  });
}

void check_shape(const Program& program, const Shape& shape) {
  if (shape.items() > kMostFibers) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "kernel " + program.name() + ": group size " +
                                                    std::to_string(shape.items()) + " exceeds the limit of " +
                                                    std::to_string(kMostFibers));
  }
}

// A run that the program asked for.
class LaunchPlan final : public Plan {
 public:
  LaunchPlan(std::shared_ptr<const Program> program, const compute_plugin_launch& launch)
      : program_(std::move(program)) {
    for (int axis = 0; axis < 3; ++axis) {
      shape_.groups[axis] = launch.groups[axis];
      shape_.group_size[axis] = launch.group_size[axis];
    }
    check_shape(*program_, shape_);
    const auto parameters = program_->parameters();
    if (static_cast<size_t>(launch.argument_count) != parameters.size()) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "kernel " + program_->name() + ": expected " +
                                                      std::to_string(parameters.size()) + " arguments, got " +
                                                      std::to_string(launch.argument_count));
    }
    values_.resize(parameters.size());
    local_bytes_.resize(parameters.size());
    for (int32_t i = 0; i < launch.argument_count; ++i) take(*common::at_step(launch.arguments, i), i);
    for (std::vector<std::max_align_t>& value : values_) arguments_.push_back(value.data());
  }

  void run(const compute_plugin_run&) const override { run_groups(*program_, shape_, arguments_, local_bytes_); }

 private:
  void take(const compute_plugin_kernel_argument& argument, int32_t index) {
    const auto at = static_cast<size_t>(index);
    const ProgramParameter& expected = program_->parameters()[at];
    const auto refuse = [&](const std::string& why) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  "kernel " + program_->name() + ": argument " + std::to_string(index) + why, index);
    };
    std::vector<std::max_align_t>& value = values_[at];
    if (argument.kind == kValue) {
      if (expected.is_pointer != 0) refuse(" is a value; the kernel takes a pointer: pass a tensor");
      if (argument.value_size != expected.size_bytes) {
        refuse(" has " + std::to_string(argument.value_size) + " bytes; the kernel takes " +
               std::to_string(expected.size_bytes));
      }
      value.resize(static_cast<size_t>(argument.value_size) / sizeof(std::max_align_t) + 1);
      std::memcpy(value.data(), argument.value, static_cast<size_t>(argument.value_size));
      return;
    }
    if (expected.is_pointer == 0) {
      refuse(std::string(argument.kind == kTensor ? " is a tensor" : " is local memory") +
             "; the kernel takes a value of " + std::to_string(expected.size_bytes) + " bytes");
    }
    value.resize(1);
    void* data = argument.kind == kTensor ? address(argument.tensor) : nullptr;
    std::memcpy(value.data(), &data, sizeof data);
    if (argument.kind == kLocalMemory) local_bytes_[at] = argument.value_size;
  }

  const std::shared_ptr<const Program> program_;
  Shape shape_{};
  std::vector<std::vector<std::max_align_t>> values_;
  std::vector<void*> arguments_;
  std::vector<int64_t> local_bytes_;
};

// ---- The primitive --------------------------------------------------------------------------------------------------

class KernelPlan final : public Plan {
 public:
  KernelPlan(const Op& op, std::shared_ptr<const Program> program) : program_(std::move(program)) {
    const std::span<const int64_t> groups = op.integers("groups"), group_size = op.integers("group_size");
    std::copy_n(groups.begin(), 3, shape_.groups);
    std::copy_n(group_size.begin(), 3, shape_.group_size);
    check_shape(*program_, shape_);
    const auto parameters = program_->parameters();
    for (int32_t i = 0; i < op.tensor_count(); ++i) {
      if (op.tensor(i).rank >= 0) tensors_.push_back(i);
    }
    const size_t count = tensors_.size() + static_cast<size_t>(op.scalar_count());
    const auto refuse = [&](const std::string& why) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "kernel " + program_->name() + why);
    };
    if (count != parameters.size()) {
      refuse(" takes " + std::to_string(parameters.size()) + " arguments; the op passes " + std::to_string(count));
    }
    for (size_t i = 0; i < count; ++i) {
      const bool is_pointer = parameters[i].is_pointer != 0;
      const std::string which = ": argument " + std::to_string(i);
      if (i < tensors_.size()) {
        if (!is_pointer) refuse(which + " is a tensor; the kernel takes a value");
        continue;
      }
      const compute_dtype dtype = op.scalar_dtype(static_cast<int32_t>(i - tensors_.size()));
      if (is_pointer || parameters[i].size_bytes != common::dtype_size(dtype)) {
        refuse(which + " is of " + dtype_name(dtype) + "; the kernel takes " +
               (is_pointer ? "a pointer" : std::to_string(parameters[i].size_bytes) + " bytes"));
      }
    }
  }

  void run(const compute_plugin_run& run) const override {
    std::vector<void*> data(tensors_.size()), arguments;
    for (size_t i = 0; i < data.size(); ++i) data[i] = address(run.tensors[tensors_[i]]);
    for (void*& one : data) arguments.push_back(&one);
    for (int32_t i = 0; i < scalar_count; ++i)
      arguments.push_back(const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(run.scalars[i].bits)));
    run_groups(*program_, shape_, arguments, no_local_memory_);
  }

 private:
  const std::shared_ptr<const Program> program_;
  Shape shape_{};
  std::vector<int32_t> tensors_;
  const std::vector<int64_t> no_local_memory_;
};

}  // namespace

UserKernel::UserKernel(const compute_plugin_kernel_source& source) {
  if (view(source.language) != "portable")
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                "language " + std::string(view(source.language)) + " is not supported; cpu accepts portable");
  bool compiled = false;
  program_ =
      Program::make(view(source.source), view(source.name), view(source.options), Program::Includes::kRead, &compiled);
}

int32_t UserKernel::max_group_size() { return static_cast<int32_t>(kMostFibers); }

int64_t UserKernel::max_local_bytes() { return static_cast<int64_t>(kMostLocalBytes); }

Plan* UserKernel::make_launch(const compute_plugin_launch& launch) const { return new LaunchPlan(program_, launch); }

std::optional<Refusal> refuse_kernel(const Op& op) {
  if (std::optional<Refusal> refusal = common::refuse_kernel_op(op, "cpu", "")) return refusal;
  if (std::string problem = reason_against_kernels(); !problem.empty())
    return Refusal{COMPUTE_PLUGIN_REFUSE_LIBRARY_MISSING, -1, std::move(problem), ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_kernel(const Op& op) {
  bool compiled = false;
  // An op has one kernel as long as it is in use: plans for other shapes do not read the files again.
  auto program =
      Program::make(op.text("source"), op.text("name"), op.text("options"), Program::Includes::kAsBefore, &compiled);
  auto plan = std::make_unique<KernelPlan>(op, std::move(program));
  plan->kernels_compiled = compiled ? 1 : 0;
  return plan;
}

}  // namespace compute::cpu
