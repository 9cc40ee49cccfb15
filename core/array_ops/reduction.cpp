// SPDX-License-Identifier: Apache-2.0
#include "core/array_ops/reduction.hpp"

#include <algorithm>

namespace compute {

namespace {

Reduction over_axes(const OpCall& call, std::vector<int64_t> axes, bool keepdims) {
  const std::span<const int64_t> extents = call.inputs[0].extents();
  Reduction reduction;
  reduction.axes = std::move(axes);
  for (size_t i = 0; i < extents.size(); ++i) {
    const bool reduced = std::binary_search(reduction.axes.begin(), reduction.axes.end(), static_cast<int64_t>(i));
    reduction.kept_shape.push_back(reduced ? 1 : extents[i]);
    if (!reduced || keepdims) reduction.shape.push_back(reduction.kept_shape.back());
    if (reduced) reduction.count *= extents[i];
  }
  return reduction;
}

std::vector<int64_t> all_axes(const OpCall& call) {
  std::vector<int64_t> axes;
  for (int32_t i = 0; i < call.inputs[0].rank; ++i) axes.push_back(i);
  return axes;
}

}  // namespace

Reduction read_reduction(const OpCall& call) {
  const int32_t index = attribute_index(call, "axes");
  std::vector<int64_t> axes;
  if (call.attributes.has(index)) {
    for (const int64_t axis : call.attributes.int64_list(index)) {
      axes.push_back(normalize_axis(call.schema.name, axis, call.inputs[0].rank, "axes"));
    }
    std::sort(axes.begin(), axes.end());
    const auto twice = std::adjacent_find(axes.begin(), axes.end());
    if (twice != axes.end()) refuse_attribute(call, "axes", "axis " + std::to_string(*twice) + " is given twice");
  } else {
    axes = all_axes(call);
  }
  return over_axes(call, std::move(axes), flag_attribute(call, "keepdims"));
}

Reduction read_arg_reduction(const OpCall& call) {
  const int32_t index = attribute_index(call, "axis");
  std::vector<int64_t> axes = all_axes(call);
  if (call.attributes.has(index)) {
    axes = {normalize_axis(call.schema.name, call.attributes.int64(index), call.inputs[0].rank)};
  }
  return over_axes(call, std::move(axes), flag_attribute(call, "keepdims"));
}

void refuse_empty(const OpCall& call, const Reduction& reduction) {
  if (reduction.count == 0 && has_elements(reduction.shape)) {
    refuse(call,
           "x has shape " + shape_text(call.inputs[0].extents()) + "; the " + call.schema.name +
               " of zero elements is undefined",
           0);
  }
}

StepOperand reduced_output(const Steps& steps, const Reduction& reduction) {
  StepOperand output = steps.output();
  if (output.shape.size() != reduction.kept_shape.size()) {
    for (const int64_t axis : reduction.axes) output = with_axis(std::move(output), static_cast<int32_t>(axis));
  }
  return output;
}

}  // namespace compute
