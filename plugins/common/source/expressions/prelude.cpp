// SPDX-License-Identifier: Apache-2.0
// The portable dialect as text.
#include "plugins/common/source/expressions/prelude.hpp"

#include "plugins/common/source/expressions/grammar.hpp"
#include "plugins/common/source/expressions/template.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/expressions/prelude.inc"

std::string define(std::string_view name, std::string_view text) {
  return cat("#define ", name, text.empty() ? "" : " ", text, "\n");
}

std::string definitions(std::span<const Word> words) {
  std::string out;
  for (const Word& word : words) {
    const std::string text = define(word.name, word.text);
    out += word.condition.empty()
               ? text
               : cat("#", word.condition, "\n", text, "#else\n", define(word.name, word.otherwise), "#endif\n");
  }
  return out;
}

std::string type_definitions(std::span<const Word> types, bool has_typedefs) {
  if (!has_typedefs) return definitions(types);
  std::string out;
  for (const Word& type : types) out += cat("typedef ", type.text, " ", type.name, ";\n");
  return out;
}

}  // namespace

std::string portable_prelude(const Dialect& dialect) {
  const std::string text = fill(kPrelude, {{"heading", dialect.heading},
                                           {"types", type_definitions(dialect.types, dialect.has_typedefs)},
                                           {"words", definitions(dialect.words)},
                                           {"vectors", type_definitions(dialect.vectors, dialect.has_typedefs)},
                                           {"has_fp64", dialect.has_fp64},
                                           {"float64", dialect.float64},
                                           {"has_int64_atomics", dialect.has_int64_atomics},
                                           {"int64_atomics", dialect.int64_atomics},
                                           {"has_half_io", dialect.has_half_io},
                                           {"halves", dialect.halves}});
  return in_grammar_of(dialect, text);
}

}  // namespace compute::common
