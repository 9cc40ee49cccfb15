// SPDX-License-Identifier: Apache-2.0
// matrix_rank, matrix_norm, matrix_power and expm.
#include <algorithm>
#include <array>

#include "core/linalg_ops/matrices.hpp"

namespace compute {

namespace {

// ---- matrix_rank ----------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_matrix_rank(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInexact);
  const Matrices x = matrices_of(call, 0);
  check_tolerance(call, 1, x);
  return {{COMPUTE_DTYPE_INT64, x.batch}};
}

std::optional<Lowering> lower_matrix_rank(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const Matrices x = matrices_of(call, 0);
  if (x.is_empty()) {
    fill_number(steps, steps.output(), "0");
    return steps.take();
  }
  const compute_dtype real = computed_in(real_part_dtype(call.inputs[0].dtype));
  const StepOperand s = steps.temporary(real, x.with({x.least()}));
  const StepOperand limit = tolerance(steps, call, 1, x, real);
  decompose(steps, "svd", {steps.input(0)}, {s});
  const auto axis = static_cast<int64_t>(x.batch.size());
  const StepOperand greatest = narrowed(s, static_cast<int32_t>(axis), 0, 1);
  steps.reduce("sum", COMPUTE_DTYPE_INT64, {&axis, 1}, {"where(x > y * z, 1, 0)"},
               {s, broadcast_to(greatest, s.shape), broadcast_to(limit, s.shape)}, {"x"},
               with_axis(steps.output(), static_cast<int32_t>(axis)));
  return steps.take();
}

// ---- matrix_norm ----------------------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 8> kOrders = {"fro", "nuc", "1", "-1", "2", "-2", "inf", "-inf"};

std::string_view order_of(const OpCall& call) {
  const std::string_view order = call.attributes.string(attribute_index(call, "ord"));
  if (std::ranges::find(kOrders, order) == kOrders.end())
    refuse_attribute(call, "ord", "ord is '" + std::string(order) + "'; expected fro, nuc, 1, -1, 2, -2, inf or -inf");
  return order;
}

std::vector<OutputDesc> infer_matrix_norm(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInexact);
  const Matrices x = matrices_of(call, 0);
  order_of(call);
  const compute_dtype real = real_part_dtype(call.inputs[0].dtype);
  return {{real, flag_attribute(call, "keepdims") ? x.with({1, 1}) : x.batch}};
}

std::optional<Lowering> lower_matrix_norm(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const Matrices shape = matrices_of(call, 0);
  const auto rank = static_cast<int32_t>(shape.batch.size());
  StepOperand y = steps.output();
  if (!flag_attribute(call, "keepdims")) y = with_axis(with_axis(std::move(y), rank), rank);  // [..., 1, 1]
  if (shape.is_empty()) {
    fill_number(steps, y, "0");
    return steps.take();
  }
  const std::string_view order = order_of(call);
  const StepOperand x = steps.input(0);
  const compute_dtype real = computed_in(y.dtype);
  const int64_t rows = rank, columns = rank + 1;
  if (order == "fro") {
    // Divided by the greatest element, so that squares neither overflow nor vanish.
    const int64_t both[] = {rows, columns};
    const StepOperand greatest = steps.temporary(real, y.shape);
    steps.reduce("max", real, both, {"abs(x)"}, {x}, {"where(isfinite(x) & (x > 0), x, 1)"}, greatest);
    const StepOperand sums = steps.temporary(real, y.shape);
    steps.reduce("sum", real, both, {"t = abs(x) / y; t * t"}, {x, broadcast_to(greatest, x.shape)}, {"x"}, sums);
    steps.map({"sqrt(x) * y"}, {sums, greatest}, y);
    return steps.take();
  }
  if (order == "nuc" || order == "2" || order == "-2") {
    const StepOperand s = steps.temporary(real, shape.with({shape.least()}));
    decompose(steps, "svd", {x}, {s});
    steps.reduce(order == "nuc" ? "sum"
                 : order == "2" ? "max"
                                : "min",
                 real, {&rows, 1}, {"x"}, {s}, {"x"}, without_axis(y, rank));
    return steps.take();
  }
  const bool adds_rows = order == "1" || order == "-1";
  const int64_t added = adds_rows ? rows : columns, chosen = adds_rows ? columns : rows;
  std::vector<int64_t> kept = x.shape;
  kept[static_cast<size_t>(added)] = 1;
  const StepOperand sums = steps.temporary(real, kept);
  steps.reduce("sum", real, {&added, 1}, {"abs(x)"}, {x}, {"x"}, sums);
  steps.reduce(order[0] == '-' ? "min" : "max", real, {&chosen, 1}, {"x"}, {sums}, {"x"}, y);
  return steps.take();
}

// ---- matrix_power and expm ------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_square(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInexact);
  const Matrices x = square_matrices_of(call, 0);
  return {{call.inputs[0].dtype, x.with({x.rows, x.columns})}};
}

std::optional<Lowering> lower_matrix_power(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const int64_t n = call.attributes.int64(attribute_index(call, "n"));
  const StepOperand y = steps.output();
  if (n == 0) {
    fill_unit(steps, y);
    return steps.take();
  }
  uint64_t rest = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  const compute_dtype dtype = computed_in(y.dtype);
  const auto temporary = [&] { return steps.temporary(dtype, y.shape); };
  const auto product = [&](const StepOperand& a, const StepOperand& b) {
    const StepOperand c = temporary();
    multiply(steps, a, b, c, alternative == 1);
    return c;
  };
  StepOperand square = steps.as_dtype(steps.input(0), dtype), result;
  if (n < 0) {
    const StepOperand inverse = temporary();
    decompose(steps, "inv", {square}, {inverse});
    square = inverse;
  }
  for (; rest > 0; rest /= 2) {
    if (rest % 2 != 0) result = result.is_absent() ? square : product(result, square);
    if (rest > 1) square = product(square, square);
  }
  steps.copy(result, y);
  return steps.take();
}

std::optional<Lowering> lower_expm(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  decompose(steps, "expm", {steps.input(0)}, {steps.output()});
  return steps.take();
}

}  // namespace

const OpRules expm_1_rules{infer_square, lower_expm};
const OpRules matrix_norm_1_rules{infer_matrix_norm, lower_matrix_norm};
const OpRules matrix_power_1_rules{infer_square, lower_matrix_power};
const OpRules matrix_rank_1_rules{infer_matrix_rank, lower_matrix_rank};

}  // namespace compute
