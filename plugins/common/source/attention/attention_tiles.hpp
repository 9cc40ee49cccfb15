// SPDX-License-Identifier: Apache-2.0
// The kernels of attention_tiles.cpp for other ops too.
#pragma once

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

enum class AttentionPart : uint8_t { kForward, kQueries, kKeys };

/// In the workspace, by batch, head and tile of rows: whether the rows of a tile are to be computed. An int32 each.
struct AttentionFlags {
  int64_t offset_bytes = 0, rows = 0;
};

/// The attribute `scale`, which 0 leaves to the features.
double attention_scale(const Op& op, int64_t features);

/// Whether places among the op's tensors, `first` of which is q, need 64 bits.
bool is_wide_attention(const Op& op, int32_t first);

/// Adds a kernel; with `flags`, for the rows that they tell.
void add_attention_tiles(const Op& op, const Dialect& dialect, AttentionPart part, const AttentionFlags* flags,
                         bool with_text, BuiltKernels& built);

}  // namespace compute::common
