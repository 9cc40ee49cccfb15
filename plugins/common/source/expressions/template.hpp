// SPDX-License-Identifier: Apache-2.0
// Templates of kernels: text in the portable dialect in which names are replaced by computed text.
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
// $name, or ${name} before a letter, digit or '_', is replaced by its value. A name that is alone on its line is
// replaced by whole lines: each gets the name's indentation, except preprocessor lines, and an empty value removes the
// line. Lines between "$if name" and "$end" are printed if the value is not empty, those after "$else" if it is empty.
// A line that begins with "$//" is a comment on the template and is not printed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/common/source/expressions/types.hpp"

namespace compute::common {

/// A name and its value: texts and numbers, joined.
struct Value {
  template <class First, class... Rest>
  Value(std::string_view name, const First& first, const Rest&... rest) : name(name), text(cat(first, rest...)) {}
  /// A condition: empty if it is false.
  Value(std::string_view name, bool condition) : name(name), text(condition ? "1" : "") {}

  std::string_view name;
  std::string text;
};

/// The template's text with the values in place. A newline at its very beginning is left out.
///
/// Internal errors: a name without a value, and a value whose name is not in the template or was already given. Names
/// in lines that are not printed need no value.
std::string fill(std::string_view text, const std::vector<Value>& values);

/// The same if a template uses only some of the names: `find` returns nothing for a name that does not exist.
using FindValue = std::function<std::optional<std::string_view>(std::string_view name)>;
std::string fill(std::string_view text, const FindValue& find);

}  // namespace compute::common
