// SPDX-License-Identifier: Apache-2.0
// What the machine can do on several threads, for compute-bench: a library that it opens. Each thread has memory of its
// own that it touched first. Results are of the best of several rounds.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tools/bench/machine.hpp"

namespace {

constexpr int kRounds = 7;

// Amount per second, where `work` does a thread's part and returns its amount.
double rate(int threads, const std::function<double(int thread, bool first)>& work) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  std::vector<double> amounts(static_cast<size_t>(threads));
  Clock::time_point start;
  std::barrier together(threads, [&]() noexcept { start = Clock::now(); });
  int round = -1;
  std::barrier done(threads, [&]() noexcept {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    double amount = 0;
    for (const double one : amounts) amount += one;
    if (round++ >= 0) best = std::max(best, amount / seconds);
  });
  const auto run = [&](int thread) {
    for (int i = 0; i <= kRounds; ++i) {
      if (i == 0) work(thread, true);
      together.arrive_and_wait();
      amounts[static_cast<size_t>(thread)] = work(thread, false);
      done.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run, i);
  run(0);
  for (std::thread& one : others) one.join();
  return best;
}

struct Memory {
  std::unique_ptr<uint8_t[]> src, dst;
};

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED double compute_bench_copy(int threads, int64_t bytes) {
  std::vector<Memory> memory(static_cast<size_t>(threads));
  const auto size = static_cast<size_t>(bytes / threads / 2);
  return rate(threads, [&](int thread, bool first) {
    Memory& own = memory[static_cast<size_t>(thread)];
    if (first) own = {std::make_unique<uint8_t[]>(size), std::make_unique<uint8_t[]>(size)};
    std::memcpy(own.dst.get(), own.src.get(), size);
    return 2.0 * static_cast<double>(size);
  });
}

EXPORTED double compute_bench_read(int threads, int64_t bytes) {
  std::vector<Memory> memory(static_cast<size_t>(threads));
  const auto size = static_cast<size_t>(bytes / threads);
  return rate(threads, [&](int thread, bool first) {
    Memory& own = memory[static_cast<size_t>(thread)];
    if (first) own.src = std::make_unique<uint8_t[]>(size);
    const unsigned long long sum = compute::bench::read_all(own.src.get(), size);
    __asm__ volatile("" : : "r"(sum));
    return static_cast<double>(size);
  });
}

EXPORTED double compute_bench_multiply_add(int threads, int is_double) {
  return rate(threads, [&](int, bool) { return compute::bench::multiply_add(1e8, is_double != 0); });
}
