// SPDX-License-Identifier: Apache-2.0
// Cumulative sums, products, maxima and minima.
#include "core/ops/rules.hpp"
#include "core/sorting_ops/parts.hpp"

namespace compute {

namespace {

std::vector<OutputDesc> infer_shape(const OpCall& call, compute_dtype dtype) {
  const std::span<const int64_t> x = call.inputs[0].extents();
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(x.size()));
  std::vector<int64_t> shape(x.begin(), x.end());
  flag_attribute(call, "reverse");
  const bool is_exclusive = flag_attribute(call, "exclusive");
  if (flag_attribute(call, "include_initial")) {
    if (is_exclusive) refuse_attribute(call, "exclusive", "exclusive and include_initial exclude each other");
    shape[static_cast<size_t>(axis)] = sum_of_extents(call, shape[static_cast<size_t>(axis)], 1);
  }
  return {{dtype, std::move(shape)}};
}

std::vector<OutputDesc> infer_widened(const OpCall& call) {
  require_class(call, 0, DtypeClass::kNumeric);
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
  return infer_shape(call, dtype);
}

std::vector<OutputDesc> infer_ordered(const OpCall& call) {
  require_class(call, 0, DtypeClass::kReal);
  return infer_shape(call, call.inputs[0].dtype);
}

std::optional<Lowering> lower_cumulative(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                         const char* kind) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  StepOperand y = steps.output();
  const int32_t axis = axis_attribute(call, static_cast<int32_t>(y.shape.size()));
  const bool is_reversed = flag_attribute(call, "reverse");
  if (flag_attribute(call, "include_initial")) {
    const int64_t rest = y.shape[static_cast<size_t>(axis)] - 1;
    steps.fill(narrowed(y, axis, is_reversed ? rest : 0, 1), identity_of(kind, y.dtype));
    if (rest == 0) return steps.take();
    y = narrowed(std::move(y), axis, is_reversed ? 0 : 1, rest);
  }
  const compute_dtype accumulator = computed_in(y.dtype);
  const Scan wanted{kind, accumulator, axis, flag_attribute(call, "exclusive"), is_reversed};
  scan(steps, wanted, steps.input(0, accumulator), y, alternative == 0);
  return steps.take();
}

std::optional<Lowering> lower_sum(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_cumulative(call, target, alternative, "sum");
}
std::optional<Lowering> lower_prod(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_cumulative(call, target, alternative, "prod");
}
std::optional<Lowering> lower_max(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_cumulative(call, target, alternative, "max");
}
std::optional<Lowering> lower_min(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_cumulative(call, target, alternative, "min");
}

}  // namespace

const OpRules cumulative_max_1_rules{infer_ordered, lower_max};
const OpRules cumulative_min_1_rules{infer_ordered, lower_min};
const OpRules cumulative_prod_1_rules{infer_widened, lower_prod};
const OpRules cumulative_sum_1_rules{infer_widened, lower_sum};

}  // namespace compute
