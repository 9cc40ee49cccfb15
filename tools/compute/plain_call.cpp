// SPDX-License-Identifier: Apache-2.0
#include "plain_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "commands.hpp"

namespace {

using compute::Attribute;
using compute::DType;

struct Written {
  std::string_view op, call;
};

constexpr Written kCalls[] = {
#define COMPUTE_UNARY(name, ...) {#name, ""},
#define COMPUTE_BINARY(name, ...) {#name, ""},
#define COMPUTE_TERNARY(name, ...) {#name, ""},
#define COMPUTE_OP(name, version, inputs, attributes, dtype_rule, shape_rule, bound, flags, summary, operands, \
                   gradient, sources, call)                                                                    \
  {#name, call},
#include <compute/ops.def>
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP
};

DType dtype_of(const std::string& name, DType asked) { return name == "T" ? asked : dtype_named(name); }

// "float64" for "minimum: float64 = 0 !".
std::string kind_of(const compute::OpInfo& info, const std::string& attribute) {
  for (const std::string& declared : words_of(info.attributes, ';')) {
    const size_t colon = declared.find(':'), name = declared.find_first_not_of(' ');
    if (colon == declared.npos || declared.substr(name, colon - name) != attribute) continue;
    return words_of(declared.substr(colon + 1)).front();
  }
  throw std::logic_error(fmt::format("{} has no attribute {}", info.name, attribute));
}

Attribute attribute_of(const compute::OpInfo& info, const std::string& text, DType asked) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals), value = text.substr(equals + 1), kind = kind_of(info, name);
  if (value.front() == '[') {
    compute::Shape list;
    for (const std::string& item : words_of(std::string_view(value).substr(1, value.size() - 2), ','))
      list.push_back(std::stoll(item));
    return {name, list};
  }
  if (kind == "string") return {name, value};
  if (kind == "dtype") return {name, dtype_of(value, asked)};
  if (kind == "int64") return {name, static_cast<int64_t>(std::stoll(value))};
  return {name, std::stod(value)};
}

}  // namespace

std::vector<std::string> words_of(std::string_view text, char separator) {
  std::vector<std::string> words;
  std::istringstream stream{std::string(text)};
  for (std::string word; std::getline(stream, word, separator);) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

DType dtype_named(const std::string& name) {
  for (const DType dtype : kDtypes) {
    if (dtype.name() == name) return dtype;
  }
  for (const DType dtype : kStoredDtypes) {
    if (dtype.name() == name) return dtype;
  }
  throw std::invalid_argument(fmt::format("there is no dtype {}", name));
}

PlainCall plain_call(const compute::OpInfo& info, DType dtype, bool makes_dtype) {
  PlainCall call;
  const auto* const known =
      std::find_if(std::begin(kCalls), std::end(kCalls), [&](const Written& one) { return one.op == info.name; });
  if (known == std::end(kCalls) || known->call.empty()) {
    call.inputs.assign(words_of(info.inputs).size(), {.dtype = dtype, .shape = {4096, 128}});
    if (info.name == "where") call.inputs[0].dtype = compute::bool_;
    return call;
  }
  for (const std::string& word : words_of(known->call)) {
    if (word.find('=') != word.npos) {
      const bool is_result = makes_dtype && info.inputs.empty() && word.starts_with("dtype=");
      call.attributes.push_back(attribute_of(info, is_result ? "dtype=T" : word, dtype));
      continue;
    }
    const size_t colon = word.find(':');
    compute::Shape shape;
    for (const std::string& extent : words_of(word.substr(colon + 1), 'x')) shape.push_back(std::stoll(extent));
    call.inputs.push_back({.dtype = dtype_of(word.substr(0, colon), dtype), .shape = shape});
  }
  return call;
}
