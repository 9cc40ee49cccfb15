// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/fourier.hpp"

#include <locale.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/common/op/core.hpp"

#if COMPUTE_OPENCL_VKFFT
#include "plugins/opencl/vkfft.inc"
#endif

namespace compute::opencl {
namespace {

using common::Op;
using common::Refusal;

Refusal refusal(const Op& op, const std::string& why) {
  return {COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, std::string(op.name()) + ": " + why, ""};
}

#if COMPUTE_OPENCL_VKFFT

constexpr size_t kMostAxes = 3;  // of a plan, besides the batch

// An axis of both tensors, or several that lie like one.
struct Axis {
  int64_t extent, src, dst;  // strides
  bool is_transformed;
};

struct Problem {
  std::vector<Axis> axes;  // from the one whose elements are adjacent
  Axis batch{1, 0, 0, false};
};

// With larger ones, errors close to the op's bound were seen, in complex128 beyond it.
bool has_small_factors(int64_t length) {
  for (const int64_t prime : {2, 3, 5, 7}) {
    while (length % prime == 0) length /= prime;
  }
  return length == 1;
}

std::variant<Problem, Refusal> describe(const Op& op) {
  const compute_plugin_tensor &src = op.input(0), &dst = op.output(0);
  if (op.name() != "fft" || !common::is_complex(src.dtype)) return refusal(op, "VkFFT transforms complex numbers only");
  const bool is_inverse = op.integer("inverse", 0) != 0;
  const std::string_view norm = op.text("norm");
  const bool divides = is_inverse && norm != "forward";
  if (norm == "ortho" || (!is_inverse && norm == "forward") || (divides && !norm.empty() && norm != "backward"))
    return refusal(op, "VkFFT has no such factor");
  const std::span<const int64_t> given = op.integers("axes");
  std::vector<Axis> axes;
  for (int32_t i = 0; i < src.rank; ++i) {
    if (src.shape[i] == 1) continue;
    const bool is_transformed = std::find(given.begin(), given.end(), i) != given.end();
    axes.push_back({src.shape[i], src.strides[i], dst.strides[i], is_transformed});
    if (is_transformed && !has_small_factors(src.shape[i]))
      return refusal(op, "VkFFT is not accurate enough for lengths with prime factors above 7");
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.dst < b.dst; });
  Problem problem;
  for (const Axis& axis : axes) {
    if (axis.src < 1) {
      return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, 0, "fft: VkFFT supports positive strides only", ""};
    }
    if (axis.dst < 1) return refusal(op, "VkFFT supports positive strides only");
    if (!problem.axes.empty()) {
      Axis& last = problem.axes.back();
      if (!last.is_transformed && !axis.is_transformed && last.src * last.extent == axis.src &&
          last.dst * last.extent == axis.dst) {
        last.extent *= axis.extent;
        continue;
      }
    }
    problem.axes.push_back(axis);
  }
  if (std::none_of(axes.begin(), axes.end(), [](const Axis& x) { return x.is_transformed; }))
    return refusal(op, "there is nothing to transform");
  if (problem.axes.front().dst != 1) return refusal(op, "VkFFT needs an axis of adjacent elements");
  if (problem.axes.front().src != 1) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, 0, "fft: VkFFT needs an axis of adjacent elements", ""};
  }
  if (!problem.axes.back().is_transformed) {
    problem.batch = problem.axes.back();
    problem.axes.pop_back();
  }
  if (problem.axes.size() > kMostAxes) return refusal(op, "VkFFT has up to 3 axes and a batch");
  return problem;
}

class FourierPlan final : public Plan {
 public:
  FourierPlan(Device& device, const Op& op) : programs_{device, {}, 0} {
    is_inverse_ = op.integer("inverse", 0) != 0;
    is_double_ = op.input(0).dtype == COMPUTE_DTYPE_COMPLEX128;
    divides_ = is_inverse_ && op.text("norm") != "forward";
  }

  ~FourierPlan() override {
    if (!is_made_) return;
    app_.configuration.userTempBuffer = 0;  // else its size would not be freed
    deleteVkFFT(&app_);
  }

  // False if VkFFT has no plan.
  bool make(const Problem& problem) {
    const common::Compiling compiling;
    VkFFTConfiguration how = {};
    how.FFTdim = problem.axes.size();
    for (size_t i = 0; i < 3; ++i) {
      const bool has_axis = i < problem.axes.size();
      how.size[i] = has_axis ? static_cast<uint64_t>(problem.axes[i].extent) : 1;
      how.omitDimension[i] = has_axis && !problem.axes[i].is_transformed ? 1 : 0;
      // That of the next axis; from the last one on that of the batch.
      const Axis& next = i + 1 < problem.axes.size() ? problem.axes[i + 1] : problem.batch;
      const Axis& last = problem.axes.back();
      how.inputBufferStride[i] = static_cast<uint64_t>(next.extent > 1 ? next.src : last.src * last.extent);
      how.bufferStride[i] = static_cast<uint64_t>(next.extent > 1 ? next.dst : last.dst * last.extent);
    }
    how.numberBatches = static_cast<uint64_t>(problem.batch.extent);
    how.device = reinterpret_cast<::cl_device_id*>(&device_);
    device_ = programs_.device.info().device;
    context_ = programs_.device.context();
    how.context = reinterpret_cast<::cl_context*>(&context_);
    how.isInputFormatted = 1;
    how.specifyOffsetsAtLaunch = 1;
    how.doublePrecision = is_double_ ? 1 : 0;
    how.useLUT = 1;
    how.normalize = divides_ ? 1 : 0;
    (is_inverse_ ? how.makeInversePlanOnly : how.makeForwardPlanOnly) = 1;
    // Numbers in the source have a point, whatever the program's locale.
    static const locale_t kPlain = newlocale(LC_ALL_MASK, "C", nullptr);
    const locale_t before = uselocale(kPlain);
    VkFFTResult result;
    {
      const VkfftPrograms::Current current(programs_);
      result = initializeVkFFT(&app_, how);
    }
    uselocale(before);
    if (programs_.failure && programs_.failure->code != COMPUTE_ERROR_COMPILE_FAILED) throw *programs_.failure;
    if (programs_.failure) common::log(COMPUTE_LOG_WARNING, "compile", "VkFFT: " + programs_.failure->message);
    if (result != VKFFT_SUCCESS) return false;
    is_made_ = true;
    kernels_compiled = programs_.compiled;
    // The plan's workspace takes the place of the buffer that VkFFT has allocated.
    VkFFTConfiguration& made = app_.configuration;
    if (made.allocateTempBuffer != 0) {
      workspace_bytes = static_cast<int64_t>(made.tempBufferSize[0]);
      api().clReleaseMemObject(reinterpret_cast<cl_mem>(*made.tempBuffer));
      std::free(std::exchange(made.tempBuffer, nullptr));
      made.allocateTempBuffer = 0;
      made.userTempBuffer = 1;
    }
    return true;
  }

  void run(const compute_plugin_run& run, Stream& stream) const override {
    const std::lock_guard lock(mutex_);
    src_ = memory_of(run.tensors[0].buffer);
    dst_ = memory_of(run.tensors[1].buffer);
    workspace_ = workspace_bytes > 0 ? memory_of(run.workspace.buffer) : nullptr;
    queue_ = stream.queue();
    VkFFTLaunchParams how = {};
    how.commandQueue = reinterpret_cast<::cl_command_queue*>(&queue_);
    how.inputBuffer = reinterpret_cast<::cl_mem*>(&src_);
    how.buffer = reinterpret_cast<::cl_mem*>(&dst_);
    how.inputBufferOffset = static_cast<uint64_t>(run.tensors[0].offset_bytes);
    how.bufferOffset = static_cast<uint64_t>(run.tensors[1].offset_bytes);
    if (workspace_bytes > 0) {
      how.tempBuffer = reinterpret_cast<::cl_mem*>(&workspace_);
      how.tempBufferOffset = static_cast<uint64_t>(run.workspace.offset_bytes);
    }
    programs_.queued = 0;
    programs_.status = CL_SUCCESS;
    const VkfftPrograms::Current current(programs_);
    const VkFFTResult result = VkFFTAppend(&app_, is_inverse_ ? 1 : -1, &how);
    if (result == VKFFT_SUCCESS) return;
    const common::Error error =
        programs_.status != CL_SUCCESS
            ? error_of(programs_.status, "clEnqueueNDRangeKernel")
            : common::Error(COMPUTE_ERROR_INTERNAL, "VkFFT failed with code " + std::to_string(result), -1, result);
    throw programs_.queued == 0 ? error : stream.break_off(error);
  }

 private:
  bool is_inverse_, divides_, is_double_, is_made_ = false;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  mutable std::mutex mutex_;  // guards what follows
  mutable VkfftPrograms programs_;
  mutable VkFFTApplication app_ = {};
  // At addresses that VkFFT keeps.
  mutable cl_mem src_ = nullptr, dst_ = nullptr, workspace_ = nullptr;
  mutable cl_command_queue queue_ = nullptr;
};

#endif

}  // namespace

#if COMPUTE_OPENCL_VKFFT

std::string fourier_library() {
  const int version = VkFFTGetVersion();  // 10226 is 1.2.26
  return "VkFFT " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::optional<Refusal> refuse_fourier(const Device& device, const Op& op) {
  (void)device;
  if (std::optional<Refusal> refusal = common::refuse_unaligned(op)) return refusal;
  std::variant<Problem, Refusal> problem = describe(op);
  if (auto* const why = std::get_if<Refusal>(&problem)) return std::move(*why);
  return std::nullopt;
}

common::PlanOrRefusal<Plan> prepare_fourier(Device& device, const Op& op) {
  if (std::optional<Refusal> refusal = refuse_fourier(device, op)) return *std::move(refusal);
  auto plan = std::make_unique<FourierPlan>(device, op);
  if (!plan->make(std::get<Problem>(describe(op)))) return refusal(op, "VkFFT has no plan for it");
  return std::unique_ptr<Plan>(std::move(plan));
}

#else

std::string fourier_library() { return ""; }

std::optional<Refusal> refuse_fourier(const Device&, const Op& op) {
  return refusal(op, "the plugin was built without VkFFT");
}

common::PlanOrRefusal<Plan> prepare_fourier(Device& device, const Op& op) { return *refuse_fourier(device, op); }

#endif

}  // namespace compute::opencl
