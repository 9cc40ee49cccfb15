// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/polling.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace compute::common {
namespace {

bool ends_within_its_patience() {
  const auto begin = std::chrono::steady_clock::now();
  end_polling();
  return std::chrono::steady_clock::now() - begin < kPollingPatience;
}

[[noreturn]] void end_beside_a_thread_that_polls() {
  static std::atomic<int> asked{0};
  std::thread([] {
    Polling polling;
    for (;; ++asked) polling.sleep(std::chrono::microseconds(10));
  }).detach();
  while (asked < 10) std::this_thread::yield();
  const bool has_waited = ends_within_its_patience();
  const int before = asked;
  const Polling own;  // the exiting thread continues
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // Without a processor for so long, the thread has yet to end the query that it was in.
  std::_Exit(asked - before <= (has_waited ? 0 : 1) ? 0 : 1);
}

[[noreturn]] void end_beside_a_query() {
  static std::atomic<bool> has_begun{false}, has_ended{false};
  std::thread([] {
    const Polling polling;
    has_begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    has_ended = true;
  }).detach();
  while (!has_begun) std::this_thread::yield();
  const bool has_waited = ends_within_its_patience();
  std::_Exit(has_ended || !has_waited ? 0 : 1);
}

TEST(PollingDeathTest, OthersStayOnceTheProcessEnds) {
  EXPECT_EXIT(end_beside_a_thread_that_polls(), testing::ExitedWithCode(0), "");
}

TEST(PollingDeathTest, AQueryEndsBefore) { EXPECT_EXIT(end_beside_a_query(), testing::ExitedWithCode(0), ""); }

int64_t pauses_of_a_wait(int64_t spin_ns, int64_t timeout_ns) {
  Polling polling;
  Pauses pauses(polling, spin_ns, timeout_ns);
  const auto begin = std::chrono::steady_clock::now();
  int64_t count = 0;
  while (pauses.next()) ++count;
  EXPECT_GE((std::chrono::steady_clock::now() - begin) / std::chrono::nanoseconds(1), timeout_ns);
  return count;
}

TEST(Pauses, EndWithTheTime) {
  EXPECT_EQ(pauses_of_a_wait(0, 0), 0);
  EXPECT_GE(pauses_of_a_wait(0, 1'000'000), 1);
  EXPECT_GE(pauses_of_a_wait(1'000'000, 1'000'000), 1);
}

// 64 sleeps of 2 us, 300 that grow to 200 us, and 440 of these.
TEST(Pauses, SleepOnceTheyHaveSpun) { EXPECT_LE(pauses_of_a_wait(0, 100'000'000), 850); }

TEST(Pauses, LeaveTheThreadItsTimerSlack) {
  const int before = prctl(PR_GET_TIMERSLACK);
  pauses_of_a_wait(0, 1'000'000);
  EXPECT_EQ(prctl(PR_GET_TIMERSLACK), before);
}

}  // namespace
}  // namespace compute::common
