// SPDX-License-Identifier: Apache-2.0
// How many threads the CPU plugin's loops wake.
#include "plugins/cpu/threads/threads.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace compute::cpu {
namespace {

using std::chrono::steady_clock;

TEST(CpuThreads, AGrainIsOneUnitOrSeveral) {
  EXPECT_EQ(Grain::of(10, 4000).units, 400);
  EXPECT_EQ(Grain::of(10, 4000).weight, 1);
  EXPECT_EQ(Grain::of(40000, 4000).units, 1);
  EXPECT_EQ(Grain::of(40000, 4000).weight, 10);
  EXPECT_EQ(Grain::of(4000, 4000).units, 1);
  EXPECT_EQ(Grain::of(4000, 4000).weight, 1);
}

// A thread that sleeps is woken for a single unit, if that is long.
TEST(CpuThreads, FewLongUnitsWakeThreads) {
  if (affinity_count() < 2) GTEST_SKIP() << "one processor";
  setenv("COMPUTE_CPU_THREADS", "2", 1);
  setenv("COMPUTE_SPIN_US", "0", 1);
  threads_open();
  unsetenv("COMPUTE_CPU_THREADS");
  unsetenv("COMPUTE_SPIN_US");
  if (thread_count() < 2) GTEST_SKIP() << "the control group grants one processor";
  // Both units have begun before one ends, or time is up.
  const auto meet = [](const auto& loop) {
    std::atomic<int> here{0};
    const auto deadline = steady_clock::now() + std::chrono::minutes(1);
    loop([&](int64_t begin, int64_t end) {
      here.fetch_add(static_cast<int>(end - begin));
      while (here.load() < 2 && steady_clock::now() < deadline) std::this_thread::yield();
    });
    return steady_clock::now() < deadline;
  };
  ASSERT_TRUE(meet([](const auto& body) { parallel_tasks(2, 1, body); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until then the thread may still be awake
  EXPECT_TRUE(meet([](const auto& body) { parallel_for(2, Grain::of(40000, 4000), body); }));
}

}  // namespace
}  // namespace compute::cpu
