// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/polling.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace compute::common {
namespace {

[[noreturn]] void end_beside_a_thread_that_polls() {
  static std::atomic<int> asked{0};
  std::thread([] {
    Polling polling;
    for (;; ++asked) polling.sleep(std::chrono::microseconds(10));
  }).detach();
  while (asked < 10) std::this_thread::yield();
  end_polling();
  const int before = asked;
  const Polling own;  // the exiting thread continues
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // On a busy machine the thread can be in the middle of a query for longer than end_polling waits.
  std::_Exit(asked <= before + 1 ? 0 : 1);
}

TEST(PollingDeathTest, OthersStayOnceTheProcessEnds) {
  EXPECT_EXIT(end_beside_a_thread_that_polls(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace compute::common
