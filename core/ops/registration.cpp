// SPDX-License-Identifier: Apache-2.0
// Ops that a program registers.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/ops/schema.hpp"
#include "core/text/printable.hpp"

namespace compute {

void refuse_registration(std::string_view name, const std::string& what) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "op " + in_quotes(name) + ": " + what);
}

namespace {

bool is_word(std::string_view text) {
  const auto in_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' && std::ranges::all_of(text, in_word);
}

void check_names(std::string_view op, std::span<const std::string_view> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (!is_word(names[i]))
      refuse_registration(op, in_quotes(names[i]) + " is not a valid name of an input or attribute");
    for (size_t k = 0; k < i; ++k) {
      if (names[k] == names[i]) refuse_registration(op, in_quotes(names[i]) + " is used twice");
    }
  }
}

// `form` is an example for the message.
AttributeSchema given_attribute(std::string_view op, std::string_view text, const char* form) {
  try {
    if (text.find(':') == std::string_view::npos) throw Error(COMPUTE_ERROR_INTERNAL, "");
    return parse_attribute(text);
  } catch (const Error&) {
    refuse_registration(op, "the attribute " + in_quotes(text) + " is not of the form \"" + form + "\"");
  }
}

bool is_number(const AttributeSchema& attribute) {
  return attribute.kind == AttributeKind::kInt64 || attribute.kind == AttributeKind::kFloat64 ||
         attribute.kind == AttributeKind::kNumber;
}

AttributeSchema registered_attribute(std::string_view op, std::string_view text) {
  AttributeSchema attribute = given_attribute(op, text, "name: float64 = 1!");
  if (!attribute.run_time || attribute.is_list || !is_number(attribute))
    refuse_registration(op, "the attribute " + in_quotes(attribute.name) + " is not a single number marked with !");
  return attribute;
}

void check_registered_name(const RegisteredOp& given) {
  const size_t dot = given.name.find('.');
  if (dot == std::string_view::npos || !is_word(given.name.substr(0, dot)) || !is_word(given.name.substr(dot + 1)) ||
      given.name.size() > 128)
    refuse_registration(given.name, "the name must be two words separated by a dot, such as acme.double");
  if (given.version < 1)
    refuse_registration(given.name, "version " + std::to_string(given.version) + " is invalid; versions start at 1");
  if (!given.expression.empty() && !given.composition.empty())
    refuse_registration(given.name, "an expression and a composition are given");
  if (given.expression.empty() && given.composition.empty() && given.kernels.empty() && !given.is_vendors)
    refuse_registration(given.name, "an expression, a composition or kernels must be given");
}

void check_class(const RegisteredOp& given) {
  constexpr std::string_view kClasses[] = {"ANY",   "BOOL",    "INTEGER", "BITS",   "REAL",
                                           "FLOAT", "COMPLEX", "INEXACT", "NUMERIC"};
  if (std::ranges::find(kClasses, given.dtypes) == std::end(kClasses))
    refuse_registration(given.name, in_quotes(given.dtypes) + " is not a class of dtypes");
}

std::unique_ptr<OpSchema> expressed_op(const RegisteredOp& given) {
  std::vector<std::string_view> names = split(given.inputs, ' ');
  if (!given.outputs.empty()) refuse_registration(given.name, "an op with an expression has one output without a name");
  if (names.empty() || names.size() > kMaxRowInputs) {
    refuse_registration(
        given.name, "it has " + std::to_string(names.size()) + " inputs, not 1 to " + std::to_string(kMaxRowInputs));
  }
  check_class(given);
  auto op = std::make_unique<OpSchema>(
      elementwise(OpId::kCount, given.name, given.version, names, given.dtypes, given.expression, given.summary));
  op->is_registered = true;
  op->attributes_text = given.attributes;
  for (const std::string_view text : split(given.attributes, ';')) {
    op->run_time.push_back(static_cast<int32_t>(op->attributes.size()));
    op->attributes.push_back(registered_attribute(given.name, text));
  }
  if (op->attributes.size() > static_cast<size_t>(kMaxRunTimeAttributes))
    refuse_registration(given.name, "it has more than " + std::to_string(kMaxRunTimeAttributes) + " attributes");
  std::vector<std::string_view> scalars;
  for (const AttributeSchema& attribute : op->attributes) scalars.push_back(attribute.name);
  std::vector<std::string_view> all = names;
  all.insert(all.end(), scalars.begin(), scalars.end());
  check_names(given.name, all);
  op->expression = parse(given.expression, names, scalars);
  if (op->expression.output_count() != 1)
    refuse_registration(given.name,
                        "the expression has " + std::to_string(op->expression.output_count()) + " outputs, not 1");
  complete(*op);
  return op;
}

// Attributes of any kind: the calls of the composition get them.
AttributeSchema composed_attribute(std::string_view op, std::string_view text) {
  AttributeSchema attribute = given_attribute(op, text, "name: kind = default");
  if (attribute.run_time ? attribute.is_list || !is_number(attribute) : attribute.kind == AttributeKind::kNumber)
    refuse_registration(op, "the attribute " + in_quotes(attribute.name) + " cannot be of this kind");
  return attribute;
}

// An op with a composition or with kernels only.
std::unique_ptr<OpSchema> composed_op(const RegisteredOp& given) {
  auto op = std::make_unique<OpSchema>();
  op->id = OpId::kCount;
  op->name = given.name;
  op->version = given.version;
  op->summary = given.summary;
  op->is_registered = true;
  op->inputs_text = given.inputs;
  op->attributes_text = given.attributes;
  op->dtype_rule = op->shape_rule = given.composition.empty() ? "kernel" : "composition";
  if (given.composition.empty() && !given.dtypes.empty()) {
    check_class(given);
    op->input_class = class_from_text(given.dtypes);
  }
  std::vector<std::string_view> all;
  for (const std::string_view input : split(given.inputs, ' ')) {
    op->inputs.emplace_back(input);
    op->optional.push_back(false);
    all.push_back(input);
  }
  for (const std::string_view output : split(given.outputs, ' ')) op->outputs.emplace_back(output);
  for (const std::string_view text : split(given.attributes, ';')) {
    op->attributes.push_back(composed_attribute(given.name, text));
    if (op->attributes.back().run_time) op->run_time.push_back(static_cast<int32_t>(op->attributes.size()) - 1);
  }
  if (op->inputs.empty() || op->inputs.size() > kMaxRowInputs)
    refuse_registration(given.name, "it has " + std::to_string(op->inputs.size()) + " inputs, not 1 to " +
                                        std::to_string(kMaxRowInputs));
  if (op->attributes.size() > kMaxAttributes || op->run_time.size() > kMaxRunTimeAttributes)
    refuse_registration(given.name, "it has too many attributes");
  for (const AttributeSchema& attribute : op->attributes) all.push_back(attribute.name);
  check_names(given.name, all);
  complete(*op);
  if (!given.composition.empty()) op->composition = given.parse_composition(given.composition, *op);
  return op;
}

}  // namespace

const OpSchema& register_op(const RegisteredOp& given) {
  check_registered_name(given);
  std::unique_ptr<OpSchema> op = given.expression.empty() ? composed_op(given) : expressed_op(given);
  if (!given.kernels.empty() || given.is_vendors) op->kernels = given.parse_kernels(given, *op);
  return add_schema(std::move(op));
}

}  // namespace compute
