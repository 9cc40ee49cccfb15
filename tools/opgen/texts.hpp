// SPDX-License-Identifier: Apache-2.0
// The generated files, each as one text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/schema.hpp"

namespace compute::opgen {

inline constexpr std::string_view kSources = "api/compute/ops.def and api/compute/intrinsics.def";

std::string ops_header();      // api/compute/ops.h
std::string ops_cpp_header();  // api/compute/ops.hpp
std::string op_wrappers();     // core/interface/op_wrappers.inc
std::string compiled_rows();   // plugins/cpu/kernels/rows.inc
std::string ops_rust();        // rust/src/ops.rs of the packages
std::string ops_go();          // go/ops.go
std::string ops_fortran();     // fortran/ops.f90
std::string ops_reference();   // docs/ops.md

// What ops.def states of an op for docs/ops.md; of an elementwise op the gradient follows from the expression.
struct OpNote {
  std::string operands, gradient, sources;
};
OpNote op_note(const OpSchema& op);
std::string ops_with_flag(std::string_view flag);  // "`histogram`, `isin`"
std::string source_table();
// Throws for a row that names an op, an input or a source that does not exist.
void check_notes();

// The text of docs/ops.md and ops.h for a rule of ops.def; throws for a rule without a text.
std::string_view dtype_rule_text(const OpSchema& op);
std::string_view shape_rule_text(const OpSchema& op);
std::string_view result_text(const OpSchema& op);  // of an elementwise op

// Throws where a generated name is taken in compute.h, whose text this is, or made twice.
void check_names(std::string_view compute_header);

// `words`, separated by blanks, in lines of at most `width` characters; the first line begins with `first`, the others
// with `rest`.
std::string wrapped(std::string_view words, std::string_view first, std::string_view rest, size_t width = 120);

}  // namespace compute::opgen
