// SPDX-License-Identifier: Apache-2.0
// The pool: reuse, merging, limits, and who may take freed memory when.
#include "core/memory.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/error.hpp"

namespace compute {
namespace {

// Counts what reaches the device, and refuses beyond `capacity`.
class CountedMemory final : public RawMemory {
 public:
  explicit CountedMemory(int64_t capacity) : capacity_(capacity) {}
  bool allocate(int64_t size_bytes, uint64_t* out_buffer) override {
    ++requests;
    if (used + size_bytes > capacity_) return false;
    used += size_bytes;
    *out_buffer = next_;
    live_[next_] = size_bytes;
    next_ += 1 << 20;
    return true;
  }
  void free(uint64_t buffer, int64_t size_bytes) noexcept override {
    EXPECT_EQ(live_[buffer], size_bytes);
    live_.erase(buffer);
    used -= size_bytes;
  }
  int64_t used = 0;
  int64_t requests = 0;
  size_t live() const { return live_.size(); }

 private:
  const int64_t capacity_;
  uint64_t next_ = 1 << 20;
  std::map<uint64_t, int64_t> live_;
};

constexpr int64_t kMiB = int64_t{1} << 20;

struct Pool {
  explicit Pool(int64_t capacity = int64_t{1} << 40, MemoryShape shape = {}) {
    auto owned = std::make_unique<CountedMemory>(capacity);
    raw = owned.get();
    pool = std::make_unique<MemoryPool>("test0", std::move(owned), shape, COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
  }
  CountedMemory* raw;
  std::unique_ptr<MemoryPool> pool;
};

TEST(MemoryPool, GivesAlignedBlocksOfEnoughBytes) {
  Pool test;
  for (const int64_t size : {1, 63, 64, 65, 1000, 4097, 100000, 5000000}) {
    const Block block = test.pool->allocate(size, nullptr, MemoryUse::kTensor);
    EXPECT_GE(block.size_bytes, size);
    EXPECT_LE(block.size_bytes, size + std::max<int64_t>(64, size / 8 + 64)) << "wastes more than an eighth";
    EXPECT_EQ(block.offset_bytes % 64, 0);
  }
}

TEST(MemoryPool, SteadyLoopReachesTheDeviceOnce) {
  Pool test;
  for (int i = 0; i < 1000; ++i) {
    const Block a = test.pool->allocate(10000, nullptr, MemoryUse::kTensor);
    const Block b = test.pool->allocate(20000, nullptr, MemoryUse::kTensor);
    test.pool->free(a, {});
    test.pool->free(b, {});
  }
  EXPECT_EQ(test.raw->requests, 1);
  EXPECT_EQ(test.pool->statistics().used, 0);
  EXPECT_EQ(test.pool->statistics().requests, 2000);
}

TEST(MemoryPool, BlocksInUseNeverOverlap) {
  Pool test;
  std::mt19937 random(7);
  std::vector<Block> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.size() > 50 || (!live.empty() && random() % 2 == 0)) {
      const size_t at = random() % live.size();
      test.pool->free(live[at], {});
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    const Block block = test.pool->allocate(1 + static_cast<int64_t>(random() % 300000), nullptr, MemoryUse::kTensor);
    for (const Block& other : live) {
      const bool apart = other.buffer != block.buffer || other.offset_bytes + other.size_bytes <= block.offset_bytes ||
                         block.offset_bytes + block.size_bytes <= other.offset_bytes;
      ASSERT_TRUE(apart) << "step " << i;
    }
    live.push_back(block);
  }
  // 50 blocks of 150 KB on average: fragmentation may cost some, not a multiple.
  EXPECT_LT(test.pool->statistics().reserved, 5 * test.pool->statistics().peak);
}

TEST(MemoryPool, NeighboursMergeAgain) {
  Pool test(8 * kMiB);
  std::vector<Block> blocks;
  for (int i = 0; i < 7; ++i) blocks.push_back(test.pool->allocate(kMiB, nullptr, MemoryUse::kTensor));
  for (const Block& block : blocks) test.pool->free(block, {});
  const Block large = test.pool->allocate(4 * kMiB, nullptr, MemoryUse::kTensor);
  EXPECT_GE(large.size_bytes, 4 * kMiB);
}

TEST(MemoryPool, LimitHoldsAndTheErrorSaysWhatHoldsTheMemory) {
  Pool test;
  test.pool->set_limit(8 * kMiB);
  const Block held = test.pool->allocate(6 * kMiB, nullptr, MemoryUse::kMirror);
  try {
    test.pool->allocate(6 * kMiB, nullptr, MemoryUse::kTensor);
    FAIL() << "the limit did not hold";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
    EXPECT_NE(error.message.find("test0: out of memory for 6291456 bytes (limit 8388608 bytes)"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("mirrors              6291456 bytes"), std::string::npos) << error.message;
  }
  test.pool->free(held, {});
  EXPECT_TRUE(test.pool->allocate(6 * kMiB, nullptr, MemoryUse::kTensor)) << "nothing sticks";
}

TEST(MemoryPool, ReclaimIsAskedBeforeTheErrorIs) {
  Pool test(4 * kMiB);
  Block mirror = test.pool->allocate(3 * kMiB, nullptr, MemoryUse::kMirror);
  int asked = 0;
  test.pool->reclaim = [&] {
    ++asked;
    test.pool->free(mirror, {});
    return true;
  };
  EXPECT_TRUE(test.pool->allocate(3 * kMiB, nullptr, MemoryUse::kTensor));
  EXPECT_EQ(asked, 1);
}

TEST(MemoryPool, TrimReturnsWhatIsNotUsed) {
  Pool test;
  const Block a = test.pool->allocate(40 * kMiB, nullptr, MemoryUse::kTensor);
  const Block b = test.pool->allocate(40 * kMiB, nullptr, MemoryUse::kTensor);
  test.pool->free(a, {});
  EXPECT_EQ(test.raw->live(), 2u);
  test.pool->trim(0);
  EXPECT_EQ(test.raw->live(), 1u);
  EXPECT_EQ(test.pool->statistics().reserved, test.raw->used);
  test.pool->free(b, {});
}

TEST(MemoryPool, HeapsWithoutSuballocationKeepWholeAllocations) {
  MemoryShape shape;
  shape.suballocate = false;
  Pool test(int64_t{1} << 40, shape);
  const Block a = test.pool->allocate(1000, nullptr, MemoryUse::kTensor);
  const Block b = test.pool->allocate(1000, nullptr, MemoryUse::kTensor);
  EXPECT_NE(a.buffer, b.buffer);
  EXPECT_EQ(a.offset_bytes, 0);
  test.pool->free(a, {});
  EXPECT_EQ(test.pool->allocate(990, nullptr, MemoryUse::kTensor).buffer, a.buffer);
  EXPECT_EQ(test.raw->requests, 2);
}

TEST(MemoryPool, AllocationsAboveTheDevicesLimitAreRefusedByName) {
  MemoryShape shape;
  shape.max_allocation_bytes = kMiB;
  Pool test(int64_t{1} << 40, shape);
  EXPECT_THROW(test.pool->allocate(2 * kMiB, nullptr, MemoryUse::kTensor), Error);
  EXPECT_TRUE(test.pool->allocate(kMiB, nullptr, MemoryUse::kTensor));
}

TEST(HostMemory, LargeBlocksAreOnHugePageBorders) {
  const auto memory = make_host_memory();
  uint64_t address = 0;
  ASSERT_TRUE(memory->allocate(8 * kMiB, &address));
  EXPECT_EQ(address % (2 * kMiB), 0u);
  memory->free(address, 8 * kMiB);
}

}  // namespace
}  // namespace compute
