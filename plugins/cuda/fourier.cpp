// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/fourier.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/common/op/layout.hpp"
#include "plugins/cuda/graph.hpp"

namespace compute::cuda {
namespace {

using common::Op;
using common::Refusal;

constexpr size_t kMostAxes = 3;
constexpr int64_t kMostCalls = 256;  // for one transform with several batch axes

// How a plan finds the elements of one operand: element (i, j, k) is at ((i * embed[1] + j) * embed[2] + k) * stride.
struct Placement {
  std::vector<long long> embed;
  long long stride = 1, distance = 0;
};

struct Problem {
  std::vector<long long> n;
  Placement placed[2];  // src, dst
  long long batch = 1;
  common::LoopNest calls;  // operands: src, dst
  int32_t type[2], compute_type;
  int direction = -1;
};

Refusal refusal(const Op& op, const std::string& why) {
  return {COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, std::string(op.name()) + ": " + why, ""};
}

int32_t type_of(compute_dtype dtype) {
  switch (dtype) {
    case COMPUTE_DTYPE_FLOAT32:
      return CUDA_R_32F;
    case COMPUTE_DTYPE_FLOAT64:
      return CUDA_R_64F;
    case COMPUTE_DTYPE_COMPLEX64:
      return CUDA_C_32F;
    default:
      return CUDA_C_64F;
  }
}

// Nothing if the strides do not nest.
std::optional<Placement> place(const compute_plugin_tensor& tensor, const std::vector<size_t>& axes) {
  Placement result;
  result.stride = tensor.strides[axes.back()];
  if (result.stride < 1) {
    if (tensor.shape[axes.back()] > 1) return std::nullopt;
    result.stride = 1;
  }
  long long inner = result.stride;
  for (size_t i = axes.size(); i-- > 0;) {
    const long long extent = tensor.shape[axes[i]];
    long long embed = extent;
    if (i > 0) {
      const long long outer = tensor.strides[axes[i - 1]];
      if (outer < 1 || outer % inner != 0 || outer / inner < extent) return std::nullopt;
      embed = outer / inner;
      inner = outer;
    }
    result.embed.insert(result.embed.begin(), embed);
  }
  result.distance = inner * result.embed.front();  // of one batch any will do, but not 0
  return result;
}

// Moves the longest loop whose strides are positive from the calls into the plan's batch.
void take_batch(Problem& problem) {
  common::LoopNest& nest = problem.calls;
  int longest = -1;
  for (int i = 0; i < nest.rank; ++i) {
    const auto at = static_cast<size_t>(i);
    if (nest.strides[0][at] > 0 && nest.strides[1][at] > 0 &&
        (longest < 0 || nest.extents[at] >= nest.extents[static_cast<size_t>(longest)]))
      longest = i;
  }
  if (longest < 0) return;
  common::move_loop(nest, longest, 0);
  problem.batch = nest.extents[0];
  for (size_t i = 0; i < 2; ++i) problem.placed[i].distance = nest.strides[i][0];
  for (int i = 1; i < nest.rank; ++i) {
    nest.extents[static_cast<size_t>(i - 1)] = nest.extents[static_cast<size_t>(i)];
    for (auto& strides : nest.strides) strides[static_cast<size_t>(i - 1)] = strides[static_cast<size_t>(i)];
  }
  --nest.rank;
}

std::variant<Problem, Refusal> describe(const Op& op) {
  const compute_plugin_tensor &src = op.input(0), &dst = op.output(0);
  const bool is_back = op.name() == "irfft";
  if (op.name() == "fft" && !common::is_complex(src.dtype))
    return refusal(op, "cuFFT has no such transform of real numbers");
  if (is_back && op.integer("overwrites", 0) == 0)
    return refusal(op, "cuFFT overwrites its input and uses all imaginary parts");
  const bool is_inverse = is_back || op.integer("inverse", 0) != 0;
  const std::string_view norm = op.text("norm");
  if (!(is_inverse ? norm == "forward" : norm.empty() || norm == "backward"))
    return refusal(op, "cuFFT does not divide");
  const std::span<const int64_t> given = op.integers("axes");
  if (is_back && given.size() > 1) return refusal(op, "several axes at a time are not supported");
  std::vector<size_t> axes(given.begin(), given.end());
  const compute_plugin_tensor& whole = is_back ? dst : src;
  std::vector<bool> is_transformed(static_cast<size_t>(src.rank));
  for (const size_t axis : axes) is_transformed[axis] = true;
  // All axes of complex numbers are alike. Those of one element need no transform.
  const size_t alike = op.name() == "fft" ? axes.size() : axes.size() - 1;
  const auto end = axes.begin() + static_cast<std::ptrdiff_t>(alike);
  std::sort(axes.begin(), end, [&](size_t a, size_t b) { return dst.strides[a] > dst.strides[b]; });
  axes.erase(std::remove_if(axes.begin(), end, [&](size_t axis) { return src.shape[axis] == 1; }), end);
  if (axes.empty()) axes.push_back(static_cast<size_t>(given.back()));
  if (axes.size() > kMostAxes) return refusal(op, "cuFFT transforms along up to 3 axes");
  Problem problem;
  for (const size_t axis : axes) problem.n.push_back(whole.shape[axis]);
  for (const int32_t i : {0, 1}) {
    const std::optional<Placement> placed = place(op.tensor(i), axes);
    if (!placed) {
      return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, i,
                     std::string(op.name()) + ": the strides are none that cuFFT supports", ""};
    }
    problem.placed[i] = *placed;
    problem.type[i] = type_of(op.tensor(i).dtype);
  }
  std::vector<int64_t> shape, strides[2];
  for (size_t i = 0; i < is_transformed.size(); ++i) {
    if (is_transformed[i]) continue;
    shape.push_back(src.shape[i]);
    strides[0].push_back(src.strides[i]);
    strides[1].push_back(dst.strides[i]);
  }
  const int64_t* const pointers[] = {strides[0].data(), strides[1].data()};
  problem.calls = common::collapse(shape, pointers, 1);
  take_batch(problem);
  if (problem.calls.points() > kMostCalls) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, 0,
                   std::string(op.name()) + ": the batch axes would take more than 256 calls of cuFFT", ""};
  }
  // cuFFT reads and writes pairs of real numbers.
  for (const int32_t i : {0, 1}) {
    const compute_plugin_tensor& tensor = op.tensor(i);
    if (common::is_complex(tensor.dtype)) continue;
    bool is_aligned = tensor.alignment >= 2 * common::dtype_size(tensor.dtype) &&
                      problem.calls.offsets[static_cast<size_t>(i)] % 2 == 0;
    for (int loop = 0; loop < problem.calls.rank; ++loop)
      is_aligned = is_aligned && problem.calls.strides[static_cast<size_t>(i)][static_cast<size_t>(loop)] % 2 == 0;
    if (!is_aligned) {
      return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, i,
                     std::string(op.name()) + ": real numbers must be aligned as complex ones", ""};
    }
  }
  problem.compute_type = common::dtype_size(whole.dtype) == common::dtype_size(COMPUTE_DTYPE_FLOAT32) ||
                                 whole.dtype == COMPUTE_DTYPE_COMPLEX64
                             ? CUDA_C_32F
                             : CUDA_C_64F;
  problem.direction = is_inverse ? 1 : -1;
  return problem;
}

Error failure(cufftStatus status, const char* what) {
  return Error(status == CUFFT_ALLOC_FAILED ? COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY : COMPUTE_ERROR_INTERNAL,
               std::string("cuFFT failed while ") + what + ": status " + std::to_string(status), -1, status);
}

class FourierPlan final : public Plan {
 public:
  FourierPlan(Device& device, const Op& op, Problem problem) : device_(device), problem_(std::move(problem)) {
    for (size_t i = 0; i < 2; ++i) element_bytes_[i] = common::dtype_size(op.tensor(static_cast<int32_t>(i)).dtype);
  }

  ~FourierPlan() override {
    if (!has_plan_) return;
    try {
      const Current current = device_.current();
      cufft()->api.destroy(plan_);
    } catch (...) {
      // The context is gone, and cuFFT's memory in it.
    }
  }

  // False if cuFFT has no plan.
  bool make() {
    const common::Compiling compiling;
    const CufftApi& api = cufft()->api;
    if (const cufftStatus status = api.create(&plan_); status != CUFFT_SUCCESS) throw failure(status, "making a plan");
    has_plan_ = true;
    size_t bytes = 0;
    Placement &src = problem_.placed[0], &dst = problem_.placed[1];
    cufftStatus status = api.set_auto_allocation(plan_, 0);
    if (status == CUFFT_SUCCESS) {
      status = api.make_plan_many(plan_, static_cast<int>(problem_.n.size()), problem_.n.data(), src.embed.data(),
                                  src.stride, src.distance, problem_.type[0], dst.embed.data(), dst.stride,
                                  dst.distance, problem_.type[1], problem_.batch, &bytes, problem_.compute_type);
    }
    if (status == CUFFT_ALLOC_FAILED) throw failure(status, "making a plan");
    workspace_bytes = static_cast<int64_t>(bytes);
    return status == CUFFT_SUCCESS;
  }

  void run(const compute_plugin_run& run, Stream& stream) const override {
    const auto address = [](const compute_plugin_operand& operand, int64_t bytes) {
      return reinterpret_cast<char*>(static_cast<uintptr_t>(operand.buffer)) + operand.offset_bytes + bytes;
    };
    const CufftApi& api = cufft()->api;
    const std::lock_guard lock(mutex_);
    cufftStatus status = api.set_stream(plan_, stream.handle());
    if (status == CUFFT_SUCCESS && workspace_bytes > 0) status = api.set_work_area(plan_, address(run.workspace, 0));
    const common::LoopNest& calls = problem_.calls;
    const int64_t count = calls.points();
    for (int64_t call = 0; call < count; ++call) {
      int64_t at[2] = {calls.offsets[0], calls.offsets[1]}, rest = call;
      for (int loop = calls.rank; loop-- > 0;) {
        const auto i = static_cast<size_t>(loop);
        const int64_t index = rest % calls.extents[i];
        rest /= calls.extents[i];
        for (size_t operand = 0; operand < 2; ++operand) at[operand] += index * calls.strides[operand][i];
      }
      if (status == CUFFT_SUCCESS) {
        stream.note_launch("a transform of cuFFT");
        status = api.execute(plan_, address(run.tensors[0], at[0] * element_bytes_[0]),
                             address(run.tensors[1], at[1] * element_bytes_[1]), problem_.direction);
      }
      if (status == CUFFT_SUCCESS) [[likely]]
        continue;
      const Error error = failure(status, "transforming");
      throw call == 0 ? error : stream.break_off(error);
    }
  }

  void add_to(GraphBuilder& graph, const compute_plugin_run& run, const int32_t* slots) const override {
    graph.capture(*this, run, 2, 0, slots);
  }

 private:
  Device& device_;
  Problem problem_;
  int64_t element_bytes_[2];
  bool has_plan_ = false;
  cufftHandle plan_ = 0;
  mutable std::mutex mutex_;  // guards the stream and the work area of the plan
};

}  // namespace

std::optional<Refusal> refuse_fourier(const Op& op) {
  if (cufft() == nullptr) {
    const LibraryReport report = cufft_report();
    return Refusal{COMPUTE_PLUGIN_REFUSE_LIBRARY_MISSING, -1, "cuFFT was not found: tried " + tried_in_short(report),
                   report.remedy};
  }
  if (std::optional<Refusal> refusal = common::refuse_unaligned(op)) return refusal;
  std::variant<Problem, Refusal> problem = describe(op);
  if (auto* const why = std::get_if<Refusal>(&problem)) return std::move(*why);
  return std::nullopt;
}

common::PlanOrRefusal<Plan> prepare_fourier(Device& device, const Op& op) {
  if (std::optional<Refusal> refusal = refuse_fourier(op)) return *std::move(refusal);
  auto plan = std::make_unique<FourierPlan>(device, op, std::get<Problem>(describe(op)));
  if (!plan->make()) return refusal(op, "cuFFT has no plan for it");
  return std::unique_ptr<Plan>(std::move(plan));
}

}  // namespace compute::cuda
