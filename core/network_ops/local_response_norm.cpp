// SPDX-License-Identifier: Apache-2.0
// Local response normalisation: a reduction over an overlapping view of the channels, between zeros.
#include <algorithm>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

// x [n, c, spatial...].
std::vector<OutputDesc> infer_local_response_norm(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const std::span<const int64_t> shape = call.inputs[0].extents();
  if (shape.size() < 2) refuse(call, "x has shape " + shape_text(shape) + "; expected [n, c, spatial…]", 0);
  if (extent_attribute(call, "size") < 1) refuse_attribute(call, "size", "size is 0; expected at least 1");
  return {{call.inputs[0].dtype, {shape.begin(), shape.end()}}};
}

std::optional<Lowering> lower_local_response_norm(const OpCall& call, const LoweringTarget& target,
                                                  int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  constexpr int32_t kChannels = 1;
  Steps steps(call, target);
  const StepOperand x = steps.input(0), y = steps.output();
  const compute_dtype computed = computed_in(x.dtype);
  // More channels than there are before and after an element count no more.
  const int64_t channels = x.shape[kChannels], size = extent_attribute(call, "size");
  const int64_t before = std::min((size - 1) / 2, channels - 1), after = std::min(size / 2, channels - 1);
  std::vector<int64_t> shape = x.shape;
  shape[kChannels] = before + channels + after;
  const StepOperand padded = steps.temporary(x.dtype, shape), sums = steps.temporary(computed, x.shape);
  const auto zeros = [&](int64_t start, int64_t extent) {
    if (extent > 0) steps.fill(narrowed(padded, kChannels, start, extent), {});
  };
  zeros(0, before);
  steps.copy(x, narrowed(padded, kChannels, before, channels));
  zeros(before + channels, after);
  StepOperand windows = with_axis(padded, kChannels + 1, before + 1 + after);
  windows.shape[kChannels] = channels;
  windows.strides[kChannels + 1] = padded.strides[kChannels];
  const int64_t axis = kChannels + 1;
  const std::string value = convert_text("x", x.dtype, computed);
  steps.reduce("sum", computed, {&axis, 1}, {value + " * " + value}, {windows}, {"x"}, with_axis(sums, kChannels + 1));
  StepExpression divided{value + " / (bias + alpha / size * s) ** beta"};
  for (const char* name : {"alpha", "beta", "bias"})
    divided.scalars.push_back(attribute_term(call, name, computed).named(name));
  divided.scalars.push_back(extent_term(size).named("size"));
  divided.inputs = {"x", "s"};
  steps.map(divided, {x, sums}, y);
  return steps.take();
}

}  // namespace

const OpRules local_response_norm_1_rules{infer_local_response_norm, lower_local_response_norm, true};

}  // namespace compute
