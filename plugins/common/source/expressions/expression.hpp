// SPDX-License-Identifier: Apache-2.0
// Expressions as statements of the portable dialect.
#pragma once

#include <compute/plugin.h>

#include <functional>
#include <string>
#include <vector>

#include "plugins/common/source/expressions/functions.hpp"

namespace compute::common {

/// The sources of an expression's leaves: each function returns the text of a value.
struct Leaves {
  std::function<std::string(int32_t input)> input;  // with the INPUT node's dtype
  std::function<std::string(int32_t axis)> index;   // an integer
  std::function<std::string(int32_t scalar)>
      scalar;  // the place of its 16 bytes: the first of two words; see scalar_text
};

/// The first unknown intrinsic, or 0.
int32_t unknown_intrinsic(const compute_plugin_expression& expression);

/// Whether it contains float64 or complex128.
bool uses_fp64(const compute_plugin_expression& expression);

/// Appends one statement per node to `out`. Each defines a constant whose name is `prefix` and a number. The result
/// contains the names of the outputs.
std::vector<std::string> print_expression(const compute_plugin_expression& expression, const Leaves& leaves,
                                          std::string_view prefix, Functions& functions, std::string& out);

/// Why the expression cannot be printed: a function that neither the language nor the library has. Empty if it can be.
std::string missing_function(const compute_plugin_expression& expression, const Dialect& dialect);

/// The axes of the INDEX nodes, each once.
std::vector<int32_t> index_axes(const compute_plugin_expression& expression);

/// A call of an intrinsic on values of `dtype` (that of the last operand), as an expression.
std::string call_text(int32_t intrinsic, compute_dtype dtype, const std::vector<std::string>& operands,
                      Functions& functions);
std::string convert_text(const std::string& x, compute_dtype from, compute_dtype to, Functions& functions);

/// A number from its bit pattern, and from two words that hold it.
std::string constant_text(compute_dtype dtype, const uint8_t* bits);
std::string scalar_text(compute_dtype dtype, const std::string& low_word, const std::string& high_word);

/// The value of an element in memory, and the element for a value.
inline std::string value_of_element(compute_dtype dtype, const std::string& element) {
  return dtype == COMPUTE_DTYPE_BOOL ? "(" + element + " != 0)" : element;
}
inline std::string element_of_value(compute_dtype dtype, const std::string& value) {
  return dtype == COMPUTE_DTYPE_BOOL ? "(u8)(" + value + ")" : value;
}

}  // namespace compute::common
