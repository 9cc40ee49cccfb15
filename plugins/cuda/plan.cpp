// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/plan.hpp"

#include <algorithm>
#include <cstring>

#include "plugins/common/op/matrix_product.hpp"
#include "plugins/common/op/windows.hpp"
#include "plugins/cuda/attention.hpp"
#include "plugins/cuda/convolution.hpp"
#include "plugins/cuda/dialect/dialect.hpp"
#include "plugins/cuda/fourier.hpp"
#include "plugins/cuda/graph.hpp"
#include "plugins/cuda/matmul.hpp"
#include "plugins/cuda/solver.hpp"
#include "plugins/cuda/user_kernel.hpp"

namespace compute::cuda {
namespace {

using common::Launch;
using common::LaunchPlan;
using common::Op;
using common::Pointer;
using common::Refusal;

// Why neither generated nor user kernels can run `op`.
std::optional<Refusal> refuse_kernels(const Device& device, const Op& op) {
  if (std::optional<Refusal> refusal =
          op.name() == "kernel" ? refuse_user_kernel(op) : common::refuse_op(op, device.dialect()))
    return refusal;
  if (nvrtc() != nullptr) return std::nullopt;
  const LibraryReport report = nvrtc_report();
  return Refusal{COMPUTE_PLUGIN_REFUSE_LIBRARY_MISSING, -1, "NVRTC was not found: tried " + tried_in_short(report),
                 report.remedy};
}

}  // namespace

std::optional<Refusal> refuse(Device& device, const Op& op) {
  if (op.name() == "contraction") {
    if (std::optional<Refusal> refusal = common::refuse_unaligned(op)) return refusal;
    const MatmulVerdict verdict = judge_matmul(device, op);
    if (verdict.is_taken) return std::nullopt;
    if (verdict.refusal) return verdict.refusal;
  }
  if (is_fourier(op)) return refuse_fourier(op);
  if (is_solver_op(op)) {
    return refuse_kernels(device, op) ? refuse_solver(device, op) : std::nullopt;
  }
  return refuse_kernels(device, op);
}

common::PlanOrRefusal<Plan> prepare(Device& device, const Op& op) {
  if (op.name() == "contraction") {
    if (std::optional<Refusal> refusal = common::refuse_unaligned(op)) return *std::move(refusal);
    MatmulVerdict verdict = judge_matmul(device, op);
    if (verdict.refusal) return *std::move(verdict.refusal);
    if (verdict.is_taken) {
      if (std::unique_ptr<Plan> plan = prepare_matmul(device, op)) return plan;
      if (common::is_given(op, 3)) {  // without the bias it may have one
        return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "contraction: cuBLASLt has no algorithm with a bias",
                       ""};
      }
    }
  }
  if (is_fourier(op)) return prepare_fourier(device, op);
  if (is_solver_op(op) && refuse_kernels(device, op)) {
    if (std::optional<Refusal> refusal = refuse_solver(device, op)) return *std::move(refusal);
    return prepare_solver(device, op);
  }
  if (std::optional<Refusal> refusal = refuse_kernels(device, op)) return *std::move(refusal);
  if (op.name() == "kernel") return prepare_user_kernel(device, op);
  if (common::is_window_op(op.name())) {
    if (std::unique_ptr<Plan> plan = prepare_convolution(device, op)) return plan;
  }
  if (op.name() == "attention") {
    if (std::unique_ptr<Plan> plan = prepare_attention(device, op)) return plan;
  }
  if (op.name() == "attention_grad") {
    if (std::unique_ptr<Plan> plan = prepare_attention_grad(device, op)) return plan;
  }
  return std::unique_ptr<Plan>(std::make_unique<KernelPlan>(device, op));
}

// The other constructor is complete, so that the destructor frees the tables of a plan that is not finished.
KernelPlan::KernelPlan(Device& device, const Op& op) : KernelPlan(device) {
  const LaunchPlan plan = common::plan_launches(op, device.dialect());
  workspace_bytes = plan.workspace_bytes;
  reports_faults = plan.reports_faults;
  for (const Launch& launch : plan.launches) {
    Step step{};
    step.kernel = &device.kernels().get(
        launch.key, compile_options(), [&] { return common::kernel_source(op, device.dialect(), launch); },
        &kernels_compiled);
    step.grid = {static_cast<unsigned>(launch.groups), static_cast<unsigned>(launch.group_size),
                 static_cast<unsigned>(launch.local_bytes)};
    if (launch.local_bytes > 0) {
      check(cu.func_set_attribute(step.kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  static_cast<int>(launch.local_bytes)),
            "allowing a kernel its local memory");
    }
    step.pointers = launch.pointers;
    step.scalars = launch.scalars;
    step.words.assign(launch.pointers.size(), 0);
    step.words.insert(step.words.end(), launch.block.begin(), launch.block.end());
    for (common::ScalarSlot& slot : step.scalars) slot.word += static_cast<int32_t>(launch.pointers.size());
    steps_.push_back(std::move(step));
    if (launch.table.empty()) continue;
    const size_t bytes = launch.table.size() * sizeof(int64_t);
    check(cu.mem_alloc(&steps_.back().table, bytes), "allocating a plan's table");
    check(cu.memcpy_htod(steps_.back().table, launch.table.data(), bytes), "copying a plan's table");
    // From pageable memory the call may return before the copy has ended, and streams do not wait for the default one.
    check(cu.stream_synchronize(nullptr), "copying a plan's table");
  }
}

KernelPlan::~KernelPlan() {
  for (const Step& step : steps_) {
    if (step.table == 0) continue;
    try {
      const Current current = device_.current();
      cu.mem_free(step.table);
    } catch (...) {
      // The context is gone, and its memory with it.
    }
  }
}

void KernelPlan::fill_words(const Step& step, const compute_plugin_run& run, const LaunchMemory& own, uint64_t* words) {
  std::memcpy(words, step.words.data(), step.words.size() * sizeof(uint64_t));
  const auto address = [](const compute_plugin_operand& operand) {
    return operand.buffer + static_cast<uint64_t>(operand.offset_bytes);
  };
  for (size_t i = 0; i < step.pointers.size(); ++i) {
    switch (step.pointers[i].kind) {
      case Pointer::kTensor:
        words[i] = address(run.tensors[step.pointers[i].index]);
        break;
      case Pointer::kWorkspace:
        words[i] = address(run.workspace);
        break;
      case Pointer::kFault:
        words[i] = run.fault.buffer != 0 ? address(run.fault) : reinterpret_cast<uintptr_t>(own.fault_record);
        break;
      case Pointer::kTable:
        words[i] = step.table;
        break;
      case Pointer::kCounters:
        words[i] = own.counters;
        break;
    }
  }
  for (const common::ScalarSlot& slot : step.scalars) {
    std::memcpy(words + slot.word, run.scalars[slot.scalar].bits, sizeof run.scalars[slot.scalar].bits);
  }
}

CUresult launch(const Kernel& kernel, const Grid& grid, const LaunchWords& words, CUstream stream) {
  // CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END
  size_t bytes = words.count * sizeof(uint64_t);
  void* extra[] = {reinterpret_cast<void*>(uintptr_t{1}), const_cast<uint64_t*>(words.words),
                   reinterpret_cast<void*>(uintptr_t{2}), &bytes, nullptr};
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  const CUlaunchConfig config = {grid.groups,      1,      1,      grid.group_size,       1, 1,
                                 grid.local_bytes, stream, &early, kernel.waits ? 1U : 0U};
  return cu.launch_kernel_ex(&config, kernel.function, nullptr, extra);
}

void KernelPlan::run(const compute_plugin_run& run, Stream& stream) const {
  for (const Step& step : steps_) {
    auto* words = static_cast<uint64_t*>(__builtin_alloca(step.words.size() * sizeof(uint64_t)));
    fill_words(step, run, stream.memory(), words);
    stream.note_launch(step.kernel->name.c_str());
    const CUresult result = launch(*step.kernel, step.grid, {words, step.words.size()}, stream.handle());
    if (result == CUDA_SUCCESS) [[likely]]
      continue;
    const Error error = stream.failure(result, "launching a kernel");
    throw &step == steps_.data() ? error : stream.break_off(error);
  }
}

void KernelPlan::add_to(GraphBuilder& graph, const compute_plugin_run& run, const int32_t* slots) const {
  for (const Step& step : steps_) {
    GraphKernel node;
    node.kernel = step.kernel;
    node.grid = step.grid;
    node.words.resize(step.words.size());
    fill_words(step, run, *graph.memory(), node.words.data());
    for (const common::ScalarSlot& scalar : step.scalars) {
      const int32_t slot = slots != nullptr ? slots[scalar.scalar] : -1;
      if (slot >= 0) node.slots.push_back({scalar.word, slot});
    }
    graph.add(std::move(node));
  }
}

}  // namespace compute::cuda
