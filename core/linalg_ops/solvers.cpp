// SPDX-License-Identifier: Apache-2.0
// triangular_solve, solve, inv, det, slogdet, pinv and lstsq.
#include <algorithm>
#include <optional>

#include "core/linalg_ops/matrices.hpp"

namespace compute {

namespace {

// ---- triangular_solve and solve -------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_solve(const OpCall& call) {
  const compute_dtype dtype = promote_inputs(call, DtypeClass::kInexact);
  square_matrices_of(call, 0);
  return {{dtype, system_of(call).solution()}};
}

std::vector<OutputDesc> infer_triangular_solve(const OpCall& call) {
  flag_attribute(call, "upper");
  flag_attribute(call, "unit_diagonal");
  return infer_solve(call);
}

// The operands as matrices of the common batch and of the result's dtype.
struct SystemOperands {
  SystemOperands(Steps& steps, const System& system, const StepOperand& output)
      : a(matrices(steps, steps.input(0), output.dtype, system, {system.a.rows, system.a.columns})) {
    StepOperand right = steps.input(1);
    if (system.is_vector) right = with_axis(std::move(right), 1);
    b = matrices(steps, right, output.dtype, system, {system.a.rows, system.count});
    x = system.is_vector ? with_axis(output, rank_of(output)) : output;
  }

  static StepOperand matrices(Steps& steps, const StepOperand& operand, compute_dtype dtype, const System& system,
                              std::initializer_list<int64_t> extents) {
    return broadcast_to(steps.as_dtype(operand, dtype), system.with(extents));
  }

  StepOperand a, b, x;
};

std::optional<Lowering> lower_triangular_solve(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const SystemOperands system(steps, system_of(call), steps.output());
  decompose(steps, "triangular_solve", {system.a, system.b}, {system.x},
            {{"upper", flag_attribute(call, "upper")}, {"unit_diagonal", flag_attribute(call, "unit_diagonal")}});
  return steps.take();
}

std::optional<Lowering> lower_solve(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const SystemOperands system(steps, system_of(call), steps.output());
  decompose(steps, "solve", {system.a, system.b}, {system.x});
  return steps.take();
}

// ---- inv ------------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_inv(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInexact);
  const Matrices x = square_matrices_of(call, 0);
  return {{call.inputs[0].dtype, x.with({x.rows, x.columns})}};
}

std::optional<Lowering> lower_inv(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  decompose(steps, "inv", {steps.input(0)}, {steps.output()});
  return steps.take();
}

// ---- Determinants ---------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_slogdet(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInexact);
  const compute_dtype dtype = call.inputs[0].dtype;
  const Matrices x = square_matrices_of(call, 0);
  return {{dtype, x.batch}, {real_part_dtype(dtype), x.batch}};
}

std::vector<OutputDesc> infer_det(const OpCall& call) { return {infer_slogdet(call)[0]}; }

// The diagonals of the upper factors, and which rows were exchanged.
struct Factors {
  Factors(Steps& steps, const Matrices& x) {
    const StepOperand input = steps.input(0);
    const StepOperand lu = steps.temporary(computed_in(input.dtype), x.with({x.rows, x.columns}));
    pivots = steps.temporary(COMPUTE_DTYPE_INT64, x.with({x.rows}));
    decompose(steps, "lu", {input}, {lu, pivots});
    diagonal = diagonal_of(lu);
    axis = static_cast<int64_t>(x.batch.size());
  }

  // The product of `each`, an expression over the diagonal, with the sign of the permutation.
  void multiply(Steps& steps, const std::string& each, const StepOperand& output) const {
    const std::string text = "where(y == index(" + std::to_string(axis) + "), " + each + ", -" + each + ")";
    steps.reduce("prod", diagonal.dtype, {&axis, 1}, {text}, {diagonal, pivots}, {"x"},
                 with_axis(output, static_cast<int32_t>(axis)));
  }

  StepOperand diagonal, pivots;
  int64_t axis;
};

std::optional<Lowering> lower_det(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const Matrices x = square_matrices_of(call, 0);
  if (x.is_empty()) {
    fill_number(steps, steps.output(), "1");
  } else {
    Factors(steps, x).multiply(steps, "x", steps.output());
  }
  return steps.take();
}

std::optional<Lowering> lower_slogdet(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const Matrices x = square_matrices_of(call, 0);
  const StepOperand sign = steps.output(0), logarithm = steps.output(1);
  if (x.is_empty()) {
    fill_number(steps, sign, "1");
    fill_number(steps, logarithm, "0");
    return steps.take();
  }
  const Factors factors(steps, x);
  factors.multiply(steps, "sign(x)", sign);
  const int64_t axis = factors.axis;
  steps.reduce("sum", computed_in(logarithm.dtype), {&axis, 1}, {"log(abs(x))"}, {factors.diagonal}, {"x"},
               with_axis(logarithm, static_cast<int32_t>(axis)));
  return steps.take();
}

// ---- pinv and lstsq -------------------------------------------------------------------------------------------------

// A tall matrix is first factored into q r, and then only the small r is decomposed. Decomposing all rows takes several
// times as long, above all on GPUs. Batches of small matrices are left to the plugins, which have faster ways.
constexpr int64_t kTallRows = 64;
bool is_tall(const Matrices& x) { return x.rows >= kTallRows && x.rows >= 2 * x.columns; }

// How an alternative works: by qr where that pays, and with products or with sums of products.
struct Way {
  Way(const Matrices& x, int32_t alternative)
      : exists(alternative < (is_tall(x) ? 4 : 2)),
        by_qr(is_tall(x) && alternative < 2),
        by_sums(alternative % 2 == 1) {}

  bool exists, by_qr, by_sums;
};

// The reduced singular value decomposition, and which values count.
struct Svd {
  Svd(Steps& steps, const OpCall& call, int32_t rtol, const StepOperand& x, const Matrices& shape, bool by_qr)
      : rows(by_qr ? shape.columns : shape.rows),
        u(steps.temporary(x.dtype, shape.with({rows, shape.least()}))),
        s(steps.temporary(real_part_dtype(x.dtype), shape.with({shape.least()}))),
        vh(steps.temporary(x.dtype, shape.with({shape.least(), shape.columns}))),
        limit(tolerance(steps, call, rtol, shape, s.dtype)) {
    StepOperand decomposed = x;
    if (by_qr) {
      q = steps.temporary(x.dtype, x.shape);
      decomposed = steps.temporary(x.dtype, vh.shape);
      decompose(steps, "qr", {x}, {*q, decomposed});
    }
    decompose(steps, "svd", {decomposed}, {u, s, vh});
    limit = broadcast_to(limit, s.shape);
    greatest = broadcast_to(narrowed(s, rank_of(s) - 1, 0, 1), s.shape);
  }

  // The rows of `rows` [..., least, n] divided by the values that count; the others are 0.
  void divide(Steps& steps, const StepOperand& rows, const StepOperand& quotients) const {
    const auto each = [&](const StepOperand& values) { return with_axis(values, rank_of(values)); };
    const std::string quotient = is_complex(rows.dtype) ? "x / complex(y, 0)" : "x / y";
    const std::string nothing = is_complex(rows.dtype) ? "complex(y * 0, y * 0)" : "y * 0";  // NaN stays NaN
    steps.map({"where(y <= z * t, " + nothing + ", " + quotient + ")", {}, {"x", "y", "z", "t"}},
              {rows, each(s), each(greatest), each(limit)}, quotients);
  }

  int64_t rows;                  // of u
  std::optional<StepOperand> q;  // x = q u s vh; without it x = u s vh
  StepOperand u, s, vh, limit, greatest;
};

std::vector<OutputDesc> infer_pinv(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInexact);
  const Matrices x = matrices_of(call, 0);
  check_tolerance(call, 1, x);
  return {{call.inputs[0].dtype, x.with({x.columns, x.rows})}};
}

std::optional<Lowering> lower_pinv(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  const Matrices shape = matrices_of(call, 0);
  const Way way(shape, alternative);
  if (!way.exists) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.as_dtype(steps.input(0), computed_in(call.inputs[0].dtype));
  const Svd svd(steps, call, 1, x, shape, way.by_qr);
  const StepOperand weighted = steps.temporary(x.dtype, svd.vh.shape);
  svd.divide(steps, svd.vh, weighted);
  const StepOperand u = adjoint(steps, svd.u), v = adjoint(steps, weighted), y = steps.output();
  const StepOperand result = y.dtype == x.dtype ? y : steps.temporary(x.dtype, y.shape);
  if (svd.q) {
    const StepOperand small = steps.temporary(x.dtype, shape.with({shape.columns, svd.rows}));
    multiply(steps, v, u, small, way.by_sums);
    multiply(steps, small, adjoint(steps, *svd.q), result, way.by_sums);
  } else {
    multiply(steps, v, u, result, way.by_sums);
  }
  if (y.dtype != x.dtype) steps.copy(result, y);
  return steps.take();
}

std::vector<OutputDesc> infer_lstsq(const OpCall& call) {
  const compute_dtype dtype = promote_inputs(call, DtypeClass::kInexact);
  const System system = system_of(call);
  check_tolerance(call, 2, {system.batch, system.a.rows, system.a.columns});
  return {{dtype, system.solution()},
          {real_part_dtype(dtype), system.is_vector ? system.batch : system.with({system.count})},
          {COMPUTE_DTYPE_INT64, system.batch},
          {real_part_dtype(dtype), system.with({system.a.least()})}};
}

std::optional<Lowering> lower_lstsq(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  const System system = system_of(call);
  const Matrices shape{system.batch, system.a.rows, system.a.columns};
  const Way way(shape, alternative);
  if (!way.exists) return std::nullopt;
  Steps steps(call, target);
  const StepOperand solution = steps.output(0), residuals = steps.output(1), rank = steps.output(2),
                    values = steps.output(3);
  const bool has_columns = system.count > 0, is_empty = shape.is_empty();
  const compute_dtype dtype = computed_in(solution.dtype);
  const auto batch = static_cast<int32_t>(system.batch.size());
  StepOperand b = steps.input(1);
  if (system.is_vector) b = with_axis(std::move(b), 1);
  if (shape.rows > 0 && has_columns)
    b = broadcast_to(steps.as_dtype(b, dtype), system.with({system.a.rows, system.count}));
  const StepOperand given = steps.input(0);
  StepOperand a, x;
  if (is_empty) {
    if (has_columns && shape.columns > 0) fill_number(steps, solution, "0");
    fill_number(steps, rank, "0");
  } else {
    a = broadcast_to(steps.as_dtype(given, dtype), system.with({system.a.rows, system.a.columns}));
    const Svd svd(steps, call, 2, a, shape, way.by_qr);
    steps.copy(svd.s, values);
    const int64_t last = batch;
    steps.reduce("sum", COMPUTE_DTYPE_INT64, {&last, 1}, {"where(x > y * z, 1, 0)"}, {svd.s, svd.greatest, svd.limit},
                 {"x"}, with_axis(rank, batch));
    if (has_columns) {
      const std::vector<int64_t> inner = system.with({shape.least(), system.count});
      const StepOperand products = steps.temporary(dtype, inner), weighted = steps.temporary(dtype, inner);
      StepOperand right = b;
      if (svd.q) {
        right = steps.temporary(dtype, system.with({svd.rows, system.count}));
        multiply(steps, adjoint(steps, *svd.q), b, right, way.by_sums);
      }
      multiply(steps, adjoint(steps, svd.u), right, products, way.by_sums);
      svd.divide(steps, products, weighted);
      x = steps.temporary(dtype, system.with({system.a.columns, system.count}));
      multiply(steps, adjoint(steps, svd.vh), weighted, x, way.by_sums);
      steps.copy(x, system.is_vector ? with_axis(solution, batch + 1) : solution);
    }
  }
  if (!has_columns) return steps.take();
  const StepOperand sums = with_axis(system.is_vector ? with_axis(residuals, batch) : residuals, batch);
  if (shape.rows == 0) {
    fill_number(steps, residuals, "0");
    return steps.take();
  }
  // The squares of what is left of b.
  const int64_t axis = batch;
  const compute_dtype real = real_part_dtype(dtype);
  if (is_empty) {
    steps.reduce("sum", real, {&axis, 1}, {"y = abs(x); y * y"}, {b}, {"x"}, sums);
    return steps.take();
  }
  const StepOperand fitted = steps.temporary(dtype, b.shape);
  multiply(steps, a, x, fitted, way.by_sums);
  steps.reduce("sum", real, {&axis, 1}, {"t = abs(x - y); t * t"}, {b, fitted}, {"x"}, sums);
  return steps.take();
}

}  // namespace

const OpRules det_1_rules{infer_det, lower_det};
const OpRules inv_1_rules{infer_inv, lower_inv};
const OpRules lstsq_1_rules{infer_lstsq, lower_lstsq};
const OpRules pinv_1_rules{infer_pinv, lower_pinv};
const OpRules slogdet_1_rules{infer_slogdet, lower_slogdet};
const OpRules solve_1_rules{infer_solve, lower_solve};
const OpRules triangular_solve_1_rules{infer_triangular_solve, lower_triangular_solve};

}  // namespace compute
