// SPDX-License-Identifier: Apache-2.0
// What the names of rules in ops.def mean, in words.
#include <stdexcept>

#include "tools/opgen/texts.hpp"

namespace compute::opgen {

namespace {

struct Rule {
  std::string_view name, text;
};

#define COMPUTE_DTYPE_RULE(name, text) {#name, text},
#define COMPUTE_SHAPE_RULE(name, text)
constexpr Rule kDtypeRules[] = {
#include "core/ops/op_rules.def"
};
#undef COMPUTE_DTYPE_RULE
#undef COMPUTE_SHAPE_RULE

#define COMPUTE_DTYPE_RULE(name, text)
#define COMPUTE_SHAPE_RULE(name, text) {#name, text},
constexpr Rule kShapeRules[] = {
#include "core/ops/op_rules.def"
};
#undef COMPUTE_DTYPE_RULE
#undef COMPUTE_SHAPE_RULE

std::string_view find(std::span<const Rule> rules, std::string_view name, const OpSchema& op) {
  for (const Rule& rule : rules) {
    if (rule.name == name) return rule.text;
  }
  throw std::runtime_error(op.name + ": the rule \"" + std::string(name) + "\" is not in core/ops/op_rules.def");
}

}  // namespace

std::string_view dtype_rule_text(const OpSchema& op) { return find(kDtypeRules, op.dtype_rule, op); }
std::string_view shape_rule_text(const OpSchema& op) { return find(kShapeRules, op.shape_rule, op); }

std::string_view result_text(const OpSchema& op) {
  switch (op.result) {
    case RowResult::kBool:
      return "bool";
    case RowResult::kPart:
      return "the real dtype of a complex one, else the same";
    case RowResult::kSecond:
      return "the common dtype of y and z";
    default:
      return op.inputs.size() == 1 ? "the same" : "the common dtype";
  }
}

std::string wrapped(std::string_view words, std::string_view first, std::string_view rest, size_t width) {
  std::string text(first);
  size_t column = first.size();
  bool at_start = true;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (word.empty()) continue;
    if (!at_start && column + 1 + word.size() > width) {
      text += "\n" + std::string(rest);
      column = rest.size();
      at_start = true;
    }
    if (!at_start) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
    at_start = false;
  }
  return text;
}

}  // namespace compute::opgen
