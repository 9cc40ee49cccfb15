// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rules.hpp"

#include <algorithm>
#include <cassert>

#include "core/base/error.hpp"
#include "core/text/printable.hpp"

namespace compute {

const OpRules& op_rules(OpId id) {
  static constexpr const OpRules* kRules[] = {
#define COMPUTE_UNARY(...) nullptr,
#define COMPUTE_BINARY(...) nullptr,
#define COMPUTE_TERNARY(...) nullptr,
#define COMPUTE_OP(name, version, ...) &name##_##version##_rules,
#include <compute/ops.def>
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP
  };
  assert(kRules[static_cast<size_t>(id)] != nullptr);
  return *kRules[static_cast<size_t>(id)];
}

void refuse(const OpCall& call, const std::string& what, int32_t argument) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, call.schema.name + ": " + what).with_argument(argument);
}

void refuse_attribute(const OpCall& call, std::string_view name, const std::string& what) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, call.schema.name + ": " + what).with_attribute(std::string(name));
}

void require_class(const OpCall& call, int32_t index, DtypeClass wanted) {
  const compute_dtype dtype = call.inputs[static_cast<size_t>(index)].dtype;
  if (!in_class(dtype, wanted)) refuse_dtype(call.schema.name, call.schema.input_name(index), dtype, wanted, index);
}

void require_tensor(const OpCall& call, int32_t index, compute_dtype dtype, std::span<const int64_t> shape) {
  const OperandDesc& given = call.inputs[static_cast<size_t>(index)];
  const std::span<const int64_t> extents = given.extents();
  if (given.dtype == dtype && std::equal(extents.begin(), extents.end(), shape.begin(), shape.end())) return;
  refuse(call,
         call.schema.input_name(index) + " is " + dtype_name(given.dtype) + " " + shape_text(extents) + "; expected " +
             dtype_name(dtype) + " " + shape_text(shape),
         index);
}

void require_same(const OpCall& call, int32_t index, int32_t like) {
  const OperandDesc& other = call.inputs[static_cast<size_t>(like)];
  require_tensor(call, index, other.dtype, other.extents());
}

int64_t sum_of_extents(const OpCall& call, int64_t a, int64_t b) {
  int64_t result = 0;
  if (!__builtin_add_overflow(a, b, &result)) return result;
  throw Error(COMPUTE_ERROR_OUT_OF_RANGE, call.schema.name + ": the extent " + std::to_string(a) + " + " +
                                              std::to_string(b) + " of the result is too large");
}

int32_t attribute_index(const OpCall& call, std::string_view name) {
  const auto& list = call.schema.attributes;
  const auto found = std::find_if(list.begin(), list.end(), [&](const AttributeSchema& x) { return x.name == name; });
  assert(found != list.end());
  return static_cast<int32_t>(found - list.begin());
}

int32_t run_time_index(const OpCall& call, std::string_view name) {
  const std::vector<int32_t>& list = call.schema.run_time;
  const auto found = std::find(list.begin(), list.end(), attribute_index(call, name));
  assert(found != list.end());
  return static_cast<int32_t>(found - list.begin());
}

bool flag_attribute(const OpCall& call, std::string_view name) {
  const int64_t value = call.attributes.int64(attribute_index(call, name));
  if (value != 0 && value != 1)
    refuse_attribute(call, name, std::string(name) + " is " + std::to_string(value) + "; it must be 0 or 1");
  return value != 0;
}

Precision precision_attribute(const OpCall& call) {
  const std::vector<AttributeSchema>& list = call.schema.attributes;
  const auto found = std::find_if(list.begin(), list.end(), [](const auto& one) { return one.name == "precision"; });
  if (call.schema.is_registered || found == list.end()) return Precision::kDefault;
  const auto index = static_cast<int32_t>(found - list.begin());
  const std::string_view name = call.attributes.has(index) ? call.attributes.string(index) : "default";
  if (name == "default") return Precision::kDefault;
  if (name == "highest") return Precision::kHighest;
  if (name == "tf32") return Precision::kTf32;
  if (name == "bf16") return Precision::kBf16;
  refuse_attribute(call, "precision", "precision is " + in_quotes(name) + ", not one of default, highest, tf32, bf16");
}

int64_t extent_attribute(const OpCall& call, std::string_view name) {
  const int64_t value = call.attributes.int64(attribute_index(call, name));
  if (value < 0)
    refuse_attribute(call, name, std::string(name) + " is " + std::to_string(value) + "; it must not be negative");
  return value;
}

int32_t axis_attribute(const OpCall& call, int32_t rank) {
  return normalize_axis(call.schema.name, call.attributes.int64(attribute_index(call, "axis")), rank);
}

compute_dtype dtype_attribute(const OpCall& call, std::string_view name) {
  return call.attributes.dtype(attribute_index(call, name));
}

void refuse_dtype(std::string_view op, std::string_view input, compute_dtype given, DtypeClass wanted, int32_t argument,
                  std::string_view remedy) {
  std::string message = std::string(op) + ": " + std::string(input) + " is " + dtype_name(given) + "; " +
                        std::string(op) + " takes " + class_description(wanted);
  const compute_dtype hint = class_cast_hint(given, wanted);
  if (hint != COMPUTE_DTYPE_NONE) message += "; cast it (cast(" + std::string(input) + ", " + dtype_name(hint) + "))";
  message += remedy;
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::move(message)).with_argument(argument);
}

compute_dtype common_in_class(std::string_view op, std::span<const PromotionOperand> operands, DtypeClass wanted) {
  const bool mixes = kinds_mix();
  const auto refuse_operand = [&](const PromotionOperand& x) {
    const bool is_strict = !mixes && in_class(dtype_in_class(x.dtype, wanted, true), wanted);
    refuse_dtype(op, x.name, x.dtype, wanted, x.argument, is_strict ? kMixedRemedy : "");
  };
  // In one kind, an operand outside the class is the better news than two that do not promote.
  for (const PromotionOperand& x : operands) {
    if (!mixes && !x.weak && !in_class(x.dtype, wanted)) refuse_operand(x);
  }
  const compute_dtype common = dtype_in_class(result_type(op, operands), wanted, mixes);
  for (const PromotionOperand& x : operands) {
    const bool adapts = x.weak && in_class(x.dtype, wanted);  // the operand that it adapts to is at fault
    if (!in_class(common, wanted) && kind_of(x.dtype) == kind_of(common) && !adapts) refuse_operand(x);
  }
  return common;
}

compute_dtype promote_inputs(const OpCall& call, DtypeClass wanted) {
  std::vector<std::string> names;
  for (size_t i = 0; i < call.inputs.size(); ++i) names.push_back(call.schema.input_name(static_cast<int32_t>(i)));
  std::vector<PromotionOperand> operands;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const OperandDesc& input = call.inputs[i];
    if (input.dtype == COMPUTE_DTYPE_NONE) continue;
    operands.push_back({input.dtype, input.is_scalar && input.weak, names[i], static_cast<int32_t>(i)});
  }
  return common_in_class(call.schema.name, operands, wanted);
}

std::string even_step(const std::string& a, const std::string& b, const std::string& c, const std::string& i) {
  const std::string whole = "(" + a + " * (" + c + " - " + i + ") + " + b + " * " + i + ") / " + c;
  // The same for all elements if a and b are, so that a device need not compute both.
  return "where(isfinite((abs(" + a + ") + abs(" + b + ")) * " + c + "), " + whole + ", " + a + " * ((" + c + " - " +
         i + ") / " + c + ") + " + b + " * (" + i + " / " + c + "))";
}

}  // namespace compute
