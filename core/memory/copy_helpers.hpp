// SPDX-License-Identifier: Apache-2.0
// Threads that help to copy the program's memory, because one thread alone does not reach the rate of a GPU's bus. They
// are started when first needed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace compute {

class CopyHelpers;

// One copy between the program's memory and a ring of chunks that a device reads or writes at the same time: chunk i of
// the memory uses slot i % slots of the ring. COMPUTE_COPY_THREADS threads, including the caller, copy released chunks,
// in pieces and in order, so they do not wait for each other at the end of a chunk. While they work for one caller,
// other callers copy alone. All functions are called by one thread, the caller.
class ChunkedCopy {
 public:
  static constexpr size_t kMostSlots = 8;
  enum class Direction { kToRing, kFromRing };

  // `data` is only read if the direction is to the ring. A chunk has `chunk_bytes`; the last one has the rest of
  // `size_bytes` >= 1.
  ChunkedCopy(Direction direction, void* data, int64_t size_bytes, std::span<void* const> ring,
              int64_t chunk_bytes) noexcept;
  ChunkedCopy(const ChunkedCopy&) = delete;
  ChunkedCopy& operator=(const ChunkedCopy&) = delete;
  // Waits for pieces that are being copied, and drops the rest.
  ~ChunkedCopy();

  // Releases the chunks before `chunks` for copying. The chunk of a slot must be finished before the slot's next chunk
  // is released.
  void allow(int64_t chunks) noexcept;
  bool is_finished(int64_t chunk) const noexcept {
    return done(chunk).load(std::memory_order_acquire) == pieces_of(chunk);
  }
  // Helps to copy until the chunk, which must be released, is finished.
  void finish(int64_t chunk) noexcept;

  // Copies a piece; false if none is released. From any thread.
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

// In the child after fork(): the threads do not exist any more; new ones are started when needed.
void forget_copy_helpers() noexcept;

}  // namespace compute
