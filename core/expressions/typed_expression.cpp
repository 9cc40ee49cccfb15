// SPDX-License-Identifier: Apache-2.0
// The reading of typed expressions.
#include "core/expressions/expression_builder.hpp"

namespace compute {

const compute_plugin_expression& TypedExpression::plugin_view() const noexcept { return data_->view; }
std::span<const compute_plugin_node> TypedExpression::nodes() const noexcept { return data_->nodes; }

std::span<const int32_t> TypedExpression::operands(const compute_plugin_node& node) const noexcept {
  return std::span(data_->operands)
      .subspan(static_cast<size_t>(node.first_operand), static_cast<size_t>(node.operand_count));
}

std::array<uint8_t, 16> TypedExpression::digest() const noexcept { return std::to_array(data_->view.digest); }

compute_dtype TypedExpression::output_dtype(int32_t output) const noexcept {
  return data_->nodes[static_cast<size_t>(data_->outputs[static_cast<size_t>(output)])].dtype;
}

std::span<const ScalarSlot> TypedExpression::scalars() const noexcept { return data_->scalars; }
std::span<const int32_t> TypedExpression::input_leaves() const noexcept { return data_->input_leaves; }

std::string TypedExpression::to_string() const {
  const auto name = [](int32_t node) { return "n" + std::to_string(node); };
  std::string text;
  for (size_t i = 0; i < nodes().size(); ++i) {
    const compute_plugin_node& node = nodes()[i];
    text += name(static_cast<int32_t>(i)) + " = ";
    switch (node.kind) {
      case COMPUTE_PLUGIN_NODE_INPUT:
        text += "input " + std::to_string(node.value);
        break;
      case COMPUTE_PLUGIN_NODE_SCALAR:
        text += "scalar " + std::to_string(node.value);
        break;
      case COMPUTE_PLUGIN_NODE_INDEX:
        text += "index " + std::to_string(node.value);
        break;
      case COMPUTE_PLUGIN_NODE_CONSTANT:
        text += scalar_text(scalar_from_memory(node.dtype, node.bits), node.dtype);
        break;
      default: {
        text += std::string(find_intrinsic(node.value)->name) + "(";
        const char* separator = "";
        for (const int32_t operand : operands(node)) {
          text += separator + name(operand);
          separator = ", ";
        }
        text += ")";
      }
    }
    text += ": " + dtype_name(node.dtype) + "\n";
  }
  text += "output";
  for (const int32_t output : data_->outputs) text += " " + name(output);
  return text;
}

}  // namespace compute
