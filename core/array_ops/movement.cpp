// SPDX-License-Identifier: Apache-2.0
// pad, one_hot, tril, triu and diff.
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

// ---- Differences ----------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_diff(const OpCall& call) {
  require_class(call, 0, DtypeClass::kNumeric);
  const std::span<const int64_t> x = call.inputs[0].extents();
  if (x.empty()) refuse(call, "x has rank 0", 0);
  std::vector<int64_t> shape(x.begin(), x.end());
  int64_t& extent = shape[static_cast<size_t>(axis_attribute(call, static_cast<int32_t>(x.size())))];
  extent = std::max<int64_t>(extent - extent_attribute(call, "n"), 0);
  return {{call.inputs[0].dtype, std::move(shape)}};
}

std::optional<Lowering> lower_diff(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(y.shape.size()));
  const int64_t times = extent_attribute(call, "n");
  StepOperand from = steps.input(0);
  if (times == 0) steps.copy(from, y);
  for (int64_t i = 1; i <= times; ++i) {
    std::vector<int64_t> shape = from.shape;
    const int64_t extent = --shape[static_cast<size_t>(axis)];
    const StepOperand to = i == times ? y : steps.temporary(y.dtype, shape);
    steps.map({"y - x"}, {narrowed(from, axis, 0, extent), narrowed(from, axis, 1, extent)}, to);
    from = to;
  }
  return steps.take();
}

}  // namespace

const OpRules diff_1_rules{infer_diff, lower_diff};
const OpRules one_hot_1_rules{infer_one_hot, lower_one_hot};
const OpRules pad_1_rules{infer_pad, lower_pad};
const OpRules tril_1_rules{infer_triangle, lower_tril};
const OpRules triu_1_rules{infer_triangle, lower_triu};

}  // namespace compute
