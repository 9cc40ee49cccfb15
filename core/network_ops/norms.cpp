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

// Of a sum over `count` elements.
StepExpression average(const ScalarTerm& count) { return {"sum / count", {count}, {"sum"}}; }
StepExpression reciprocal_root(const ScalarTerm& count, const ScalarTerm& epsilon) {
  return {"1 / sqrt(square_sum / count + epsilon)", {count, epsilon}, {"square_sum"}};
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
  row.names = {"x"};
  std::string text = "(x - mean) * rstd";
  const ScalarTerm count = extent_term(layout.count).named("count");
  const ScalarTerm epsilon = attribute_term(call, "epsilon", computed).named("epsilon");
  const char* const square = "(x - mean) * (x - mean)";
  row.stages.push_back({"sum", computed, {"x"}, average(count), computed, "mean"});
  if (norm == Norm::kBatch) {
    // The variance is the third output; its reciprocal root is taken at each element.
    row.stages.push_back({"sum", computed, {square}, average(count), computed, "variance"});
    text = "(x - mean) * rsqrt(variance + epsilon)";
  } else {
    row.stages.push_back({"sum", computed, {square}, reciprocal_root(count, epsilon), computed, "rstd"});
  }
  for (int32_t i = 1; i < 3; ++i) {
    if (!steps.has_input(i)) continue;
    row.inputs.push_back(along(steps.input(i), layout, true, x.shape));
    row.names.push_back(i == 1 ? "scale" : "bias");
    text += i == 1 ? " * scale" : " + bias";
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
  const ScalarTerm count = extent_term(layout.count).named("count");
  const ScalarTerm epsilon = is_batch ? attribute_term(call, "epsilon", computed).named("epsilon") : ScalarTerm{};
  const std::vector<std::string_view> names = {"dy", "x", "mean", is_batch ? "variance" : "rstd"};
  const auto with_epsilon = [&](std::string text) {
    return StepExpression{std::move(text), is_batch ? std::vector<ScalarTerm>{epsilon} : std::vector<ScalarTerm>{},
                          names};
  };
  const std::string rstd = is_batch ? "rsqrt(variance + epsilon)" : "rstd";
  const std::string normalised = "((x - mean) * " + rstd + ")";
  // dx = rstd * (dy scale - mean(dy scale) - normalised * mean(dy scale normalised)).
  const bool has_scale = steps.has_input(4);
  const std::string g = has_scale ? "(dy * scale)" : "dy";
  Row row{{dy, x, mean, spread}, layout.axes, {}};
  row.names = names;
  if (has_scale) {
    row.inputs.push_back(along(steps.input(4), layout, true, x.shape));
    row.names.push_back("scale");
  }
  row.stages.push_back({"sum", computed, {g}, average(count), computed, "mean_g"});
  row.stages.push_back({"sum", computed, with_epsilon(g + " * " + normalised), average(count), computed, "mean_gn"});
  row.map = with_epsilon(is_batch ? "s = " + rstd + "; s * (" + g + " - mean_g - (x - mean) * s * mean_gn)"
                                  : "rstd * (" + g + " - mean_g - (x - mean) * rstd * mean_gn)");
  row.outputs = {whole(steps.output(), layout)};
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  steps.reduce("sum", computed, summed, with_epsilon("dy * " + normalised), {dy, x, mean, spread}, {"x"}, parameter(1));
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
  const ScalarTerm count = extent_term(layout.count).named("count");
  const ScalarTerm epsilon = attribute_term(call, "epsilon", computed).named("epsilon");
  row.names = {"x"};
  row.stages.push_back({"sum", computed, {"x * x"}, reciprocal_root(count, epsilon), computed, "rstd"});
  row.map = StepExpression{"x * rstd"};
  if (steps.has_input(1)) {
    row.inputs.push_back(along(steps.input(1), layout, true, x.shape));
    row.names.push_back("scale");
    row.map = StepExpression{"x * rstd * scale"};
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
  const std::string g = has_scale ? "(dy * scale)" : "dy";
  Row row{{dy, x, rstd}, layout.axes, {}};
  row.names = {"dy", "x", "rstd"};
  if (has_scale) {
    row.inputs.push_back(along(steps.input(3), layout, true, x.shape));
    row.names.push_back("scale");
  }
  const ScalarTerm count = extent_term(layout.count).named("count");
  row.stages.push_back({"sum", computed, {g + " * (x * rstd)"}, average(count), computed, "mean_gn"});
  row.map = StepExpression{"rstd * (" + g + " - x * rstd * mean_gn)"};
  row.outputs = {steps.output()};
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  steps.reduce("sum", computed, layout.others, {"dy * (x * rstd)", {}, {"dy", "x", "rstd"}}, {dy, x, rstd}, {"x"},
               dscale);
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
  StepExpression expression{"(x - mean) / sqrt(variance + epsilon)",
                            {attribute_term(call, "epsilon", computed_in(x.dtype)).named("epsilon")},
                            {"x", "mean", "variance"}};
  for (int32_t i = 3; i < 5; ++i) {
    if (!steps.has_input(i)) continue;
    expression.text += i == 3 ? " * scale" : " + bias";
    expression.inputs.push_back(i == 3 ? "scale" : "bias");
    inputs.push_back(along(steps.input(i), layout, true, x.shape));
  }
  steps.map(expression, std::move(inputs), steps.output());
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
