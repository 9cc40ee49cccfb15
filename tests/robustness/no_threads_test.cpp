// SPDX-License-Identifier: Apache-2.0
// A system that grants few or no threads: large work runs on the calling thread, with the same results.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "robustness.hpp"

namespace {

std::atomic<int> threads_left{-1};  // below 0: unlimited

using CreateThread = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Stands before the C library's for every library of the process.
extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                             void* (*start)(void*), void* argument) noexcept {
  static const auto real = reinterpret_cast<CreateThread>(dlsym(RTLD_NEXT, "pthread_create"));
  for (int left = threads_left.load(); left >= 0;) {
    if (left == 0) return EAGAIN;
    if (threads_left.compare_exchange_weak(left, left - 1)) break;
  }
  return real(thread, attributes, start, argument);
}
#endif

namespace robustness {
namespace {

std::vector<std::vector<float>> run_large_ops(compute_device* device) {
  std::vector<float> values(1 << 18);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1001) / 500;
  const Tensor x = make_tensor(device, values, {1 << 9, 1 << 9});
  std::vector<std::vector<float>> results;
  for (const char* op : {"exp", "sum", "tanh", "sqrt"}) {
    Tensor y;
    EXPECT_OK(run_op(op, nullptr, {x}, y.out())) << op;
    if (y.get() != nullptr) results.push_back(read<float>(y));
  }
  Tensor product;
  EXPECT_OK(run_op("matmul", nullptr, {x, x}, product.out()));
  results.push_back(read<float>(product));
  for (size_t i = 0; i < values.size(); i += 997) {
    const double expected = std::exp(static_cast<double>(values[i]));
    EXPECT_NEAR(results[0][i], expected, 1e-5 * expected) << i;
  }
  return results;
}

#if defined(COMPUTE_HAS_CPU_PLUGIN)
TEST(NoThreads, LargeOpsRunOnTheCaller) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer has a pthread_create of its own";
  for (const int granted : {0, 1, 2, 3, 4, 5}) {
    const Outcome outcome = run_in_child([&] {
      threads_left = granted;
      const Device device = open("cpu");
      const auto few = run_large_ops(device);
      threads_left = 0;
      EXPECT_EQ(few, run_large_ops(device));
      if (granted == 0) {
        Stream stream;
        EXPECT_FAILS(compute_stream_create(device, nullptr, stream.out()), COMPUTE_ERROR_OUT_OF_MEMORY,
                     "cannot create a thread for the stream");
        EXPECT_EQ(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}), 1);
      }
      threads_left = -1;
      EXPECT_EQ(few, run_large_ops(device));
    });
    EXPECT_TRUE(outcome.exited(0)) << granted << " threads: status " << outcome.status << "\n" << outcome.output;
  }
}
#endif

}  // namespace
}  // namespace robustness
