// SPDX-License-Identifier: Apache-2.0
// Texts in the portable dialect, whose grammar is C's, for languages that lack parts of that grammar.
#pragma once

#include <string>
#include <string_view>

#include "plugins/common/source/expressions/dialect.hpp"

namespace compute::common {

/// Whether the language has all of C's grammar that the portable dialect uses, so that texts need no change.
bool has_grammar_of_c(const Dialect& dialect);

/// `text`, which consists of whole functions or statements, as the language writes it: casts, literals, pointer
/// parameters, qualifiers of variables, and comparisons that test for NaN. Text that already is in the language stays.
std::string in_grammar_of(const Dialect& dialect, std::string_view text);

}  // namespace compute::common
