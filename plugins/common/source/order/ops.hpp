// SPDX-License-Identifier: Apache-2.0
// The primitives of this room: scans, searches, segments and sorts.
// A build function returns kernels and launches, with their text if it is asked for.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

BuiltKernels build_histogram(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_scan(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_search(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_select(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_segments(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_sort(const Op& op, const Dialect& dialect, bool with_text);

/// Why the kernels of histogram are not for this op.
std::optional<Refusal> refuse_histogram(const Op& op, const Dialect& dialect);

/// Why the kernel of searchsorted is not for this op.
std::optional<Refusal> refuse_search(const Op& op);

/// Why the kernels of nonzero and unique are not for this op.
std::optional<Refusal> refuse_select(const Op& op, const Dialect& dialect);

/// Why the kernels of sort are not for this op.
std::optional<Refusal> refuse_sort_shape(const Op& op, const Dialect& dialect);
std::optional<Refusal> refuse_top_k(const Op& op, const Dialect& dialect);
std::optional<Refusal> refuse_permutation(const Op& op, const Dialect& dialect);

}  // namespace compute::common
