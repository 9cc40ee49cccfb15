// SPDX-License-Identifier: Apache-2.0
// Layer, group, root-mean-square and batch normalisation with their gradients: rows over the normalised axes, and sums
// over the remaining axes for the gradients of scale and bias.
#include <limits>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

enum class Norm : uint8_t { kLayer, kBatch, kGroup };

// The normalised axes, and how the parameters lie along x. Of group norms axis 1 of x is seen as two axes: the groups,
// and the channels of a group.
struct Layout {
  std::vector<int64_t> axes, others;
  std::vector<int64_t> parameter_axes, without_parameter;  // axes that scale and bias have, and those that they lack
  std::vector<int64_t> kept;                               // x's shape with extent 1 along `axes`
  std::vector<int64_t> reduced;                            // x's shape without `axes`
  std::vector<int64_t> parameter;                          // the shape of scale and bias
  std::vector<int64_t> channels;                           // of group norms: the groups and the channels of a group
  int64_t count = 1;                                       // elements that are normalised together
};

// The groups, and the channels of a group.
std::vector<int64_t> read_groups(const OpCall& call, int32_t input) {
  const std::span<const int64_t> shape = call.inputs[static_cast<size_t>(input)].extents();
  const int64_t groups = call.attributes.int64(attribute_index(call, "groups"));
  if (shape.size() < 2) {
    refuse(call, call.schema.input_name(input) + " has shape " + shape_text(shape) + "; expected samples and channels",
           input);
  }
  if (groups < 1 || shape[1] % groups != 0) {
    refuse_attribute(
        call, "groups",
        std::to_string(shape[1]) + " channels cannot be divided into " + std::to_string(groups) + " groups");
  }
  return {groups, shape[1] / groups};
}

// Layer norms normalise the axes from `axis` on; batch norms all but `axis`; group norms those after the groups.
Layout read_layout(const OpCall& call, int32_t input, Norm norm) {
  const std::span<const int64_t> given = call.inputs[static_cast<size_t>(input)].extents();
  std::vector<int64_t> shape(given.begin(), given.end());
  Layout layout;
  int32_t axis = 2;
  if (norm == Norm::kGroup) {
    layout.channels = read_groups(call, input);
    shape.erase(shape.begin() + 1);
    shape.insert(shape.begin() + 1, layout.channels.begin(), layout.channels.end());
  } else {
    axis = axis_attribute(call, static_cast<int32_t>(shape.size()));
  }
  for (int32_t i = 0; i < static_cast<int32_t>(shape.size()); ++i) {
    const int64_t extent = shape[static_cast<size_t>(i)];
    const bool is_normalised = norm == Norm::kBatch ? i != axis : i >= axis;
    const bool has_parameter = norm == Norm::kGroup ? i == 1 || i == 2 : is_normalised != (norm == Norm::kBatch);
    (is_normalised ? layout.axes : layout.others).push_back(i);
    (has_parameter ? layout.parameter_axes : layout.without_parameter).push_back(i);
    layout.kept.push_back(is_normalised ? 1 : extent);
    if (!is_normalised) layout.reduced.push_back(extent);
    if (has_parameter && norm != Norm::kGroup) layout.parameter.push_back(extent);
    if (is_normalised) layout.count *= extent;
  }
  if (norm == Norm::kGroup) layout.parameter.push_back(given[1]);
  return layout;
}

// x, or an operand of its shape, with the axes of the layout.
StepOperand whole(const StepOperand& x, const Layout& layout) {
  return layout.channels.empty() ? x : split_axis(x, 1, layout.channels);
}

// A parameter with all axes of the layout; axes that it lacks have extent 1.
StepOperand parameter_view(StepOperand value, const Layout& layout) {
  if (!layout.channels.empty()) value = split_axis(value, 0, layout.channels);
  for (const int64_t axis : layout.without_parameter) value = with_axis(std::move(value), static_cast<int32_t>(axis));
  return value;
}

// A parameter, or a value per group, as an operand of x's shape.
StepOperand along(StepOperand value, const Layout& layout, bool is_parameter, std::span<const int64_t> shape) {
  if (is_parameter) return broadcast_to(parameter_view(std::move(value), layout), shape);
  for (const int64_t axis : layout.axes) value = with_axis(std::move(value), static_cast<int32_t>(axis));
  return broadcast_to(value, shape);
}

void check_parameter(const OpCall& call, int32_t index, const Layout& layout, compute_dtype dtype) {
  if (static_cast<size_t>(index) >= call.inputs.size() ||
      call.inputs[static_cast<size_t>(index)].dtype == COMPUTE_DTYPE_NONE)
    return;
  require_tensor(call, index, dtype, layout.parameter);
}

// ---- Layer, batch and group norm ------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_norm(const OpCall& call, Norm norm) {
  require_class(call, 0, DtypeClass::kFloat);
  const Layout layout = read_layout(call, 0, norm);
  const compute_dtype dtype = call.inputs[0].dtype, computed = computed_in(dtype);
  for (int32_t i = 1; i < 3; ++i) check_parameter(call, i, layout, dtype);
  const std::span<const int64_t> shape = call.inputs[0].extents();
  return {{dtype, {shape.begin(), shape.end()}}, {computed, layout.reduced}, {computed, layout.reduced}};
}

std::optional<Lowering> lower_norm(const OpCall& call, const LoweringTarget& target, int32_t alternative, Norm norm) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const Layout layout = read_layout(call, 0, norm);
  const StepOperand x = whole(steps.input(0), layout);
  const compute_dtype computed = computed_in(x.dtype);
  const StepOperand mean = along(steps.output(1), layout, false, layout.kept),
                    spread = along(steps.output(2), layout, false, layout.kept);
  if (layout.count == 0) {
    if (alternative > 0) return std::nullopt;
    for (const StepOperand& each : {mean, spread})
      steps.fill(each, scalar_from_double(std::numeric_limits<double>::quiet_NaN(), computed));
    return steps.take();
  }
  Row row{{x}, layout.axes, {}};
  std::string text = "(x - r0) * r1";
  const ScalarTerm epsilon = attribute_term(call, "epsilon", computed);
  row.stages.push_back({"sum", computed, {"x"}, {"x / a", {extent_term(layout.count)}}, computed});
  if (norm == Norm::kBatch) {
    // The variance is the third output; its reciprocal root is taken at each element.
    row.stages.push_back({"sum", computed, {"(x - r0) * (x - r0)"}, {"x / a", {extent_term(layout.count)}}, computed});
    text = "(x - r0) * rsqrt(r1 + a)";
  } else {
    row.stages.push_back({"sum",
                          computed,
                          {"(x - r0) * (x - r0)"},
                          {"1 / sqrt(x / a + b)", {extent_term(layout.count), epsilon}},
                          computed});
  }
  constexpr std::string_view kNames[] = {"y", "z"};
  for (int32_t i = 1; i < 3; ++i) {
    if (!steps.has_input(i)) continue;
    const std::string name(kNames[row.inputs.size() - 1]);
    row.inputs.push_back(along(steps.input(i), layout, true, x.shape));
    text += (i == 1 ? " * " : " + ") + name;
  }
  row.map = StepExpression{text, norm == Norm::kBatch ? std::vector<ScalarTerm>{epsilon} : std::vector<ScalarTerm>{}};
  row.outputs = {whole(steps.output(), layout)};
  row.stored = {{0, mean}, {1, spread}};
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  return steps.take();
}

// Inputs dy, x, mean, the spread (rstd, or the variance of a batch), scale?; outputs dx, dscale, dbias.
std::vector<OutputDesc> infer_norm_grad(const OpCall& call, Norm norm) {
  require_class(call, 1, DtypeClass::kFloat);
  require_same(call, 0, 1);
  const Layout layout = read_layout(call, 1, norm);
  const compute_dtype dtype = call.inputs[1].dtype, computed = computed_in(dtype);
  require_tensor(call, 2, computed, layout.reduced);
  require_tensor(call, 3, computed, layout.reduced);
  check_parameter(call, 4, layout, dtype);
  const std::span<const int64_t> shape = call.inputs[1].extents();
  return {{dtype, {shape.begin(), shape.end()}}, {dtype, layout.parameter}, {dtype, layout.parameter}};
}

std::optional<Lowering> lower_norm_grad(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                        Norm norm) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const Layout layout = read_layout(call, 1, norm);
  const StepOperand dy = whole(steps.input(0), layout), x = whole(steps.input(1), layout);
  const compute_dtype computed = computed_in(x.dtype);
  const std::vector<int64_t>& summed = layout.without_parameter;
  const auto parameter = [&](int32_t index) { return parameter_view(steps.output(index), layout); };
  if (!has_elements(x.shape)) {
    if (alternative > 0) return std::nullopt;
    for (int32_t i = 1; i < 3; ++i)
      if (has_elements(parameter(i).shape)) steps.fill(parameter(i), scalar_from_double(0, x.dtype));
    return steps.take();
  }
  const StepOperand mean = along(steps.input(2), layout, false, x.shape);
  const StepOperand spread = along(steps.input(3), layout, false, x.shape);
  // Of a batch the spread is the variance. Its reciprocal root is taken at each element, so that nothing is stored.
  const bool is_batch = norm == Norm::kBatch;
  const ScalarTerm epsilon = is_batch ? attribute_term(call, "epsilon", computed) : ScalarTerm{};
  const auto with_epsilon = [&](std::string text) {
    return StepExpression{std::move(text), is_batch ? std::vector<ScalarTerm>{epsilon} : std::vector<ScalarTerm>{}};
  };
  const std::string rstd = is_batch ? "rsqrt(x3 + a)" : "x3", normalised = "((y - z) * " + rstd + ")";
  // dx = rstd * (dy scale - mean(dy scale) - normalised * mean(dy scale normalised)).
  const bool has_scale = steps.has_input(4);
  const std::string g = has_scale ? "(x * x4)" : "x";
  Row row{{dy, x, mean, spread}, layout.axes, {}};
  if (has_scale) row.inputs.push_back(along(steps.input(4), layout, true, x.shape));
  row.stages.push_back({"sum", computed, {g}, {"x / a", {extent_term(layout.count)}}, computed});
  row.stages.push_back(
      {"sum", computed, with_epsilon(g + " * " + normalised), {"x / a", {extent_term(layout.count)}}, computed});
  row.map = with_epsilon(is_batch ? "s = rsqrt(x3 + a); s * (" + g + " - r0 - (y - z) * s * r1)"
                                  : "x3 * (" + g + " - r0 - (y - z) * x3 * r1)");
  row.outputs = {whole(steps.output(), layout)};
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  steps.reduce("sum", computed, summed, with_epsilon("x * " + normalised), {dy, x, mean, spread}, {"x"}, parameter(1));
  steps.reduce("sum", computed, summed, {"x"}, {dy}, {"x"}, parameter(2));
  return steps.take();
}

// ---- Root mean square -----------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_rms(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const Layout layout = read_layout(call, 0, Norm::kLayer);
  const compute_dtype dtype = call.inputs[0].dtype;
  check_parameter(call, 1, layout, dtype);
  const std::span<const int64_t> shape = call.inputs[0].extents();
  return {{dtype, {shape.begin(), shape.end()}}, {computed_in(dtype), layout.reduced}};
}

std::optional<Lowering> lower_rms(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const Layout layout = read_layout(call, 0, Norm::kLayer);
  const StepOperand x = steps.input(0), rstd = along(steps.output(1), layout, false, layout.kept);
  const compute_dtype computed = computed_in(x.dtype);
  if (layout.count == 0) {
    if (alternative > 0) return std::nullopt;
    steps.fill(rstd, scalar_from_double(std::numeric_limits<double>::quiet_NaN(), computed));
    return steps.take();
  }
  Row row{{x}, layout.axes, {}};
  row.stages.push_back({"sum",
                        computed,
                        {"x * x"},
                        {"1 / sqrt(x / a + b)", {extent_term(layout.count), attribute_term(call, "epsilon", computed)}},
                        computed});
  row.map = StepExpression{"x * r0"};
  if (steps.has_input(1)) {
    row.inputs.push_back(along(steps.input(1), layout, true, x.shape));
    row.map = StepExpression{"x * r0 * y"};
  }
  row.outputs = {steps.output()};
  row.stored = {{0, rstd}};
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  return steps.take();
}

// Inputs dy, x, rstd, scale?; outputs dx, dscale.
std::vector<OutputDesc> infer_rms_grad(const OpCall& call) {
  require_class(call, 1, DtypeClass::kFloat);
  require_same(call, 0, 1);
  const Layout layout = read_layout(call, 1, Norm::kLayer);
  const compute_dtype dtype = call.inputs[1].dtype;
  require_tensor(call, 2, computed_in(dtype), layout.reduced);
  check_parameter(call, 3, layout, dtype);
  const std::span<const int64_t> shape = call.inputs[1].extents();
  return {{dtype, {shape.begin(), shape.end()}}, {dtype, layout.parameter}};
}

std::optional<Lowering> lower_rms_grad(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const Layout layout = read_layout(call, 1, Norm::kLayer);
  const StepOperand dy = steps.input(0), x = steps.input(1);
  const StepOperand rstd = along(steps.input(2), layout, false, x.shape);
  const compute_dtype computed = computed_in(x.dtype);
  StepOperand dscale = steps.output(1);
  for (const int64_t axis : layout.others) dscale = with_axis(std::move(dscale), static_cast<int32_t>(axis));
  if (!has_elements(x.shape)) {
    if (alternative > 0) return std::nullopt;
    steps.fill(dscale, scalar_from_double(0, x.dtype));
    return steps.take();
  }
  const bool has_scale = steps.has_input(3);
  const std::string g = has_scale ? "(x * x3)" : "x";
  Row row{{dy, x, rstd}, layout.axes, {}};
  if (has_scale) row.inputs.push_back(along(steps.input(3), layout, true, x.shape));
  row.stages.push_back({"sum", computed, {g + " * (y * z)"}, {"x / a", {extent_term(layout.count)}}, computed});
  row.map = StepExpression{"z * (" + g + " - y * z * r0)"};
  row.outputs = {steps.output()};
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  steps.reduce("sum", computed, layout.others, {"x * (y * z)"}, {dy, x, rstd}, {"x"}, dscale);
  return steps.take();
}

// ---- Inference with kept statistics ---------------------------------------------------------------------------------

std::vector<OutputDesc> infer_batch_norm_inference(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const Layout layout = read_layout(call, 0, Norm::kBatch);
  const compute_dtype dtype = call.inputs[0].dtype;
  for (int32_t i = 1; i < 3; ++i) require_tensor(call, i, computed_in(dtype), layout.reduced);
  for (int32_t i = 3; i < 5; ++i) check_parameter(call, i, layout, dtype);
  const std::span<const int64_t> shape = call.inputs[0].extents();
  return {{dtype, {shape.begin(), shape.end()}}};
}

std::optional<Lowering> lower_batch_norm_inference(const OpCall& call, const LoweringTarget& target,
                                                   int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const Layout layout = read_layout(call, 0, Norm::kBatch);
  const StepOperand x = steps.input(0);
  std::vector<StepOperand> inputs = {x};
  for (int32_t i = 1; i < 3; ++i) inputs.push_back(along(steps.input(i), layout, false, x.shape));
  std::string text = "(x - y) / sqrt(z + a)";
  constexpr std::string_view kNames[] = {"x3", "x4"};
  for (int32_t i = 3; i < 5; ++i) {
    if (!steps.has_input(i)) continue;
    text += (i == 3 ? " * " : " + ") + std::string(kNames[inputs.size() - 3]);
    inputs.push_back(along(steps.input(i), layout, true, x.shape));
  }
  steps.map({text, {attribute_term(call, "epsilon", computed_in(x.dtype))}}, std::move(inputs), steps.output());
  return steps.take();
}

std::vector<OutputDesc> infer_layer_norm(const OpCall& call) { return infer_norm(call, Norm::kLayer); }
std::vector<OutputDesc> infer_batch_norm(const OpCall& call) { return infer_norm(call, Norm::kBatch); }
std::vector<OutputDesc> infer_group_norm(const OpCall& call) { return infer_norm(call, Norm::kGroup); }
std::vector<OutputDesc> infer_layer_norm_grad(const OpCall& call) { return infer_norm_grad(call, Norm::kLayer); }
std::vector<OutputDesc> infer_batch_norm_grad(const OpCall& call) { return infer_norm_grad(call, Norm::kBatch); }
std::vector<OutputDesc> infer_group_norm_grad(const OpCall& call) { return infer_norm_grad(call, Norm::kGroup); }

std::optional<Lowering> lower_layer_norm(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_norm(call, target, alternative, Norm::kLayer);
}
std::optional<Lowering> lower_batch_norm(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_norm(call, target, alternative, Norm::kBatch);
}
std::optional<Lowering> lower_group_norm(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_norm(call, target, alternative, Norm::kGroup);
}
std::optional<Lowering> lower_layer_norm_grad(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_norm_grad(call, target, alternative, Norm::kLayer);
}
std::optional<Lowering> lower_batch_norm_grad(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_norm_grad(call, target, alternative, Norm::kBatch);
}
std::optional<Lowering> lower_group_norm_grad(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_norm_grad(call, target, alternative, Norm::kGroup);
}

}  // namespace

const OpRules batch_norm_1_rules{infer_batch_norm, lower_batch_norm, true};
const OpRules batch_norm_grad_1_rules{infer_batch_norm_grad, lower_batch_norm_grad, true};
const OpRules batch_norm_inference_1_rules{infer_batch_norm_inference, lower_batch_norm_inference, true};
const OpRules group_norm_1_rules{infer_group_norm, lower_group_norm, true};
const OpRules group_norm_grad_1_rules{infer_group_norm_grad, lower_group_norm_grad, true};
const OpRules layer_norm_1_rules{infer_layer_norm, lower_layer_norm, true};
const OpRules layer_norm_grad_1_rules{infer_layer_norm_grad, lower_layer_norm_grad, true};
const OpRules rms_norm_1_rules{infer_rms, lower_rms, true};
const OpRules rms_norm_grad_1_rules{infer_rms_grad, lower_rms_grad, true};

}  // namespace compute
