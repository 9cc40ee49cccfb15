// SPDX-License-Identifier: Apache-2.0
#include "core/ops/composition.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "core/base/error.hpp"
#include "core/ops/shapes.hpp"
#include "core/text/ascii.hpp"
#include "core/text/nearest_name.hpp"
#include "core/text/printable.hpp"

namespace compute {

namespace {

// ---- Parsing --------------------------------------------------------------------------------------------------------

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

class Parser {
 public:
  Parser(std::string_view text, const OpSchema& schema) : text_(text), schema_(schema) {
    for (const std::string& input : schema.inputs) define(input);
  }

  Composition parse() {
    composition_.text = text_;
    for (skip(); at_ < text_.size(); skip()) {
      statement();
      skip();
      if (at_ < text_.size()) take(';');
    }
    for (const std::string& output : schema_.outputs) {
      const int32_t value = value_of(output);
      if (value < static_cast<int32_t>(schema_.inputs.size()))
        refuse("the output " + in_quotes(output) + " is an input");
      composition_.outputs.push_back(value);
    }
    composition_.value_count = static_cast<int32_t>(values_.size());
    return std::move(composition_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "op " + in_quotes(schema_.name) + ": " + what);
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool next_is(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  void take(char c) {
    if (!next_is(c)) {
      refuse(std::string("expected '") + c + "' at column " + std::to_string(at_ + 1) + " of " +
             in_quotes(std::string(text_)));
    }
    ++at_;
  }
  std::string word(const char* what) {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
    if (start == at_) {
      refuse(std::string("expected ") + what + " at column " + std::to_string(start + 1) + " of " +
             in_quotes(std::string(text_)));
    }
    return std::string(text_.substr(start, at_ - start));
  }
  void define(const std::string& name) {
    if (!values_.emplace(name, static_cast<int32_t>(values_.size())).second)
      refuse(in_quotes(name) + " is given a value twice");
  }
  int32_t value_of(const std::string& name) const {
    if (const auto found = values_.find(name); found != values_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [each, value] : values_) known.push_back(each);
    refuse(in_quotes(name) + " has no value" + did_you_mean(name, known));
  }

  // "h, i = op(x, none, axis=1)"
  void statement() {
    std::vector<std::string> results{word("a name")};
    while (next_is(',')) {
      take(',');
      results.push_back(word("a name"));
    }
    take('=');
    const std::string name = word("an op");
    ComposedCall call;
    call.op = &find_op(name, 0);
    take('(');
    for (bool first = true; !next_is(')'); first = false) {
      if (!first) take(',');
      argument(call);
    }
    take(')');
    check_operand_counts(*call.op, static_cast<int64_t>(call.inputs.size()), static_cast<int64_t>(results.size()));
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.inputs[i] < 0 && !call.op->optional[std::min(i, call.op->optional.size() - 1)])
        refuse("input " + call.op->input_name(static_cast<int32_t>(i)) + " of " + name + " cannot be none");
    }
    call.first_result = static_cast<int32_t>(values_.size());
    for (const std::string& result : results) define(result);
    composition_.calls.push_back(std::move(call));
  }

  void argument(ComposedCall& call) {
    const std::string name = word("an argument");
    if (!next_is('=')) {
      if (!call.attributes.empty()) refuse("the input " + in_quotes(name) + " follows an attribute");
      call.inputs.push_back(name == "none" ? -1 : value_of(name));
      return;
    }
    take('=');
    const auto found = std::ranges::find(call.op->attributes, name, &AttributeSchema::name);
    if (found == call.op->attributes.end()) refuse(call.op->name + " has no attribute " + in_quotes(name));
    ComposedAttribute attribute;
    attribute.name = name;
    value(*found, attribute);
    call.attributes.push_back(std::move(attribute));
  }

  void value(const AttributeSchema& wanted, ComposedAttribute& to) {
    if (next_is('[')) {
      take('[');
      if (!wanted.is_list || wanted.kind != AttributeKind::kInt64)
        refuse("the attribute " + to.name + " is not a list of integers");
      for (bool first = true; !next_is(']'); first = false) {
        if (!first) take(',');
        to.integers.push_back(integer(number("an integer"), to.name));
      }
      return take(']');
    }
    if (next_is('"')) {
      take('"');
      const size_t end = text_.find('"', at_);
      if (wanted.kind != AttributeKind::kString || end == std::string_view::npos)
        refuse("the attribute " + to.name + " has an invalid string");
      to.kind = COMPUTE_KIND_STRING;
      to.text = text_.substr(at_, end - at_);
      at_ = end + 1;
      return;
    }
    const std::string text = number("a value");
    if (const auto outer = std::ranges::find(schema_.attributes, text, &AttributeSchema::name);
        outer != schema_.attributes.end()) {
      return refer(wanted, *outer, to);
    }
    literal(wanted, text, to);
  }

  // A word that may begin with a sign.
  std::string number(const char* what) {
    skip();
    std::string sign;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) sign = text_[at_++] == '-' ? "-" : "";
    std::string text = sign + word(what);
    // The sign of an exponent.
    if ((text.ends_with('e') || text.ends_with('E')) && at_ < text_.size() &&
        (text_[at_] == '-' || text_[at_] == '+') && text.find_first_of("0123456789") < 2) {
      text += text_[at_++];
      text += word("an exponent");
    }
    return text;
  }

  int64_t integer(const std::string& text, const std::string& name) const {
    int64_t result = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), result);
    if (end.ptr != text.data() + text.size() || end.ec != std::errc())
      refuse(in_quotes(text) + " is not an integer, as the attribute " + name + " needs");
    return result;
  }

  void refer(const AttributeSchema& wanted, const AttributeSchema& outer, ComposedAttribute& to) {
    const bool fits = outer.kind == wanted.kind || (wanted.kind == AttributeKind::kNumber && wanted.run_time);
    if (outer.is_list && outer.kind != AttributeKind::kInt64)
      refuse("the attribute " + outer.name + " cannot be passed on: it is a list of real numbers");
    if (!fits || outer.is_list != wanted.is_list || (outer.run_time && !wanted.run_time) ||
        (!outer.run_time && wanted.run_time)) {
      refuse("the attribute " + outer.name + " cannot be passed as " + to.name +
             ": both must be of one kind, and both static or both run-time");
    }
    to.outer = static_cast<int32_t>(&outer - schema_.attributes.data());
  }

  void literal(const AttributeSchema& wanted, const std::string& text, ComposedAttribute& to) {
    if (wanted.is_list || wanted.kind == AttributeKind::kString)
      refuse(in_quotes(text) + " is not a value of the attribute " + to.name);
    if (wanted.kind == AttributeKind::kDtype) {
      to.kind = COMPUTE_KIND_DTYPE;
      to.integers = {dtype_from_name(text)};
      if (to.integers[0] == COMPUTE_DTYPE_NONE) refuse(in_quotes(text) + " is not a dtype");
      return;
    }
    const bool is_real = wanted.kind == AttributeKind::kFloat64 || text.find_first_of(".eE") != std::string::npos;
    if (wanted.kind == AttributeKind::kInt64 || !is_real) {
      to.integers = {integer(text, to.name)};
      return;
    }
    to.kind = COMPUTE_KIND_FLOAT64;
    double real = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), real);
    if (end.ptr != text.data() + text.size()) refuse(in_quotes(text) + " is not a number");
    to.reals = {real};
  }

  const std::string_view text_;
  const OpSchema& schema_;
  size_t at_ = 0;
  std::map<std::string, int32_t> values_;
  Composition composition_;
};

// ---- Calls of a composition -----------------------------------------------------------------------------------------

int32_t run_time_position(const OpSchema& schema, int32_t attribute) {
  const auto found = std::ranges::find(schema.run_time, attribute);
  return found == schema.run_time.end() ? -1 : static_cast<int32_t>(found - schema.run_time.begin());
}

// The values of an attribute in the form of compute_attribute. Valid as long as `from` and `place`.
compute_attribute raw_attribute(const ComposedAttribute& from, const OpCall& outer, compute_string& place,
                                std::vector<int64_t>& numbers, double& real, compute_dtype& dtype) {
  compute_attribute to{};
  to.struct_size = sizeof to;
  to.struct_type = COMPUTE_STRUCT_ATTRIBUTE;
  to.name = from.name.c_str();
  to.name_size = static_cast<int64_t>(from.name.size());
  to.kind = from.kind;
  to.count = 1;
  std::string_view text = from.text;
  numbers = from.integers;
  real = from.reals.empty() ? 0 : from.reals[0];
  if (from.outer >= 0) {
    const AttributeSchema& attribute = outer.schema.attributes[static_cast<size_t>(from.outer)];
    switch (attribute.kind) {
      case AttributeKind::kString:
        to.kind = COMPUTE_KIND_STRING;
        text = outer.attributes.string(from.outer);
        break;
      case AttributeKind::kFloat64:
        to.kind = COMPUTE_KIND_FLOAT64;
        real = attribute.run_time ? 0 : outer.attributes.float64(from.outer);
        break;
      case AttributeKind::kDtype:
        to.kind = COMPUTE_KIND_DTYPE;
        numbers = {outer.attributes.dtype(from.outer)};
        break;
      default: {
        to.kind = attribute.kind == AttributeKind::kHandle ? COMPUTE_KIND_HANDLE : COMPUTE_KIND_INT64;
        numbers = {0};
        if (attribute.run_time) break;
        const std::span<const int64_t> list = outer.attributes.int64_list(from.outer);
        numbers.assign(list.begin(), list.end());
      }
    }
  }
  static constexpr int64_t kNothing = 0;
  if (to.kind == COMPUTE_KIND_STRING) {
    place = {text.data(), static_cast<int64_t>(text.size())};
    to.values = &place;
  } else if (to.kind == COMPUTE_KIND_FLOAT64) {
    to.values = &real;
  } else if (to.kind == COMPUTE_KIND_DTYPE) {
    dtype = static_cast<compute_dtype>(numbers[0]);
    to.values = &dtype;
  } else {
    to.count = static_cast<int64_t>(numbers.size());
    to.values = numbers.empty() ? &kNothing : numbers.data();
  }
  return to;
}

}  // namespace

InnerAttributes inner_attributes(const ComposedCall& inner, const OpCall& outer) {
  InnerAttributes result;
  result.outer.fill(-1);
  const size_t count = inner.attributes.size();
  std::vector<compute_attribute> list;
  std::vector<compute_string> strings(count);
  std::vector<std::vector<int64_t>> numbers(count);
  std::vector<double> reals(count);
  std::vector<compute_dtype> dtypes(count);
  for (size_t i = 0; i < count; ++i) {
    const ComposedAttribute& from = inner.attributes[i];
    const bool is_static = from.outer >= 0 && run_time_position(outer.schema, from.outer) < 0;
    if (is_static && !outer.attributes.has(from.outer)) continue;  // absent there, absent here
    list.push_back(raw_attribute(from, outer, strings[i], numbers[i], reals[i], dtypes[i]));
    if (from.outer < 0 || is_static) continue;
    const auto attribute = std::ranges::find(inner.op->attributes, from.name, &AttributeSchema::name);
    const auto index = static_cast<int32_t>(attribute - inner.op->attributes.begin());
    result.outer[static_cast<size_t>(run_time_position(*inner.op, index))] =
        run_time_position(outer.schema, from.outer);
  }
  read_attributes(*inner.op, list.data(), static_cast<int64_t>(list.size()), result.statics, result.run_time.data());
  return result;
}

size_t composed_call_count(const OpSchema& schema) {
  if (!schema.composition) return 1;
  size_t count = 0;
  for (const ComposedCall& call : schema.composition->calls) count += composed_call_count(*call.op);
  return count;
}

std::shared_ptr<const Composition> parse_composition(std::string_view text, const OpSchema& schema) {
  return std::make_shared<const Composition>(Parser(text, schema).parse());
}

}  // namespace compute
