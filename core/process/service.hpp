// SPDX-License-Identifier: Apache-2.0
// The only background thread of core, for callbacks and waits that must not delay a caller. It is started when first
// needed.
#pragma once

#include <cstdint>
#include <functional>

namespace compute {

// Runs `task` on the service thread, after the earlier tasks. Exceptions of tasks do not leave the thread. Throws if
// the task cannot be queued.
void run_in_background(std::function<void()> task);

// Waits until all tasks have run, at most `timeout_ns`; false after that.
bool drain_background(int64_t timeout_ns) noexcept;

// Whether the caller is inside such a task, which drain_background would wait for.
bool is_background_thread() noexcept;

// In the child after fork(): the thread does not exist any more; a new one is started when needed.
void forget_background_thread() noexcept;

}  // namespace compute
