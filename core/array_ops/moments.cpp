// SPDX-License-Identifier: Apache-2.0
// mean, var and std. The latter two read x twice: first for the mean, then for the squares of the differences from it.
#include <limits>

#include "core/array_ops/reduction.hpp"

namespace compute {

namespace {

std::vector<OutputDesc> infer_mean(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInexact);
  return {{call.inputs[0].dtype, read_reduction(call).shape}};
}

std::vector<OutputDesc> infer_variance(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInexact);
  return {{real_part_dtype(call.inputs[0].dtype), read_reduction(call).shape}};
}

// A complex number by a real one, each part rounded once.
StepExpression divided(compute_dtype dtype, int64_t count) {
  return {is_complex(dtype) ? "complex(real(x) / a, imag(x) / a)" : "x / a", {extent_term(count)}};
}

std::optional<Lowering> lower_mean(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const Reduction reduction = read_reduction(call);
  const StepOperand output = reduced_output(steps, reduction);
  if (reduction.count == 0) {
    steps.fill(output, scalar_from_double(std::numeric_limits<double>::quiet_NaN(), output.dtype));
    return steps.take();
  }
  const StepOperand x = steps.input(0);
  const compute_dtype accumulator = computed_in(x.dtype);
  steps.reduce("sum", accumulator, reduction.axes, {"x"}, {x}, divided(accumulator, reduction.count), output);
  return steps.take();
}

std::optional<Lowering> lower_variance(const OpCall& call, const LoweringTarget& target, bool root,
                                       int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const Reduction reduction = read_reduction(call);
  const StepOperand output = reduced_output(steps, reduction);
  if (reduction.count == 0) {
    if (alternative > 0) return std::nullopt;
    steps.fill(output, scalar_from_double(std::numeric_limits<double>::quiet_NaN(), output.dtype));
    return steps.take();
  }
  const StepOperand x = steps.input(0);
  const compute_dtype computed = computed_in(x.dtype), accumulator = real_part_dtype(computed);
  const std::string squares = is_complex(computed) ? "real(x - mean) * real(x - mean) + imag(x - mean) * imag(x - mean)"
                                                   : "(x - mean) * (x - mean)";
  // A correction of n or more divides by 0: infinite, or NaN where nothing differs.
  const std::string variance = "square_sum / max(count - correction, 0)";
  Row row{{x}, reduction.axes, {}};
  row.stages.push_back({"sum", computed, {"x"}, divided(computed, reduction.count), computed, "mean"});
  row.stages.push_back({"sum",
                        accumulator,
                        {squares},
                        {root ? "sqrt(" + variance + ")" : variance,
                         {extent_term(reduction.count).named("count"),
                          attribute_term(call, "correction", accumulator).named("correction")},
                         {"square_sum"}},
                        output.dtype});
  row.stored.push_back({1, output});
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  return steps.take();
}

std::optional<Lowering> lower_var(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_variance(call, target, false, alternative);
}

std::optional<Lowering> lower_std(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_variance(call, target, true, alternative);
}

}  // namespace

const OpRules mean_1_rules{infer_mean, lower_mean};
const OpRules std_1_rules{infer_variance, lower_std, true};
const OpRules var_1_rules{infer_variance, lower_var, true};

}  // namespace compute
