// SPDX-License-Identifier: Apache-2.0
// sum, prod, min, max, all, any and count_nonzero: one reduce step.
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

}  // namespace

const OpRules all_1_rules{infer_truth, lower_as<1>};
const OpRules any_1_rules{infer_truth, lower_as<0>};
const OpRules count_nonzero_1_rules{infer_count, lower_count};
const OpRules max_1_rules{infer_max, lower_as<0>};
const OpRules min_1_rules{infer_min, lower_as<0>};
const OpRules prod_1_rules{infer_widened, lower_as<1>};
const OpRules sum_1_rules{infer_widened, lower_as<0>};

}  // namespace compute
