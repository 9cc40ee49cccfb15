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
#include "plugins/common/table/slots.hpp"
#include "plugins/opencl/chirp.hpp"

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
    // With larger ones, errors close to the op's bound were seen, in complex128 beyond it.
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

// An application of VkFFT. Any number of threads may run it at once.
class Transform {
 public:
  // `filter` is for convolutions. Operands that the configuration does not use are empty.
  struct Operands {
    compute_plugin_operand src, dst, temporary;
    cl_mem filter;
  };

  explicit Transform(Device& device)
      : device_(device.info().device), context_(device.context()), programs_{device, {}, 0} {}
  ~Transform() {
    if (!is_made_) return;
    app_.configuration.userTempBuffer = 0;  // else its size would not be freed
    deleteVkFFT(&app_);
  }
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;

  // False if VkFFT has no plan.
  bool make(VkFFTConfiguration how) {
    const common::Compiling compiling;
    how.device = reinterpret_cast<::cl_device_id*>(&device_);
    how.context = reinterpret_cast<::cl_context*>(&context_);
    how.specifyOffsetsAtLaunch = 1;
    how.useLUT = 1;
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
    // The plan's workspace takes the place of the buffer that VkFFT has allocated.
    VkFFTConfiguration& made = app_.configuration;
    if (made.allocateTempBuffer != 0) {
      temporary_bytes_ = static_cast<int64_t>(made.tempBufferSize[0]);
      api().clReleaseMemObject(reinterpret_cast<cl_mem>(*made.tempBuffer));
      std::free(std::exchange(made.tempBuffer, nullptr));
      made.allocateTempBuffer = 0;
      made.userTempBuffer = 1;
    }
    return true;
  }

  int64_t temporary_bytes() const { return temporary_bytes_; }
  int64_t kernels_compiled() const { return programs_.compiled; }

  // *out_queued becomes true with the first command, also if a later one fails.
  void run(bool is_inverse, const Operands& operands, cl_command_queue queue, bool* out_queued) const {
    const std::lock_guard lock(mutex_);
    src_ = memory_of(operands.src.buffer);
    dst_ = memory_of(operands.dst.buffer);
    temporary_ = memory_of(operands.temporary.buffer);
    filter_ = operands.filter;
    queue_ = queue;
    VkFFTLaunchParams how = {};
    how.commandQueue = reinterpret_cast<::cl_command_queue*>(&queue_);
    how.inputBuffer = reinterpret_cast<::cl_mem*>(&src_);
    how.buffer = reinterpret_cast<::cl_mem*>(&dst_);
    how.inputBufferOffset = static_cast<uint64_t>(operands.src.offset_bytes);
    how.bufferOffset = static_cast<uint64_t>(operands.dst.offset_bytes);
    if (temporary_bytes_ > 0) {
      how.tempBuffer = reinterpret_cast<::cl_mem*>(&temporary_);
      how.tempBufferOffset = static_cast<uint64_t>(operands.temporary.offset_bytes);
    }
    if (filter_ != nullptr) how.kernel = reinterpret_cast<::cl_mem*>(&filter_);
    programs_.queued = 0;
    programs_.status = CL_SUCCESS;
    const VkfftPrograms::Current current(programs_);
    const VkFFTResult result = VkFFTAppend(&app_, is_inverse ? 1 : -1, &how);
    *out_queued = *out_queued || programs_.queued > 0;
    if (programs_.status != CL_SUCCESS) throw error_of(programs_.status, "clEnqueueNDRangeKernel");
    if (result != VKFFT_SUCCESS)
      throw common::Error(COMPUTE_ERROR_INTERNAL, "VkFFT failed with code " + std::to_string(result), -1, result);
  }

 private:
  cl_device_id device_;
  cl_context context_;
  bool is_made_ = false;
  int64_t temporary_bytes_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  mutable VkfftPrograms programs_;
  mutable VkFFTApplication app_ = {};
  // At addresses that VkFFT keeps.
  mutable cl_mem src_ = nullptr, dst_ = nullptr, temporary_ = nullptr, filter_ = nullptr;
  mutable cl_command_queue queue_ = nullptr;
};

class FourierPlan final : public Plan {
 public:
  explicit FourierPlan(Device& device) : transform_(device) {}

  // False if VkFFT has no plan.
  bool make(const Op& op, const Problem& problem) {
    is_inverse_ = op.integer("inverse", 0) != 0;
    VkFFTConfiguration how = {};
    how.FFTdim = problem.axes.size();
    for (size_t i = 0; i < 3; ++i) {
      const bool has_axis = i < problem.axes.size();
      how.size[i] = has_axis ? static_cast<uint64_t>(problem.axes[i].extent) : 1;
      how.omitDimension[i] = has_axis && !problem.axes[i].is_transformed ? 1 : 0;
      // The stride of the next axis; from the last axis on, the stride of the batch.
      const Axis& next = i + 1 < problem.axes.size() ? problem.axes[i + 1] : problem.batch;
      const Axis& last = problem.axes.back();
      how.inputBufferStride[i] = static_cast<uint64_t>(next.extent > 1 ? next.src : last.src * last.extent);
      how.bufferStride[i] = static_cast<uint64_t>(next.extent > 1 ? next.dst : last.dst * last.extent);
    }
    how.numberBatches = static_cast<uint64_t>(problem.batch.extent);
    how.isInputFormatted = 1;
    how.doublePrecision = op.input(0).dtype == COMPUTE_DTYPE_COMPLEX128 ? 1 : 0;
    how.normalize = is_inverse_ && op.text("norm") != "forward" ? 1 : 0;
    (is_inverse_ ? how.makeInversePlanOnly : how.makeForwardPlanOnly) = 1;
    if (!transform_.make(how)) return false;
    kernels_compiled = transform_.kernels_compiled();
    workspace_bytes = transform_.temporary_bytes();
    return true;
  }

  void run(const compute_plugin_run& run, Stream& stream) const override {
    const cl_command_queue queue = stream.queue();
    bool has_queued = false;
    try {
      transform_.run(is_inverse_, {run.tensors[0], run.tensors[1], run.workspace, nullptr}, queue, &has_queued);
    } catch (const common::Error& error) {
      throw has_queued ? stream.break_off(error) : error;
    }
  }

 private:
  Transform transform_;
  bool is_inverse_ = false;
};

// ---- Convolutions with a chirp --------------------------------------------------------------------------------------

constexpr int64_t kMostFilterBytes = int64_t{64} << 20;  // that a plan may keep
constexpr int64_t kShortRow = 64, kMostShortRows = 1024;
constexpr int64_t kMostPackedBytes = int64_t{32} << 20;  // of the rows that are taken at a time, if they are several

// A plan takes so many rows at a time. VkFFT reads a filter for each of them.
int64_t rows_at_once(const ChirpProblem& problem) {
  const int64_t most = std::max<int64_t>(kMostPackedBytes / (problem.longer * problem.element_bytes()), 1);
  const int64_t parts = (problem.rows + most - 1) / most;
  return (problem.rows + parts - 1) / parts;
}

int64_t kept_bytes(const ChirpProblem& problem) {
  return (rows_at_once(problem) * problem.longer + problem.length) * problem.element_bytes();
}

// False if core's maps around transforms by VkFFT are used. On GPUs short rows do not fill the work-groups, of which
// VkFFT gives each row its own. On processors convolutions of several rows take longer, and with Intel's driver their
// results are wrong.
bool is_worthwhile(const Device& device, const ChirpProblem& problem) {
  if ((device.info().type & CL_DEVICE_TYPE_CPU) != 0) return false;
  return problem.length >= kShortRow || problem.rows <= kMostShortRows;
}

// All plans together may keep a sixteenth of the device's memory.
bool may_keep(const Device& device, const ChirpProblem& problem) {
  const int64_t bytes = kept_bytes(problem);
  return bytes <= kMostFilterBytes && device.filter_bytes + bytes <= device.info().memory_bytes / 16;
}

// Nothing for transforms that are not made so.
std::optional<ChirpProblem> chirp_problem(const Device& device, const Op& op) {
  if (op.name() != "fft" || !common::is_complex(op.input(0).dtype)) return std::nullopt;
  std::optional<ChirpProblem> problem = describe_chirp(op);
  if (problem && !(is_worthwhile(device, *problem) && may_keep(device, *problem))) problem.reset();
  return problem;
}

// Keeps the chirp and the spectrum of the filter.
class ChirpPlan final : public Plan {
 public:
  ChirpPlan(Device& device, ChirpProblem problem)
      : device_(device),
        problem_(std::move(problem)),
        rows_(rows_at_once(problem_)),
        convolution_(device),
        kernel_(device, problem_, &kernels_compiled) {
    device_.filter_bytes += kept_bytes(problem_);
  }
  ~ChirpPlan() override { device_.filter_bytes -= kept_bytes(problem_); }

  // False if VkFFT has no plan.
  bool make() {
    workspace_bytes = rows_ * problem_.longer * problem_.element_bytes();
    VkFFTConfiguration how = configuration();
    how.performConvolution = 1;
    // What lies behind the elements of a row is neither read nor written.
    how.performZeropadding[0] = 1;
    how.fft_zeropad_left[0] = static_cast<uint64_t>(problem_.length);
    how.fft_zeropad_right[0] = static_cast<uint64_t>(problem_.longer);
    if (!convolution_.make(how)) return false;
    Transform forward(device_);
    how = configuration();
    how.kernelConvolution = 1;
    how.makeForwardPlanOnly = 1;
    if (!forward.make(how)) return false;
    kernels_compiled += convolution_.kernels_compiled() + forward.kernels_compiled();
    const ChirpTables tables = chirp_tables(problem_, rows_);
    chirp_ = device_.upload(tables.chirp.data(), tables.chirp.size());
    Buffer filter{device_.upload(tables.filter.data(), tables.filter.size()),
                  static_cast<int64_t>(tables.filter.size())};
    const Queue queue = device_.make_queue();
    bool has_queued = false;
    const compute_plugin_operand place{common::handle_of(&filter), 0};
    forward.run(false, {place, place, {}, nullptr}, queue.get(), &has_queued);
    check(api().clFinish(queue.get()), "clFinish");
    spectrum_ = std::move(filter.memory);
    return true;
  }

  void run(const compute_plugin_run& run, Stream& stream) const override {
    const cl_command_queue queue = stream.queue();
    bool has_queued = false;
    try {
      for (int64_t done = 0; done < problem_.rows; done += rows_) {
        const int64_t first = std::min(done, problem_.rows - rows_);  // the last part repeats rows
        kernel_.pack(queue, run.tensors[0], chirp_.get(), run.workspace, first, rows_);
        has_queued = true;
        convolution_.run(false, {run.workspace, run.workspace, {}, spectrum_.get()}, queue, &has_queued);
        kernel_.unpack(queue, run.workspace, chirp_.get(), run.tensors[1], first, rows_);
      }
    } catch (const common::Error& error) {
      throw has_queued ? stream.break_off(error) : error;
    }
  }

 private:
  // Of the packed rows. VkFFT's convolutions are right for several rows only if these are coordinates.
  VkFFTConfiguration configuration() const {
    VkFFTConfiguration how = {};
    how.FFTdim = 1;
    how.size[0] = static_cast<uint64_t>(problem_.longer);
    how.size[1] = how.size[2] = 1;
    how.coordinateFeatures = static_cast<uint64_t>(rows_);
    how.doublePrecision = problem_.is_double ? 1 : 0;
    return how;
  }

  Device& device_;
  const ChirpProblem problem_;
  const int64_t rows_;  // of a part
  Transform convolution_;
  const ChirpKernel kernel_;
  Memory chirp_, spectrum_;
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
  if (std::optional<Refusal> refusal = common::refuse_unaligned(op)) return refusal;
  if (chirp_problem(device, op)) return std::nullopt;
  std::variant<Problem, Refusal> problem = describe(op);
  if (auto* const why = std::get_if<Refusal>(&problem)) return std::move(*why);
  return std::nullopt;
}

common::PlanOrRefusal<Plan> prepare_fourier(Device& device, const Op& op) {
  if (std::optional<Refusal> refusal = common::refuse_unaligned(op)) return *std::move(refusal);
  if (std::optional<ChirpProblem> problem = chirp_problem(device, op)) {
    auto plan = std::make_unique<ChirpPlan>(device, *std::move(problem));
    if (!plan->make()) return refusal(op, "VkFFT has no plan for it");
    return std::unique_ptr<Plan>(std::move(plan));
  }
  std::variant<Problem, Refusal> problem = describe(op);
  if (auto* const why = std::get_if<Refusal>(&problem)) return std::move(*why);
  auto plan = std::make_unique<FourierPlan>(device);
  if (!plan->make(op, std::get<Problem>(problem))) return refusal(op, "VkFFT has no plan for it");
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
