// SPDX-License-Identifier: Apache-2.0
#include "core/ops/size_expression.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/error.hpp"
#include "core/text/ascii.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

// Parses a text and computes its value. Without tensors it only checks names, and every value is 1.
class Reader {
 public:
  Reader(std::string_view text, const OpSchema& schema, const Attributes* attributes,
         const std::vector<SizedTensor>* tensors, const std::string& what)
      : text_(text), schema_(schema), attributes_(attributes), tensors_(tensors), what_(what) {}

  int64_t read() {
    const int64_t value = sum(0);
    skip_blanks();
    if (at_ != text_.size()) refuse("\"" + printable(text_.substr(at_)) + "\" is not expected");
    return value;
  }

 private:
  static constexpr int kMostDepth = 64;

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, what_ + ": \"" + printable(text_) + "\": " + why);
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void require(char c) {
    if (!take(c)) refuse(std::string("'") + c + "' is missing");
  }
  std::string_view word() {
    skip_blanks();
    const size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '_')) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  template <class F>
  int64_t combined(int64_t a, int64_t b, const F& overflows) const {
    int64_t result = 0;
    if (overflows(a, b, &result)) refuse("the value does not fit in 64 bits");
    return result;
  }
  int64_t add(int64_t a, int64_t b) const {
    return combined(a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_add_overflow(x, y, r); });
  }
  int64_t subtract(int64_t a, int64_t b) const {
    return combined(a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_sub_overflow(x, y, r); });
  }
  int64_t multiply(int64_t a, int64_t b) const {
    return combined(a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_mul_overflow(x, y, r); });
  }
  int64_t divide_down(int64_t a, int64_t b) const {
    if (b == 0) refuse("a division by zero");
    if (b == -1) return subtract(0, a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  }

  int64_t sum(int depth) {
    if (depth > kMostDepth) refuse("it is nested too deeply");
    int64_t value = product(depth);
    for (;;) {
      if (take('+')) {
        value = add(value, product(depth));
      } else if (take('-')) {
        value = subtract(value, product(depth));
      } else {
        return value;
      }
    }
  }
  int64_t product(int depth) {
    int64_t value = factor(depth);
    for (;;) {
      if (take('*')) {
        value = multiply(value, factor(depth));
      } else if (take('/')) {
        value = divide_down(value, factor(depth));
      } else if (take('%')) {
        const int64_t divisor = factor(depth);
        value = subtract(value, multiply(divide_down(value, divisor), divisor));
      } else {
        return value;
      }
    }
  }
  int64_t factor(int depth) {
    if (depth > kMostDepth) refuse("it is nested too deeply");
    if (take('-')) return subtract(0, factor(depth + 1));
    if (take('(')) {
      const int64_t value = sum(depth + 1);
      require(')');
      return value;
    }
    const std::string_view name = word();
    if (name.empty()) refuse("a number or a name is missing");
    if (is_digit(name.front())) return literal(name);
    if (name == "min" || name == "max" || name == "ceil_div") return function(name, depth);
    if (take('.')) return property(name);
    return attribute(name);
  }
  int64_t literal(std::string_view digits) const {
    int64_t value = 0;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (end.ec != std::errc() || end.ptr != digits.data() + digits.size())
      refuse("\"" + printable(digits) + "\" is not an integer");
    return value;
  }
  int64_t function(std::string_view name, int depth) {
    require('(');
    const int64_t a = sum(depth + 1);
    require(',');
    const int64_t b = sum(depth + 1);
    require(')');
    if (name == "min") return std::min(a, b);
    if (name == "max") return std::max(a, b);
    return subtract(0, divide_down(subtract(0, a), b));
  }
  int64_t attribute(std::string_view name) const {
    for (size_t i = 0; i < schema_.attributes.size(); ++i) {
      const AttributeSchema& known = schema_.attributes[i];
      if (known.name != name) continue;
      if (known.kind != AttributeKind::kInt64 || known.is_list || known.run_time)
        refuse("the attribute " + known.name + " is not a static integer");
      if (attributes_ == nullptr) return 1;
      const auto index = static_cast<int32_t>(i);
      if (!attributes_->has(index)) refuse("the attribute " + known.name + " is not given");
      return attributes_->int64(index);
    }
    refuse("\"" + printable(name) + "\" is not an attribute; a tensor has .size, .rank, .shape[i] and .strides[i]");
  }
  int64_t property(std::string_view name) {
    const bool is_input = std::ranges::find(schema_.inputs, name) != schema_.inputs.end();
    if (!is_input && std::ranges::find(schema_.outputs, name) == schema_.outputs.end())
      refuse("\"" + printable(name) + "\" is not a tensor of the op");
    const std::string_view which = word();
    const bool is_list = which == "shape" || which == "strides";
    if (!is_list && which != "size" && which != "rank")
      refuse("\"" + printable(which) + "\" is not size, rank, shape[i] or strides[i]");
    int64_t axis = 0;
    if (is_list) {
      require('[');
      const bool is_negative = take('-');
      axis = literal(word());
      if (is_negative) axis = -axis;
      require(']');
    }
    if (tensors_ == nullptr) return 1;
    const auto tensor = std::ranges::find(*tensors_, name, &SizedTensor::name);
    if (tensor == tensors_->end()) refuse(std::string(name) + " is not known here");
    const auto rank = static_cast<int64_t>(tensor->shape->size());
    if (which == "rank") return rank;
    if (which == "size") {
      int64_t size = 1;
      for (const int64_t extent : *tensor->shape) size = multiply(size, extent);
      return size;
    }
    if (axis < -rank || axis >= rank)
      refuse(std::string(name) + " has rank " + std::to_string(rank) + ", so it has no axis " + std::to_string(axis));
    const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    if (which == "shape") return (*tensor->shape)[at];
    if (tensor->strides == nullptr) refuse("the strides of " + std::string(name) + " are not known here");
    return (*tensor->strides)[at];
  }

  const std::string_view text_;
  const OpSchema& schema_;
  const Attributes* const attributes_;
  const std::vector<SizedTensor>* const tensors_;
  const std::string& what_;
  size_t at_ = 0;
};

}  // namespace

SizeExpression SizeExpression::parse(std::string_view text, const OpSchema& schema, const std::string& what) {
  Reader(text, schema, nullptr, nullptr, what).read();
  SizeExpression result;
  result.text_ = text;
  return result;
}

int64_t SizeExpression::value(const OpSchema& schema, const Attributes& attributes,
                              const std::vector<SizedTensor>& tensors) const {
  return Reader(text_, schema, &attributes, &tensors, schema.name).read();
}

}  // namespace compute
