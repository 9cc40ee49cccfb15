// SPDX-License-Identifier: Apache-2.0
// The primitives of this room: matrix products, and factors and solutions of small matrices.
// A build function returns kernels and launches, with their text if it is asked for.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

BuiltKernels build_contraction(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_vector_product(const Op& op, const Dialect& dialect, bool with_text);

/// quantized_matmul of a few lines.
BuiltKernels build_quantized_matmul(const Op& op, const Dialect& dialect, bool with_text);
std::optional<Refusal> refuse_quantized_matmul(const Op& op, const Dialect& dialect);

/// cholesky, inv, lu, solve and triangular_solve.
BuiltKernels build_small_matrices(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_small_reflections(const Op& op, const Dialect& dialect, bool with_text);
/// Why the kernels of these are not for this op.
std::optional<Refusal> refuse_small_matrices(const Op& op, const Dialect& dialect);
std::optional<Refusal> refuse_small_reflections(const Op& op, const Dialect& dialect);

/// Whether build_contraction reads a matrix along the depth for a few rows or columns of the other operand.
bool has_few_lines(const Op& op, const Dialect& dialect);

/// Whether build_contraction computes many small products in each group.
bool is_of_small_matrices(const Op& op, const Dialect& dialect);

/// Whether a contraction is one that build_vector_product is for.
bool is_vector_product(const Op& op);

}  // namespace compute::common
