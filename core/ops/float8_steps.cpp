// SPDX-License-Identifier: Apache-2.0
#include "core/ops/float8_steps.hpp"

#include <algorithm>
#include <string_view>

#include "core/expressions/float8.hpp"

namespace compute {

namespace {

bool has_float8(const Step& step) {
  const auto is_one = [](const StepOperand& operand) { return is_float8(operand.dtype); };
  return std::ranges::any_of(step.inputs, is_one) || std::ranges::any_of(step.outputs, is_one) ||
         std::ranges::any_of(step.scalars, [](const StepScalar& scalar) { return is_float8(scalar.dtype); });
}

// Whether the step only moves what is not computed by its expressions.
bool moves(const Step& step) {
  const std::string_view name = step.name;
  if (name == "scatter") {
    return std::ranges::any_of(step.attributes, [](const StepAttribute& attribute) {
      return std::string_view(attribute.name) == "reduction" && attribute.texts == std::vector<std::string>{"set"};
    });
  }
  constexpr std::string_view kNames[] = {"copy", "map", "reduce", "row", "gather", "concat", "stack"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

}  // namespace

std::optional<size_t> store_float8(Lowering& lowering) {
  for (size_t i = 0; i < lowering.steps.size(); ++i) {
    Step& step = lowering.steps[i];
    // Expressions may convert to float8 and back without an operand of it.
    for (TypedExpression& expression : step.expressions) expression = with_float8_as_bytes(expression);
    if (!has_float8(step)) continue;
    if (!moves(step)) return i;
    if (std::string_view(step.name) == "copy" && step.inputs[0].dtype != step.outputs[0].dtype) {
      step.name = "map";
      step.expressions.push_back(float8_conversion(step.inputs[0].dtype, step.outputs[0].dtype));
    }
    for (auto* operands : {&step.inputs, &step.outputs})
      for (StepOperand& operand : *operands) operand.dtype = stored_as(operand.dtype);
  }
  return std::nullopt;
}

}  // namespace compute
