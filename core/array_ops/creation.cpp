// SPDX-License-Identifier: Apache-2.0
// arange, linspace, eye and fill: one map step without inputs, over positions and run-time scalars.
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

Lowering one_map(const OpCall& call, const LoweringTarget& target, const StepExpression& expression) {
  Steps steps(call, target);
  steps.map(expression, {}, steps.output());
  return steps.take();
}

// The dtype that positions and numbers are computed in.
compute_dtype working_dtype(compute_dtype dtype, const LoweringTarget& target) {
  if (is_integer(dtype)) return dtype;
  if (is_complex(dtype)) return target.has_float64 ? COMPUTE_DTYPE_COMPLEX128 : COMPUTE_DTYPE_COMPLEX64;
  return target.has_float64 ? COMPUTE_DTYPE_FLOAT64 : COMPUTE_DTYPE_FLOAT32;
}

// The same formula for real numbers, and for both parts of complex ones.
template <class Formula>
std::string by_parts(compute_dtype dtype, std::string_view a, std::string_view b, Formula formula) {
  if (!is_complex(dtype)) return formula(std::string(a), std::string(b));
  const auto part = [&](const char* which) {
    return formula(which + ("(" + std::string(a)) + ")", which + ("(" + std::string(b)) + ")");
  };
  return "complex(" + part("real") + ", " + part("imag") + ")";
}

std::vector<OutputDesc> infer_arange(const OpCall& call) {
  const compute_dtype dtype = dtype_attribute(call, "dtype");
  if (!in_class(dtype, DtypeClass::kNumeric))
    refuse_attribute(call, "dtype", "dtype is " + dtype_name(dtype) + "; expected a numeric dtype");
  return {{dtype, {extent_attribute(call, "size")}}};
}

std::optional<Lowering> lower_arange(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  const compute_dtype dtype = working_dtype(target.outputs[0].dtype, target);
  const std::string i = convert_text("index(0)", COMPUTE_DTYPE_INT64, real_part_dtype(dtype));
  const auto formula = [&](const std::string& start, const std::string& step) {
    return start + " + " + i + " * " + step;
  };
  return one_map(call, target,
                 {by_parts(dtype, "a", "b", formula),
                  {attribute_term(call, "start", dtype), attribute_term(call, "step", dtype)}});
}

std::vector<OutputDesc> infer_linspace(const OpCall& call) {
  const compute_dtype dtype = dtype_attribute(call, "dtype");
  if (!in_class(dtype, DtypeClass::kInexact)) {
    refuse_attribute(call, "dtype",
                     "dtype is " + dtype_name(dtype) + "; expected a floating-point or complex dtype; cast the result");
  }
  flag_attribute(call, "endpoint");
  return {{dtype, {extent_attribute(call, "size")}}};
}

std::optional<Lowering> lower_linspace(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  const compute_dtype dtype = working_dtype(target.outputs[0].dtype, target);
  const bool endpoint = flag_attribute(call, "endpoint");
  const int64_t size = target.outputs[0].shape[0];
  const ScalarTerm start = attribute_term(call, "start", dtype), stop = attribute_term(call, "stop", dtype);
  if (size == 1) return one_map(call, target, {"a", {start}});
  const std::string i = convert_text("index(0)", COMPUTE_DTYPE_INT64, real_part_dtype(dtype));
  const auto formula = [&](const std::string& a, const std::string& b) { return even_step(a, b, "c", i); };
  std::string value = "where(index(0) == 0, a, " + by_parts(dtype, "a", "b", formula) + ")";
  if (endpoint) value = "where(index(0) == c, b, " + value + ")";
  return one_map(call, target, {value, {start, stop, extent_term(endpoint ? size - 1 : size)}});
}

std::vector<OutputDesc> infer_eye(const OpCall& call) {
  return {{dtype_attribute(call, "dtype"), {extent_attribute(call, "rows"), extent_attribute(call, "columns")}}};
}

std::optional<Lowering> lower_eye(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  return one_map(call, target,
                 {convert_text("index(1) - index(0) == a", COMPUTE_DTYPE_BOOL, target.outputs[0].dtype),
                  {attribute_term(call, "k", COMPUTE_DTYPE_INT64)}});
}

std::vector<OutputDesc> infer_fill(const OpCall& call) {
  const std::span<const int64_t> shape = call.attributes.int64_list(attribute_index(call, "shape"));
  return {{dtype_attribute(call, "dtype"), {shape.begin(), shape.end()}}};
}

std::optional<Lowering> lower_fill(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  return one_map(call, target, {"a", {attribute_term(call, "value", target.outputs[0].dtype)}});
}

}  // namespace

const OpRules arange_1_rules{infer_arange, lower_arange};
const OpRules eye_1_rules{infer_eye, lower_eye};
const OpRules fill_1_rules{infer_fill, lower_fill};
const OpRules linspace_1_rules{infer_linspace, lower_linspace, true, COMPUTE_DTYPE_FLOAT64};

}  // namespace compute
