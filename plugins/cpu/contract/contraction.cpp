// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/contract/contraction.hpp"

#include <algorithm>

#include "plugins/cpu/contract/gemm_engines.hpp"
#include "plugins/cpu/contract/matmul.hpp"
#include "plugins/cpu/host.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/threads.hpp"

namespace compute::cpu {
namespace {

MatmulEngine chosen_engine() {
  const std::optional<std::string> name = setting("COMPUTE_CPU_MATMUL");
  if (name == "onednn") return MatmulEngine::onednn;
  if (name == "openblas") return MatmulEngine::openblas;
  if (name == "own") return MatmulEngine::own;
  return MatmulEngine::automatic;
}

bool is_given(const Op& op, int32_t input) { return input < op.input_count() && op.input(input).rank >= 0; }

MatmulView view_of(const compute_plugin_tensor& tensor) {
  const int64_t* strides = tensor.strides;
  return {strides, strides[tensor.rank - 2], strides[tensor.rank - 1]};
}

MatmulPlan make_plan(const Op& op) {
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
  MatmulOptions options;
  options.threads = thread_count();
  options.isa = isa().set;
  options.engine = chosen_engine();
  return MatmulPlan(problem, options);
}

class ContractionPlan final : public Plan {
 public:
  explicit ContractionPlan(const Op& op)
      : matmul_(make_plan(op)),
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
    matmul.workspace = address(run.workspace);
    matmul.parallel_for = &parallel_for;
    if (!matmul_.run(matmul))
      throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, "contraction: the matrix library is out of memory");
  }

 private:
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
  if (op.expression_count() != 0) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1,
                   "contraction: expressions on the result are not supported", ""};
  }
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_contraction(const Op& op) { return std::make_unique<ContractionPlan>(op); }

std::vector<common::Requirement> report_engines() {
  std::vector<common::Requirement> reports;
  if (!engines_touched()) {
    const char* effect = "matrix products use the plugin's own kernel, which is slower";
    reports.push_back({"oneDNN", "", "", "", effect, "", false, 0});
    reports.push_back({"OpenBLAS", "", "", "", effect, "", false, 0});
    return reports;
  }
  for (const LibraryReport& library : engine_library_reports()) {
    common::Requirement report{
        library.library, "",    "", "", library.purpose + " use the plugin's own kernel, which is slower",
        library.remedy,  false, 2};
    report.error = library.error();
    for (const LibraryReport::Attempt& attempt : library.attempts) {
      report.tried += (report.tried.empty() ? "" : "\n") + attempt.name;
    }
    if (!library.path.empty()) {
      report.found = library.path + " " + library.version;
      report.state = 1;
    }
    reports.push_back(report);
  }
  return reports;
}

void open_engines() { prepare_engine_environment(); }

}  // namespace compute::cpu
