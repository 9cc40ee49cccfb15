// SPDX-License-Identifier: Apache-2.0
// Steps of optimisers, over any number of groups of tensors: a map for each group, which reads and writes each tensor
// once.
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

size_t group_count(const OpCall& call) {
  return static_cast<size_t>(call.schema.group_count(static_cast<int64_t>(call.inputs.size())));
}

// In each group all inputs have the shape and the dtype of the first; so have the outputs. All groups have one dtype.
std::vector<OutputDesc> infer_step(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const size_t groups = group_count(call);
  std::vector<OutputDesc> outputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const std::span<const int64_t> shape = call.inputs[i % groups].extents();
    require_tensor(call, static_cast<int32_t>(i), call.inputs[0].dtype, shape);
    if (outputs.size() < groups * call.schema.outputs.size())
      outputs.push_back({call.inputs[0].dtype, {shape.begin(), shape.end()}});
  }
  return outputs;
}

// The operands of one group.
struct Group {
  std::vector<StepOperand> inputs, outputs;
};

// Those that have elements.
std::vector<Group> groups_of(const OpCall& call, Steps& steps) {
  const size_t count = group_count(call);
  std::vector<Group> groups;
  for (size_t g = 0; g < count; ++g) {
    if (!has_elements(call.inputs[g].extents())) continue;
    Group& group = groups.emplace_back();
    for (size_t i = 0; i < call.schema.inputs.size(); ++i)
      group.inputs.push_back(steps.input(static_cast<int32_t>(i * count + g)));
    for (size_t i = 0; i < call.schema.outputs.size(); ++i)
      group.outputs.push_back(steps.output(static_cast<int32_t>(i * count + g)));
  }
  return groups;
}

// The attribute, by its name in expressions too.
ScalarTerm number(const OpCall& call, const char* name) {
  return attribute_term(call, name, computed_in(call.inputs[0].dtype)).named(name);
}

std::optional<Lowering> lower_sgd(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  for (Group& group : groups_of(call, steps)) {
    steps.map({"x - rate * (gradient + decay * x)", {number(call, "rate"), number(call, "decay")}, {"x", "gradient"}},
              std::move(group.inputs), std::move(group.outputs));
  }
  return steps.take();
}

// velocity = momentum * velocity + gradient; Nesterov's step looks ahead by momentum * velocity.
std::optional<Lowering> lower_momentum(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const bool nesterov = flag_attribute(call, "nesterov");
  const std::string step = nesterov ? "(g + momentum * v)" : "v";
  for (Group& group : groups_of(call, steps)) {
    steps.map({"g = gradient + decay * x; v = momentum * velocity + g; x - rate * " + step + "; v",
               {number(call, "rate"), number(call, "decay"), number(call, "momentum")},
               {"x", "gradient", "velocity"}},
              std::move(group.inputs), std::move(group.outputs));
  }
  return steps.take();
}

// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2; the step is rate / (1 - beta1^t) * m divided by
// sqrt(v / (1 - beta2^t)) + epsilon. What does not depend on the element is computed once.
std::optional<Lowering> lower_adam(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                   bool decoupled) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const compute_dtype computed = computed_in(call.inputs[0].dtype);
  const compute_dtype exact = target.has_float64 ? COMPUTE_DTYPE_FLOAT64 : computed;
  const auto as = [&](const char* name) { return attribute_term(call, name, exact).named(name); };
  std::vector<StepOperand> constants;
  for (int i = 0; i < 5; ++i) constants.push_back(steps.temporary(computed, {}));
  const auto converted = [&](const std::string& text) { return convert_text("(" + text + ")", exact, computed); };
  steps.map({converted("rate / (1 - beta1 ** step)") + "; " + converted("1 / sqrt(1 - beta2 ** step)") + "; " +
                 converted("1 - beta1") + "; " + converted("1 - beta2") + "; " +
                 converted(decoupled ? "1 - rate * decay" : "decay"),
             {as("rate"), as("beta1"), as("beta2"), as("step"), as("decay")}},
            {}, constants);
  const std::vector<ScalarTerm> scalars = {number(call, "beta1"), number(call, "beta2"), number(call, "epsilon")};
  const std::vector<std::string_view> names = {
      "x", "gradient", "m0", "v0", "scaled_rate", "root", "new_m", "new_v", decoupled ? "kept" : "decay"};
  const std::string gradient = decoupled ? "gradient" : "(gradient + decay * x)";
  const std::string parameter = decoupled ? "x * kept" : "x";
  for (Group& group : groups_of(call, steps)) {
    group.inputs.insert(group.inputs.end(), constants.begin(), constants.end());
    steps.map({"g = " + gradient + "; m = beta1 * m0 + new_m * g; v = beta2 * v0 + new_v * (g * g); " + parameter +
                   " - scaled_rate * m / (sqrt(v) * root + epsilon); m; v",
               scalars, names},
              std::move(group.inputs), std::move(group.outputs));
  }
  return steps.take();
}

std::optional<Lowering> lower_adam_l2(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_adam(call, target, alternative, false);
}

std::optional<Lowering> lower_adamw(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_adam(call, target, alternative, true);
}

}  // namespace

const OpRules adam_1_rules{infer_step, lower_adam_l2, true};
const OpRules adamw_1_rules{infer_step, lower_adamw, true};
const OpRules sgd_1_rules{infer_step, lower_sgd, true};
const OpRules sgd_momentum_1_rules{infer_step, lower_momentum, true};

}  // namespace compute
