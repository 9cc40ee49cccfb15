// SPDX-License-Identifier: Apache-2.0
// oneTBB's threads, which are made here, by a thread of ours: they take none of the program's signals, a system without
// threads to give is found out before oneTBB relies on them, and oneTBB's own allocator stays out of the process.
#pragma once

#include <tbb/task_arena.h>

#include <cstdint>

namespace compute::cpu {

struct Workers {
  tbb::task_arena* arena = nullptr;  // NULL: there are no threads to be had now
  bool are_started = false;          // all of them; otherwise oneTBB makes the others on threads that come with work
};

// An arena of `threads` threads, those that come with work among them; of fewer if the system grants no more.
Workers start_workers(int32_t threads) noexcept;

}  // namespace compute::cpu
