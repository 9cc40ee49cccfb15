// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "plugins/common/op/layout.hpp"

namespace compute::common {
namespace {

LoopNest collapse_of(const std::vector<int64_t>& shape, const std::vector<std::vector<int64_t>>& strides, int leader) {
  std::vector<const int64_t*> pointers;
  for (const auto& s : strides) pointers.push_back(s.data());
  return common::collapse(std::span<const int64_t>(shape), std::span<const int64_t* const>(pointers), leader);
}

// The addresses of all operands at every point, in the nest's order.
std::vector<std::vector<int64_t>> visit(const LoopNest& nest) {
  std::vector<std::vector<int64_t>> points;
  for (int64_t point = 0; point < nest.points(); ++point) {
    std::vector<int64_t> addresses = nest.offsets;
    int64_t rest = point;
    for (int axis = nest.rank - 1; axis >= 0; --axis) {
      for (size_t i = 0; i < addresses.size(); ++i) addresses[i] += rest % nest.extents[axis] * nest.strides[i][axis];
      rest /= nest.extents[axis];
    }
    points.push_back(addresses);
  }
  return points;
}
std::vector<std::vector<int64_t>> visit(const std::vector<int64_t>& shape,
                                        const std::vector<std::vector<int64_t>>& strides) {
  LoopNest plain;
  plain.rank = static_cast<int>(shape.size());
  plain.offsets.assign(strides.size(), 0);
  plain.strides.resize(strides.size());
  for (int axis = 0; axis < plain.rank; ++axis) {
    plain.extents[axis] = shape[axis];
    for (size_t i = 0; i < strides.size(); ++i) plain.strides[i][axis] = strides[i][axis];
  }
  return visit(plain);
}

TEST(RowMajorStep, IsTheSameEverywhere) {
  const auto step = [](const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
    return row_major_step(shape, strides);
  };
  EXPECT_EQ(step({2, 3, 4}, {12, 4, 1}), 1);
  EXPECT_EQ(step({2, 3, 4}, {-36, -12, -3}), -3);
  EXPECT_EQ(step({2, 1, 4}, {4, 99, 1}), 1);
  EXPECT_EQ(step({2, 3}, {0, 0}), 0);
  EXPECT_EQ(step({}, {}), 1);
  EXPECT_EQ(step({1, 1}, {7, 7}), 1);
  EXPECT_EQ(step({2, 3}, {1, 2}), std::nullopt);
  EXPECT_EQ(step({2, 3}, {1, 0}), std::nullopt);
  EXPECT_EQ(step({2, 3}, {0, 1}), std::nullopt);
  EXPECT_EQ(step({2, 3, 4}, {4, 0, 1}), std::nullopt);
}

TEST(Collapse, ContiguousOperandsBecomeOneLoop) {
  const LoopNest nest = collapse_of({2, 3, 4}, {{12, 4, 1}, {12, 4, 1}}, 1);
  EXPECT_EQ(nest.rank, 1);
  EXPECT_EQ(nest.extents[0], 24);
  EXPECT_EQ(nest.strides[0][0], 1);
}

TEST(Collapse, ColumnMajorOperandsBecomeOneLoopToo) {
  const LoopNest nest = collapse_of({2, 3, 4}, {{1, 2, 6}, {1, 2, 6}}, 0);
  EXPECT_EQ(nest.rank, 1);
  EXPECT_EQ(nest.strides[1][0], 1);
}

TEST(Collapse, BroadcastsKeepTheirLoop) {
  const LoopNest nest = collapse_of({5, 3, 4}, {{0, 4, 1}, {12, 4, 1}}, 1);
  EXPECT_EQ(nest.rank, 2);
  EXPECT_EQ(nest.extents[0], 5);
  EXPECT_EQ(nest.extents[1], 12);
  EXPECT_EQ(nest.strides[0][0], 0);
}

TEST(Collapse, ReversedLeaderIsTurnedAround) {
  const LoopNest nest = collapse_of({3, 4}, {{-4, -1}, {-4, -1}}, 0);
  EXPECT_EQ(nest.rank, 1);
  EXPECT_EQ(nest.strides[0][0], 1);
  EXPECT_EQ(nest.offsets[0], -11);
  EXPECT_EQ(nest.offsets[1], -11);
}

TEST(Collapse, SinglePoint) {
  EXPECT_EQ(collapse_of({}, {{}}, 0).rank, 0);
  EXPECT_EQ(collapse_of({1, 1}, {{7, 9}}, 0).rank, 0);
}

TEST(Collapse, VisitsTheSamePoints) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int rank = static_cast<int>(random() % 5), operands = 1 + static_cast<int>(random() % 3);
    std::vector<int64_t> shape;
    for (int axis = 0; axis < rank; ++axis) shape.push_back(1 + random() % 4);
    std::vector<std::vector<int64_t>> strides(operands);
    for (auto& s : strides) {
      std::vector<int> order(rank);
      for (int axis = 0; axis < rank; ++axis) order[axis] = axis;
      if (random() % 2) std::shuffle(order.begin(), order.end(), random);
      s.assign(rank, 0);
      int64_t stride = 1;
      for (int k = rank - 1; k >= 0; --k) {
        s[order[k]] = random() % 5 == 0 ? 0 : random() % 4 == 0 ? -stride : stride;
        stride *= shape[order[k]] + random() % 2;
      }
    }
    const LoopNest nest = collapse_of(shape, strides, static_cast<int>(random() % operands));
    auto expected = visit(shape, strides), got = visit(nest);
    std::sort(expected.begin(), expected.end());
    std::sort(got.begin(), got.end());
    ASSERT_EQ(got, expected);
  }
}

TEST(MoveLoop, MovesOutwards) {
  LoopNest nest = collapse_of({2, 3, 4}, {{100, 20, 3}}, 0);
  ASSERT_EQ(nest.rank, 3);
  move_loop(nest, 2, 0);
  EXPECT_EQ(nest.extents[0], 4);
  EXPECT_EQ(nest.extents[1], 2);
  EXPECT_EQ(nest.strides[0][0], 3);
  EXPECT_EQ(nest.strides[0][2], 20);
}

}  // namespace
}  // namespace compute::common
