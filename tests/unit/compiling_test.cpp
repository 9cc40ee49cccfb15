// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/compiling.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

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

}  // namespace
}  // namespace compute::common
