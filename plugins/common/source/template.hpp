// SPDX-License-Identifier: Apache-2.0
// Templates of kernels: text in the portable dialect in which names stand for what is computed.
//
//   for (int v = 0; v < $lanes; ++v) {
//     $loads
//   $if sums
//     sum[v] = $sum;
//   $else
//     best[v] = x${input}v;
//   $end
//   }
//
// $name, or ${name} before a letter, digit or '_', is replaced by its value. A name that is alone on its line stands
// for whole lines: each gets the name's indentation, except for the preprocessor's, and an empty value leaves no line.
// Lines between "$if name" and "$end" are printed if the value is not empty, those after "$else" if it is. A line that
// begins with "$//" is a comment on the template and not printed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/common/source/types.hpp"

namespace compute::common {

/// A name and what stands for it: texts and numbers, joined.
struct Value {
  template <class First, class... Rest>
  Value(std::string_view name, const First& first, const Rest&... rest) : name(name), text(cat(first, rest...)) {}
  /// A condition: empty where it is false.
  Value(std::string_view name, bool condition) : name(name), text(condition ? "1" : "") {}

  std::string_view name;
  std::string text;
};

/// The template's text with the values in place. A newline at its very beginning is left out.
///
/// Internal errors are a name without a value, and a value whose name the template does not have or that was given
/// before. Names in lines that are left out need no value.
std::string fill(std::string_view text, const std::vector<Value>& values);

/// The same for names of which a template uses some: `find` returns nothing for a name that does not exist.
using FindValue = std::function<std::optional<std::string_view>(std::string_view name)>;
std::string fill(std::string_view text, const FindValue& find);

}  // namespace compute::common
