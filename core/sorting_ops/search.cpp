// SPDX-License-Identifier: Apache-2.0
// searchsorted and isin: a binary search, all values side by side.
#include <bit>

#include "core/ops/rules.hpp"
#include "core/sorting_ops/parts.hpp"

namespace compute {

namespace {

// Of inputs 0 and 1, which are ordered.
compute_dtype searched_dtype(const OpCall& call) {
  for (int32_t i = 0; i < 2; ++i) {
    if (!is_bool(call.inputs[static_cast<size_t>(i)].dtype)) require_class(call, i, DtypeClass::kReal);
  }
  const std::string names[] = {call.schema.input_name(0), call.schema.input_name(1)};
  const PromotionOperand both[] = {{call.inputs[0].dtype, false, names[0]},
                                   {call.inputs[1].dtype, call.inputs[1].is_scalar && call.inputs[1].weak, names[1]}};
  const compute_dtype common = result_type(call.schema.name, both);
  return is_bool(common) ? compute_dtype{COMPUTE_DTYPE_UINT8} : common;  // it is compared as numbers
}

// Whether a found value (y) sorts before the wanted one (z), or not after it. NaN sorts after all numbers.
std::string before_text(compute_dtype dtype, bool is_right) {
  const bool has_nan = is_float(dtype);
  if (is_right) return has_nan ? "~((isnan(y) & ~isnan(z)) | (z < y))" : "(y <= z)";
  return has_nan ? "((isnan(z) & ~isnan(y)) | (y < z))" : "(y < z)";
}

// For each of the values [m] the number of elements of `sorted` [n] that are before it, as int64.
StepOperand search(Steps& steps, const StepOperand& sorted, const StepOperand& values, bool is_right) {
  const int64_t n = sorted.shape[0];
  const StepOperand found = steps.temporary(sorted.dtype, values.shape);
  const StepOperand position = steps.temporary(COMPUTE_DTYPE_INT64, values.shape);
  const StepOperand index = steps.temporary(COMPUTE_DTYPE_INT64, values.shape);
  auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n)));
  steps.fill(position, {});
  steps.fill(index, scalar_from_int64(step - 1, COMPUTE_DTYPE_INT64));
  for (; step > 0; step /= 2) {
    steps.gather(sorted, index, found, 0);
    StepExpression next{
        "p = where((x + a <= b) & " + before_text(sorted.dtype, is_right) + ", x + a, x); p; min(p + c, b) - 1",
        {extent_term(step), extent_term(n), extent_term(step / 2)}};
    if (step == 1) {
      next.text.resize(next.text.rfind(';'));
      next.scalars.pop_back();
      steps.map(next, {position, found, values}, position);
    } else {
      steps.map(next, {position, found, values}, std::vector<StepOperand>{position, index});
    }
  }
  return position;
}

// ---- searchsorted ---------------------------------------------------------------------------------------------------

bool is_right(const OpCall& call) {
  const std::string_view side = call.attributes.string(attribute_index(call, "side"));
  if (side != "left" && side != "right")
    refuse_attribute(call, "side", "side is \"" + std::string(side) + "\"; expected left or right");
  return side == "right";
}

std::vector<OutputDesc> infer_searchsorted(const OpCall& call) {
  searched_dtype(call);
  is_right(call);
  if (call.inputs[0].rank != 1)
    refuse(call, "sorted has shape " + shape_text(call.inputs[0].extents()) + "; expected one axis", 0);
  if (call.inputs.size() > 2 && call.inputs[2].dtype != COMPUTE_DTYPE_NONE) {
    if (!is_integer(call.inputs[2].dtype))
      refuse(call, "sorter is " + dtype_name(call.inputs[2].dtype) + "; expected an integer dtype", 2);
    require_tensor(call, 2, call.inputs[2].dtype, call.inputs[0].extents());
  }
  const std::span<const int64_t> shape = call.inputs[1].extents();
  return {{COMPUTE_DTYPE_INT64, {shape.begin(), shape.end()}}};
}

std::optional<Lowering> lower_searchsorted(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  StepOperand sorted = steps.input(0);
  if (!has_elements(sorted.shape)) {
    steps.fill(y, {});
    return steps.take();
  }
  const compute_dtype dtype = searched_dtype(call);
  if (steps.has_input(2)) {
    const StepOperand ordered = steps.temporary(sorted.dtype, sorted.shape);
    steps.gather(sorted, steps.as_indices(steps.input(2)), ordered, 0);
    sorted = ordered;
  }
  sorted = steps.as_dtype(sorted, dtype);
  StepOperand values = steps.as_dtype(steps.input(1, dtype), dtype);
  values = steps.as_collapsed(values, 0, static_cast<int32_t>(values.shape.size()));
  StepOperand position = search(steps, sorted, values, is_right(call));
  position.shape = y.shape;
  position.strides = row_major_strides(y.shape);
  steps.copy(position, y);
  return steps.take();
}

// ---- isin -----------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_isin(const OpCall& call) {
  searched_dtype(call);
  flag_attribute(call, "invert");
  const std::span<const int64_t> shape = call.inputs[0].extents();
  return {{COMPUTE_DTYPE_BOOL, {shape.begin(), shape.end()}}};
}

std::optional<Lowering> lower_isin(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  const bool is_inverted = flag_attribute(call, "invert");
  const compute_dtype dtype = searched_dtype(call);
  StepOperand values = steps.input(1, dtype);
  if (!has_elements(values.shape)) {
    if (alternative > 0) return std::nullopt;
    steps.fill(y, scalar_from_int64(is_inverted, COMPUTE_DTYPE_BOOL));
    return steps.take();
  }
  values = steps.as_dtype(values, dtype);
  values = steps.as_collapsed(values, 0, static_cast<int32_t>(values.shape.size()));
  const StepOperand sorted = steps.temporary(dtype, values.shape);
  sort(steps, values, 0, false, sorted, {}, alternative == 0);
  StepOperand x = steps.as_dtype(steps.input(0, dtype), dtype);
  x = steps.as_collapsed(x, 0, static_cast<int32_t>(x.shape.size()));
  const StepOperand position = search(steps, sorted, x, false);
  const StepOperand found = steps.temporary(dtype, x.shape), is_found = steps.temporary(COMPUTE_DTYPE_BOOL, x.shape);
  const int64_t n = sorted.shape[0];
  const StepOperand index = steps.temporary(COMPUTE_DTYPE_INT64, x.shape);
  steps.map({"min(x, a)", {extent_term(n - 1)}}, {position}, index);
  steps.gather(sorted, index, found, 0);
  steps.map({is_inverted ? "~((x < a) & (y == z))" : "(x < a) & (y == z)", {extent_term(n)}}, {position, found, x},
            is_found);
  StepOperand result = is_found;
  result.shape = y.shape;
  result.strides = row_major_strides(y.shape);
  steps.copy(result, y);
  return steps.take();
}

}  // namespace

const OpRules isin_1_rules{infer_isin, lower_isin};
const OpRules searchsorted_1_rules{infer_searchsorted, lower_searchsorted, true};

}  // namespace compute
