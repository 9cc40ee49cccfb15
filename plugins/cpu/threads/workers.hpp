// SPDX-License-Identifier: Apache-2.0
// oneTBB's threads. They are created here, by a thread of the plugin. So they receive none of the program's signals, a
// system that grants no threads is detected before oneTBB relies on them, and oneTBB's own allocator is not loaded into
// the process.
#pragma once

#include <tbb/task_arena.h>

#include <cstdint>

namespace compute::cpu {

struct Workers {
  tbb::task_arena* arena = nullptr;  // NULL: no threads can be created now
  bool are_started = false;          // all of them; otherwise oneTBB creates the others from threads that bring work
};

// An arena of `threads` threads, including those that bring work; of fewer if the system grants no more.
Workers start_workers(int32_t threads) noexcept;

}  // namespace compute::cpu
