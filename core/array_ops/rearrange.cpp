// SPDX-License-Identifier: Apache-2.0
// roll, repeat and tile: copies between views.
#include <compute/plugin.h>

#include "core/base/error.hpp"
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

int64_t product_of_extents(const OpCall& call, int64_t extent, int64_t count) {
  int64_t product = 0;
  if (__builtin_mul_overflow(extent, count, &product)) {
    throw Error(COMPUTE_ERROR_OUT_OF_RANGE, std::string(call.schema.name) + ": an extent of " + std::to_string(extent) +
                                                " times " + std::to_string(count) + " does not fit in int64");
  }
  return product;
}

// A view of `y` in which `axis` is two axes, the outer of extent `outer`.
StepOperand split_axis(StepOperand y, size_t axis, int64_t outer) {
  const int64_t inner = y.shape[axis] / outer;
  y = with_axis(std::move(y), static_cast<int32_t>(axis));
  y.shape[axis] = outer;
  y.strides[axis] = inner * y.strides[axis + 1];
  y.shape[axis + 1] = inner;
  return y;
}

std::vector<OutputDesc> infer_roll(const OpCall& call) {
  const std::span<const int64_t> x = call.inputs[0].extents();
  if (x.empty()) refuse(call, "x has rank 0", 0);
  axis_attribute(call, call.inputs[0].rank);
  return {{call.inputs[0].dtype, {x.begin(), x.end()}}};
}

std::optional<Lowering> lower_roll(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.input(0), y = steps.output();
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  const int64_t extent = x.shape[static_cast<size_t>(axis)];
  const int64_t remainder = call.attributes.int64(attribute_index(call, "shift")) % extent;
  const int64_t shift = remainder < 0 ? remainder + extent : remainder;
  steps.copy(narrowed(x, axis, 0, extent - shift), narrowed(y, axis, shift, extent - shift));
  if (shift > 0) steps.copy(narrowed(x, axis, extent - shift, shift), narrowed(y, axis, 0, shift));
  return steps.take();
}

std::vector<OutputDesc> infer_repeat(const OpCall& call) {
  std::vector<OutputDesc> outputs = infer_roll(call);
  int64_t& extent = outputs[0].shape[static_cast<size_t>(axis_attribute(call, call.inputs[0].rank))];
  extent = product_of_extents(call, extent, extent_attribute(call, "repeats"));
  return outputs;
}

std::optional<Lowering> lower_repeat(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.input(0);
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  const int64_t extent = x.shape[static_cast<size_t>(axis)];
  const StepOperand y = split_axis(steps.output(), static_cast<size_t>(axis), extent);
  steps.copy(broadcast_to(with_axis(x, axis + 1), y.shape), y);
  return steps.take();
}

std::span<const int64_t> repetitions(const OpCall& call) {
  return call.attributes.int64_list(attribute_index(call, "repetitions"));
}

std::vector<OutputDesc> infer_tile(const OpCall& call) {
  const std::span<const int64_t> x = call.inputs[0].extents(), counts = repetitions(call);
  std::vector<int64_t> shape(x.begin(), x.end());
  if (counts.size() > shape.size()) shape.insert(shape.begin(), counts.size() - shape.size(), 1);
  const size_t first = shape.size() - counts.size();
  size_t repeated = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0) refuse_attribute(call, "repetitions", "repetitions has a negative entry");
    shape[first + i] = product_of_extents(call, shape[first + i], counts[i]);
    repeated += counts[i] > 1;
  }
  if (shape.size() > COMPUTE_MAX_RANK || shape.size() + repeated > COMPUTE_PLUGIN_MAX_RANK) {
    refuse_attribute(call, "repetitions",
                     "the result has " + std::to_string(shape.size()) + " axes, of which " + std::to_string(repeated) +
                         " repeat; expected at most " + std::to_string(COMPUTE_MAX_RANK) + " axes, and with those " +
                         "that repeat counted twice at most " + std::to_string(COMPUTE_PLUGIN_MAX_RANK));
  }
  return {{call.inputs[0].dtype, std::move(shape)}};
}

std::optional<Lowering> lower_tile(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  StepOperand x = steps.input(0), y = steps.output();
  const std::span<const int64_t> counts = repetitions(call);
  while (x.shape.size() < y.shape.size()) x = with_axis(std::move(x), 0);
  // From the last axis on, so that the positions of earlier ones stay.
  for (size_t i = counts.size(), axis = x.shape.size(); i-- > 0;) {
    --axis;
    if (counts[i] == 1) continue;
    y = split_axis(std::move(y), axis, counts[i]);
    x = with_axis(std::move(x), static_cast<int32_t>(axis));
  }
  steps.copy(broadcast_to(x, y.shape), y);
  return steps.take();
}

}  // namespace

const OpRules repeat_1_rules{infer_repeat, lower_repeat};
const OpRules roll_1_rules{infer_roll, lower_roll};
const OpRules tile_1_rules{infer_tile, lower_tile};

}  // namespace compute
