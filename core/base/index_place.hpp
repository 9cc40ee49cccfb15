// SPDX-License-Identifier: Apache-2.0
// The position of a program's indices in a plugin's op, for messages about an index out of range.
#pragma once

#include <cstdint>
#include <vector>

namespace compute {

// Where the indices of a step that gathers or scatters are in the call's operand `indices`. A fault names a position in
// the index space of the step, which repeats them.
struct IndexPlace {
  int32_t argument = 1;        // the operand, among the inputs of the call
  int32_t axis = 0;            // the first axis of x that is indexed
  std::vector<int64_t> space;  // the extents of the index space
  std::vector<int64_t> shape;  // of the operand: the axes of the space from `first` on, or 1 if they repeat it
  int32_t first = 0;
  std::vector<int64_t> extents = {};  // of several axes indexed as one: the fault then has no index per axis
};

}  // namespace compute
