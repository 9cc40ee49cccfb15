// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/plan.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "plugins/common/op/core.hpp"
#include "plugins/opencl/fourier.hpp"
#include "plugins/opencl/kernel.hpp"
#include "plugins/opencl/matmul.hpp"

namespace compute::opencl {
namespace {

constexpr size_t kMostWords = 512;  // of a block: 4 KiB, the limit of max_block_bytes

// A plan of launches.
class GeneratedPlan final : public Plan {
 public:
  GeneratedPlan(Device& device, const common::Op& op) {
    common::LaunchPlan plan = common::plan_launches(op, device.dialect());
    workspace_bytes = plan.workspace_bytes;
    reports_faults = plan.reports_faults;
    for (common::Launch& launch : plan.launches) {
      Step step;
      step.kernel = device.kernel(op, launch, &kernels_compiled);
      if (!launch.table.empty()) step.table = device.upload(launch.table.data(), launch.table.size() * sizeof(int64_t));
      step.launch = std::move(launch);
      steps_.push_back(std::move(step));
    }
  }

  void run(const compute_plugin_run& run, Stream& stream) const override {
    const cl_command_queue queue = stream.queue();
    for (const Step& step : steps_) {
      try {
        enqueue(step, stream, queue, run);
      } catch (const common::Error& error) {
        if (&step == steps_.data()) throw;
        throw stream.break_off(error);
      }
    }
  }

 private:
  struct Step {
    common::Launch launch;
    std::shared_ptr<CompiledKernel> kernel;
    Memory table;
  };

  static void enqueue(const Step& step, Stream& stream, cl_command_queue queue, const compute_plugin_run& run) {
    const common::Launch& launch = step.launch;
    std::array<int64_t, kMostWords> block;
    std::copy(launch.block.begin(), launch.block.end(), block.begin());
    for (const common::ScalarSlot& slot : launch.scalars)
      std::memcpy(&block[static_cast<size_t>(slot.word)], run.scalars[slot.scalar].bits, 16);
    std::lock_guard lock(step.kernel->mutex);
    const cl_kernel kernel = step.kernel->kernel.get();
    cl_uint index = 0;
    for (const common::Pointer& pointer : launch.pointers) {
      cl_mem memory = nullptr;
      switch (pointer.kind) {
        case common::Pointer::kTensor: {
          const compute_plugin_operand& operand = run.tensors[pointer.index];
          memory = memory_of(operand.buffer);
          block[index] += operand.offset_bytes;
          break;
        }
        case common::Pointer::kWorkspace:
          memory = memory_of(run.workspace.buffer);
          block[index] += run.workspace.offset_bytes;
          break;
        case common::Pointer::kFault: {
          // The run's own record is host memory, which a kernel does not reach.
          const auto target = static_cast<uintptr_t>(run.fault.buffer + static_cast<uint64_t>(run.fault.offset_bytes));
          const Stream::FaultSlot slot =
              stream.fault_slot(run.fault.buffer != 0 ? reinterpret_cast<compute_plugin_fault*>(target) : nullptr);
          memory = slot.memory;
          block[index] += slot.offset_bytes;
          break;
        }
        case common::Pointer::kTable:
          memory = step.table.get();
          break;
        case common::Pointer::kCounters:
          memory = stream.counters();
          break;
      }
      check(api().clSetKernelArg(kernel, index++, sizeof memory, &memory), "clSetKernelArg");
    }
    check(api().clSetKernelArg(kernel, index, launch.block.size() * sizeof(int64_t), block.data()), "clSetKernelArg");
    const auto group_size = static_cast<size_t>(launch.group_size);
    const size_t global_size = static_cast<size_t>(launch.groups) * group_size;
    check(step.kernel->enqueue(queue, 1, &global_size, &group_size), "clEnqueueNDRangeKernel");
  }

  std::vector<Step> steps_;
};

}  // namespace

std::optional<common::Refusal> refuse(const Device& device, const common::Op& op) {
  if (is_fourier(op)) return refuse_fourier(device, op);
  return op.name() == "kernel" ? refuse_user_kernel(op) : common::refuse_op(op, device.dialect());
}

std::unique_ptr<Plan> prepare_generated(Device& device, const common::Op& op) {
  return std::make_unique<GeneratedPlan>(device, op);
}

common::PlanOrRefusal<Plan> prepare(Device& device, const common::Op& op) {
  if (std::optional<common::Refusal> refusal = refuse(device, op)) return *std::move(refusal);
  if (is_fourier(op)) return prepare_fourier(device, op);
  if (op.name() == "contraction") {
    if (std::unique_ptr<Plan> plan = prepare_matmul(device, op)) return plan;
  }
  if (op.name() == "kernel") return prepare_user_kernel(device, op);
  return prepare_generated(device, op);
}

}  // namespace compute::opencl
