// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/convolution.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "plugins/common/op/core.hpp"
#include "plugins/common/op/windows.hpp"
#include "plugins/cuda/cudnn_graph.hpp"
#include "plugins/cuda/graph.hpp"

namespace compute::cuda {
namespace {

using common::Op;

// The ids of a graph's tensors are these plus one: an id of 0 is reserved.
enum Role : int { kX, kWeight, kY, kRoles };

constexpr double kPaysFrom = 1 << 20;  // products; a smaller convolution is one launch of a generated kernel

std::optional<int32_t> type_of(compute_dtype dtype) {
  switch (dtype) {
    case COMPUTE_DTYPE_FLOAT16:
      return CUDNN_DATA_HALF;
    case COMPUTE_DTYPE_BFLOAT16:
      return CUDNN_DATA_BFLOAT16;
    case COMPUTE_DTYPE_FLOAT32:
      return CUDNN_DATA_FLOAT;
    default:
      return std::nullopt;
  }
}

// Which tensor of the op, inputs before outputs, has which role.
std::array<int32_t, kRoles> places(const Op& op) {
  const int32_t output = op.input_count();
  if (op.name() == "convolution") return {0, 1, output};
  if (op.name() == "convolution_grad_input") return {output, 1, 0};
  return {1, output, 0};
}

// cuDNN has two spatial axes at least.
constexpr int32_t kLeastRank = 4;

std::vector<int64_t> with_axis(const int64_t* list, int32_t rank, int64_t extent) {
  std::vector<int64_t> result(list, list + rank);
  if (rank < kLeastRank) result.insert(result.begin() + 2, extent);
  return result;
}

std::vector<int64_t> per_axis(const Op& op, std::string_view name, int32_t rank, int64_t otherwise) {
  const std::span<const int64_t> given = op.integers(name);
  std::vector<int64_t> result(given.begin(), given.end());
  if (result.empty()) result.assign(static_cast<size_t>(rank - 2), otherwise);
  if (rank < kLeastRank) result.insert(result.begin(), otherwise);
  return result;
}

DnnDescriptor describe_tensor_of(const compute_plugin_tensor& tensor, Role role) {
  const std::vector<int64_t> extents = with_axis(tensor.shape, tensor.rank, 1);
  const std::vector<int64_t> strides =
      with_axis(tensor.strides, tensor.rank, tensor.strides[2] * std::max<int64_t>(tensor.shape[2], 1));
  return describe_tensor(role + 1, *type_of(tensor.dtype), extents, strides,
                         std::clamp<int64_t>(tensor.alignment, 1, 16));
}

DnnDescriptor describe_window(const Op& op, int32_t rank) {
  DnnDescriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{std::max(rank, kLeastRank) - 2});
  window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, per_axis(op, "dilations", rank, 1));
  window.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, per_axis(op, "strides", rank, 1));
  window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, per_axis(op, "pads_begin", rank, 0));
  window.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, per_axis(op, "pads_end", rank, 0));
  window.finalize();
  return window;
}

// The attributes of one of the three operations.
struct Operation {
  int32_t type, window, x, weight, y, alpha, beta;
};

Operation operation_of(const Op& op) {
  if (op.name() == "convolution") {
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
  if (op.name() == "convolution_grad_input") {
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

DnnDescriptor describe_operation(const Op& op) {
  const std::array<int32_t, kRoles> place = places(op);
  const int32_t rank = op.tensor(place[kX]).rank;
  const DnnDescriptor window = describe_window(op, rank);
  const DnnDescriptor x = describe_tensor_of(op.tensor(place[kX]), kX);
  const DnnDescriptor weight = describe_tensor_of(op.tensor(place[kWeight]), kWeight);
  const DnnDescriptor y = describe_tensor_of(op.tensor(place[kY]), kY);
  const Operation names = operation_of(op);
  DnnDescriptor operation(names.type);
  operation.set(names.window, window);
  operation.set(names.x, x);
  operation.set(names.weight, weight);
  operation.set(names.y, y);
  const float one = 1, zero = 0;
  operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1, &one);
  operation.set(names.beta, CUDNN_TYPE_FLOAT, 1, &zero);
  operation.finalize();
  return operation;
}

class ConvolutionPlan final : public Plan {
 public:
  ConvolutionPlan(const Op& op, DnnHandle& handle, DnnPlan plan)
      : handle_(handle), plan_(std::move(plan)), place_(places(op)), tensor_count_(op.tensor_count()) {
    workspace_bytes = plan_.workspace_bytes();
  }

  void run(const compute_plugin_run& run, Stream& stream) const override {
    static constexpr std::array<int64_t, kRoles> kIds = {kX + 1, kWeight + 1, kY + 1};
    const auto address = [](const compute_plugin_operand& operand) {
      return reinterpret_cast<void*>(
          static_cast<uintptr_t>(operand.buffer + static_cast<uint64_t>(operand.offset_bytes)));
    };
    std::array<void*, kRoles> pointers{};
    for (size_t i = 0; i < kRoles; ++i) pointers[i] = address(run.tensors[place_[i]]);
    stream.note_launch("a convolution of cuDNN");
    plan_.run(handle_, stream, kIds, pointers, workspace_bytes > 0 ? address(run.workspace) : nullptr);
  }

  void add_to(GraphBuilder& graph, const compute_plugin_run& run, const int32_t* slots) const override {
    graph.capture(*this, run, tensor_count_, 0, slots);
  }

 private:
  DnnHandle& handle_;
  const DnnPlan plan_;
  const std::array<int32_t, kRoles> place_;
  const int32_t tensor_count_;
};

constexpr int64_t kFewChannels = 8;  // of a group of the input

// Where the engines that remain for float32 (no TF32, no Winograd, no Fourier transform) are faster than the generated
// kernels: one channel per group, and gradients of the input with strides, unless the input has few channels.
bool is_faster_in_float32(const Op& op) {
  const compute_plugin_tensor& weight = op.tensor(places(op)[kWeight]);
  const bool is_depthwise = weight.shape[1] == 1 && op.integer("groups", 1) > 1;
  if (op.name() == "convolution") return is_depthwise;
  if (op.name() != "convolution_grad_input") return false;
  const std::span<const int64_t> strides = op.integers("strides");
  const bool has_strides = std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride > 1; });
  return has_strides && (is_depthwise || weight.shape[1] >= kFewChannels);
}

// Whether a convolution is large enough, and of a kind that cuDNN may know.
bool is_worth_asking(const Op& op, bool tensor_cores, bool always) {
  const compute_dtype dtype = op.output(0).dtype;
  if (!type_of(dtype) || op.input(0).dtype != dtype || op.input(1).dtype != dtype) return false;
  if (dtype == COMPUTE_DTYPE_FLOAT32 && !tensor_cores) {
    // Engines for the gradient of the weight were seen to be off by 1 % with 100,000 terms.
    if (op.name() == "convolution_grad_weight" || !(always || is_faster_in_float32(op))) return false;
  }
  if (op.input_count() > 2 && op.input(2).rank >= 0) return false;  // a bias is added before rounding
  for (const int32_t place : places(op)) {
    if (!common::is_row_major(op.tensor(place))) return false;  // some of cuDNN's engines ignore other strides
  }
  // With other numbers of channels an engine for halves was seen to be off by slightly more than the bound.
  const compute_plugin_tensor& weight = op.tensor(places(op)[kWeight]);
  const int64_t c_out = weight.shape[0] / op.integer("groups", 1);
  if (op.name() == "convolution_grad_input" && dtype != COMPUTE_DTYPE_FLOAT32 &&
      (weight.shape[1] % 8 != 0 || c_out % 8 != 0))
    return false;
  double products = 0;
  for (const common::WindowProduct& part : common::read_windows(op)) {
    if (part.depth_points() == 0 || part.columns() == 0 || part.rows == 0) return false;
    products += static_cast<double>(part.groups) * static_cast<double>(part.rows) *
                static_cast<double>(part.columns()) * static_cast<double>(part.depth_points());
  }
  return always || products >= kPaysFrom;
}

void report_missing_library() {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  const LibraryReport report = cudnn_report();
  common::log(COMPUTE_LOG_INFO, "load",
              "convolutions on cuda use generated kernels, because cuDNN was not found: tried " +
                  tried_in_short(report) + "; " + report.remedy);
}

}  // namespace

std::unique_ptr<Plan> prepare_convolution(Device& device, const Op& op) {
  const std::optional<std::string> choice = common::setting("COMPUTE_CUDA_CUDNN");
  if (choice == "never") return nullptr;
  DnnLimits limits;
  limits.tensor_cores = op.output(0).dtype != COMPUTE_DTYPE_FLOAT32 || op.allows_tf32();
  if (!is_worth_asking(op, limits.tensor_cores, choice == "always")) return nullptr;
  if (cudnn() == nullptr) {
    report_missing_library();
    return nullptr;
  }
  DnnHandle* const handle = device.dnn();
  if (handle == nullptr) return nullptr;
  std::optional<DnnPlan> plan;
  try {
    const DnnDescriptor operation = describe_operation(op);
    plan = DnnPlan::find(*handle, {&operation, 1}, limits);
  } catch (const Error& error) {  // cuDNN does not support everything that generated kernels do
    common::log(COMPUTE_LOG_DEBUG, "compile", error.message);
  }
  if (!plan) return nullptr;
  return std::make_unique<ConvolutionPlan>(op, *handle, *std::move(plan));
}

}  // namespace compute::cuda
