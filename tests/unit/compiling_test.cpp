// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/compiling.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

// Asked by the leak sanitizer. What a fork's other threads held is reachable from nowhere in the child.
static bool is_child_of_threads = false;
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off();  // NOLINT(bugprone-reserved-identifier)
extern "C" int __lsan_is_turned_off() { return is_child_of_threads ? 1 : 0; }

namespace compute::common {
namespace {

// A compiler that does not come back holds exit() up once, however many handlers there are.
TEST(Compiling, ExitWaitsForACompilerThatHangsWithinOneLimit) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] {
      const Compiling compiling;
      std::this_thread::sleep_for(std::chrono::hours(1));
    }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // a handler is registered each millisecond
    std::exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(18)) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

// The child of a fork may call exit(), also where another thread of its parent was registering handlers.
TEST(Compiling, ForksWhileOthersCompile) {
  const pid_t parent = fork();
  if (parent == 0) {
    std::atomic<bool> is_over = false, is_forking = false;
    std::thread compiler([&] {
      while (!is_over) {
        if (is_forking) const Compiling compiling;
        const auto next = std::chrono::steady_clock::now() + std::chrono::microseconds(2);
        while (std::chrono::steady_clock::now() < next) {
        }
      }
    });
    int hung = 0;
    for (int i = 0; i < 100 && hung == 0; ++i) {
      is_forking = true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      const pid_t child = fork();
      is_forking = false;  // each compilation leaves a handler, which every child runs
      if (child == 0) {
        is_child_of_threads = true;
        alarm(20);
        std::exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      hung += status != 0;
    }
    is_over = true;
    compiler.join();
    _exit(hung);
  }
  int status = 0;
  waitpid(parent, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace compute::common
