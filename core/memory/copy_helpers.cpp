// SPDX-License-Identifier: Apache-2.0
#include "core/memory/copy_helpers.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/process/process_config.hpp"
#include "core/process/thread.hpp"

namespace compute {
namespace {

constexpr int64_t kPiece = int64_t{64} << 10;
constexpr int64_t kBytesPerHelper = 4 * kPiece;  // less is not worth waking one for
constexpr int64_t kMostThreads = 12;
// From this size on the program's memory is not worth a place in caches.
constexpr int64_t kPastCaches = int64_t{128} << 20;

int64_t divide_up(int64_t x, int64_t y) noexcept { return (x + y - 1) / y; }

int64_t usable_cpus() noexcept {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

namespace {

// memcpy with non-temporal stores, which do not read the lines that they overwrite. Other threads see the copy after
// the fence at its end.
void copy_past_caches(char* dst, const char* src, size_t size) noexcept {
#if defined(__SSE2__)
  constexpr size_t kLine = 64, kVector = sizeof(__m128i);
  const size_t head = std::min(size, (kLine - reinterpret_cast<uintptr_t>(dst) % kLine) % kLine);
  std::memcpy(dst, src, head);
  size_t at = head;
  for (; at + kLine <= size; at += kLine) {
    __m128i line[kLine / kVector];
    std::memcpy(line, src + at, kLine);
    for (size_t i = 0; i < kLine / kVector; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(dst + at + i * kVector), line[i]);
  }
  std::memcpy(dst + at, src + at, size - at);
  _mm_sfence();
#else
  std::memcpy(dst, src, size);
#endif
}

}  // namespace

// Serves one copy at a time.
class CopyHelpers {
 public:
  CopyHelpers() {
    const int64_t cpus = usable_cpus();
    const int64_t threads = setting(SettingId::kCopyThreads).integer.value_or(std::min(kMostThreads, cpus * 3 / 4));
    wanted_ = std::clamp<int64_t>(threads - 1, 0, kMostHelpers);
    spin_ = std::chrono::microseconds(cpus < 2 ? 0 : setting(SettingId::kSpinUs).integer.value_or(50));
  }

  // How many helpers, at most `most`, will serve `copy` until it is ended; 0 if they serve another.
  int64_t begin(ChunkedCopy& copy, int64_t most) noexcept {
    if (wanted_ == 0 || most <= 0 || !mutex_.try_lock()) return 0;
    while (started_ < std::min(wanted_, most)) {
      try {
        start_thread([this, &signal = signals_[static_cast<size_t>(started_)].value] { help(signal); });
      } catch (...) {
        break;
      }
      ++started_;
    }
    if (started_ == 0) {
      mutex_.unlock();
      return 0;
    }
    copy_.store(&copy);
    return std::min(started_, most);
  }

  void wake(int64_t helpers) noexcept {
    for (int64_t i = 0; i < helpers; ++i) {
      std::atomic<uint32_t>& signal = signals_[static_cast<size_t>(i)].value;
      signal.fetch_add(1, std::memory_order_release);
      signal.notify_one();
    }
  }

  void end() noexcept {
    copy_.store(nullptr);
    while (inside_.load() != 0) std::this_thread::yield();
    mutex_.unlock();
  }

 private:
  static constexpr int64_t kMostHelpers = 63;
  struct alignas(64) Signal {
    std::atomic<uint32_t> value{0};
  };

  // Spins for a while after each signal, since they come in rows. A helper is inside before it looks whether there is a
  // copy, so that end() either sees the helper or has taken the copy away from it.
  [[noreturn]] void help(std::atomic<uint32_t>& signal) noexcept {
    for (uint32_t seen = 0;;) {
      const auto since = std::chrono::steady_clock::now();
      while (signal.load(std::memory_order_acquire) == seen) {
        if (std::chrono::steady_clock::now() - since > spin_) signal.wait(seen, std::memory_order_acquire);
      }
      seen = signal.load(std::memory_order_acquire);
      inside_.fetch_add(1);
      if (ChunkedCopy* copy = copy_.load()) {
        while (copy->copy_piece()) {
        }
      }
      inside_.fetch_sub(1);
    }
  }

  std::mutex mutex_;
  int64_t wanted_ = 0, started_ = 0;
  std::chrono::nanoseconds spin_{0};
  std::atomic<ChunkedCopy*> copy_{nullptr};
  std::atomic<int64_t> inside_{0};
  std::array<Signal, kMostHelpers> signals_;
};

namespace {

// Never destroyed: the threads are still there at exit.
std::atomic<CopyHelpers*> helpers{nullptr};

CopyHelpers& instance() {
  CopyHelpers* known = helpers.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto* made = new CopyHelpers;
  if (helpers.compare_exchange_strong(known, made)) return *made;
  delete made;
  return *known;
}

}  // namespace

ChunkedCopy::ChunkedCopy(Direction direction, void* data, int64_t size_bytes, std::span<void* const> ring,
                         int64_t chunk_bytes) noexcept
    : direction_(direction),
      data_(static_cast<char*>(data)),
      size_bytes_(size_bytes),
      chunk_bytes_(chunk_bytes),
      ring_(ring),
      chunks_(divide_up(size_bytes, chunk_bytes)),
      pieces_per_chunk_(divide_up(chunk_bytes, kPiece)) {
  try {
    CopyHelpers& all = instance();
    helper_count_ = all.begin(*this, size_bytes / kBytesPerHelper);
    if (helper_count_ > 0) helpers_ = &all;
  } catch (...) {
    // Alone, then.
  }
}

ChunkedCopy::~ChunkedCopy() {
  limit_.store(0, std::memory_order_relaxed);
  if (helpers_ != nullptr) helpers_->end();
}

int64_t ChunkedCopy::bytes_of(int64_t chunk) const noexcept {
  return std::min(chunk_bytes_, size_bytes_ - chunk * chunk_bytes_);
}

int64_t ChunkedCopy::pieces_of(int64_t chunk) const noexcept { return divide_up(bytes_of(chunk), kPiece); }

void ChunkedCopy::allow(int64_t chunks) noexcept {
  for (; allowed_ < chunks; ++allowed_) done(allowed_).store(0, std::memory_order_relaxed);
  // Only the last chunk may have fewer pieces.
  limit_.store((chunks - 1) * pieces_per_chunk_ + pieces_of(chunks - 1), std::memory_order_release);
  if (helpers_ != nullptr) helpers_->wake(helper_count_);
}

void ChunkedCopy::finish(int64_t chunk) noexcept {
  while (!is_finished(chunk)) {
    if (!copy_piece()) std::this_thread::yield();
  }
}

bool ChunkedCopy::copy_piece() noexcept {
  int64_t piece = next_.load(std::memory_order_relaxed);
  do {
    if (piece >= limit_.load(std::memory_order_acquire)) return false;
  } while (!next_.compare_exchange_weak(piece, piece + 1, std::memory_order_relaxed));
  const int64_t chunk = piece / pieces_per_chunk_, begin = piece % pieces_per_chunk_ * kPiece;
  const auto size = static_cast<size_t>(std::min(kPiece, bytes_of(chunk) - begin));
  char* data = data_ + chunk * chunk_bytes_ + begin;
  char* slot = static_cast<char*>(ring_[static_cast<size_t>(chunk) % ring_.size()]) + begin;
  if (direction_ == Direction::kToRing) {
    std::memcpy(slot, data, size);
  } else if (size_bytes_ >= kPastCaches) {
    copy_past_caches(data, slot, size);
  } else {
    std::memcpy(data, slot, size);
  }
  done(chunk).fetch_add(1, std::memory_order_release);
  return true;
}

void forget_copy_helpers() noexcept { helpers.store(nullptr); }

}  // namespace compute
