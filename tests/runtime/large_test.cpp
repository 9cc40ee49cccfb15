// SPDX-License-Identifier: Apache-2.0
// Tensors of more than 2^31 elements on cpu: positions and lengths that 32 bits do not hold.
#include <gtest/gtest.h>
#include <unistd.h>

#include <compute/compute.hpp>

#include <cstdint>
#include <vector>

namespace {

using namespace compute;

constexpr int64_t kHalf = int64_t{1} << 31, kSize = kHalf + 1027;

uint8_t pattern(int64_t i) { return static_cast<uint8_t>(i * 37 % 251); }

class Large : public testing::Test {
 protected:
  void SetUp() override {
    const int64_t pages = sysconf(_SC_AVPHYS_PAGES), bytes = pages * sysconf(_SC_PAGE_SIZE);
    if (bytes < 3 * kSize) GTEST_SKIP() << "needs 6 GiB of free memory";
    cpu = Device::open("cpu");
    x = cpu.empty(uint8, {kSize});
    Expression("convert(index(0) * 37 % 251, uint8)", std::vector<const char*>{}).into({}, {}, {x});
  }

  // Compares elements at the beginning, around 2^31 and at the end.
  template <class F>
  void check(const Tensor& y, const F& expected) {
    for (const int64_t start : {int64_t{0}, kHalf - 100, kSize - 200}) {
      const std::vector<uint8_t> part = copy(y[slice(start, start + 200)]).to_vector<uint8_t>();
      for (int64_t i = 0; i < 200; ++i)
        ASSERT_EQ(part[static_cast<size_t>(i)], expected(start + i)) << "element " << start + i;
    }
  }

  Device cpu;
  Tensor x;
};

TEST_F(Large, MapsAndCopies) {
  check(x, pattern);
  const Tensor y = cpu.empty(uint8, {kSize});
  bitwise_invert_into(x, y);
  check(y, [](int64_t i) { return static_cast<uint8_t>(~pattern(i)); });
  copy_into(x[slice({}, {}, -1)], y);
  check(y, [](int64_t i) { return pattern(kSize - 1 - i); });
}

TEST_F(Large, Reductions) {
  constexpr int64_t kCycles = kSize / 251, kRest = kSize % 251;
  uint64_t total = uint64_t{kCycles} * (250 * 251 / 2);
  for (int64_t i = 0; i < kRest; ++i) total += pattern(i);
  EXPECT_EQ(sum(x).item<uint64_t>(), total);
  EXPECT_EQ(argmax(x).item<int64_t>(), 156);  // 156 * 37 % 251 is 250
  x[kSize - 1] = 255;
  EXPECT_EQ(max(x).item<uint8_t>(), 255);
  EXPECT_EQ(argmax(x).item<int64_t>(), kSize - 1);
  EXPECT_EQ(count_nonzero(x).item<int64_t>(), kSize - kCycles - (kRest > 0 ? 1 : 0));
}

TEST_F(Large, TakesAndScatters) {
  const std::vector<int64_t> places = {kSize - 1, kHalf, 5, kHalf - 1, -2};
  const Tensor indices = cpu.from_host(places);
  std::vector<uint8_t> taken = take(x, indices).to_vector<uint8_t>();
  for (size_t i = 0; i < places.size(); ++i) EXPECT_EQ(taken[i], pattern((places[i] + kSize) % kSize));
  scatter_into(x, indices, cpu.full({5}, uint8_t{255}), x);
  taken = take(x, indices).to_vector<uint8_t>();
  EXPECT_EQ(taken, std::vector<uint8_t>(5, 255));
  EXPECT_EQ(x(kHalf + 1).item<uint8_t>(), pattern(kHalf + 1));
}

TEST_F(Large, Scans) {
  const Tensor y = cpu.empty(uint8, {kSize});
  cumulative_sum_into(x, y, 0, false, false, false, uint8);
  uint64_t sum = 0;
  std::vector<uint8_t> cycle;
  for (int64_t i = 0; i < 251; ++i) {
    sum += pattern(i);
    cycle.push_back(static_cast<uint8_t>(sum));
  }
  check(y, [&](int64_t i) {
    return static_cast<uint8_t>(static_cast<uint64_t>(i / 251) * sum + cycle[static_cast<size_t>(i % 251)]);
  });
  x[kHalf + 500] = 255;
  cumulative_max_into(x, y, 0);
  EXPECT_EQ(y(kHalf + 499).item<uint8_t>(), 250);
  EXPECT_EQ(y(kHalf + 500).item<uint8_t>(), 255);
  EXPECT_EQ(y(kSize - 1).item<uint8_t>(), 255);
}

}  // namespace
