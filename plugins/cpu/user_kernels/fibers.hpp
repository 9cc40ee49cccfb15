// SPDX-License-Identifier: Apache-2.0
// The work-items of a group that wait for each other: each has a stack, and one thread runs them in turns.
#pragma once

#include <cstdint>

namespace compute::cpu {

// The most work-items that run_together takes.
inline constexpr int64_t kMostFibers = 1024;
// The largest frame of an item. The functions that it calls have as much again.
inline constexpr int64_t kMostFiberFrame = 64 << 10;

// Calls item(user, i) for each i in [0, count). Returns when all have returned. The thread has reserved that many.
void run_together(void (*item)(void* user, int64_t index), void* user, int64_t count);

// Called by an item: returns when all items of its group that still run have called it.
void meet();

// Makes stacks for `count` items on this thread, at most kMostFibers. False if out of memory.
bool reserve_fibers(int64_t count) noexcept;

}  // namespace compute::cpu
