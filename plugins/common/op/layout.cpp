// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/op/layout.hpp"

#include <algorithm>
#include <cstdlib>

namespace compute::common {

int64_t LoopNest::points() const {
  int64_t n = 1;
  for (int axis = 0; axis < rank; ++axis) n *= extents[axis];
  return n;
}

LoopNest collapse(std::span<const int64_t> shape, std::span<const int64_t* const> strides, int leader) {
  const int operands = static_cast<int>(strides.size());
  LoopNest nest;
  nest.strides.resize(operands);
  nest.offsets.assign(operands, 0);

  std::array<int, kMaxRank> order;
  int rank = 0;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    if (shape[axis] != 1) order[rank++] = axis;
  }
  // The outermost loop has the leader's largest stride; if the leader does not move, the next operand that moves
  // decides. Uses a stable insertion sort, because the comparison is not a strict weak order if operands disagree.
  const auto inside = [&](int a, int b) {
    for (int step = 0; step < operands; ++step) {
      const int i = step == 0 ? leader : step <= leader ? step - 1 : step;
      const int64_t x = std::llabs(strides[i][a]), y = std::llabs(strides[i][b]);
      if (x == y || x == 0 || y == 0) continue;
      return x < y;
    }
    return false;
  };
  for (int i = 1; i < rank; ++i) {
    for (int j = i; j > 0 && inside(order[j - 1], order[j]); --j) std::swap(order[j - 1], order[j]);
  }

  for (int k = 0; k < rank; ++k) {
    const int axis = order[k];
    const int64_t extent = shape[axis];
    const bool turn = strides[leader][axis] < 0;
    std::array<int64_t, kMaxRank>* outer = nest.strides.data();
    const int last = nest.rank - 1;
    bool merges = last >= 0;
    for (int i = 0; i < operands && merges; ++i) {
      const int64_t stride = turn ? -strides[i][axis] : strides[i][axis];
      merges = outer[i][last] == stride * extent;
    }
    const int place = merges ? last : nest.rank++;
    nest.extents[place] = merges ? nest.extents[place] * extent : extent;
    for (int i = 0; i < operands; ++i) {
      const int64_t stride = turn ? -strides[i][axis] : strides[i][axis];
      if (turn) nest.offsets[i] -= stride * (extent - 1);
      outer[i][place] = stride;
    }
  }
  return nest;
}

std::optional<int64_t> row_major_step(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  std::optional<int64_t> step;
  int64_t next = 0;  // the stride that continues the inner axes
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (!step) {
      step = strides[i];
    } else if (strides[i] != next) {
      return std::nullopt;
    }
    next = strides[i] * shape[i];
  }
  return step.value_or(1);
}

void move_loop(LoopNest& nest, int from, int to) {
  const auto move = [&](std::array<int64_t, kMaxRank>& values) {
    const auto begin = values.begin();
    if (from >= to) {
      std::rotate(begin + to, begin + from, begin + from + 1);
    } else {
      std::rotate(begin + from, begin + from + 1, begin + to + 1);
    }
  };
  move(nest.extents);
  for (auto& strides : nest.strides) move(strides);
}

}  // namespace compute::common
