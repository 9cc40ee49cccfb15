// SPDX-License-Identifier: Apache-2.0
// How the CPU plugin divides sorts and updates among many threads, more than the machine may have: the test provides
// the threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "plugins/cpu/move/ranges.hpp"
#include "plugins/cpu/order/radix.hpp"
#include "sanitizer.hpp"

namespace compute::cpu {

constexpr int32_t kThreads = 16;

int32_t thread_count() { return kThreads; }

void parallel_tasks(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* user) {
  const int64_t grains = (count + grain - 1) / grain, pieces = std::min<int64_t>(kThreads, grains);
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < pieces; ++i) {
    threads.emplace_back(
        [=] { body(user, grains * i / pieces * grain, std::min(grains * (i + 1) / pieces * grain, count)); });
  }
  for (std::thread& thread : threads) thread.join();
}

namespace {

constexpr char kGuard = 0x5a;
constexpr size_t kGuardBytes = 64;

// Memory followed by a guard.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : bytes_(static_cast<size_t>(bytes)), words_((bytes_ + kGuardBytes) / 8 + 1) {
    std::fill_n(data() + bytes_, kGuardBytes, kGuard);
  }
  char* data() { return reinterpret_cast<char*>(words_.data()); }
  bool is_whole() {
    return std::all_of(data() + bytes_, data() + bytes_ + kGuardBytes, [](char c) { return c == kGuard; });
  }

 private:
  size_t bytes_;
  std::vector<uint64_t> words_;
};

// ---- Sorts ----------------------------------------------------------------------------------------------------------

struct Keys {
  std::string name;
  std::function<uint64_t(int64_t)> key;  // of element i
};

std::vector<Keys> key_lists(int64_t n, int bits, std::mt19937_64& random) {
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const auto number = [&random] { return random(); };
  return {
      {"random", [=](int64_t) { return number() & mask; }},
      {"a thousand values", [=](int64_t) { return number() % 1000 * 0x9e3779b97f4a7c15 & mask; }},
      {"few values", [=](int64_t) { return (number() % 3) << (bits - 2); }},
      {"equal", [=](int64_t) { return mask / 3; }},
      {"ascending", [=](int64_t i) { return static_cast<uint64_t>(i) & mask; }},
      {"descending", [=](int64_t i) { return static_cast<uint64_t>(n - i) & mask; }},
      {"mostly equal", [=](int64_t) { return number() % 1000 == 0 ? number() & mask : mask / 5; }},
      {"halves of halves", [=](int64_t) { return (uint64_t{1} << (std::countl_zero(number() | 1) % bits)) & mask; }},
      {"64 groups at each digit",
       [=](int64_t) { return (number() & 0x3f3f3f3f3f3f3f3f & mask) | (number() % 64) << (bits - 8); }},
      {"low digit alone", [=](int64_t) { return (mask & ~uint64_t{0xff}) | (number() & 0xff); }},
      {"first and last digit", [=](int64_t) { return (number() % 5) << (bits - 4) | (number() % 7); }},
  };
}

template <class Pair>
void expect_sorts(int bits) {
  std::mt19937_64 random(7);
  for (const int64_t n : {int64_t{1}, int64_t{1000}, int64_t{32768}, int64_t{100003}, int64_t{1} << 19}) {
    if (kThreadSanitizer && n > 1 << 17) continue;  // it is ten times as slow, and finds nothing more there
    const SharedSort sort(n, kThreads);
    for (const Keys& keys : key_lists(n, bits, random)) {
      SCOPED_TRACE(keys.name + ", " + std::to_string(n) + " keys");
      std::vector<Pair> pairs(static_cast<size_t>(n)), other(pairs.size()), result(pairs.size());
      for (int64_t i = 0; i < n; ++i) pairs[static_cast<size_t>(i)] = Pair::of(keys.key(i), static_cast<uint32_t>(i));
      std::vector<Pair> expected = pairs;
      std::stable_sort(expected.begin(), expected.end(),
                       [](const Pair& a, const Pair& b) { return a.key() < b.key(); });
      Guarded memory(sort.workspace_bytes());
      const uint64_t varying = varying_bits(pairs.data(), n, pairs[0].key());
      std::vector<std::atomic<int>> passed(pairs.size());
      std::atomic<int64_t> longest{0};
      sort.sort(pairs.data(), other.data(), varying, memory.data(),
                [&](const Pair* sorted, int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    result[static_cast<size_t>(i)] = sorted[i];
                    passed[static_cast<size_t>(i)].fetch_add(1);
                  }
                  for (int64_t most = longest.load();
                       most < end - begin && !longest.compare_exchange_weak(most, end - begin);) {
                  }
                });
      EXPECT_TRUE(memory.is_whole());
      EXPECT_TRUE(std::all_of(passed.begin(), passed.end(), [](const auto& count) { return count.load() == 1; }));
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), result.begin(), [](const Pair& a, const Pair& b) {
        if constexpr (!std::is_same_v<Pair, Bare>) {
          if (a.position() != b.position()) return false;
        }
        return a.key() == b.key();
      }));
      // What is left to one thread is a quarter of its share of the line, or too short to matter.
      EXPECT_LE(longest.load(), std::max<int64_t>(n / (4 * kThreads), 16 << 10));
    }
  }
}

TEST(CpuOrder, SortsPairsOfShortKeys) { expect_sorts<Narrow>(32); }
TEST(CpuOrder, SortsPairsOfLongKeys) { expect_sorts<Wide>(64); }
TEST(CpuOrder, SortsKeys) { expect_sorts<Bare>(64); }
TEST(CpuOrder, SortsKeysOfEightBits) { expect_sorts<Narrow>(8); }

TEST(CpuOrder, SortsRandomPairs) {
  std::mt19937_64 random(9);
  for (const int64_t n : {int64_t{191}, int64_t{255}, int64_t{65535}, int64_t{100003}}) {
    SCOPED_TRACE(std::to_string(n) + " keys");
    std::vector<Narrow> pairs(static_cast<size_t>(n)), other(pairs.size()), result(pairs.size());
    for (int64_t i = 0; i < n; ++i)
      pairs[static_cast<size_t>(i)] = Narrow::of(random() & UINT32_MAX, static_cast<uint32_t>(i));
    pairs.back() = Narrow::of(pairs.front().key(), static_cast<uint32_t>(n - 1));
    std::vector<Narrow> expected = pairs, copy = pairs;
    std::sort(expected.begin(), expected.end());
    const auto same = [](const Narrow& a, const Narrow& b) { return a.word == b.word; };
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), sort_pairs(copy.data(), other.data(), n, 32, true), same));
    const SharedSort sort(n, kThreads);
    Guarded memory(sort.workspace_bytes());
    const auto done = [&](const Narrow* sorted, int64_t begin, int64_t end) {
      std::copy(sorted + begin, sorted + end, result.data() + begin);
    };
    sort.sort(pairs.data(), other.data(), UINT32_MAX, memory.data(), done, true);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), result.begin(), same));
  }
}

TEST(CpuOrder, SortsShortLinesByOneThread) {
  EXPECT_FALSE(SharedSort::is_for(1, 10000, kThreads));
  EXPECT_TRUE(SharedSort::is_for(1, 1 << 20, kThreads));
  EXPECT_FALSE(SharedSort::is_for(1, 1 << 20, 1));
  EXPECT_FALSE(SharedSort::is_for(kThreads, 1 << 20, kThreads));
}

// ---- Updates --------------------------------------------------------------------------------------------------------

template <class Index>
void expect_divides(compute_dtype dtype) {
  std::mt19937_64 random(8);
  for (const int64_t extent : {int64_t{2}, int64_t{1000}, int64_t{70001}}) {
    for (const int64_t n : {int64_t{256}, int64_t{50000}}) {
      for (const int64_t least : {int64_t{1}, int64_t{32}}) {
        for (const bool is_hot : {false, true}) {
          SCOPED_TRACE(std::to_string(n) + " updates of " + std::to_string(extent) + (is_hot ? ", mostly of one" : ""));
          std::vector<Index> indices(static_cast<size_t>(2 * n));  // every second is one
          std::vector<std::vector<uint32_t>> expected(static_cast<size_t>(extent));
          bool has_bad = false;
          for (int64_t i = 0; i < n; ++i) {
            const bool is_bad = n > 256 && random() % 5000 == 0;
            const int64_t at = is_hot && random() % 10 != 0
                                   ? extent / 2
                                   : static_cast<int64_t>(random() % static_cast<uint64_t>(extent));
            indices[static_cast<size_t>(2 * i)] = static_cast<Index>(is_bad              ? extent
                                                                     : random() % 2 == 0 ? at
                                                                                         : at - extent);
            has_bad |= is_bad;
            if (!is_bad) expected[static_cast<size_t>(at)].push_back(static_cast<uint32_t>(i));
          }
          const IndexRanges ranges(n, extent, least, kThreads);
          Guarded memory(ranges.workspace_bytes());
          const auto* bytes = reinterpret_cast<const char*>(indices.data());
          EXPECT_EQ(ranges.divide(dtype, bytes, 2 * int64_t{sizeof(Index)}, memory.data()), has_bad);
          EXPECT_TRUE(memory.is_whole());
          std::vector<std::vector<uint32_t>> found(expected.size());
          int64_t next = 0;
          for (int64_t range = 0; range < ranges.ranges(); ++range) {
            const auto [begin, end] = ranges.elements(range);
            EXPECT_EQ(begin, next);
            EXPECT_GE(end - begin, std::min(least, extent - begin));
            next = end;
            for (const IndexRanges::Update& update : ranges.updates(range, memory.data())) {
              ASSERT_GE(int64_t{update.at}, begin);
              ASSERT_LT(int64_t{update.at}, end);
              found[update.at].push_back(update.position);
            }
          }
          EXPECT_EQ(next, extent);
          EXPECT_EQ(found, expected);
          EXPECT_GE(ranges.ranges(), std::min<int64_t>(extent / least, 2 * kThreads));
        }
      }
    }
  }
}

TEST(CpuOrder, DividesUpdatesByInt32) { expect_divides<int32_t>(COMPUTE_DTYPE_INT32); }
TEST(CpuOrder, DividesUpdatesByInt64) { expect_divides<int64_t>(COMPUTE_DTYPE_INT64); }

}  // namespace
}  // namespace compute::cpu
