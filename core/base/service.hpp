// SPDX-License-Identifier: Apache-2.0
// The one background thread of core: callbacks and waits that must not hold up a caller. Started at first need.
#pragma once

#include <cstdint>
#include <functional>

namespace compute {

// Runs `task` on the service thread, after the tasks given before. Never throws out of the thread; throws here if it
// cannot be queued.
void run_in_background(std::function<void()> task);

// Waits until all tasks have run, at most `timeout_ns`; false after that.
bool drain_background(int64_t timeout_ns) noexcept;

// Whether the caller is inside such a task, which drain_background would wait for.
bool is_background_thread() noexcept;

// In the child after fork(): the thread is gone; a new one is started at the next need.
void forget_background_thread() noexcept;

}  // namespace compute
