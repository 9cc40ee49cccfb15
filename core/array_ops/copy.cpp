// SPDX-License-Identifier: Apache-2.0
// copy and cast: the copy primitive.
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

std::vector<OutputDesc> same(const OpCall& call, compute_dtype dtype) {
  const auto shape = call.inputs[0].extents();
  return {{dtype, {shape.begin(), shape.end()}}};
}

std::vector<OutputDesc> infer_copy(const OpCall& call) { return same(call, call.inputs[0].dtype); }

std::vector<OutputDesc> infer_cast(const OpCall& call) {
  const compute_dtype from = call.inputs[0].dtype, to = dtype_attribute(call, "dtype");
  if (is_complex(from) && !is_complex(to) && !is_bool(to)) {
    refuse(call,
           "x is " + dtype_name(from) + " and cannot be converted to " + dtype_name(to) + "; use real(x) or abs(x)", 0);
  }
  return same(call, to);
}

std::optional<Lowering> lower_copy(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand output = steps.output();
  if (call.inputs[0].is_scalar) {
    const ScalarTerm term{{ScalarSource::kOperand, 0, output.dtype, {}}, {output.dtype, false, true}};
    steps.map({"a", {term}}, {}, output);
  } else if (!target.in_place) {
    steps.copy(steps.input(0), output);
  }
  return steps.take();
}

}  // namespace

const OpRules copy_1_rules{infer_copy, lower_copy};
const OpRules cast_1_rules{infer_cast, lower_copy};

}  // namespace compute
