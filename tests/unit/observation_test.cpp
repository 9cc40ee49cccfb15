// SPDX-License-Identifier: Apache-2.0
// Wall time is a partition, and amounts are readable.
#include <gtest/gtest.h>

#include <random>

#include "core/observation/amounts.hpp"
#include "core/observation/wall_time.hpp"

namespace compute {
namespace {

using Sums = std::array<int64_t, 3>;

TEST(WallTime, CountsEachInstantOnceForTheFirstUse) {
  WallTime wall;
  wall.add(TimeUse::kCpuOp, {0, 100});
  wall.add(TimeUse::kDeviceOp, {10, 60});
  wall.add(TimeUse::kDeviceOp, {20, 70});
  wall.add(TimeUse::kTransfer, {50, 120});
  wall.add(TimeUse::kTransfer, {200, 200});
  EXPECT_EQ(wall.sums(), (Sums{70, 40, 10}));
}

TEST(WallTime, SettlingChangesNoSums) {
  std::mt19937 random(15);
  WallTime whole, settled;
  for (int64_t now = 0; now < 5000; now += 5) {
    const TimeSpan span{now + static_cast<int64_t>(random() % 50), now + static_cast<int64_t>(random() % 200)};
    const auto use = static_cast<TimeUse>(random() % 3);
    whole.add(use, span);
    settled.add(use, span);
    if (random() % 10 == 0) settled.settle(now);
  }
  EXPECT_EQ(settled.sums(), whole.sums());
  const Sums sums = whole.sums();
  EXPECT_LE(sums[0] + sums[1] + sums[2], 5250);
  EXPECT_GT(sums[2], 0);
}

TEST(WallTime, IgnoresWhatIsBeforeItsBegin) {
  WallTime wall(100);
  wall.add(TimeUse::kTransfer, {0, 150});
  wall.add(TimeUse::kDeviceOp, {0, 90});
  EXPECT_EQ(wall.sums(), (Sums{50, 0, 0}));
}

TEST(Amounts, AreReadable) {
  EXPECT_EQ(time_text(999), "999 ns");
  EXPECT_EQ(time_text(12'340), "12.34 us");
  EXPECT_EQ(time_text(1'500'000'000), "1.500 s");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(4'000'000), "4.0 MB");
  EXPECT_EQ(count_text(1 << 20), "1Mi");
  EXPECT_EQ(rate_text(26'800'000, 1000, "FLOP/s"), "26.8 TFLOP/s");
  EXPECT_EQ(rate_text(500, 1000, "B/s"), "500 MB/s");
  EXPECT_EQ(rate_text(0, 1000, "B/s"), "");
}

}  // namespace
}  // namespace compute
