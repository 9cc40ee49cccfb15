// SPDX-License-Identifier: Apache-2.0
// A queue of records of any size between one producer and one consumer. Memory is taken in chunks that are reused: a
// steady flow allocates nothing, and a burst allocates as much as it needs.
#pragma once

#include <atomic>
#include <cstdint>

namespace compute::cpu {

class CommandQueue {
 public:
  CommandQueue();
  ~CommandQueue();
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;

  // Producer: memory for the next record, aligned to 16 bytes. The consumer sees it after push(). Throws bad_alloc.
  void* reserve(int64_t size_bytes);
  void push();

  // Consumer: the oldest record, or NULL; it is valid until pop().
  void* front();
  void pop();

  bool is_empty() const { return pushed_.load(std::memory_order_seq_cst) == popped_; }

 private:
  struct Chunk;
  struct Header;

  static Chunk* make_chunk(int64_t size_bytes);

  std::atomic<uint64_t> pushed_{0};
  std::atomic<Chunk*> returned_{nullptr};  // chunks that the consumer has finished

  // Used by the producer only.
  alignas(64) Chunk* tail_ = nullptr;
  int64_t tail_used_ = 0;
  int64_t reserved_ = 0;
  Chunk* spare_ = nullptr;

  // Used by the consumer only.
  alignas(64) Chunk* head_ = nullptr;
  int64_t head_used_ = 0;
  uint64_t popped_ = 0;
};

}  // namespace compute::cpu
