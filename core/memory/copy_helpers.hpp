// SPDX-License-Identifier: Apache-2.0
// Threads that help to copy memory of the program, which one thread alone cannot do at the rate of a GPU's bus. Started
// at first need.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace compute {

class CopyHelpers;

// One copy between memory of the program and a ring of chunks that a device reads or writes meanwhile: chunk i of the
// memory and slot i % slots of the ring. COMPUTE_COPY_THREADS threads, the caller counted, copy what the caller has
// allowed, in pieces and in order, so that they need not wait for each other at the end of a chunk. While they serve
// one caller, others copy alone. All functions are the caller's, from one thread.
class ChunkedCopy {
 public:
  static constexpr size_t kMostSlots = 8;
  enum class Direction { kToRing, kFromRing };

  // `data` is only read where the direction is to the ring. A chunk is `chunk_bytes`, the last one what is left of
  // `size_bytes` >= 1.
  ChunkedCopy(Direction direction, void* data, int64_t size_bytes, std::span<void* const> ring,
              int64_t chunk_bytes) noexcept;
  ChunkedCopy(const ChunkedCopy&) = delete;
  ChunkedCopy& operator=(const ChunkedCopy&) = delete;
  // What is being copied is waited for, the rest is left.
  ~ChunkedCopy();

  // Chunks before `chunks` may be copied. A slot's chunk is finished before the slot's next one is allowed.
  void allow(int64_t chunks) noexcept;
  bool is_finished(int64_t chunk) const noexcept {
    return done(chunk).load(std::memory_order_acquire) == pieces_of(chunk);
  }
  // Copies too, until the chunk, which is allowed, is finished.
  void finish(int64_t chunk) noexcept;

  // Copies a piece; false if none is allowed. From any thread.
  bool copy_piece() noexcept;

 private:
  int64_t bytes_of(int64_t chunk) const noexcept;
  int64_t pieces_of(int64_t chunk) const noexcept;
  std::atomic<int64_t>& done(int64_t chunk) noexcept { return done_[static_cast<size_t>(chunk) % ring_.size()]; }
  const std::atomic<int64_t>& done(int64_t chunk) const noexcept {
    return done_[static_cast<size_t>(chunk) % ring_.size()];
  }

  const Direction direction_;
  char* const data_;
  const int64_t size_bytes_, chunk_bytes_;
  const std::span<void* const> ring_;
  const int64_t chunks_, pieces_per_chunk_;
  CopyHelpers* helpers_ = nullptr;  // NULL: the caller copies alone
  int64_t helper_count_ = 0;
  int64_t allowed_ = 0;                                  // chunks
  std::atomic<int64_t> next_{0}, limit_{0};              // pieces
  std::array<std::atomic<int64_t>, kMostSlots> done_{};  // pieces, by slot
};

// In the child after fork(): the threads are gone; new ones are started at the next need.
void forget_copy_helpers() noexcept;

}  // namespace compute
