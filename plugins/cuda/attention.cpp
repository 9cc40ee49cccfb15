// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "plugins/common/core.hpp"
#include "plugins/cuda/cudnn_graph.hpp"
#include "plugins/cuda/graph.hpp"

namespace compute::cuda {
namespace {

using common::Op;

constexpr double kPaysFrom = 1e9;  // products of the queries with the keys; below it the generated kernel is faster

// The tensors of the graph that a run names: operands, then values on the host.
enum Named : int64_t { kQ = 1, kK, kV, kY, kLogSumExp, kScale, kMinusInfinity, kFirstVirtual };
constexpr int kOperands = 5;

using Extents = std::array<int64_t, 4>;

Extents row_major(const Extents& extents) {
  return {extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3], 1};
}

// The operations of softmax(scale q k^T) v. cuDNN recognizes this sequence and runs it as one kernel.
class AttentionGraph {
 public:
  explicit AttentionGraph(const Op& op)
      : type_(op.input(0).dtype == COMPUTE_DTYPE_FLOAT16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16),
        scores_{op.input(0).shape[0], op.input(0).shape[1], op.input(0).shape[2], op.input(1).shape[2]},
        rows_{scores_[0], scores_[1], scores_[2], 1} {
    const DnnDescriptor q = operand(kQ, op.input(0)), v = operand(kV, op.input(2)), y = operand(kY, op.output(0));
    DnnDescriptor s = intermediate(scores_);
    multiply(q, transposed(kK, op.input(1)), s);
    s = pointwise(CUDNN_POINTWISE_MUL, s, value(kScale), scores_);
    if (op.integer("causal", 0) != 0) s = masked(s);
    const DnnDescriptor max = reduce(CUDNN_REDUCE_TENSOR_MAX, s);
    const DnnDescriptor shifted = pointwise(CUDNN_POINTWISE_SUB, s, max, scores_);
    const DnnDescriptor weights = intermediate(scores_);
    add_pointwise(pointwise_mode(CUDNN_POINTWISE_EXP, CUDNN_DATA_FLOAT), shifted, nullptr, nullptr, weights);
    const DnnDescriptor sum = reduce(CUDNN_REDUCE_TENSOR_ADD, weights);
    const DnnDescriptor log = intermediate(rows_);
    add_pointwise(pointwise_mode(CUDNN_POINTWISE_LOG, CUDNN_DATA_FLOAT), sum, nullptr, nullptr, log);
    add_pointwise(pointwise_mode(CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT), max, &log, nullptr, statistics(op));
    const DnnDescriptor p = intermediate(scores_, type_);
    add_pointwise(pointwise_mode(CUDNN_POINTWISE_DIV, CUDNN_DATA_FLOAT), weights, &sum, nullptr, p);
    multiply(p, v, y);
  }

  std::span<const DnnDescriptor> operations() const { return operations_; }

 private:
  DnnDescriptor operand(int64_t id, const compute_plugin_tensor& tensor) const {
    return describe_tensor(id, type_, {tensor.shape, 4}, {tensor.strides, 4}, 16);
  }
  DnnDescriptor transposed(int64_t id, const compute_plugin_tensor& tensor) const {
    const Extents extents = {tensor.shape[0], tensor.shape[1], tensor.shape[3], tensor.shape[2]};
    const Extents strides = {tensor.strides[0], tensor.strides[1], tensor.strides[3], tensor.strides[2]};
    return describe_tensor(id, type_, extents, strides, 16);
  }
  DnnDescriptor statistics(const Op& op) const {
    const int64_t* strides = op.output(1).strides;
    return describe_tensor(kLogSumExp, CUDNN_DATA_FLOAT, rows_, Extents{strides[0], strides[1], strides[2], 1}, 4);
  }
  static DnnDescriptor value(int64_t id) {
    constexpr Extents kOne = {1, 1, 1, 1};
    return describe_tensor(id, CUDNN_DATA_FLOAT, kOne, kOne, 4, DnnTensorKind::kValue);
  }
  DnnDescriptor intermediate(const Extents& extents, int32_t type = CUDNN_DATA_FLOAT) {
    return describe_tensor(next_++, type, extents, row_major(extents), 16, DnnTensorKind::kVirtual);
  }

  void multiply(const DnnDescriptor& a, const DnnDescriptor& b, const DnnDescriptor& c) {
    DnnDescriptor product(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    product.finalize();
    DnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
    operation.finalize();
  }

  static DnnDescriptor pointwise_mode(int32_t mode, int32_t precision, int64_t axis = -1) {
    DnnDescriptor description(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    description.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    description.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, precision);
    if (axis >= 0) description.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
    description.finalize();
    return description;
  }
  void add_pointwise(const DnnDescriptor& mode, const DnnDescriptor& x, const DnnDescriptor* b, const DnnDescriptor* t,
                     const DnnDescriptor& y) {
    DnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    if (t != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *t);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    operation.finalize();
  }
  DnnDescriptor pointwise(int32_t mode, const DnnDescriptor& x, const DnnDescriptor& b, const Extents& extents) {
    DnnDescriptor y = intermediate(extents);
    add_pointwise(pointwise_mode(mode, CUDNN_DATA_FLOAT), x, &b, nullptr, y);
    return y;
  }

  DnnDescriptor reduce(int32_t kind, const DnnDescriptor& x) {
    DnnDescriptor reduction(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, kind);
    reduction.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    reduction.finalize();
    DnnDescriptor y = intermediate(rows_);
    DnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
    operation.finalize();
    return y;
  }

  // A query sees the keys up to its own position.
  DnnDescriptor masked(const DnnDescriptor& s) {
    const DnnDescriptor row = intermediate(scores_, CUDNN_DATA_INT32), column = intermediate(scores_, CUDNN_DATA_INT32);
    add_pointwise(pointwise_mode(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 2), s, nullptr, nullptr, row);
    add_pointwise(pointwise_mode(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 3), s, nullptr, nullptr, column);
    const DnnDescriptor is_seen = intermediate(scores_, CUDNN_DATA_BOOLEAN);
    add_pointwise(pointwise_mode(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN), row, &column, nullptr, is_seen);
    const DnnDescriptor minus_infinity = value(kMinusInfinity);
    DnnDescriptor y = intermediate(scores_);
    add_pointwise(pointwise_mode(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT), s, &minus_infinity, &is_seen, y);
    return y;
  }

  const int32_t type_;
  const Extents scores_, rows_;
  int64_t next_ = kFirstVirtual;
  std::vector<DnnDescriptor> operations_;
};

class AttentionPlan final : public Plan {
 public:
  AttentionPlan(const Op& op, DnnHandle& handle, DnnPlan plan)
      : handle_(handle),
        plan_(std::move(plan)),
        first_output_(op.input_count()),
        is_causal_(op.integer("causal", 0) != 0),
        scale_(static_cast<float>(op.real("scale", 0) != 0
                                      ? op.real("scale", 0)
                                      : 1 / std::sqrt(static_cast<double>(op.input(0).shape[3])))) {
    workspace_bytes = plan_.workspace_bytes();
  }

  void run(const compute_plugin_run& run, Stream& stream) const override {
    static constexpr std::array<int64_t, kOperands + 2> kIds = {kQ, kK, kV, kY, kLogSumExp, kScale, kMinusInfinity};
    const auto address = [](const compute_plugin_operand& operand) {
      return reinterpret_cast<void*>(
          static_cast<uintptr_t>(operand.buffer + static_cast<uint64_t>(operand.offset_bytes)));
    };
    float scale = scale_, minus_infinity = -std::numeric_limits<float>::infinity();
    const std::array<void*, kOperands + 2> pointers = {address(run.tensors[0]),
                                                       address(run.tensors[1]),
                                                       address(run.tensors[2]),
                                                       address(run.tensors[first_output_]),
                                                       address(run.tensors[first_output_ + 1]),
                                                       &scale,
                                                       &minus_infinity};
    const size_t count = is_causal_ ? pointers.size() : pointers.size() - 1;
    stream.note_launch("attention of cuDNN");
    plan_.run(handle_, stream, {kIds.data(), count}, {pointers.data(), count},
              workspace_bytes > 0 ? address(run.workspace) : nullptr);
  }

  void add_to(GraphBuilder& graph, const compute_plugin_run& run, const int32_t* slots) const override {
    graph.capture(*this, run, first_output_ + 2, 0, slots);
  }

 private:
  DnnHandle& handle_;
  const DnnPlan plan_;
  const int32_t first_output_;
  const bool is_causal_;
  const float scale_;
};

// Whether an op is large enough, and of a kind that cuDNN's one kernel may know.
bool is_worth_asking(const Op& op, bool always) {
  const compute_plugin_tensor &q = op.input(0), &k = op.input(1);
  if (q.dtype != COMPUTE_DTYPE_FLOAT16 && q.dtype != COMPUTE_DTYPE_BFLOAT16) return false;
  if (op.input_count() > 3 && op.input(3).rank >= 0) return false;  // a mask
  const int64_t features = q.shape[3];
  if (features % 8 != 0 || features > 128 || op.input(2).shape[3] != features) return false;
  if (op.integer("causal", 0) != 0 && q.shape[2] != k.shape[2]) return false;
  for (int32_t i = 0; i < op.tensor_count(); ++i) {
    const compute_plugin_tensor& tensor = op.tensor(i);
    if (tensor.rank != 4) continue;
    if (tensor.strides[3] != 1 || tensor.alignment < 16) return false;
    for (int axis = 0; axis < 3; ++axis) {
      if (tensor.strides[axis] % 8 != 0 || tensor.strides[axis] <= 0) return false;
    }
  }
  const double products = static_cast<double>(q.shape[0]) * static_cast<double>(q.shape[1]) *
                          static_cast<double>(q.shape[2]) * static_cast<double>(k.shape[2]) *
                          static_cast<double>(features);
  return always || products >= kPaysFrom;
}

}  // namespace

std::unique_ptr<Plan> prepare_attention(Device& device, const Op& op) {
  const std::optional<std::string> choice = common::setting("COMPUTE_CUDA_ATTENTION");
  if (choice == "generated" || !is_worth_asking(op, choice == "cudnn")) return nullptr;
  DnnHandle* const handle = device.dnn();
  if (handle == nullptr) return nullptr;
  DnnLimits limits;
  limits.runtime_compiled = true;
  std::optional<DnnPlan> plan;
  try {
    const AttentionGraph graph(op);
    plan = DnnPlan::find(*handle, graph.operations(), limits);
  } catch (const Error& error) {  // cuDNN cannot describe what a generated kernel can do
    common::log(COMPUTE_LOG_DEBUG, "compile", error.message);
  }
  if (!plan) return nullptr;
  return std::make_unique<AttentionPlan>(op, *handle, *std::move(plan));
}

}  // namespace compute::cuda
