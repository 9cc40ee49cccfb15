// SPDX-License-Identifier: Apache-2.0
// sum, prod, min, max, all, any and count_nonzero are one reduce step; reductions of bits are maps of parts.
#include <algorithm>

#include "core/array_ops/reduction.hpp"

namespace compute {

namespace {

std::vector<OutputDesc> infer_truth(const OpCall& call) { return {{COMPUTE_DTYPE_BOOL, read_reduction(call).shape}}; }

std::vector<OutputDesc> infer_extreme(const OpCall& call) {
  require_class(call, 0, DtypeClass::kReal);
  Reduction reduction = read_reduction(call);
  refuse_empty(call, reduction);
  return {{call.inputs[0].dtype, std::move(reduction.shape)}};
}

std::vector<OutputDesc> infer_max(const OpCall& call) { return infer_extreme(call); }
std::vector<OutputDesc> infer_min(const OpCall& call) { return infer_extreme(call); }

// Of integers and bool the 64-bit dtype of the same sign, unless the attribute names another.
compute_dtype widened(const OpCall& call) {
  const compute_dtype from = call.inputs[0].dtype;
  if (call.attributes.has(attribute_index(call, "dtype"))) {
    const compute_dtype to = dtype_attribute(call, "dtype");
    if (is_bool(to) || is_float8(to) || (is_complex(from) && !is_complex(to))) {
      refuse(call, "x is " + dtype_name(from) + "; its " + call.schema.name + " cannot be " + dtype_name(to), 0);
    }
    return to;
  }
  if (is_float8(from)) require_class(call, 0, DtypeClass::kNumeric);
  if (is_unsigned_integer(from)) return COMPUTE_DTYPE_UINT64;
  return is_bool(from) || is_integer(from) ? COMPUTE_DTYPE_INT64 : from;
}

std::vector<OutputDesc> infer_widened(const OpCall& call) { return {{widened(call), read_reduction(call).shape}}; }

std::optional<Lowering> lower_reduce(const OpCall& call, const LoweringTarget& target, const char* kind,
                                     const ScalarBits& empty) {
  Steps steps(call, target);
  const Reduction reduction = read_reduction(call);
  const StepOperand output = reduced_output(steps, reduction);
  if (reduction.count == 0) {
    steps.fill(output, empty);
    return steps.take();
  }
  const StepOperand x = steps.input(0);
  const compute_dtype accumulator = computed_in(output.dtype);
  // Half types are converted by typing; a text is needed where the kind of the dtype changes.
  std::string before =
      is_bool(accumulator) && !is_bool(x.dtype) ? "x != 0" : convert_text("x", computed_in(x.dtype), accumulator);
  steps.reduce(kind, accumulator, reduction.axes, {std::move(before)}, {x}, {"x"}, output);
  return steps.take();
}

template <int64_t Empty>
std::optional<Lowering> lower_as(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  return lower_reduce(call, target, call.schema.name.c_str(), scalar_from_int64(Empty, target.outputs[0].dtype));
}

// ---- count_nonzero --------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_count(const OpCall& call) { return {{COMPUTE_DTYPE_INT64, read_reduction(call).shape}}; }

std::optional<Lowering> lower_count(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const Reduction reduction = read_reduction(call);
  const StepOperand output = reduced_output(steps, reduction);
  if (reduction.count == 0) {
    steps.fill(output, {});
    return steps.take();
  }
  const StepOperand x = steps.input(0);
  const std::string is_set = is_bool(x.dtype) ? "x" : "x != 0";
  steps.reduce("sum", COMPUTE_DTYPE_INT64, reduction.axes, {"convert(" + is_set + ", int64)"}, {x}, {"x"}, output);
  return steps.take();
}

// ---- Bits -----------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_combined_bits(const OpCall& call) {
  require_class(call, 0, DtypeClass::kBits);
  return {{call.inputs[0].dtype, read_reduction(call).shape}};
}

// Parts of an axis that one map combines.
constexpr int64_t kParts = 8;

// Combines the elements along `axis` to one, in `to`: each map combines equal parts of what is left, so that memory is
// passed over about once.
void combine_along(Steps& steps, const std::string& word, StepOperand x, int32_t axis, const StepOperand& to) {
  const auto part_of = [&](int64_t start, int64_t extent) { return narrowed(x, axis, start, extent); };
  const auto combine = [&](int64_t parts, int64_t extent, const StepOperand& result) {
    static constexpr const char* kNames[kParts] = {"x", "y", "z", "x3", "x4", "x5", "x6", "x7"};
    std::string text = kNames[0];
    std::vector<StepOperand> inputs = {part_of(0, extent)};
    for (int64_t i = 1; i < parts; ++i) {
      text += " " + word + " " + kNames[i];
      inputs.push_back(part_of(i * extent, extent));
    }
    steps.map({text}, std::move(inputs), result);
  };
  const auto axis_place = static_cast<size_t>(axis);
  while (x.shape[axis_place] > kParts) {
    const int64_t n = x.shape[axis_place], extent = n / kParts, rest = n % kParts;
    std::vector<int64_t> shape = x.shape;
    shape[axis_place] = extent + rest;
    const StepOperand fewer = steps.temporary(x.dtype, shape);
    combine(kParts, extent, narrowed(fewer, axis, 0, extent));
    if (rest > 0) steps.copy(part_of(n - rest, rest), narrowed(fewer, axis, extent, rest));
    x = fewer;
  }
  combine(x.shape[axis_place], 1, to);
}

std::optional<Lowering> lower_combined_bits(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                            const char* word, int64_t empty) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const Reduction reduction = read_reduction(call);
  const StepOperand output = reduced_output(steps, reduction);
  if (reduction.count == 0) {
    steps.fill(output, scalar_from_int64(empty, output.dtype));
    return steps.take();
  }
  StepOperand x = steps.input(0);
  std::vector<int64_t> axes = reduction.axes;
  std::erase_if(axes, [&](int64_t axis) { return x.shape[static_cast<size_t>(axis)] == 1; });
  if (axes.empty()) {
    steps.copy(x, output);
    return steps.take();
  }
  // The longest axis first leaves the least for the others.
  std::ranges::stable_sort(
      axes, [&](int64_t a, int64_t b) { return x.shape[static_cast<size_t>(a)] > x.shape[static_cast<size_t>(b)]; });
  for (size_t i = 0; i < axes.size(); ++i) {
    std::vector<int64_t> shape = x.shape;
    shape[static_cast<size_t>(axes[i])] = 1;
    const StepOperand to = i + 1 == axes.size() ? output : steps.temporary(x.dtype, shape);
    combine_along(steps, word, x, static_cast<int32_t>(axes[i]), to);
    x = to;
  }
  return steps.take();
}

std::optional<Lowering> lower_and(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_combined_bits(call, target, alternative, "&", is_bool(call.inputs[0].dtype) ? 1 : -1);
}
std::optional<Lowering> lower_or(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_combined_bits(call, target, alternative, "|", 0);
}
std::optional<Lowering> lower_xor(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_combined_bits(call, target, alternative, "^", 0);
}

}  // namespace

const OpRules all_1_rules{infer_truth, lower_as<1>};
const OpRules any_1_rules{infer_truth, lower_as<0>};
const OpRules count_nonzero_1_rules{infer_count, lower_count};
const OpRules max_1_rules{infer_max, lower_as<0>};
const OpRules min_1_rules{infer_min, lower_as<0>};
const OpRules prod_1_rules{infer_widened, lower_as<1>};
const OpRules reduce_and_1_rules{infer_combined_bits, lower_and};
const OpRules reduce_or_1_rules{infer_combined_bits, lower_or};
const OpRules reduce_xor_1_rules{infer_combined_bits, lower_xor};
const OpRules sum_1_rules{infer_widened, lower_as<0>};

}  // namespace compute
