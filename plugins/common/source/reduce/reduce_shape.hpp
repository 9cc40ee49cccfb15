// SPDX-License-Identifier: Apache-2.0
// How the work items of a device share the work of a reduction.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

constexpr int kReduceSteps = 4;       // vectors a work item has in flight
constexpr int kReduceHostSteps = 16;  // elements on a CPU core, which combines them in vectors

/// The least power of two that is not less than x.
inline int64_t power_above(int64_t x) {
  return x < 1 ? 1 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x)));
}

/// The work of one kernel.
struct ReducePass {
  LoopNest kept, combined;  // operands: sources, index axes, and in `kept` the output last
  std::vector<compute_dtype> sources;
  std::vector<int32_t> alignments;
  bool loads_vectors = false;   // of neighbouring elements, even from a source that does not move along the lanes
  bool from_workspace = false;  // the one source is a table of partial results
  bool to_workspace = false;
  bool is_shared = false;   // the groups of an output leave partial results, which the last of them combines
  bool has_blocks = false;  // its kernel has the form of blocks
};

/// A group of work items is a table of `across` × `along`: `across` outputs (times lanes), each combined by `along`
/// items.
///
/// On a CPU core an item may take a block of `lanes` neighbouring outputs, or fewer at the end of a row, and follows
/// the rows of memory with all of them; it is then its own group.
struct ReduceShape {
  bool along_first = true;  // neighbouring items are along the combined loops
  bool is_block = false;
  int lanes = 1;  // elements per access, along the combined loops or of this many outputs
  int64_t across = 1, along = 1;
  int64_t splits = 1;  // groups that share an output
};

ReduceShape choose_reduce_shape(const ReducePass& pass, const Dialect& dialect, bool may_split);

/// How many runs of up to `held` neighbours the innermost loops of `kept` have.
int64_t count_columns(const LoopNest& kept, int held);

/// Whether offsets, positions and partial results need 64 bits. `sizes` are the element sizes of the sources in bytes.
bool needs_wide(const ReducePass& pass, std::span<const int32_t> sizes, int32_t output_size, int64_t splits);

#include "plugins/common/source/reduce/reduce_shape.inc"

}  // namespace compute::common
