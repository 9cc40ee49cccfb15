// SPDX-License-Identifier: Apache-2.0
// Iteration over the outer loops of a nest.
#pragma once

#include <array>
#include <cstdint>

#include "plugins/common/op/layout.hpp"

namespace compute::cpu {

// Visits the points of loops [0, loops) of a nest, the last loop fastest, and maintains the offset of each operand.
class Walk {
 public:
  // `offsets` has one entry per operand, to which the walk adds; it starts at the `point`th point.
  Walk(const common::LoopNest& nest, int loops, int64_t point, int64_t* offsets)
      : nest_(nest), loops_(loops), operands_(static_cast<int>(nest.strides.size())), offsets_(offsets) {
    for (int axis = loops - 1; axis >= 0; --axis) {
      const auto at = static_cast<size_t>(axis);
      index_[at] = point % nest.extents[at];
      point /= nest.extents[at];
      for (int i = 0; i < operands_; ++i) offsets_[i] += index_[at] * stride(i, at);
    }
  }

  void next() {
    for (int axis = loops_ - 1; axis >= 0; --axis) {
      const auto at = static_cast<size_t>(axis);
      if (++index_[at] < nest_.extents[at]) {
        for (int i = 0; i < operands_; ++i) offsets_[i] += stride(i, at);
        return;
      }
      for (int i = 0; i < operands_; ++i) offsets_[i] -= stride(i, at) * (nest_.extents[at] - 1);
      index_[at] = 0;
    }
  }

 private:
  int64_t stride(int operand, size_t axis) const { return nest_.strides[static_cast<size_t>(operand)][axis]; }

  const common::LoopNest& nest_;
  const int loops_;
  const int operands_;
  int64_t* const offsets_;
  std::array<int64_t, common::kMaxRank> index_;
};

}  // namespace compute::cpu
