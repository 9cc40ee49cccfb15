// SPDX-License-Identifier: Apache-2.0
// The primitives of this room: attention and its gradient.
// A build function returns kernels and launches, with their text if it is asked for.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

BuiltKernels build_attention(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_attention_tiles(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_attention_grad(const Op& op, const Dialect& dialect, bool with_text);
BuiltKernels build_attention_grad_tiles(const Op& op, const Dialect& dialect, bool with_text);

/// Why no kernel of attention, or of its gradient, is for this op; and why those without matrix units are not.
std::optional<Refusal> refuse_attention(const Op& op, const Dialect& dialect);
std::optional<Refusal> refuse_attention_grad(const Op& op, const Dialect& dialect);
std::optional<Refusal> refuse_attention_tiles(const Op& op, const Dialect& dialect);

}  // namespace compute::common
