// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/threads/workers.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <tbb/cache_aligned_allocator.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <latch>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "plugins/cpu/threads/signals_blocked.hpp"

namespace compute::cpu {
namespace {

// Workers may be busy with the program's own work for oneTBB.
constexpr auto kPatience = std::chrono::milliseconds(50);

constexpr size_t kStackBytes = 4 << 20;  // as oneTBB's

// From now on the calling thread opens no file; false if the system does not offer that.
bool refuse_files() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOENT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// oneTBB loads libtbbmalloc, from where it lies itself, with its first allocation, and does with malloc where there is
// none. libtbbmalloc knows nothing of fork(): its destructor waits forever in a child if a thread of the parent held
// one of its locks, or was just ending. So the first allocation is one that finds no file. What the program has loaded
// or used before stays in use.
void keep_allocator_out() {
  std::thread([] {
    if (!refuse_files()) return;
    tbb::cache_aligned_allocator<char> allocator;
    allocator.deallocate(allocator.allocate(1), 1);
  }).join();
}

// How many of `wanted` threads the system grants at the same time. oneTBB ends the process where one of its threads
// cannot make the next.
int32_t count_available_threads(int32_t wanted) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return 0;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  std::vector<pthread_t> threads;
  threads.reserve(static_cast<size_t>(wanted));
  std::latch counted(1);
  const auto wait = [](void* latch) -> void* {
    static_cast<std::latch*>(latch)->wait();
    return nullptr;
  };
  for (pthread_t thread;
       static_cast<int32_t>(threads.size()) < wanted && pthread_create(&thread, &attributes, wait, &counted) == 0;) {
    threads.push_back(thread);
  }
  counted.count_down();
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return static_cast<int32_t>(threads.size());
}

// Whether as many threads as the arena has places are in it at the same time.
bool muster(tbb::task_arena& arena, int32_t threads) {
  std::atomic<int32_t> here{0};
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto arrive = [&](const tbb::blocked_range<int32_t>&) {
    here.fetch_add(1);
    while (here.load() < threads && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  };
  arena.execute(
      [&] { tbb::parallel_for(tbb::blocked_range<int32_t>(0, threads, 1), arrive, tbb::simple_partitioner()); });
  return here.load() == threads && std::chrono::steady_clock::now() < end;
}

// Before a fork: oneTBB forgets the calling thread, which meets it again with its next work. When the child ends,
// oneTBB's destructor would take locks on that thread's behalf that other threads of the parent may have held.
void leave_before_fork() noexcept {
  try {
    tbb::task_scheduler_handle handle{tbb::attach{}};
    static_cast<void>(tbb::finalize(handle, std::nothrow));  // ends nothing, since the arena goes on
  } catch (const std::exception&) {
    // Without memory for the handle the thread stays known.
  }
}

}  // namespace

Workers start_workers(int32_t threads) noexcept {
  try {
    const SignalsBlocked blocked;
    // With the thread that starts them.
    const int32_t available = std::min(threads, count_available_threads(threads));
    if (available < 2) return {};
    keep_allocator_out();
    Workers workers;
    std::thread([&workers, available] {
      try {
        auto arena = std::make_unique<tbb::task_arena>(available);
        arena->initialize();
        workers.are_started = muster(*arena, available);
        workers.arena = arena.release();
      } catch (const std::exception&) {
        // The threads went to somebody else.
      }
    }).join();
    if (workers.arena != nullptr) {
      [[maybe_unused]] static const int registered = pthread_atfork(leave_before_fork, nullptr, nullptr);
    }
    return workers;
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace compute::cpu
