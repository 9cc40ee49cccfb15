// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "plugins/common/op/core.hpp"
#include "plugins/cuda/cudnn_graph.hpp"
#include "plugins/cuda/graph.hpp"

namespace compute::cuda {
namespace {

using common::Op;

// Products of queries and keys per multiprocessor. With fewer the generated kernel is faster, because cuDNN's start-up
// cost is constant.
constexpr double kPaysFrom = 7.5e6;
constexpr int64_t kFewQueries = 16;  // for which generated kernels and products divide the keys

constexpr size_t kClearsParts = 90600;  // from this version on cuDNN zeroes the sums of its groups

using Extents = std::array<int64_t, 4>;

Extents row_major(const Extents& extents) {
  return {extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3], 1};
}

// What a run names: the operands, memory of the workspace, values on the host.
enum Named : int64_t {
  kQ = 1,
  kK,
  kV,
  kY,
  kLogSumExp,
  kDy,
  kDq,
  kDk,
  kDv,
  kDelta,    // sum(dy * y) of each query
  kDqParts,  // dq in float32, which groups add to
  kScale,
  kMinusInfinity,
  kOne,
  kFirstVirtual
};

// Operations of cuDNN on the scores of queries and keys. cuDNN recognizes this order and runs it as one kernel.
class ScoreGraph {
 public:
  std::span<const DnnDescriptor> operations() const { return operations_; }

 protected:
  // `q` and `k` are [batch, head, row, feature].
  ScoreGraph(const compute_plugin_tensor& q, const compute_plugin_tensor& k)
      : type_(q.dtype == COMPUTE_DTYPE_FLOAT16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16),
        scores_{q.shape[0], q.shape[1], q.shape[2], k.shape[2]},
        rows_{scores_[0], scores_[1], scores_[2], 1} {}

  DnnDescriptor operand(int64_t id, const compute_plugin_tensor& tensor) const {
    return describe_tensor(id, type_, {tensor.shape, 4}, {tensor.strides, 4}, 16);
  }
  DnnDescriptor transposed(int64_t id, const compute_plugin_tensor& tensor) const {
    const Extents extents = {tensor.shape[0], tensor.shape[1], tensor.shape[3], tensor.shape[2]};
    const Extents strides = {tensor.strides[0], tensor.strides[1], tensor.strides[3], tensor.strides[2]};
    return describe_tensor(id, type_, extents, strides, 16);
  }
  DnnDescriptor statistics(const compute_plugin_tensor& tensor) const {
    const int64_t* strides = tensor.strides;
    return describe_tensor(kLogSumExp, CUDNN_DATA_FLOAT, rows_, Extents{strides[0], strides[1], strides[2], 1}, 4);
  }
  static DnnDescriptor value(int64_t id) {
    constexpr Extents kUnits = {1, 1, 1, 1};
    return describe_tensor(id, CUDNN_DATA_FLOAT, kUnits, kUnits, 4, DnnTensorKind::kValue);
  }
  DnnDescriptor intermediate(const Extents& extents, int32_t type = CUDNN_DATA_FLOAT) {
    return intermediate(extents, row_major(extents), type);
  }
  DnnDescriptor intermediate(const Extents& extents, const Extents& strides, int32_t type) {
    return describe_tensor(next_++, type, extents, strides, 16, DnnTensorKind::kVirtual);
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
  void add_pointwise(int32_t mode, const DnnDescriptor& x, const DnnDescriptor* b, const DnnDescriptor& y) {
    add_pointwise(pointwise_mode(mode, CUDNN_DATA_FLOAT), x, b, nullptr, y);
  }
  DnnDescriptor pointwise(int32_t mode, const DnnDescriptor& x, const DnnDescriptor& b, const Extents& extents) {
    DnnDescriptor y = intermediate(extents);
    add_pointwise(mode, x, &b, y);
    return y;
  }

  // Over the last axis.
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

  DnnDescriptor reshape(const DnnDescriptor& x, DnnDescriptor y) {
    DnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    operation.finalize();
    return y;
  }

  // The scaled products of q and k.
  DnnDescriptor scores(const DnnDescriptor& q, const DnnDescriptor& k_transposed) {
    const DnnDescriptor products = intermediate(scores_);
    multiply(q, k_transposed, products);
    return pointwise(CUDNN_POINTWISE_MUL, products, value(kScale), scores_);
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

 private:
  int64_t next_ = kFirstVirtual;
  std::vector<DnnDescriptor> operations_;
};

// softmax(scale q k^T) v
class AttentionGraph final : public ScoreGraph {
 public:
  explicit AttentionGraph(const Op& op) : ScoreGraph(op.input(0), op.input(1)) {
    const DnnDescriptor q = operand(kQ, op.input(0)), v = operand(kV, op.input(2)), y = operand(kY, op.output(0));
    DnnDescriptor s = scores(q, transposed(kK, op.input(1)));
    if (op.integer("causal", 0) != 0) s = masked(s);
    const DnnDescriptor max = reduce(CUDNN_REDUCE_TENSOR_MAX, s);
    const DnnDescriptor shifted = pointwise(CUDNN_POINTWISE_SUB, s, max, scores_);
    const DnnDescriptor weights = intermediate(scores_);
    add_pointwise(CUDNN_POINTWISE_EXP, shifted, nullptr, weights);
    const DnnDescriptor sum = reduce(CUDNN_REDUCE_TENSOR_ADD, weights);
    const DnnDescriptor log = intermediate(rows_);
    add_pointwise(CUDNN_POINTWISE_LOG, sum, nullptr, log);
    add_pointwise(CUDNN_POINTWISE_ADD, max, &log, statistics(op.output(1)));
    const DnnDescriptor p = intermediate(scores_, type_);
    add_pointwise(CUDNN_POINTWISE_DIV, weights, &sum, p);
    multiply(p, v, y);
  }
};

// The gradient, with p = exp(scale q k^T - logsumexp) and ds = scale p (dy v^T - sum(dy y)):
// dq = ds k, dk = ds^T q, dv = p^T dy.
class AttentionGradGraph final : public ScoreGraph {
 public:
  // `in_parts`: groups add to dq in float32, in an order that differs from run to run.
  AttentionGradGraph(const Op& op, bool in_parts) : ScoreGraph(op.input(1), op.input(2)) {
    const compute_plugin_tensor& k = op.input(2);
    const DnnDescriptor dy = operand(kDy, op.input(0)), q = operand(kQ, op.input(1)), k_transposed = transposed(kK, k),
                        v_transposed = transposed(kV, op.input(3));
    const Extents values = {scores_[0], scores_[1], scores_[2], op.input(3).shape[3]};
    const DnnDescriptor dy_y = pointwise(CUDNN_POINTWISE_MUL, dy, operand(kY, op.input(4)), values);
    const DnnDescriptor one = value(kOne),
                        delta = describe_tensor(kDelta, CUDNN_DATA_FLOAT, rows_, row_major(rows_), 16);
    add_pointwise(CUDNN_POINTWISE_MUL, reduce(CUDNN_REDUCE_TENSOR_ADD, dy_y), &one, delta);

    DnnDescriptor s = scores(q, k_transposed);
    if (op.integer("causal", 0) != 0) s = masked(s);
    const DnnDescriptor less = pointwise(CUDNN_POINTWISE_SUB, s, statistics(op.input(5)), scores_);
    const DnnDescriptor p = intermediate(scores_);
    add_pointwise(CUDNN_POINTWISE_EXP, less, nullptr, p);
    multiply(across(p), dy, operand(kDv, op.output(2)));

    const DnnDescriptor dp = intermediate(scores_);
    multiply(dy, v_transposed, dp);
    const DnnDescriptor dp_less = pointwise(CUDNN_POINTWISE_SUB, dp, delta, scores_);
    const DnnDescriptor weighted = pointwise(CUDNN_POINTWISE_MUL, dp_less, p, scores_);
    const DnnDescriptor ds = pointwise(CUDNN_POINTWISE_MUL, weighted, value(kScale), scores_);
    multiply(across(ds), q, operand(kDk, op.output(1)));

    const Extents strides = {k.strides[0], k.strides[1], k.strides[2], k.strides[3]};
    const Extents extents = {k.shape[0], k.shape[1], k.shape[2], k.shape[3]};
    const DnnDescriptor keys = reshape(k_transposed, intermediate(extents, strides, type_));
    const DnnDescriptor dq = operand(kDq, op.output(0));
    if (!in_parts) {
      multiply(ds, keys, dq);
      return;
    }
    const Extents queries = {scores_[0], scores_[1], scores_[2], k.shape[3]};
    const DnnDescriptor parts = describe_tensor(kDqParts, CUDNN_DATA_FLOAT, queries, row_major(queries), 16);
    multiply(ds, keys, parts);
    add_pointwise(CUDNN_POINTWISE_IDENTITY, parts, nullptr, dq);
  }

 private:
  // With the last two axes exchanged.
  DnnDescriptor across(const DnnDescriptor& x) {
    const Extents extents = {scores_[0], scores_[1], scores_[3], scores_[2]};
    const Extents strides = {scores_[1] * scores_[2] * scores_[3], scores_[2] * scores_[3], 1, scores_[3]};
    return reshape(x, intermediate(extents, strides, type_));
  }
};

class AttentionPlan final : public Plan {
 public:
  // A part of the workspace that the graph names.
  struct Part {
    int64_t id, bytes;
  };

  // `named` are the graph's names of the op's tensors, inputs and then outputs; 0: not in the graph.
  AttentionPlan(const Op& op, int first, DnnHandle& handle, DnnPlan plan, std::vector<int64_t> named,
                std::vector<Part> parts)
      : handle_(handle),
        plan_(std::move(plan)),
        named_(std::move(named)),
        parts_(std::move(parts)),
        is_causal_(op.integer("causal", 0) != 0),
        scale_(static_cast<float>(op.real("scale", 0) != 0
                                      ? op.real("scale", 0)
                                      : 1 / std::sqrt(static_cast<double>(op.input(first).shape[3])))) {
    workspace_bytes = plan_.workspace_bytes();
    for (const Part& part : parts_) workspace_bytes += part.bytes;
  }

  void run(const compute_plugin_run& run, Stream& stream) const override {
    std::array<int64_t, kFirstVirtual> ids{};
    std::array<void*, kFirstVirtual> pointers{};
    size_t count = 0;
    const auto add = [&](int64_t id, void* pointer) {
      ids[count] = id;
      pointers[count++] = pointer;
    };
    const auto address = [](const compute_plugin_operand& operand, int64_t further) {
      return reinterpret_cast<void*>(
          static_cast<uintptr_t>(operand.buffer + static_cast<uint64_t>(operand.offset_bytes + further)));
    };
    for (size_t i = 0; i < named_.size(); ++i) {
      if (named_[i] != 0) add(named_[i], address(run.tensors[i], 0));
    }
    int64_t used = 0;
    for (const Part& part : parts_) {
      add(part.id, address(run.workspace, used));
      used += part.bytes;
    }
    float scale = scale_, minus_infinity = -std::numeric_limits<float>::infinity(), one = 1;
    add(kScale, &scale);
    if (is_causal_) add(kMinusInfinity, &minus_infinity);
    if (!parts_.empty()) add(kOne, &one);
    stream.note_launch("attention of cuDNN");
    plan_.run(handle_, stream, {ids.data(), count}, {pointers.data(), count},
              workspace_bytes > 0 ? address(run.workspace, used) : nullptr);
  }

  void add_to(GraphBuilder& graph, const compute_plugin_run& run, const int32_t* slots) const override {
    graph.capture(*this, run, static_cast<int32_t>(named_.size()), 0, slots);
  }

 private:
  DnnHandle& handle_;
  const DnnPlan plan_;
  const std::vector<int64_t> named_;
  const std::vector<Part> parts_;
  const bool is_causal_;
  const float scale_;
};

// Whether an op is large enough, and of a kind that cuDNN's one kernel may know. Its queries are input `first`.
bool is_worth_asking(const Op& op, int first, int32_t multiprocessors, bool always) {
  const compute_plugin_tensor &q = op.input(first), &k = op.input(first + 1);
  if (q.dtype != COMPUTE_DTYPE_FLOAT16 && q.dtype != COMPUTE_DTYPE_BFLOAT16) return false;
  const int32_t mask = first == 0 ? 3 : 6;
  if (op.input_count() > mask && op.input(mask).rank >= 0) return false;
  const int64_t features = q.shape[3];
  if (features % 8 != 0 || features > 128 || op.input(first + 2).shape[3] != features) return false;
  if (op.integer("causal", 0) != 0 && q.shape[2] != k.shape[2]) return false;
  for (int32_t i = 0; i < op.tensor_count(); ++i) {
    const compute_plugin_tensor& tensor = op.tensor(i);
    if (tensor.rank != 4) continue;
    if (tensor.strides[3] != 1 || tensor.alignment < 16) return false;
    for (int axis = 0; axis < 3; ++axis) {
      if (tensor.strides[axis] % 8 != 0 || tensor.strides[axis] <= 0) return false;
    }
  }
  // Its kernel has blocks of queries, and does not divide the keys for few of them.
  if (!always && first == 0 && q.shape[2] <= kFewQueries) return false;
  const double products = static_cast<double>(q.shape[0]) * static_cast<double>(q.shape[1]) *
                          static_cast<double>(q.shape[2]) * static_cast<double>(k.shape[2]) *
                          static_cast<double>(features);
  return always || products >= kPaysFrom * multiprocessors;
}

// The handle of cuDNN if it may know the op.
DnnHandle* handle_for(Device& device, const Op& op, int first) {
  const std::optional<std::string> choice = common::setting("COMPUTE_CUDA_CUDNN");
  if (choice == "never" || !is_worth_asking(op, first, device.info().multiprocessors, choice == "always"))
    return nullptr;
  return device.dnn();
}

template <class Graph, class... Arguments>
std::optional<DnnPlan> plan_of(DnnHandle& handle, const DnnLimits& limits, const Arguments&... arguments) {
  try {
    const Graph graph(arguments...);
    return DnnPlan::find(handle, graph.operations(), limits);
  } catch (const Error& error) {  // cuDNN does not support everything that a generated kernel does
    common::log(COMPUTE_LOG_DEBUG, "compile", error.message);
    return std::nullopt;
  }
}

}  // namespace

std::unique_ptr<Plan> prepare_attention(Device& device, const Op& op) {
  DnnHandle* const handle = handle_for(device, op, 0);
  if (handle == nullptr) return nullptr;
  DnnLimits limits;
  limits.runtime_compiled = true;
  std::optional<DnnPlan> plan = plan_of<AttentionGraph>(*handle, limits, op);
  if (!plan) return nullptr;
  std::vector<int64_t> named(static_cast<size_t>(op.tensor_count()));
  const auto first_output = static_cast<size_t>(op.input_count());
  std::copy_n(std::array<int64_t, 3>{kQ, kK, kV}.begin(), 3, named.begin());
  named[first_output] = kY;
  named[first_output + 1] = kLogSumExp;
  return std::make_unique<AttentionPlan>(op, 0, *handle, *std::move(plan), std::move(named),
                                         std::vector<AttentionPlan::Part>{});
}

std::unique_ptr<Plan> prepare_attention_grad(Device& device, const Op& op) {
  const compute_plugin_tensor& q = op.input(1);
  if (q.shape[1] != op.input(2).shape[1]) return nullptr;  // heads that share keys
  DnnHandle* const handle = handle_for(device, op, 1);
  if (handle == nullptr) return nullptr;
  const int64_t rows = q.shape[0] * q.shape[1] * q.shape[2];
  const auto whole_lines = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };
  std::vector<AttentionPlan::Part> parts = {{kDelta, whole_lines(4 * rows)}};
  DnnLimits limits;
  limits.runtime_compiled = true;
  std::optional<DnnPlan> plan;
  if (!op.deterministic() && cudnn()->api.get_version() >= kClearsParts) {
    limits.same_bits = false;
    plan = plan_of<AttentionGradGraph>(*handle, limits, op, true);
    if (plan) parts.push_back({kDqParts, whole_lines(4 * rows * q.shape[3])});
  }
  limits.same_bits = true;
  if (!plan) plan = plan_of<AttentionGradGraph>(*handle, limits, op, false);
  if (!plan) return nullptr;
  std::vector<int64_t> named(static_cast<size_t>(op.tensor_count()));
  std::copy_n(std::array<int64_t, 6>{kDy, kQ, kK, kV, kY, kLogSumExp}.begin(), 6, named.begin());
  std::copy_n(std::array<int64_t, 3>{kDq, kDk, kDv}.begin(), 3, named.begin() + op.input_count());
  return std::make_unique<AttentionPlan>(op, 1, *handle, *std::move(plan), std::move(named), std::move(parts));
}

}  // namespace compute::cuda
