// SPDX-License-Identifier: Apache-2.0
// What the names of rules in ops.def mean, in words.
#include <stdexcept>

#include "tools/opgen/texts.hpp"

namespace compute::opgen {

namespace {

struct Rule {
  std::string_view name, text;
};

constexpr Rule kDtypeRules[] = {
    {"attribute", "the attribute dtype"},
    {"bool", "bool, of inputs of any dtype"},
    {"first", "that of x; indices are integers"},
    {"inexact", "that of x, which is floating-point or complex; var and std of complex numbers are real"},
    {"int64", "int64, of integers and floating-point numbers"},
    {"promote", "the common dtype of the inputs"},
    {"same", "that of x"},
    {"scatter", "that of x and updates; indices are integers"},
    {"widen",
     "the attribute dtype; without it int64 for bool and signed integers, uint64 for unsigned ones, else that of x"},
};

constexpr Rule kShapeRules[] = {
    {"along", "that of indices; outside of axis both broadcast"},
    {"arg", "that of x without axis, or with extent 1 there if keepdims is 1"},
    {"attribute", "what the attributes say"},
    {"concat", "that of the inputs, which differ along axis alone; the extents there add up"},
    {"matmul",
     "[…, m, n] of […, m, k] and […, k, n], … broadcast; a vector is one row of a or one column of b, and gone in the "
     "result"},
    {"reduce", "that of x without axes, or with extent 1 there if keepdims is 1"},
    {"same", "that of x"},
    {"scatter", "that of x; updates are shaped like indices, which reach beyond x along axis alone"},
    {"stack", "that of the inputs, all the same, with a new axis in front of axis of the result"},
    {"take", "that of x with axis replaced by the axes of indices"},
};

std::string_view find(std::span<const Rule> rules, std::string_view name, const OpSchema& op) {
  for (const Rule& rule : rules) {
    if (rule.name == name) return rule.text;
  }
  throw std::runtime_error(op.name + ": the rule \"" + std::string(name) + "\" has no words in tools/opgen/rules.cpp");
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
