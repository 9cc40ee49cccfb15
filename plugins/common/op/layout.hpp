// SPDX-License-Identifier: Apache-2.0
// Layouts in their simplest form: the loops that visit every point of an index space once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace compute::common {

constexpr int kMaxRank = 32;

/// Loops over an index space, outermost first, and each operand's strides along them.
struct LoopNest {
  int rank = 0;                             // 0: a single point
  std::array<int64_t, kMaxRank> extents{};  // each at least 2
  /// Per operand, in the units that collapse was given.
  std::vector<std::array<int64_t, kMaxRank>> strides;
  /// Per operand, the offset to add to its address before the first point: not 0 if a reversed axis was turned around.
  std::vector<int64_t> offsets;

  int64_t points() const;
};

/// The loop nest with the fewest loops that visits the same points with the same addresses, possibly in another order.
///
/// Axes of extent 1 are removed, and axes whose strides follow from each other in every operand are merged. The others
/// are sorted: operand `leader` moves least along the innermost one; the other operands, in order, break ties. Axes
/// along which `leader` has a negative stride are reversed. Strides of 0 repeat an element.
///
/// `strides[i]` contains operand i's strides, as many as `shape` has extents; all extents are at least 1.
LoopNest collapse(std::span<const int64_t> shape, std::span<const int64_t* const> strides, int leader);

/// The step from each element to the next in row-major order, if it is the same everywhere. It is 0 if all elements are
/// one, and 1 if there is only one.
std::optional<int64_t> row_major_step(std::span<const int64_t> shape, std::span<const int64_t> strides);

/// Moves loop `from` to the place `to`. The loops between them move by one.
void move_loop(LoopNest& nest, int from, int to);

}  // namespace compute::common
