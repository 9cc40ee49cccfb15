// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/contract/contraction.hpp"

#include <algorithm>
#include <optional>

#include "plugins/common/op/matrix_product.hpp"
#include "plugins/cpu/base/host.hpp"
#include "plugins/cpu/contract/matmul.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/map/block_program.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

using common::is_given;

MatmulView view_of(const compute_plugin_tensor& tensor) {
  const int64_t* strides = tensor.strides;
  return {strides, strides[tensor.rank - 2], strides[tensor.rank - 1]};
}

// The op's expression as an epilogue of the product.
class Epilogue {
 public:
  explicit Epilogue(const Op& op)
      : program_(op.expression(0), *isa().blocks),
        epilogue_{this, program_.workspace_bytes(MatmulEpilogue::kMostElements), &begin, &apply} {}
  Epilogue(const Epilogue&) = delete;
  Epilogue& operator=(const Epilogue&) = delete;

  const MatmulEpilogue* get() const { return &epilogue_; }

 private:
  static void begin(const void* user, const compute_plugin_scalar* scalars, void* frame) {
    static_cast<const Epilogue*>(user)->program_.begin(scalars, frame);
  }
  static void apply(const void* user, void* frame, const void* results, void* out, int64_t n) {
    const BlockOperand operand{results, 1};
    static_cast<const Epilogue*>(user)->program_.evaluate(&operand, &out, n, MatmulEpilogue::kMostElements, frame);
  }

  BlockProgram program_;
  MatmulEpilogue epilogue_;
};

MatmulPlan make_plan(const Op& op, const MatmulEpilogue* epilogue) {
  const compute_plugin_tensor &a = op.input(0), &b = op.input(1), &c = op.output(0);
  MatmulProblem problem{};
  problem.dtype = c.dtype;
  problem.m = c.shape[c.rank - 2];
  problem.n = c.shape[c.rank - 1];
  problem.k = a.shape[a.rank - 1];
  problem.batch_rank = c.rank - 2;
  problem.batch_shape = c.shape;
  problem.a = view_of(a);
  problem.b = view_of(b);
  problem.c = view_of(c);
  MatmulView addend{}, bias{};
  if (is_given(op, 2)) problem.addend = &(addend = view_of(op.input(2)));
  if (is_given(op, 3)) problem.bias = &(bias = view_of(op.input(3)));
  problem.epilogue = epilogue;
  MatmulOptions options;
  options.threads = thread_count();
  options.isa = isa().set;
  return MatmulPlan(problem, options);
}

class ContractionPlan final : public Plan {
 public:
  explicit ContractionPlan(const Op& op)
      : epilogue_(op.expression_count() > 0 ? std::make_unique<Epilogue>(op) : nullptr),
        matmul_(make_plan(op, epilogue_ != nullptr ? epilogue_->get() : nullptr)),
        inputs_(op.input_count()),
        has_addend_(is_given(op, 2)),
        has_bias_(is_given(op, 3)),
        is_scaled_(op.integer("scaled", 0) == 1) {
    workspace_bytes = matmul_.workspace_bytes();
  }

  void run(const compute_plugin_run& run) const override {
    MatmulRun matmul{};
    matmul.a = address(run.tensors[0]);
    matmul.b = address(run.tensors[1]);
    matmul.c = address(run.tensors[inputs_]);
    if (has_addend_) matmul.addend = address(run.tensors[2]);
    if (has_bias_) matmul.bias = address(run.tensors[3]);
    static constexpr compute_plugin_scalar zero{};
    if (is_scaled_) {
      matmul.alpha = run.scalars[0].bits;
      matmul.beta = run.scalars[1].bits;
    } else {
      matmul.beta = zero.bits;  // input 2 counts only where the op is scaled
    }
    matmul.epilogue_scalars = run.scalars + (is_scaled_ ? 2 : 0);
    matmul.workspace = address(run.workspace);
    matmul.parallel_for = &parallel_tasks;
    matmul.cancel = cancel_request;
    matmul_.run(matmul);  // which a cancelled stream reports
  }

 private:
  std::unique_ptr<Epilogue> epilogue_;
  MatmulPlan matmul_;
  int32_t inputs_;
  bool has_addend_, has_bias_, is_scaled_;
};

}  // namespace

std::optional<Refusal> refuse_contraction(const Op& op) {
  for (int32_t i = 0; i < op.input_count(); ++i) {
    if (i >= 2 && !is_given(op, i)) continue;
    if (op.input(i).rank < 2)
      return Refusal{COMPUTE_PLUGIN_REFUSE_RANK, i, "contraction: operands must have at least two axes", ""};
    if (op.input(i).dtype == op.output(0).dtype) continue;
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, i,
                   std::string("contraction: ") + dtype_name(op.input(i).dtype) + " operands with a result of " +
                       dtype_name(op.output(0).dtype),
                   "cast to one dtype"};
  }
  if (std::optional<Refusal> refusal = common::refuse_epilogue(op)) return refusal;
  const int32_t id = op.expression_count() == 0 ? 0 : BlockProgram::unknown_intrinsic(op.expression(0));
  if (id == 0) return std::nullopt;
  return Refusal{COMPUTE_PLUGIN_REFUSE_INTRINSIC, id,
                 "contraction: the cpu plugin does not support intrinsic " + std::to_string(id), ""};
}

std::unique_ptr<Plan> prepare_contraction(const Op& op) { return std::make_unique<ContractionPlan>(op); }

}  // namespace compute::cpu
