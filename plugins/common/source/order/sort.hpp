// SPDX-License-Identifier: Apache-2.0
// The sorted keys of a whole tensor, for ops that continue from them.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

/// Where the sorted keys lie in the workspace, in bytes, and the row-major positions (u32) that they came from. Equal
/// elements have equal keys.
struct SortedKeys {
  int64_t keys_at = 0, positions_at = 0;
  const char* key_type = "u32";
  std::string key_of_nan;
};

/// Adds the kernels that sort the elements of unique's input, or the indices of take_grad, whose keys are rows of the
/// output. It must not be refused.
SortedKeys add_sorted_keys(BuiltKernels& built, const Op& op, const Dialect& dialect, bool with_text);

std::optional<Refusal> refuse_sorted_keys(const Op& op, const Dialect& dialect);
std::optional<Refusal> refuse_sorted_rows(const Op& op, const Dialect& dialect);

}  // namespace compute::common
