// SPDX-License-Identifier: Apache-2.0
// Tensors of more than 2^31 elements: positions and lengths that do not fit in 32 bits. On cpu, or the device that
// COMPUTE_DEVICE names; in float32 if the device has its own memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <compute/compute.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using namespace compute;

constexpr int64_t kHalf = int64_t{1} << 31, kSize = kHalf + 1027;

uint8_t pattern(int64_t i) { return static_cast<uint8_t>(i * 37 % 251); }

bool has_own_memory(const Device& device) { return device.info().kind == DeviceKind::discrete_gpu; }

// All memory of a device that has its own; free memory of the host.
int64_t memory_bytes(const Device& device) {
  if (has_own_memory(device)) return device.info().memory_bytes;
  return int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
}

class Large : public testing::Test {
 protected:
  void SetUp() override {
    device = Device::open();
    if (memory_bytes(device) < 3 * kSize) GTEST_SKIP() << "needs 6 GiB of free memory";
    x = device.empty(uint8, {kSize});
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

  Device device;
  Tensor x;
};

TEST_F(Large, MapsAndCopies) {
  check(x, pattern);
  const Tensor y = device.empty(uint8, {kSize});
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
  const Tensor indices = device.from_host(places);
  std::vector<uint8_t> taken = take(x, indices).to_vector<uint8_t>();
  for (size_t i = 0; i < places.size(); ++i) EXPECT_EQ(taken[i], pattern((places[i] + kSize) % kSize));
  scatter_into(x, indices, device.full({5}, uint8_t{255}), x);
  taken = take(x, indices).to_vector<uint8_t>();
  EXPECT_EQ(taken, std::vector<uint8_t>(5, 255));
  EXPECT_EQ(x(kHalf + 1).item<uint8_t>(), pattern(kHalf + 1));
}

TEST_F(Large, Scans) {
  const Tensor y = device.empty(uint8, {kSize});
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

// More than 8 GiB: offsets in bytes exceed 33 bits.
TEST(LargeFloats, MapsMovesAndReductions) {
  const Device device = Device::open();
  if (!has_own_memory(device))
    GTEST_SKIP() << device.name() << " has the memory of the host; tensors of uint8 are as long there";
  if (memory_bytes(device) < 10 * kSize) GTEST_SKIP() << "needs 20 GiB of memory on " << device.name();
  const Tensor x = device.empty(float32, {kSize}), y = device.empty(float32, {kSize});
  Expression("convert(index(0) * 37 % 251, float32)", std::vector<const char*>{}).into({}, {}, {x});
  const auto check = [](const Tensor& z, const auto& expected) {
    for (const int64_t start : {int64_t{0}, kHalf / 2 - 100, kHalf - 100, kSize - 200}) {
      const std::vector<float> part = copy(z[slice(start, start + 200)]).to_vector<float>();
      for (int64_t i = 0; i < 200; ++i)
        ASSERT_EQ(part[static_cast<size_t>(i)], expected(start + i)) << "element " << start + i;
    }
  };
  check(x, [](int64_t i) { return static_cast<float>(pattern(i)); });
  Expression("x * 2 + 1", {"x"}).into({x}, {}, {y});
  check(y, [](int64_t i) { return static_cast<float>(pattern(i) * 2 + 1); });
  copy_into(x[slice({}, {}, -1)], y);
  check(y, [](int64_t i) { return static_cast<float>(pattern(kSize - 1 - i)); });

  constexpr int64_t kCycles = kSize / 251, kRest = kSize % 251;
  double total = static_cast<double>(kCycles) * (250 * 251 / 2);
  for (int64_t i = 0; i < kRest; ++i) total += pattern(i);
  EXPECT_NEAR(static_cast<double>(sum(x).item<float>()), total, total * 31 / (1 << 24));  // log2 of the count, in units
  const std::vector<int64_t> places = {kSize - 1, kHalf, 5, kHalf - 1, -2};
  const Tensor indices = device.from_host(places);
  std::vector<float> taken = take(x, indices).to_vector<float>();
  for (size_t i = 0; i < places.size(); ++i)
    EXPECT_EQ(taken[i], static_cast<float>(pattern((places[i] + kSize) % kSize)));
  scatter_into(x, indices, device.full({5}, 255.0f), x);
  EXPECT_EQ(take(x, indices).to_vector<float>(), std::vector<float>(5, 255.0f));
  EXPECT_EQ(argmax(x[slice(kHalf, {})]).item<int64_t>(), 0);
  int64_t zeros = 0;
  for (int64_t i = kHalf - 251; i < kSize; ++i) {
    const bool is_set =
        std::any_of(places.begin(), places.end(), [&](int64_t at) { return (at + kSize) % kSize == i; });
    zeros += pattern(i) == 0 && !is_set ? 1 : 0;
  }
  EXPECT_EQ(count_nonzero(x[slice(kHalf - 251, kSize)]).item<int64_t>(), kSize - (kHalf - 251) - zeros);
  cumulative_max_into(x, y, 0);
  EXPECT_EQ(y(4).item<float>(), 148.0f);
  EXPECT_EQ(y(kSize - 1).item<float>(), 255.0f);
}

}  // namespace
