// SPDX-License-Identifier: Apache-2.0
// How the library ends: at shutdown, at the process's exit, and in the child of a fork. docs/decisions/0010-ends.md has
// the protocols.
#pragma once

#include <cstdint>

struct compute_device;

namespace compute {

// Called when a device has been opened: from now on exit() drains it.
void prepare_for_the_end() noexcept;

// As compute_shutdown; false where work was still queued after `timeout_ns`.
bool shut_down_library(int64_t timeout_ns);

// After shutdown: an export of the device's memory has come back. The last one takes the memory with it.
void give_back_export(compute_device& device) noexcept;

}  // namespace compute
