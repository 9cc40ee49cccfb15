// SPDX-License-Identifier: Apache-2.0
// One function per primitive: its kernels and launches, with their text if it is asked for.
#pragma once

#include "plugins/common/source/kernel_builder.hpp"

namespace compute::common {

BuiltRecipe build_attention(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_attention_tiles(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_attention_grad(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_attention_grad_tiles(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_map(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_copy(const Op& op, const Dialect& dialect, bool with_text);
/// Whether build_copy or build_map moves complex elements part by part, as their addresses require.
bool moves_parts(const Op& op);
BuiltRecipe build_optimizer(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_pooling(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_reduce(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_gather(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_scatter(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_arg_reduce(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_row(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_scan(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_search(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_select(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_segments(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_sort(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_take_grad(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_contraction(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_vector_product(const Op& op, const Dialect& dialect, bool with_text);
BuiltRecipe build_convolution(const Op& op, const Dialect& dialect, bool with_text);

/// The function compute_report_index, for kernels with a fault record.
std::string_view report_index_text();

/// Whether a contraction is one that build_vector_product is for.
bool is_vector_product(const Op& op);

/// Why the kernel of row is not for this op, whose expressions are supported.
std::optional<Refusal> refuse_row_shape(const Op& op, const Dialect& dialect);

/// Why no kernel of attention, or of its gradient, is for this op; and why those without matrix units are not.
std::optional<Refusal> refuse_attention(const Op& op, const Dialect& dialect);
std::optional<Refusal> refuse_attention_grad(const Op& op, const Dialect& dialect);
std::optional<Refusal> refuse_attention_tiles(const Op& op, const Dialect& dialect);

/// Why the kernel of searchsorted is not for this op.
std::optional<Refusal> refuse_search(const Op& op);

/// Why the kernels of optimisers are not for this op.
std::optional<Refusal> refuse_optimizer(const Op& op, const Dialect& dialect);

/// Why the kernels of take_grad are not for this op.
std::optional<Refusal> refuse_take_grad(const Op& op, const Dialect& dialect);

/// Why the kernels of nonzero and unique are not for this op.
std::optional<Refusal> refuse_select(const Op& op, const Dialect& dialect);

/// Why the kernels of sort are not for this op.
std::optional<Refusal> refuse_sort_shape(const Op& op, const Dialect& dialect);
std::optional<Refusal> refuse_top_k(const Op& op, const Dialect& dialect);
std::optional<Refusal> refuse_permutation(const Op& op, const Dialect& dialect);

}  // namespace compute::common
