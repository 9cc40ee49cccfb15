// SPDX-License-Identifier: Apache-2.0
#include "core/process/in_use.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace compute {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// What a call that lets a fork pass registers for forks is registered after it.
TEST(InUse, ACallMayLetAForkPass) {
  std::atomic<bool> is_inside{false};
  std::atomic<bool> is_past{false};
  std::thread call([&] {
    const InUse use;
    let_fork_pass();  // there is none
    is_inside = true;
    while ((attention.load() & kForking) == 0) std::this_thread::yield();
    let_fork_pass();
    is_past = true;
  });
  while (!is_inside) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(hold_calls_for_fork(20 * kSecond)) << "the child finds a call half done";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_FALSE(is_past);
  go_on_after_fork();
  call.join();
  EXPECT_TRUE(hold_calls_for_fork(20 * kSecond));
  go_on_after_fork();
}

}  // namespace
}  // namespace compute
