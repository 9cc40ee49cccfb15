// SPDX-License-Identifier: Apache-2.0
#include "core/ops/temporaries.hpp"

#include <algorithm>
#include <vector>

namespace compute {

void layout_temporaries(Lowering& lowering, int64_t alignment) {
  struct Life {
    size_t first = SIZE_MAX, last = 0;
  };
  std::vector<Life> lives(lowering.temporaries.size());
  for (size_t i = 0; i < lowering.steps.size(); ++i) {
    for (const auto* operands : {&lowering.steps[i].inputs, &lowering.steps[i].outputs}) {
      for (const StepOperand& operand : *operands) {
        if (operand.kind != ValueKind::kTemporary) continue;
        Life& life = lives[static_cast<size_t>(operand.index)];
        life.first = std::min(life.first, i);
        life.last = std::max(life.last, i);
      }
    }
  }
  // Greatest first, each at the lowest offset that is free of those alive at the same time.
  std::vector<size_t> order(lowering.temporaries.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lowering.temporaries[a].size_bytes > lowering.temporaries[b].size_bytes;
  });
  const auto aligned = [&](int64_t size) { return (size + alignment - 1) / alignment * alignment; };
  std::vector<size_t> placed;  // by offset
  lowering.temporary_bytes = 0;
  for (const size_t i : order) {
    Temporary& temporary = lowering.temporaries[i];
    int64_t offset = 0;
    for (const size_t other : placed) {
      if (lives[other].last < lives[i].first || lives[i].last < lives[other].first) continue;
      const Temporary& taken = lowering.temporaries[other];
      if (offset + temporary.size_bytes <= taken.offset_bytes) break;
      offset = std::max(offset, aligned(taken.offset_bytes + taken.size_bytes));
    }
    temporary.offset_bytes = offset;
    lowering.temporary_bytes = std::max(lowering.temporary_bytes, aligned(offset + temporary.size_bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) {
                                     return lowering.temporaries[a].offset_bytes < lowering.temporaries[b].offset_bytes;
                                   }),
                  i);
  }
}

}  // namespace compute
