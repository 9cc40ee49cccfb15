// SPDX-License-Identifier: Apache-2.0
// The list of intrinsics, the reading of typed expressions, and the substitution of definitions.
#include "core/expression.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "core/error.hpp"
#include "core/expression_builder.hpp"
#include "core/expression_template.hpp"
#include "core/expression_type.hpp"

namespace compute {

namespace {

consteval DtypeClass class_of(std::string_view text) {
  if (text == "ANY") return DtypeClass::kAny;
  if (text == "BOOL") return DtypeClass::kBool;
  if (text == "INTEGER") return DtypeClass::kInteger;
  if (text == "BITS") return DtypeClass::kBits;
  if (text == "REAL") return DtypeClass::kReal;
  if (text == "FLOAT") return DtypeClass::kFloat;
  if (text == "COMPLEX") return DtypeClass::kComplex;
  if (text == "INEXACT") return DtypeClass::kInexact;
  if (text == "NUMERIC") return DtypeClass::kNumeric;
  throw "a class that intrinsics.def does not know";
}

consteval IntrinsicResult result_of(std::string_view text) {
  if (text == "SAME") return IntrinsicResult::kSame;
  if (text == "BOOL") return IntrinsicResult::kBool;
  if (text == "PART") return IntrinsicResult::kPart;
  if (text == "PAIR") return IntrinsicResult::kPair;
  if (text == "NODE") return IntrinsicResult::kNode;
  throw "a result that intrinsics.def does not know";
}

consteval bool is_commutative(std::string_view name) {
  for (const std::string_view other :
       {"add", "mul", "min", "max", "eq", "ne", "bit_and", "bit_or", "bit_xor", "mul_high", "hypot", "logaddexp"}) {
    if (name == other) return true;
  }
  return false;
}

constexpr IntrinsicInfo kIntrinsics[] = {
#define COMPUTE_INTRINSIC(id, name, arity, operands, result, ulp, definition, summary) \
  {id, #name, arity, class_of(#operands), result_of(#result), ulp, definition, summary, is_commutative(#name)},
#include <compute/intrinsics.def>
#undef COMPUTE_INTRINSIC
};

consteval bool ids_are_positions() {
  for (size_t i = 0; i < std::size(kIntrinsics); ++i) {
    if (kIntrinsics[i].id != static_cast<int32_t>(i) + 1) return false;
  }
  return true;
}
static_assert(ids_are_positions());

// The definitions, parsed once; an empty one for a basic intrinsic.
const ExpressionTemplate& definition_of(const IntrinsicInfo& info) {
  using Definitions = std::array<ExpressionTemplate, std::size(kIntrinsics)>;
  static const Definitions& parsed = *new Definitions([] {
    Definitions all;
    const std::string_view names[] = {"x", "y", "z"};
    for (size_t i = 0; i < all.size(); ++i) {
      if (*kIntrinsics[i].definition == '\0') continue;
      all[i] = parse(kIntrinsics[i].definition, std::span(names).first(static_cast<size_t>(kIntrinsics[i].arity)));
    }
    return all;
  }());
  return parsed[static_cast<size_t>(info.id) - 1];
}

}  // namespace

std::span<const IntrinsicInfo> intrinsics() noexcept { return kIntrinsics; }

const IntrinsicInfo* find_intrinsic(int32_t id) noexcept {
  return id >= 1 && id <= static_cast<int32_t>(std::size(kIntrinsics)) ? &kIntrinsics[id - 1] : nullptr;
}

const IntrinsicInfo* find_intrinsic(std::string_view name) noexcept {
  const auto* found = std::find_if(std::begin(kIntrinsics), std::end(kIntrinsics),
                                   [&](const IntrinsicInfo& x) { return name == x.name; });
  return found != std::end(kIntrinsics) ? found : nullptr;
}

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
      case COMPUTE_NODE_INPUT:
        text += "input " + std::to_string(node.value);
        break;
      case COMPUTE_NODE_SCALAR:
        text += "scalar " + std::to_string(node.value);
        break;
      case COMPUTE_NODE_INDEX:
        text += "index " + std::to_string(node.value);
        break;
      case COMPUTE_NODE_CONSTANT:
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

std::optional<TypedExpression> replace_intrinsic(const TypedExpression& expression, int32_t id) {
  const IntrinsicInfo* info = find_intrinsic(id);
  if (info == nullptr || !definition_of(*info)) return std::nullopt;
  ExpressionBuilder builder;
  std::vector<int32_t> made;
  for (const compute_plugin_node& node : expression.nodes()) {
    std::vector<int32_t> operands;
    for (const int32_t operand : expression.operands(node)) operands.push_back(made[static_cast<size_t>(operand)]);
    int32_t copy = -1;
    switch (node.kind) {
      case COMPUTE_NODE_INPUT:
        copy = builder.input(node.value, node.dtype);
        break;
      case COMPUTE_NODE_SCALAR:
        copy = builder.scalar(expression.scalars()[static_cast<size_t>(node.value)]);
        break;
      case COMPUTE_NODE_INDEX:
        copy = builder.index(node.value);
        break;
      case COMPUTE_NODE_CONSTANT:
        copy = builder.constant(scalar_from_memory(node.dtype, node.bits), node.dtype);
        break;
      default:
        if (node.value == id) {
          std::vector<TypedLeaf> leaves;
          for (const int32_t operand : operands) leaves.push_back({builder.dtype(operand), false, operand, -1});
          copy = build_expression(builder, definition_of(*info).data(), leaves, {}, info->name).front();
          assert(builder.dtype(copy) == node.dtype);
        } else if (node.value == COMPUTE_INTRINSIC_CONVERT) {
          copy = builder.convert(operands[0], node.dtype);
        } else if (node.value == COMPUTE_INTRINSIC_BITCAST) {
          copy = builder.bitcast(operands[0], node.dtype);
        } else {
          copy = builder.call(node.value, operands);
        }
    }
    made.push_back(copy);
  }
  std::vector<int32_t> outputs;
  const compute_plugin_expression& view = expression.plugin_view();
  for (int32_t i = 0; i < view.output_count; ++i) outputs.push_back(made[static_cast<size_t>(view.outputs[i])]);
  const auto leaves = expression.input_leaves();
  return builder.finish(outputs, {leaves.begin(), leaves.end()});
}

}  // namespace compute
