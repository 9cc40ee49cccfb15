// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/reduce/reduce_shape.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace compute::common {
namespace {

constexpr int64_t kLeastSteps = 16;  // vectors a work item combines at least before the loops are split
constexpr int64_t kFewSteps = 4;     // the same across rows of memory, if there are few
constexpr int64_t kFewTerms = 16;    // of an output, which one work item combines if there are outputs for all

bool is_row(int64_t stride) { return stride == 0 || stride == 1; }

int64_t power_below(int64_t x) { return x < 1 ? 1 : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(x))); }

int choose_lanes(const ReducePass& pass, const Dialect& dialect, const LoopNest& fast, const LoopNest& slow) {
  // On a CPU core neighbouring outputs are computed together, so that memory is read line by line.
  if (fast.rank == 0 || (dialect.is_host && &fast == &pass.combined)) return 1;
  const int inner = fast.rank - 1;
  int32_t greatest = 1;
  for (size_t i = 0; i < fast.strides.size(); ++i) {
    if (i >= pass.sources.size()) {
      // index axes; in `kept` the output, which is written element by element
      const bool is_output = &fast == &pass.kept && i == fast.strides.size() - 1;
      if (!is_output && !is_row(fast.strides[i][inner])) return 1;
      continue;
    }
    if (!is_row(fast.strides[i][inner]) || (pass.loads_vectors && fast.strides[i][inner] == 0)) return 1;
    if (fast.strides[i][inner] != 0) greatest = std::max(greatest, dtype_size(pass.sources[i]));
  }
  for (int lanes = dialect.is_host ? std::min(64 / greatest, 16) : std::min(16 / greatest, 8); lanes > 1; lanes /= 2) {
    // Only a single combined loop may end inside a vector.
    bool fits =
        fast.extents[inner] % lanes == 0 || (&fast == &pass.combined && fast.rank == 1 && fast.extents[inner] >= lanes);
    for (size_t i = 0; i < pass.sources.size() && fits; ++i) {
      if (fast.strides[i][inner] == 0) continue;
      const int32_t size = dtype_size(pass.sources[i]), alignment = vector_alignment(size, lanes);
      const auto is_aligned = [&](int64_t elements) { return elements * size % alignment == 0; };
      fits = pass.alignments[i] >= alignment && is_aligned(fast.offsets[i] + slow.offsets[i]);
      for (int axis = 0; axis < inner; ++axis) fits = fits && is_aligned(fast.strides[i][axis]);
      for (int axis = 0; axis < slow.rank; ++axis) fits = fits && is_aligned(slow.strides[i][axis]);
    }
    if (fits) return lanes;
  }
  return 1;
}

// The outputs of a block: as many neighbours in memory as fill a kilobyte. 0: there are too few.
int choose_block(const ReducePass& pass) {
  constexpr int64_t kLeastOutputs = 16, kMostOutputs = 256, kBytes = 1024;
  const LoopNest& kept = pass.kept;
  if (!pass.has_blocks || kept.rank == 0 || kept.extents[kept.rank - 1] < kLeastOutputs) return 0;
  int32_t greatest = 1;
  for (size_t i = 0; i + 1 < kept.strides.size(); ++i) {  // the last is the output, which may have any stride
    if (!is_row(kept.strides[i][kept.rank - 1])) return 0;
    if (i < pass.sources.size()) greatest = std::max(greatest, dtype_size(pass.sources[i]));
  }
  return static_cast<int>(std::min(kMostOutputs, kBytes / greatest));
}

}  // namespace

ReduceShape choose_reduce_shape(const ReducePass& pass, const Dialect& dialect, bool may_split) {
  ReduceShape shape;
  const LoopNest &kept = pass.kept, &combined = pass.combined;
  const int64_t outputs = kept.points(), terms = combined.points();
  // Memory runs along the nest whose innermost stride is less in the first source that moves along both, else in the
  // first that moves.
  int decided = 0;
  for (size_t i = 0; i < pass.sources.size() && decided < 2; ++i) {
    const int64_t k = kept.rank == 0 ? 0 : std::llabs(kept.strides[i][kept.rank - 1]);
    const int64_t c = combined.rank == 0 ? 0 : std::llabs(combined.strides[i][combined.rank - 1]);
    const int moves = static_cast<int>(k != 0) + static_cast<int>(c != 0);
    if (k == c || moves <= decided) continue;
    decided = moves;
    shape.along_first = k == 0 || (c != 0 && c < k);
  }
  if (terms == 1) shape.along_first = false;
  shape.lanes = choose_lanes(pass, dialect, shape.along_first ? combined : kept, shape.along_first ? kept : combined);
  if (const int outputs_of_block = choose_block(pass); dialect.is_host && !shape.along_first && outputs_of_block > 0) {
    shape.is_block = true;
    shape.lanes = outputs_of_block;
  }
  const int64_t group = shape.is_block ? 1 : dialect.group_size;
  const int64_t vectors = shape.along_first ? terms / shape.lanes : terms;  // that one output combines
  const int64_t columns = shape.along_first ? outputs : count_columns(kept, shape.lanes);
  const int64_t wanted = static_cast<int64_t>(dialect.compute_units) * dialect.groups_per_unit;
  if (dialect.is_host) {
    shape.along = 1;
    shape.across = group;
    if (shape.along_first && columns < group) {  // few outputs: all items share each
      shape.across = std::min(power_above(columns), group);
      shape.along = std::min(group / shape.across, power_above(vectors));
      shape.across = group / shape.along;
    }
  } else if (shape.along_first && terms <= kFewTerms && columns >= wanted * group) {
    shape.across = group;
  } else if (shape.along_first) {
    shape.along = std::clamp(std::max(power_below(vectors / kReduceSteps), std::min<int64_t>(power_below(vectors), 8)),
                             int64_t{1}, group);
    shape.across = group / shape.along;
  } else {
    const bool fills = columns >= wanted * group;
    shape.across = fills ? group : std::min<int64_t>({group, 32, power_above(columns)});
    shape.along = std::min(group / shape.across, power_below(terms / kFewSteps));
    shape.across = group / shape.along;
  }
  const int64_t groups = divide_up(columns, shape.across);
  if (may_split && groups < wanted) {
    // All groups run concurrently: a few more would have to wait.
    shape.splits = std::clamp<int64_t>(vectors / (shape.along * kLeastSteps), 1, wanted / groups);
  }
  return shape;
}

int64_t count_columns(const LoopNest& kept, int held) {
  if (kept.rank == 0) return kept.points();
  const int64_t inner = kept.extents[kept.rank - 1];
  return inner == 0 ? 0 : kept.points() / inner * divide_up(inner, held);
}

bool needs_wide(const ReducePass& pass, std::span<const int32_t> sizes, int32_t output_size, int64_t splits) {
  const LoopNest &kept = pass.kept, &combined = pass.combined;
  if (needs_wide(kept, sizes, kept.points() * std::max<int64_t>(splits, 1)) ||
      needs_wide(combined, sizes, combined.points()))
    return true;
  const auto span_of = [](const LoopNest& nest, size_t operand) {
    int64_t span = 0;
    for (int axis = 0; axis < nest.rank; ++axis)
      span += std::llabs(nest.strides[operand][axis]) * (nest.extents[axis] - 1);
    return span;
  };
  // Offsets along both nests are added up.
  for (size_t i = 0; i < sizes.size(); ++i) {
    if ((span_of(kept, i) + span_of(combined, i)) * sizes[i] > INT32_MAX - (1 << 20)) return true;
  }
  return span_of(kept, kept.strides.size() - 1) * output_size > INT32_MAX;
}

}  // namespace compute::common
