// SPDX-License-Identifier: Apache-2.0
#include "core/copy_helpers.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/config.hpp"

namespace compute {
namespace {

constexpr int64_t kPiece = int64_t{64} << 10;
constexpr int64_t kWorthHelp = 2 * kPiece;
constexpr int64_t kMostThreads = 8;

int64_t usable_cpus() noexcept {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return std::max(1u, std::thread::hardware_concurrency());
}

// One job at a time. Helpers watch `generation_`, spinning for a while after each job since chunks come in rows.
class Helpers {
 public:
  Helpers() {
    const int64_t cpus = usable_cpus();
    threads_ = setting(SettingId::kCopyThreads).integer.value_or(std::min(kMostThreads, cpus / 2));
    spin_ = std::chrono::microseconds(cpus < 2 ? 0 : setting(SettingId::kSpinUs).integer.value_or(50));
  }

  void copy(void* dst, const void* src, int64_t size_bytes) noexcept {
    std::unique_lock own(mutex_, std::try_to_lock);
    if (threads_ < 2 || !own || !start()) {
      std::memcpy(dst, src, static_cast<size_t>(size_bytes));
      return;
    }
    dst_ = static_cast<char*>(dst);
    src_ = static_cast<const char*>(src);
    size_bytes_ = size_bytes;
    next_.store(0, std::memory_order_relaxed);
    busy_.store(started_, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    take_pieces();
    // Whoever woke late finds no piece left, and says so.
    while (busy_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  }

 private:
  bool start() noexcept {
    while (started_ < threads_ - 1) {
      try {
        std::thread([this, seen = generation_.load()] { help(seen); }).detach();
      } catch (...) {
        break;
      }
      ++started_;
    }
    return started_ > 0;
  }

  void take_pieces() noexcept {
    for (;;) {
      const int64_t begin = next_.fetch_add(kPiece, std::memory_order_relaxed);
      if (begin >= size_bytes_) return;
      std::memcpy(dst_ + begin, src_ + begin, static_cast<size_t>(std::min(kPiece, size_bytes_ - begin)));
    }
  }

  [[noreturn]] void help(uint64_t seen) noexcept {
    for (;;) {
      const auto since = std::chrono::steady_clock::now();
      while (generation_.load(std::memory_order_acquire) == seen) {
        if (std::chrono::steady_clock::now() - since > spin_) generation_.wait(seen, std::memory_order_acquire);
      }
      seen = generation_.load(std::memory_order_acquire);
      take_pieces();
      busy_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  std::mutex mutex_;
  int64_t threads_ = 1;
  int64_t started_ = 0;
  std::chrono::nanoseconds spin_{0};
  std::atomic<uint64_t> generation_{0};
  std::atomic<int64_t> next_{0}, busy_{0};
  char* dst_ = nullptr;
  const char* src_ = nullptr;
  int64_t size_bytes_ = 0;
};

// Never destroyed: the threads are still there at exit.
std::atomic<Helpers*> helpers{nullptr};

Helpers& instance() {
  Helpers* known = helpers.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto* made = new Helpers;
  if (helpers.compare_exchange_strong(known, made)) return *made;
  delete made;
  return *known;
}

}  // namespace

void copy_memory(void* dst, const void* src, int64_t size_bytes) noexcept {
  if (size_bytes >= kWorthHelp) {
    try {
      instance().copy(dst, src, size_bytes);
      return;
    } catch (...) {
      // Alone, then.
    }
  }
  std::memcpy(dst, src, static_cast<size_t>(size_bytes));
}

void forget_copy_helpers() noexcept { helpers.store(nullptr); }

}  // namespace compute
