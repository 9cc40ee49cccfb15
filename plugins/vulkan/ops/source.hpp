// SPDX-License-Identifier: Apache-2.0
// GLSL text from expressions, and the library of functions that it calls.
#pragma once

#include <compute/plugin.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../physical.hpp"

namespace vulkan {

class Source {
 public:
  explicit Source(const Features& features) : features_(features) {}

  std::string convert(int32_t from, int32_t to, std::string value);
  // Combines two values of one dtype: sum, prod, min, max, all, any; add and mul of scatter.
  std::string combine(std::string_view kind, int32_t dtype, const std::string& a, const std::string& b);
  std::string call(int32_t intrinsic, int32_t from, int32_t to, const std::string* operands);

  // Makes `function` of the library available for values of this class, and returns its name, which is q_ and that.
  std::string use(std::string_view function, char cls);

  // The values of the leaves of an expression. `scalar` gets the position among those of the expression.
  struct Leaves {
    std::function<std::string(int32_t input, int32_t dtype)> input;
    std::function<std::string(int32_t scalar, int32_t dtype)> scalar;
    std::function<std::string(int32_t axis)> index;
    std::function<std::string(int32_t node)> known;  // optional: the value of a node, or ""
  };
  // Declares the nodes as variables with `prefix`, and returns the names of the outputs.
  std::vector<std::string> emit(std::string& out, const compute_plugin_expression& expression,
                                const std::string& prefix, const Leaves& leaves);

  // The functions in use, in the order in which they must be declared.
  std::string library() const;

 private:
  std::string real_call(int32_t intrinsic, char cls, const std::string* x);
  std::string integer_call(int32_t intrinsic, int32_t dtype, const std::string* x);
  std::string complex_call(int32_t intrinsic, char cls, const std::string* x);
  std::string function(std::string_view name, char cls, const std::string* x, int arity);

  const Features& features_;
  std::set<std::string> used_;
};

std::string zero_text(int32_t dtype);  // of float32 or float64, in launches with one group along y

// The value of a constant, as text.
std::string constant_text(int32_t dtype, const uint8_t* bits);

bool uses_index(const compute_plugin_expression& expression);
// Whether a node of `b` computes what the output of `a` does: its number, or -1.
int32_t find_same(const compute_plugin_expression& a, const compute_plugin_expression& b);
// Whether the expression costs more than the memory of its operands.
bool is_heavy(const compute_plugin_expression& expression);

}  // namespace vulkan
