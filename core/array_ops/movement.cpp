// SPDX-License-Identifier: Apache-2.0
// pad, one_hot, tril, triu, and cumulative sums and products.
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

std::vector<OutputDesc> infer_pad(const OpCall& call) {
  const std::span<const int64_t> x = call.inputs[0].extents();
  std::vector<int64_t> shape(x.begin(), x.end());
  for (const char* name : {"pads_begin", "pads_end"}) {
    const std::span<const int64_t> pads = call.attributes.int64_list(attribute_index(call, name));
    if (pads.size() != x.size()) {
      refuse_attribute(call, name,
                       std::string(name) + " has " + std::to_string(pads.size()) + " entries; x has " +
                           std::to_string(x.size()) + " axes");
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      if (pads[i] < 0) refuse_attribute(call, name, std::string(name) + " has a negative entry");
      shape[i] = sum_of_extents(call, shape[i], pads[i]);
    }
  }
  return {{call.inputs[0].dtype, std::move(shape)}};
}

std::optional<Lowering> lower_pad(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  steps.map({"a", {attribute_term(call, "value", y.dtype)}}, {}, y);
  if (!has_elements(call.inputs[0].extents())) return steps.take();
  const StepOperand x = steps.input(0, y.dtype);
  const std::span<const int64_t> begin = call.attributes.int64_list(attribute_index(call, "pads_begin"));
  StepOperand inner = y;
  for (size_t i = 0; i < x.shape.size(); ++i)
    inner = narrowed(std::move(inner), static_cast<int32_t>(i), begin[i], x.shape[i]);
  steps.copy(x, inner);
  return steps.take();
}

std::vector<OutputDesc> infer_one_hot(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInteger);
  const std::span<const int64_t> x = call.inputs[0].extents();
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(x.size()) + 1);
  std::vector<int64_t> shape(x.begin(), x.end());
  shape.insert(shape.begin() + axis, extent_attribute(call, "depth"));
  return {{dtype_attribute(call, "dtype"), std::move(shape)}};
}

std::optional<Lowering> lower_one_hot(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(y.shape.size()));
  const StepOperand x = with_axis(steps.as_indices(steps.input(0)), axis);
  const std::string value = "index(" + std::to_string(axis) + ") == convert(x, int64)";
  steps.map({convert_text(value, COMPUTE_DTYPE_BOOL, y.dtype)}, {x}, y);
  return steps.take();
}

std::vector<OutputDesc> infer_triangle(const OpCall& call) {
  const std::span<const int64_t> x = call.inputs[0].extents();
  if (x.size() < 2) refuse(call, "x has shape " + shape_text(x) + "; expected at least two axes", 0);
  return {{call.inputs[0].dtype, {x.begin(), x.end()}}};
}

std::optional<Lowering> lower_triangle(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                       const char* comparison) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  const auto rank = y.shape.size();
  const std::string column = "index(" + std::to_string(rank - 1) + ")", row = "index(" + std::to_string(rank - 2) + ")";
  const std::string zero = is_bool(y.dtype) ? "false" : "0";
  steps.map({"where(" + column + " - " + row + comparison + "a, x, " + zero + ")",
             {attribute_term(call, "k", COMPUTE_DTYPE_INT64)}},
            {steps.input(0)}, y);
  return steps.take();
}

std::optional<Lowering> lower_tril(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_triangle(call, target, alternative, " <= ");
}

std::optional<Lowering> lower_triu(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_triangle(call, target, alternative, " >= ");
}

// ---- Cumulative -----------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_cumulative(const OpCall& call) {
  require_class(call, 0, DtypeClass::kNumeric);
  const std::span<const int64_t> x = call.inputs[0].extents();
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(x.size()));
  std::vector<int64_t> shape(x.begin(), x.end());
  if (flag_attribute(call, "include_initial"))
    shape[static_cast<size_t>(axis)] = sum_of_extents(call, shape[static_cast<size_t>(axis)], 1);
  compute_dtype dtype = call.inputs[0].dtype;
  const int32_t given = attribute_index(call, "dtype");
  if (call.attributes.has(given)) {
    dtype = call.attributes.dtype(given);
    if (!in_class(dtype, DtypeClass::kNumeric) || (is_complex(call.inputs[0].dtype) && !is_complex(dtype)))
      refuse_attribute(
          call, "dtype",
          "dtype is " + dtype_name(dtype) + ", to which " + dtype_name(call.inputs[0].dtype) + " does not widen");
  } else if (is_integer(dtype)) {
    dtype = is_signed_integer(dtype) ? COMPUTE_DTYPE_INT64 : COMPUTE_DTYPE_UINT64;
  }
  return {{dtype, std::move(shape)}};
}

// Doubling: after step s each element is combined from 2^s of x. The two halves of a step write an array that it does
// not read.
std::optional<Lowering> lower_cumulative(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                         const char* combined, int64_t identity) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  StepOperand y = steps.output();
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(y.shape.size()));
  if (flag_attribute(call, "include_initial")) {
    steps.fill(narrowed(y, axis, 0, 1),
               convert_scalar(scalar_from_int64(identity, COMPUTE_DTYPE_INT64), COMPUTE_DTYPE_INT64, y.dtype));
    const int64_t rest = y.shape[static_cast<size_t>(axis)] - 1;
    if (rest == 0) return steps.take();
    y = narrowed(std::move(y), axis, 1, rest);
  }
  const int64_t n = y.shape[static_cast<size_t>(axis)];
  const compute_dtype accumulator = computed_in(y.dtype);
  StepOperand from = steps.as_dtype(steps.input(0, accumulator), accumulator);
  StepOperand other[2];
  for (int64_t distance = 1, turn = 0; distance < n; distance *= 2, turn = 1 - turn) {
    const bool is_last = distance * 2 >= n && accumulator == y.dtype;
    if (!is_last && other[turn].is_absent()) other[turn] = steps.temporary(accumulator, y.shape);
    const StepOperand to = is_last ? y : other[turn];
    steps.copy(narrowed(from, axis, 0, distance), narrowed(to, axis, 0, distance));
    steps.map({combined}, {narrowed(from, axis, 0, n - distance), narrowed(from, axis, distance, n - distance)},
              narrowed(to, axis, distance, n - distance));
    from = to;
  }
  if (n == 1 || accumulator != y.dtype) steps.copy(from, y);
  return steps.take();
}

std::optional<Lowering> lower_cumulative_sum(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_cumulative(call, target, alternative, "x + y", 0);
}

std::optional<Lowering> lower_cumulative_prod(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_cumulative(call, target, alternative, "x * y", 1);
}

}  // namespace

const OpRules cumulative_prod_1_rules{infer_cumulative, lower_cumulative_prod, true};
const OpRules cumulative_sum_1_rules{infer_cumulative, lower_cumulative_sum, true};
const OpRules one_hot_1_rules{infer_one_hot, lower_one_hot};
const OpRules pad_1_rules{infer_pad, lower_pad};
const OpRules tril_1_rules{infer_triangle, lower_tril};
const OpRules triu_1_rules{infer_triangle, lower_triu};

}  // namespace compute
