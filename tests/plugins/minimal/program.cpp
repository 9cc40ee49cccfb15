// SPDX-License-Identifier: Apache-2.0
// The interpreter: one node after another, one value at a time. A plugin for real hardware prints the nodes as source
// text or looks the expression's digest up instead.
#include "program.hpp"

#include <algorithm>

#include "minimal.hpp"

namespace minimal {

namespace {

// From here on intrinsics have definitions in older ones.
constexpr int32_t kFirstDefinedIntrinsic = COMPUTE_PLUGIN_INTRINSIC_ARG;

}  // namespace

Program::Program(const compute_plugin_expression& expression)
    : outputs_(expression.outputs, expression.outputs + expression.output_count) {
  for (int32_t i = 0; i < expression.node_count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    if (!is_dtype(node.dtype)) throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, -1, "a dtype that is newer than the plugin"};
    Step step;
    step.kind = node.kind;
    step.value = node.value;
    step.size_bytes = element_size(node.dtype);
    std::memcpy(step.constant.bytes, node.bits, sizeof node.bits);
    if (node.kind == COMPUTE_PLUGIN_NODE_CALL) {
      const int32_t* operands = expression.operands + node.first_operand;
      std::copy_n(operands, std::min<int64_t>(node.operand_count, step.operands.size()), step.operands.begin());
      step.function = find_function(node.value, expression.nodes[operands[0]].dtype, node.dtype);
      if (node.value >= kFirstDefinedIntrinsic && lacks("intrinsics")) step.function = nullptr;
      // Core puts the intrinsic's definition in its place and asks again.
      if (step.function == nullptr)
        throw Refused{COMPUTE_PLUGIN_REFUSE_INTRINSIC, node.value, "the plugin has no such intrinsic"};
    } else if (node.kind == COMPUTE_PLUGIN_NODE_INDEX) {
      step.function = find_function(COMPUTE_PLUGIN_INTRINSIC_CONVERT, COMPUTE_DTYPE_INT64, node.dtype);
    }
    steps_.push_back(step);
  }
}

void Program::evaluate(const Point& point, Value* values) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    Value& result = values[i];
    switch (step.kind) {
      case COMPUTE_PLUGIN_NODE_INPUT:
        result = Value{};
        std::memcpy(result.bytes, point.inputs[step.value], step.size_bytes);
        break;
      case COMPUTE_PLUGIN_NODE_SCALAR:
        std::memcpy(result.bytes, point.scalars[step.value].bits, sizeof result.bytes);
        break;
      case COMPUTE_PLUGIN_NODE_INDEX: {
        const Value position = Value::of(point.position[step.value]);
        result = step.function(position, position, position);
        break;
      }
      case COMPUTE_PLUGIN_NODE_CONSTANT:
        result = step.constant;
        break;
      case COMPUTE_PLUGIN_NODE_CALL:
        result = step.function(values[step.operands[0]], values[step.operands[1]], values[step.operands[2]]);
        break;
    }
  }
}

}  // namespace minimal
