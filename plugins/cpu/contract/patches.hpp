// SPDX-License-Identifier: Apache-2.0
// Blocks of the matrices of a WindowProduct, copied so that the packed product can read them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "plugins/common/op/windows.hpp"

namespace compute::cpu {

/// A range [begin, end) of the points of one of the two index spaces.
struct PointRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

/// Points of an index space that follow one another along its last axis.
struct PointRun {
  int64_t count;
  int64_t at[common::kWindowAxes];  // the first one
};

/// dst[line][point] = b at depth `line` and column `point` or, if `depth_adjacent`, at depth `point` and column `line`;
/// 0 if it is padding. Lines are `leading` elements apart. `runs` has room for points.size() entries.
void copy_windows(const common::WindowProduct& product, int32_t element_bytes, const void* b, bool depth_adjacent,
                  PointRange lines, PointRange points, void* dst, int64_t leading, PointRun* runs);

/// dst[row][point] = a at rows `rows` and depth `points`.
void copy_factors(const common::WindowProduct& product, int32_t element_bytes, const void* a, PointRange rows,
                  PointRange points, void* dst, int64_t leading, PointRun* runs);

/// The positions along an axis that `count` results from result 0 on need: from `least` on.
struct Reach {
  int64_t least, kernel;  // the number of positions that one result needs, with those in between

  Reach(int64_t start, int64_t taps, int64_t tap_step)
      : least(start + std::min<int64_t>(0, (taps - 1) * tap_step)), kernel((taps - 1) * std::abs(tap_step) + 1) {}
};

/// `count` positions of an axis, `step` apart, from `first` on; those outside of its extent are padding.
struct PlaneAxis {
  int64_t stride, extent, first, count, step = 1;
};

/// dst[y.count][x.count] = the element at these positions, or 0.
void copy_plane(int32_t element_bytes, const void* src, const PlaneAxis& y, const PlaneAxis& x, void* dst);

/// Divides `points` into runs; returns how many.
int64_t find_runs(const std::array<int64_t, common::kWindowAxes>& extents, PointRange points, PointRun* runs);

}  // namespace compute::cpu
