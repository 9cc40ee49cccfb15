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
std::string ops_layout();      // tests/abi/ops_layout.inc
std::string ops_reference();   // docs/ops.md
std::string compiled_rows();   // plugins/cpu/map/rows.inc

// What docs/ops.md and ops.h say of a rule of ops.def; throws for a rule that nobody explained.
std::string_view dtype_rule_text(const OpSchema& op);
std::string_view shape_rule_text(const OpSchema& op);
std::string_view result_text(const OpSchema& op);  // of an elementwise op

// Throws where a generated name is taken in compute.h, whose text this is, or made twice.
void check_names(std::string_view compute_header);

// `words`, separated by blanks, in lines of at most `width` characters, the first after `first`, the others after
// `rest`.
std::string wrapped(std::string_view words, std::string_view first, std::string_view rest, size_t width = 120);

}  // namespace compute::opgen
