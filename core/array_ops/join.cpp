// SPDX-License-Identifier: Apache-2.0
// concat and stack: a copy per input into a slice of the output. A GPU copies eight inputs of one shape in one launch.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

[[noreturn]] void refuse_shape(const OpCall& call, size_t index, const std::string& where) {
  refuse(call,
         call.schema.input_name(static_cast<int32_t>(index)) + " has shape " +
             shape_text(call.inputs[index].extents()) + ", which differs from " + shape_text(call.inputs[0].extents()) +
             where,
         static_cast<int32_t>(index));
}

constexpr std::string_view kMapInputs[] = {"x", "y", "z", "x3", "x4", "x5", "x6", "x7"};

std::vector<OutputDesc> infer_concat(const OpCall& call) {
  const std::span<const int64_t> first = call.inputs[0].extents();
  if (first.empty()) refuse(call, "xs[0] has rank 0; use stack to join scalars", 0);
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  std::vector<int64_t> shape(first.begin(), first.end());
  int64_t& joined = shape[static_cast<size_t>(axis)];
  joined = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const std::span<const int64_t> other = call.inputs[i].extents();
    bool agrees = other.size() == first.size();
    for (size_t k = 0; agrees && k < first.size(); ++k) agrees = k == static_cast<size_t>(axis) || other[k] == first[k];
    if (!agrees) refuse_shape(call, i, " outside axis " + std::to_string(axis));
    if (__builtin_add_overflow(joined, other[static_cast<size_t>(axis)], &joined)) {
      throw Error(COMPUTE_ERROR_OUT_OF_RANGE,
                  "concat: the extents along axis " + std::to_string(axis) + " do not fit in int64");
    }
  }
  return {{promote_inputs(call, DtypeClass::kAny), std::move(shape)}};
}

std::vector<OutputDesc> infer_stack(const OpCall& call) {
  const std::span<const int64_t> first = call.inputs[0].extents();
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    const std::span<const int64_t> other = call.inputs[i].extents();
    if (!std::equal(first.begin(), first.end(), other.begin(), other.end())) refuse_shape(call, i, "");
  }
  std::vector<int64_t> shape(first.begin(), first.end());
  const int32_t axis = axis_attribute(call, call.inputs[0].rank + 1);
  shape.insert(shape.begin() + axis, static_cast<int64_t>(call.inputs.size()));
  return {{promote_inputs(call, DtypeClass::kAny), std::move(shape)}};
}

// Numbers that a map passes on as they are: it would make NaN of halves quiet.
bool can_be_maps(const OpCall& call, const LoweringTarget& target, int32_t axis, bool is_stack) {
  if (!target.is_gpu || call.inputs.size() < 2) return false;
  return std::ranges::all_of(call.inputs, [&](const OperandDesc& x) {
    return !x.is_scalar && computed_in(x.dtype) == x.dtype &&
           (is_stack || x.shape[axis] == call.inputs[0].shape[axis]) && has_elements(x.extents());
  });
}

void map_into_slices(Steps& steps, const OpCall& call, int32_t axis, bool is_stack) {
  const int64_t extent = is_stack ? 1 : call.inputs[0].shape[axis];
  for (size_t begin = 0; begin < call.inputs.size(); begin += std::size(kMapInputs)) {
    StepExpression values{""};
    std::vector<StepOperand> inputs, outputs;
    for (size_t i = begin; i < std::min(begin + std::size(kMapInputs), call.inputs.size()); ++i) {
      StepOperand x = steps.input(static_cast<int32_t>(i));
      outputs.push_back(narrowed(steps.output(), axis, static_cast<int64_t>(i) * extent, extent));
      values.text += (i > begin ? "; " : "") + convert_text(kMapInputs[i - begin], x.dtype, outputs.back().dtype);
      inputs.push_back(is_stack ? with_axis(std::move(x), axis) : std::move(x));
    }
    steps.map(values, std::move(inputs), std::move(outputs));
  }
}

std::optional<Lowering> lower_join(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                   bool is_stack) {
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(target.outputs[0].shape.size()));
  const bool has_maps = can_be_maps(call, target, axis, is_stack);
  if (alternative > (has_maps ? 1 : 0)) return std::nullopt;
  Steps steps(call, target);
  if (has_maps && alternative == 0) {
    map_into_slices(steps, call, axis, is_stack);
    return steps.take();
  }
  int64_t start = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const OperandDesc& input = call.inputs[i];
    const int64_t extent = is_stack ? 1 : input.shape[axis];
    if (extent == 0) continue;
    StepOperand slice = narrowed(steps.output(), axis, start, extent);
    start += extent;
    const auto index = static_cast<int32_t>(i);
    if (input.is_scalar) {
      const ScalarTerm term{{ScalarSource::kOperand, index, slice.dtype, {}}, {slice.dtype, false, true}};
      steps.map({"a", {term}}, {}, std::move(slice));
    } else {
      StepOperand x = steps.input(index);
      steps.copy(is_stack ? with_axis(std::move(x), axis) : std::move(x), std::move(slice));
    }
  }
  return steps.take();
}

std::optional<Lowering> lower_concat(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_join(call, target, alternative, false);
}

std::optional<Lowering> lower_stack(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_join(call, target, alternative, true);
}

}  // namespace

const OpRules concat_1_rules{infer_concat, lower_concat, true};
const OpRules stack_1_rules{infer_stack, lower_stack, true};

}  // namespace compute
