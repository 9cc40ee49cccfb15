// SPDX-License-Identifier: Apache-2.0
// Concurrent starts on one cache that are killed at any moment: the next start finds the cache usable.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "robustness.hpp"

namespace robustness {
namespace {

namespace fs = std::filesystem;

// Rounds of 24 processes; COMPUTE_TEST_ROUNDS for more.
int rounds() {
  const char* text = std::getenv("COMPUTE_TEST_ROUNDS");
  return text != nullptr ? std::atoi(text) : 1;
}

// Opens the OpenCL device if there is one, else cpu, compiles a distinct expression and checks a result.
void start_and_compile(const fs::path& cache, int which) {
  setenv("COMPUTE_CACHE_DIR", (cache / "compute").c_str(), 1);
  setenv("POCL_CACHE_DIR", (cache / "pocl").c_str(), 1);
  setenv("COMPUTE_LOG", "off", 1);
  unsetenv("COMPUTE_PROBE");
  Device device;
  if (compute_error* error = compute_device_open("opencl", device.out()); error != nullptr) {
    compute_error_free(error);
    EXPECT_OK(compute_device_open("cpu", device.out()));
  }
  const Tensor x = make_full(device, {64}, 2.0f);
  Tensor y;
  compute_tensor* inputs[] = {x.get()};
  compute_expression* expression = nullptr;
  const std::string text = "a * " + std::to_string(which + 1) + " + a";
  const char* const names[] = {"a"};
  EXPECT_OK(compute_expression_parse(text.c_str(), names, 1, nullptr, 0, &expression));
  EXPECT_OK(compute_map(nullptr, expression, inputs, 1, nullptr, 0, y.out(), 1));
  EXPECT_EQ(read<float>(y), std::vector<float>(64, 2.0f * static_cast<float>(which + 2)));
  compute_expression_release(expression);
}

TEST(Killed, StartsLeaveACacheThatTheNextOneUses) {
  constexpr int kProcesses = 24;
  char name[] = "/tmp/compute-killed-XXXXXX";
  const fs::path cache = mkdtemp(name);
  std::mt19937 random(17);
  for (int round = 0; round < rounds(); ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        start_and_compile(cache, i % 6);
        _exit(testing::Test::HasFailure() ? 1 : 0);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
      kill(child, SIGKILL);
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;
    }
    for (int i = 0; i < 2; ++i) {
      const Outcome next = run_in_child([&] { start_and_compile(cache, round % 6); });
      EXPECT_TRUE(next.exited(0)) << next.output;
    }
  }
  // every file in the cache is complete: a verdict, a program, or the temporary file of a killed writer
  int64_t verdicts = 0;
  for (const auto& entry : fs::directory_iterator(cache / "compute/probe"))
    verdicts += entry.path().extension().empty();
  EXPECT_GT(verdicts, 0);
  fs::remove_all(cache);
}

}  // namespace
}  // namespace robustness
