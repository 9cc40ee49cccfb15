// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/command_queue.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace compute::cpu {

// Records follow one another, each after a header; a header of size 0 says that the next record is in the next chunk.
struct CommandQueue::Header {
  alignas(16) int64_t size_bytes;  // with the header, a multiple of 16
};

struct CommandQueue::Chunk {
  alignas(64) Chunk* next;
  int64_t capacity;

  char* data() { return reinterpret_cast<char*>(this + 1); }
};

namespace {

constexpr int64_t kChunkBytes = 64 << 10;

}  // namespace

CommandQueue::Chunk* CommandQueue::make_chunk(int64_t size_bytes) {
  void* memory = std::aligned_alloc(64, static_cast<size_t>(size_bytes) + sizeof(Chunk));
  if (memory == nullptr) throw std::bad_alloc();
  return new (memory) Chunk{nullptr, size_bytes};
}

CommandQueue::CommandQueue() = default;

CommandQueue::~CommandQueue() {
  for (Chunk* list : {head_, spare_, returned_.load(std::memory_order_acquire)}) {
    while (list != nullptr) {
      Chunk* next = list->next;
      std::free(list);
      list = next;
    }
  }
}

void* CommandQueue::reserve(int64_t size_bytes) {
  reserved_ = (size_bytes + 15) / 16 * 16 + static_cast<int64_t>(sizeof(Header));
  // There is always room for one more header, which may have to name the next chunk.
  if (tail_ == nullptr || tail_used_ + reserved_ + static_cast<int64_t>(sizeof(Header)) > tail_->capacity) {
    if (spare_ == nullptr) spare_ = returned_.exchange(nullptr, std::memory_order_acquire);
    const int64_t needed = reserved_ + static_cast<int64_t>(sizeof(Header));
    Chunk* chunk = spare_;
    if (chunk != nullptr && chunk->capacity >= needed) {
      spare_ = chunk->next;
      chunk->next = nullptr;
    } else {
      chunk = make_chunk(std::max(kChunkBytes, (needed + 63) / 64 * 64));
    }
    if (tail_ == nullptr) {
      head_ = chunk;  // the consumer looks at it after the first push
    } else {
      tail_->next = chunk;
      new (tail_->data() + tail_used_) Header{0};
    }
    tail_ = chunk;
    tail_used_ = 0;
  }
  new (tail_->data() + tail_used_) Header{reserved_};
  return tail_->data() + tail_used_ + sizeof(Header);
}

void CommandQueue::push() {
  tail_used_ += reserved_;
  pushed_.fetch_add(1, std::memory_order_seq_cst);
}

void* CommandQueue::front() {
  if (pushed_.load(std::memory_order_acquire) == popped_) return nullptr;
  auto* header = reinterpret_cast<Header*>(head_->data() + head_used_);
  if (header->size_bytes == 0) {
    Chunk* left = head_;
    head_ = left->next;
    head_used_ = 0;
    left->next = returned_.load(std::memory_order_relaxed);
    while (!returned_.compare_exchange_weak(left->next, left, std::memory_order_release, std::memory_order_relaxed)) {
    }
    header = reinterpret_cast<Header*>(head_->data());
  }
  return reinterpret_cast<char*>(header) + sizeof(Header);
}

void CommandQueue::pop() {
  head_used_ += reinterpret_cast<Header*>(head_->data() + head_used_)->size_bytes;
  ++popped_;
}

}  // namespace compute::cpu
