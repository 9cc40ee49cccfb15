// SPDX-License-Identifier: Apache-2.0
// The pool: reuse, merging, limits, and who may take freed memory when.
#include "core/memory/host_memory.hpp"
#include "core/memory/pool.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/base/error.hpp"
#include "core/devices/device.hpp"
#include "core/streams/timeline.hpp"

namespace compute {
namespace {

// Counts what reaches the device, and refuses beyond `capacity`.
class CountedMemory final : public RawMemory {
 public:
  explicit CountedMemory(int64_t capacity) : capacity_(capacity) {}
  bool allocate(int64_t size_bytes, RawBlock* out_block) override {
    ++requests;
    if (used + size_bytes > capacity_) return false;
    used += size_bytes;
    out_block->buffer = next_;
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
    const Block block = test.pool->allocate_idle(size, MemoryUse::kTensor);
    EXPECT_GE(block.size_bytes, size);
    EXPECT_LE(block.size_bytes, size + std::max<int64_t>(64, size / 8 + 64)) << "wastes more than an eighth";
    EXPECT_EQ(block.offset_bytes % 64, 0);
  }
}

TEST(MemoryPool, SteadyLoopReachesTheDeviceOnce) {
  Pool test;
  for (int i = 0; i < 1000; ++i) {
    const Block a = test.pool->allocate_idle(10000, MemoryUse::kTensor);
    const Block b = test.pool->allocate_idle(20000, MemoryUse::kTensor);
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
    const Block block = test.pool->allocate_idle(1 + static_cast<int64_t>(random() % 300000), MemoryUse::kTensor);
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
  for (int i = 0; i < 7; ++i) blocks.push_back(test.pool->allocate_idle(kMiB, MemoryUse::kTensor));
  for (const Block& block : blocks) test.pool->free(block, {});
  const Block large = test.pool->allocate_idle(4 * kMiB, MemoryUse::kTensor);
  EXPECT_GE(large.size_bytes, 4 * kMiB);
}

TEST(MemoryPool, FreePiecesTellOfFragments) {
  Pool test(8 * kMiB);
  std::vector<Block> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(test.pool->allocate_idle(kMiB, MemoryUse::kTensor));
  const int64_t before = test.pool->free_pieces().bytes;
  for (size_t i = 0; i < 8; i += 2) test.pool->free(blocks[i], {});
  const FreePieces apart = test.pool->free_pieces();
  EXPECT_EQ(apart.bytes, before + 4 * kMiB);
  EXPECT_EQ(apart.bytes, test.pool->statistics().reserved - test.pool->statistics().used);
  EXPECT_LT(apart.largest, 3 * kMiB) << "no two of them are neighbours";
  for (size_t i = 1; i < 8; i += 2) test.pool->free(blocks[i], {});
  const FreePieces all = test.pool->free_pieces();
  EXPECT_EQ(all.bytes, before + 8 * kMiB);
  EXPECT_GE(all.largest, 4 * kMiB);
}

TEST(MemoryPool, LimitHoldsAndTheErrorSaysWhatHoldsTheMemory) {
  Pool test;
  test.pool->set_limit(8 * kMiB);
  const Block held = test.pool->allocate_idle(6 * kMiB, MemoryUse::kMirror);
  try {
    test.pool->allocate_idle(6 * kMiB, MemoryUse::kTensor);
    FAIL() << "the limit did not hold";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
    EXPECT_NE(error.message.find("test0: out of memory allocating 6291456 bytes (limit 8388608 bytes)"),
              std::string::npos)
        << error.message;
    EXPECT_NE(error.message.find("mirrors              6291456 bytes"), std::string::npos) << error.message;
  }
  test.pool->free(held, {});
  EXPECT_TRUE(test.pool->allocate_idle(6 * kMiB, MemoryUse::kTensor)) << "nothing sticks";
}

TEST(MemoryPool, TheErrorListsTheGreatestBlocksByWhatTheyHold) {
  Pool test;
  test.pool->set_limit(64 * kMiB);
  const std::vector<int64_t> shape = {1024, 1024}, deep = {2, 2, 2, 2, 65536};
  const Block weights = test.pool->allocate(4 * kMiB, nullptr, Holding(COMPUTE_DTYPE_FLOAT32, shape)).take_idle();
  test.pool->set_label(weights, "weights");
  test.pool->allocate(8 * kMiB, nullptr, Holding(COMPUTE_DTYPE_FLOAT64, deep)).take_idle();
  test.pool->allocate_idle(kMiB, MemoryUse::kMirror);
  const Block gone = test.pool->allocate(2 * kMiB, nullptr, Holding(COMPUTE_DTYPE_INT8, shape)).take_idle();
  test.pool->set_label(gone, "gone");
  test.pool->free(gone, {});
  test.pool->allocate_idle(2 * kMiB, MemoryUse::kTemporary);
  try {
    test.pool->allocate_idle(128 * kMiB, MemoryUse::kTensor);
    FAIL() << "the limit did not hold";
  } catch (const Error& error) {
    const size_t second = error.message.find("4194304 bytes  float32 [1024, 1024]  \"weights\"");
    const size_t first = error.message.find("8388608 bytes  float64 [2, 2, 2, 2, …]");
    EXPECT_LT(first, second) << error.message;
    EXPECT_NE(second, std::string::npos) << error.message;
    EXPECT_NE(error.message.find("1048576 bytes  mirror"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("2097152 bytes  temporary"), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find("gone"), std::string::npos) << error.message;
  }
}

TEST(MemoryPool, PreallocationTakesSeveralPiecesWhereTheDeviceLimitsOne) {
  for (const bool suballocate : {true, false}) {
    MemoryShape shape;
    shape.suballocate = suballocate;
    shape.max_allocation_bytes = 3 * kMiB + 1;
    Pool test(int64_t{1} << 40, shape);
    test.pool->preallocate(10 * kMiB);
    EXPECT_GE(test.pool->statistics().reserved, 10 * kMiB);
    EXPECT_EQ(test.pool->statistics().used, 0);
    const int64_t requests = test.raw->requests;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(test.pool->allocate_idle(3 * kMiB, MemoryUse::kTensor));
    EXPECT_EQ(test.raw->requests, requests) << "it serves what comes later";
  }
}

TEST(MemoryPool, BlocksAreNotRoundedAboveWhatTheDeviceTakes) {
  MemoryShape shape;
  shape.suballocate = false;
  shape.max_allocation_bytes = 9 * kMiB + 4096;
  Pool test(9 * kMiB + 4096, shape);
  EXPECT_TRUE(test.pool->allocate_idle(9 * kMiB + 4000, MemoryUse::kTensor));
}

TEST(MemoryPool, ReclaimIsAskedBeforeTheErrorIs) {
  Pool test(4 * kMiB);
  Block mirror = test.pool->allocate_idle(3 * kMiB, MemoryUse::kMirror);
  int asked = 0;
  test.pool->reclaim = [&] {
    ++asked;
    test.pool->free(mirror, {});
    return true;
  };
  EXPECT_TRUE(test.pool->allocate_idle(3 * kMiB, MemoryUse::kTensor));
  EXPECT_EQ(asked, 1);
}

TEST(MemoryPool, TrimReturnsWhatIsNotUsed) {
  Pool test;
  const Block a = test.pool->allocate_idle(40 * kMiB, MemoryUse::kTensor);
  const Block b = test.pool->allocate_idle(40 * kMiB, MemoryUse::kTensor);
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
  const Block a = test.pool->allocate_idle(1000, MemoryUse::kTensor);
  const Block b = test.pool->allocate_idle(1000, MemoryUse::kTensor);
  EXPECT_NE(a.buffer, b.buffer);
  EXPECT_EQ(a.offset_bytes, 0);
  test.pool->free(a, {});
  EXPECT_EQ(test.pool->allocate_idle(990, MemoryUse::kTensor).buffer, a.buffer);
  EXPECT_EQ(test.raw->requests, 2);
}

TEST(MemoryPool, AllocationsAboveTheDevicesLimitAreRefusedByName) {
  MemoryShape shape;
  shape.max_allocation_bytes = kMiB;
  Pool test(int64_t{1} << 40, shape);
  EXPECT_THROW(test.pool->allocate_idle(2 * kMiB, MemoryUse::kTensor), Error);
  EXPECT_TRUE(test.pool->allocate_idle(kMiB, MemoryUse::kTensor));
}

// A stream that gets as far as the test says. Immortal, as all are.
struct FakeStream {
  FakeStream() : timeline(*new Timeline(0, reinterpret_cast<compute_device&>(nowhere))) {}
  Access submit() { return {&timeline, timeline.next("test")}; }
  void finish() { timeline.reach(timeline.submitted()); }

  alignas(compute_device) static inline std::byte nowhere[sizeof(compute_device)];  // never looked at
  Timeline& timeline;
};

TEST(MemoryPool, OnlyTheStreamThatUsesABlockStillTakesItBack) {
  Pool test;
  FakeStream one, two;
  Access pending;
  const Block block = test.pool->allocate(kMiB, &one.timeline, MemoryUse::kTensor).take(pending);
  EXPECT_EQ(pending.timeline, nullptr);
  const Access last = one.submit();
  test.pool->free(block, last);
  EXPECT_NE(test.pool->allocate(kMiB, &two.timeline, MemoryUse::kTensor).take(pending).chunk, block.chunk);
  EXPECT_NE(test.pool->allocate_idle(kMiB, MemoryUse::kTensor).chunk, block.chunk);
  EXPECT_EQ(test.pool->allocate(kMiB, &one.timeline, MemoryUse::kTensor).take(pending).chunk, block.chunk);
  EXPECT_EQ(pending.timeline, &one.timeline);
  EXPECT_EQ(pending.number, last.number);
}

TEST(MemoryPool, ABlockThatCameBackUnusedIsStillPending) {
  Pool test;
  FakeStream one, two;
  Access pending;
  const Block block = test.pool->allocate(kMiB, &one.timeline, MemoryUse::kTensor).take(pending);
  const Access last = one.submit();
  test.pool->free(block, last);
  {
    const OwnedBlock temporary(*test.pool, kMiB, one.timeline,
                               MemoryUse::kTemporary);  // of work that was never submitted
    EXPECT_EQ(temporary.block().chunk, block.chunk);
  }
  EXPECT_NE(test.pool->allocate_idle(kMiB, MemoryUse::kTensor).chunk, block.chunk);
  one.finish();
  EXPECT_EQ(test.pool->allocate_idle(kMiB, MemoryUse::kTensor).chunk, block.chunk);
}

TEST(MemoryPool, AnOwnedBlockWaitsForAllThatWereToldOfIt) {
  Pool test;
  FakeStream one, two, three;
  const Chunk* chunk = nullptr;
  {
    OwnedBlock owned(*test.pool, kMiB, MemoryUse::kTemporary);
    chunk = owned.block().chunk;
    for (FakeStream* stream : {&one, &two, &three}) owned.used_by(stream->timeline, stream->submit().number);
  }
  const auto is_given = [&](FakeStream* user) {
    Access pending;
    const Block block = user != nullptr ? test.pool->allocate(kMiB, &user->timeline, MemoryUse::kTensor).take(pending)
                                        : test.pool->allocate_idle(kMiB, MemoryUse::kTensor);
    return block.chunk == chunk;
  };
  for (FakeStream* stream : {&one, &two, &three}) {
    EXPECT_FALSE(is_given(stream)) << "others use it still";
    stream->finish();
  }
  test.pool->trim(INT64_MAX);  // looks again
  EXPECT_TRUE(is_given(nullptr));
}

TEST(MemoryPool, LentMemoryIsOneBlockEachAndGoesBackAtOnce) {
  Pool test;
  const Block own = test.pool->allocate_idle(kMiB, MemoryUse::kTensor);
  auto source = std::make_unique<CountedMemory>(8 * kMiB);
  CountedMemory& lent = *source;
  EXPECT_THROW(test.pool->lend(std::make_unique<CountedMemory>(kMiB), false), Error) << "a block is in use";
  test.pool->free(own, {});
  test.pool->lend(std::move(source), false);
  EXPECT_TRUE(test.pool->is_lent());
  EXPECT_EQ(test.raw->live(), 0u) << "what was cached went back";
  const Block a = test.pool->allocate_idle(1000, MemoryUse::kTensor);
  const Block b = test.pool->allocate_idle(100'000, MemoryUse::kTensor);
  EXPECT_EQ(lent.used, 1024 + 100'032) << "in multiples of 64 bytes";
  EXPECT_EQ(a.offset_bytes + b.offset_bytes, 0);
  EXPECT_EQ(test.pool->statistics().reserved, lent.used);
  test.pool->free(a, {});
  EXPECT_EQ(lent.used, 100'032);
  EXPECT_THROW(test.pool->allocate_idle(8 * kMiB, MemoryUse::kTensor), Error);
  test.pool->set_limit(kMiB);
  EXPECT_THROW(test.pool->allocate_idle(kMiB, MemoryUse::kTensor), Error) << "the limit counts lent memory too";
  test.pool->free(b, {});
  EXPECT_EQ(lent.live(), 0u);
  EXPECT_EQ(test.pool->statistics().reserved, 0);
  test.pool->lend(nullptr, false);
  EXPECT_FALSE(test.pool->is_lent());
  EXPECT_TRUE(test.pool->allocate_idle(kMiB, MemoryUse::kTensor));
  EXPECT_EQ(test.raw->live(), 1u);
}

TEST(MemoryPool, LentMemoryIsKeptWhereItIsCached) {
  Pool test;
  auto source = std::make_unique<CountedMemory>(8 * kMiB);
  CountedMemory& lent = *source;
  test.pool->lend(std::move(source), true);
  for (int i = 0; i < 100; ++i) test.pool->free(test.pool->allocate_idle(1000 + i, MemoryUse::kTensor), {});
  EXPECT_EQ(lent.requests, 1);
  test.pool->trim(0);
  EXPECT_EQ(lent.live(), 0u);
}

// Also counts allocated memory that has not been touched yet: the system would kill the process on touching it.
TEST(HostMemory, NoMoreIsGivenThanThereIs) {
  const auto memory = make_host_memory();
  const std::optional<MemoryState> state = memory->state();
  ASSERT_TRUE(state && state->available > 0);
  RawBlock block;
  EXPECT_FALSE(memory->allocate(int64_t{1} << 46, &block));
  EXPECT_FALSE(memory->allocate(state->total + kMiB, &block));
  const int64_t piece = state->available / 3;
  std::vector<uint64_t> given;
  while (given.size() < 16 && memory->allocate(piece, &block)) given.push_back(block.buffer);
  EXPECT_GE(given.size(), 1u);
  EXPECT_LE(given.size(), 4u);
  for (const uint64_t one : given) memory->free(one, piece);
}

TEST(HostMemory, LargeBlocksAreOnHugePageBorders) {
  const auto memory = make_host_memory();
  RawBlock block;
  ASSERT_TRUE(memory->allocate(8 * kMiB, &block));
  EXPECT_EQ(block.data, reinterpret_cast<void*>(block.buffer));
  EXPECT_EQ(block.buffer % (2 * kMiB), 0u);
  memory->free(block.buffer, 8 * kMiB);
}

}  // namespace
}  // namespace compute
