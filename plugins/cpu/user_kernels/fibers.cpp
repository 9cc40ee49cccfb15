// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/user_kernels/fibers.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cassert>
#include <cstddef>
#include <memory>
#include <new>

namespace compute::cpu {
namespace {

constexpr size_t kStackBytes = 2 * kMostFiberFrame, kGuardBytes = 4 << 10;

// A guard makes two mappings, and a process may have 65530 if the system does not say otherwise. So many guards there
// are at most, of all threads; one for each thread is not counted.
constexpr int64_t kMostGuards = 8 << 10;
constinit std::atomic<int64_t> guard_count{0};

// The stacks of a thread in one growing mapping. Unused stacks take no memory.
class Stacks {
 public:
  Stacks() = default;
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks() { unmap(); }

  bool reserve(int64_t count) noexcept {
    if (count <= count_) return true;
    unmap();
    std::unique_ptr<ucontext_t[]> contexts(new (std::nothrow) ucontext_t[static_cast<size_t>(count)]);
    if (contexts == nullptr) return false;
    void* memory = mmap(nullptr, static_cast<size_t>(count) * kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    memory_ = static_cast<char*>(memory);
    count_ = count;
    contexts_ = std::move(contexts);
    if (protect()) return true;
    unmap();
    return false;
  }
  int64_t count() const { return count_; }
  char* stack(int64_t index) { return memory_ + static_cast<size_t>(index) * kStackBytes; }
  ucontext_t& context(int64_t index) { return contexts_[static_cast<size_t>(index)]; }

 private:
  // An overflow of a stack is a fault, not damage to its neighbour. Where the process has too many guards already, that
  // holds for the lowest stack alone, and so for memory that is not a stack. False if the system refuses a guard.
  bool protect() noexcept {
    guards_ = count_ - 1;
    if (guard_count.fetch_add(guards_, std::memory_order_relaxed) + guards_ > kMostGuards) {
      guard_count.fetch_sub(guards_, std::memory_order_relaxed);
      guards_ = 0;
    }
    for (int64_t i = 0; i <= guards_; ++i) {
      if (mprotect(stack(i), kGuardBytes, PROT_NONE) != 0) return false;
    }
    return true;
  }

  void unmap() noexcept {
    if (memory_ != nullptr) munmap(memory_, static_cast<size_t>(count_) * kStackBytes);
    guard_count.fetch_sub(guards_, std::memory_order_relaxed);
    memory_ = nullptr;
    count_ = guards_ = 0;
  }

  char* memory_ = nullptr;
  int64_t count_ = 0;
  int64_t guards_ = 0;  // in addition to the lowest stack's
  std::unique_ptr<ucontext_t[]> contexts_;
};

// What a thread runs now.
struct Group {
  void (*item)(void* user, int64_t index);
  void* user;
  int64_t count, running, left;
  ucontext_t back;
  bool ended[kMostFibers];
};

// The calling thread's. They are freed at its end, not when the process exits, as thread_frame() is.
constinit thread_local Stacks* mine = nullptr;
constinit thread_local Group* group = nullptr;

// NULL without memory.
Stacks* stacks() noexcept {
  if (mine == nullptr) [[unlikely]] {
    struct Key {
      pthread_key_t id = 0;
      bool is_valid = pthread_key_create(&id, free_at_thread_end) == 0;

      static void free_at_thread_end(void* stacks) {
        mine = nullptr;
        delete static_cast<Stacks*>(stacks);
      }
    };
    static const Key key;
    mine = new (std::nothrow) Stacks;
    if (mine != nullptr && key.is_valid) static_cast<void>(pthread_setspecific(key.id, mine));
  }
  return mine;
}

void enter() {
  Group& now = *group;
  const int64_t own = now.running;
  now.item(now.user, own);
  now.ended[own] = true;
  --now.left;
  swapcontext(&mine->context(own), &now.back);
}

}  // namespace

bool reserve_fibers(int64_t count) noexcept {
  Stacks* own = stacks();
  return own != nullptr && own->reserve(count);
}

void run_together(void (*item)(void* user, int64_t index), void* user, int64_t count) {
  assert(mine != nullptr && count <= mine->count() && count <= kMostFibers);
  Group now{item, user, count, 0, count, {}, {}};
  group = &now;
  for (int64_t i = 0; i < count; ++i) {
    ucontext_t& context = mine->context(i);
    getcontext(&context);
    context.uc_stack.ss_sp = mine->stack(i) + kGuardBytes;
    context.uc_stack.ss_size = kStackBytes - kGuardBytes;
    context.uc_link = nullptr;
    makecontext(&context, enter, 0);
  }
  while (now.left > 0) {
    for (int64_t i = 0; i < count; ++i) {
      if (now.ended[i]) continue;
      now.running = i;
      swapcontext(&now.back, &mine->context(i));
    }
  }
  group = nullptr;
}

void meet() {
  Group& now = *group;
  swapcontext(&mine->context(now.running), &now.back);
}

}  // namespace compute::cpu
