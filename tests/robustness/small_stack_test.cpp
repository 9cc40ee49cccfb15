// SPDX-License-Identifier: Apache-2.0
// Threads whose stacks have 64 KiB, as runtimes with many threads make them: cold calls, warm ones, and errors.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "robustness.hpp"

namespace robustness {
namespace {

constexpr size_t kStackBytes = 64 << 10, kGuardBytes = 256 << 10;

void* use_device(void* name) {
  Device device;
  EXPECT_OK(compute_device_open(static_cast<const char*>(name), device.out()));
  if (device.get() == nullptr) return nullptr;
  const Tensor x = make_full(device, {64, 64}, 2.0f);
  const bool compiles = std::string_view(static_cast<const char*>(name)).starts_with("opencl");  // which takes its time
  const std::vector<const char*> ops =
      compiles ? std::vector<const char*>{"exp", "sum"} : std::vector<const char*>{"exp", "sum", "argmax", "var"};
  for (int round = 0; round < 2; ++round) {
    for (const char* op : ops) {
      Tensor y;
      EXPECT_OK(run_op(op, nullptr, {x}, y.out())) << op;
    }
    Tensor product, joined;
    EXPECT_OK(run_op("matmul", nullptr, {x, x}, product.out()));
    EXPECT_EQ(read<float>(product), std::vector<float>(64 * 64, 256.0f));
  }
  const char* names[] = {"a", "b"};
  compute_expression* expression = nullptr;
  EXPECT_OK(compute_expression_parse("tanh(a * b + 1) / (a + b)", names, 2, nullptr, 0, &expression));
  compute_expression_release(expression);
  EXPECT_NE(code_of(compute_expression_parse("tanh(a * b + 1", names, 2, nullptr, 0, &expression)), COMPUTE_OK);
  Tensor sum;
  const Tensor other = make_full(device, {3}, 1.0f);
  EXPECT_FAILS(run_op("add", nullptr, {x, other}, sum.out()), COMPUTE_ERROR_INVALID_ARGUMENT, "add");
  Device absent;
  EXPECT_NE(code_of(compute_device_open("nowhere0", absent.out())), COMPUTE_OK);
  return nullptr;
}

// What lies below the stack cannot be touched, however large the frame that steps over its end.
void run_on_small_stack(const char* name, void* (*body)(void*)) {
  auto* memory =
      static_cast<char*>(mmap(nullptr, kGuardBytes + kStackBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory + kGuardBytes, kStackBytes, PROT_READ | PROT_WRITE), 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, memory + kGuardBytes, kStackBytes), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, const_cast<char*>(name)), 0);
  pthread_join(thread, nullptr);
}

TEST(SmallStack, OpensDevicesAndRunsOps) {
  if (kSanitizer) GTEST_SKIP() << "sanitizers make frames several times as large";
  for (const char* name : devices_with_ops()) {
    const Outcome outcome = run_in_child([&] {
      use_plugins({"minimal"});
      run_on_small_stack(name, use_device);
    });
    EXPECT_TRUE(outcome.exited(0)) << name << ": status " << outcome.status << "\n" << outcome.output;
  }
}

// Drivers and their compilers take far more. With caches that are empty, and then with those that this has filled.
TEST(SmallStack, OpensOpenclDevicesAndRunsOps) {
  if (kSanitizer) GTEST_SKIP() << "sanitizers make frames several times as large";
  std::string cache = (std::filesystem::temp_directory_path() / "compute-stack-XXXXXX").string();
  ASSERT_NE(mkdtemp(cache.data()), nullptr);
  for (const char* caches : {"empty", "filled"}) {
    const Outcome outcome = run_in_child([&] {
      for (const char* name : {"COMPUTE_CACHE_DIR", "POCL_CACHE_DIR"}) setenv(name, cache.c_str(), 1);
      setenv("COMPUTE_PROBE", "0", 1);
      static bool is_there;
      run_on_small_stack("opencl0:0", [](void*) -> void* {
        Device device;
        is_there = code_of(compute_device_open("opencl0:0", device.out())) == COMPUTE_OK;
        return nullptr;
      });
      if (!is_there) _exit(77);
      run_on_small_stack("opencl0:0", use_device);
    });
    if (outcome.exited(77)) {
      std::filesystem::remove_all(cache);
      GTEST_SKIP() << "there is no opencl0:0";
    }
    EXPECT_TRUE(outcome.exited(0)) << caches << " caches: status " << outcome.status << "\n" << outcome.output;
  }
  std::filesystem::remove_all(cache);
}

}  // namespace
}  // namespace robustness
