// SPDX-License-Identifier: Apache-2.0
// Shutdown, exit of the process, and the child of a fork. docs/decisions/0010-ends.md describes the protocols.
#pragma once

#include <cstdint>

struct compute_device;

namespace compute {

// Called after each opening of a device, and whenever a plugin may have loaded a further library: exit() waits for work
// and tells the plugins before it destroys what has been loaded until then. fork() is noticed.
void prepare_for_the_end() noexcept;

// As compute_shutdown; false if work was still queued after `timeout_ns`.
bool shut_down_library(int64_t timeout_ns);

// Called after shutdown when an export of the device's memory has been released. The last one frees the memory.
void give_back_export(compute_device& device) noexcept;

}  // namespace compute
