// SPDX-License-Identifier: Apache-2.0
// cholesky, lu, qr, eigh, eigvalsh, eig, eigvals, svd and svdvals: each is one primitive.
#include "core/base/error.hpp"
#include "core/linalg_ops/matrices.hpp"

namespace compute {

namespace {

compute_dtype inexact(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInexact);
  return call.inputs[0].dtype;
}

// The steps of an op that is the primitive `name`: the input, the outputs, and an attribute.
std::optional<Lowering> lower_to(const char* name, const OpCall& call, const LoweringTarget& target,
                                 int32_t alternative, const char* flag = nullptr) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  std::vector<StepOperand> outputs;
  for (size_t i = 0; i < target.outputs.size(); ++i) outputs.push_back(steps.output(static_cast<int32_t>(i)));
  if (flag != nullptr) {
    decompose(steps, name, {steps.input(0)}, outputs, {{flag, flag_attribute(call, flag)}});
  } else {
    decompose(steps, name, {steps.input(0)}, outputs);
  }
  return steps.take();
}

// ---- cholesky -------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_cholesky(const OpCall& call) {
  const compute_dtype dtype = inexact(call);
  const Matrices x = square_matrices_of(call, 0);
  flag_attribute(call, "upper");
  return {{dtype, x.with({x.rows, x.columns})}};
}

std::optional<Lowering> lower_cholesky(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_to("cholesky", call, target, alternative, "upper");
}

// ---- lu -------------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_lu(const OpCall& call) {
  const compute_dtype dtype = inexact(call);
  const Matrices x = matrices_of(call, 0);
  return {{dtype, x.with({x.rows, x.columns})}, {COMPUTE_DTYPE_INT64, x.with({x.least()})}};
}

std::optional<Lowering> lower_lu(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_to("lu", call, target, alternative);
}

// ---- qr -------------------------------------------------------------------------------------------------------------

bool is_complete(const OpCall& call) {
  const std::string_view mode = call.attributes.string(attribute_index(call, "mode"));
  if (mode != "reduced" && mode != "complete")
    refuse_attribute(call, "mode", "mode is '" + std::string(mode) + "'; expected reduced or complete");
  return mode == "complete";
}

std::vector<OutputDesc> infer_qr(const OpCall& call) {
  const compute_dtype dtype = inexact(call);
  const Matrices x = matrices_of(call, 0);
  const int64_t inner = is_complete(call) ? x.rows : x.least();
  return {{dtype, x.with({x.rows, inner})}, {dtype, x.with({inner, x.columns})}};
}

std::optional<Lowering> lower_qr(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (!matrices_of(call, 0).is_empty()) return lower_to("qr", call, target, alternative);
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  fill_unit(steps, steps.output(0));  // of no columns
  return steps.take();
}

// ---- Eigenvalues ----------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_eigh(const OpCall& call) {
  const compute_dtype dtype = inexact(call);
  const Matrices x = square_matrices_of(call, 0);
  flag_attribute(call, "upper");
  return {{real_part_dtype(dtype), x.with({x.rows})}, {dtype, x.with({x.rows, x.columns})}};
}

std::vector<OutputDesc> infer_eigvalsh(const OpCall& call) { return {infer_eigh(call)[0]}; }

std::optional<Lowering> lower_eigh(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_to("eigh", call, target, alternative, "upper");
}

std::vector<OutputDesc> infer_eig(const OpCall& call) {
  const compute_dtype dtype = complex_dtype(inexact(call));
  const Matrices x = square_matrices_of(call, 0);
  return {{dtype, x.with({x.rows})}, {dtype, x.with({x.rows, x.columns})}};
}

std::vector<OutputDesc> infer_eigvals(const OpCall& call) { return {infer_eig(call)[0]}; }

std::optional<Lowering> lower_eig(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_to("eig", call, target, alternative);
}

// ---- Singular values ------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_svd(const OpCall& call) {
  const compute_dtype dtype = inexact(call);
  const Matrices x = matrices_of(call, 0);
  const bool is_full = flag_attribute(call, "full_matrices");
  return {{dtype, x.with({x.rows, is_full ? x.rows : x.least()})},
          {real_part_dtype(dtype), x.with({x.least()})},
          {dtype, x.with({is_full ? x.columns : x.least(), x.columns})}};
}

std::optional<Lowering> lower_svd(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  const Matrices x = matrices_of(call, 0);
  if (!x.is_empty()) return lower_to("svd", call, target, alternative);
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);  // of no rows or no columns
  if (x.rows > 0) fill_unit(steps, steps.output(0));
  if (x.columns > 0) fill_unit(steps, steps.output(2));
  return steps.take();
}

std::vector<OutputDesc> infer_svdvals(const OpCall& call) {
  const compute_dtype dtype = inexact(call);
  const Matrices x = matrices_of(call, 0);
  return {{real_part_dtype(dtype), x.with({x.least()})}};
}

std::optional<Lowering> lower_svdvals(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_to("svd", call, target, alternative);
}

}  // namespace

const OpRules cholesky_1_rules{infer_cholesky, lower_cholesky};
const OpRules eig_1_rules{infer_eig, lower_eig};
const OpRules eigh_1_rules{infer_eigh, lower_eigh};
const OpRules eigvals_1_rules{infer_eigvals, lower_eig};
const OpRules eigvalsh_1_rules{infer_eigvalsh, lower_eigh};
const OpRules lu_1_rules{infer_lu, lower_lu};
const OpRules qr_1_rules{infer_qr, lower_qr};
const OpRules svd_1_rules{infer_svd, lower_svd};
const OpRules svdvals_1_rules{infer_svdvals, lower_svdvals};

}  // namespace compute
