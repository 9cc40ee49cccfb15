// SPDX-License-Identifier: Apache-2.0
// The times of submissions, as devices measure them.
#pragma once

#include "core/base/deadline.hpp"

namespace compute {

// Waits for queued work on all streams, and hands the times that the devices took to the observers. Takes no lock
// without the limit.
void collect_all_times(Deadline deadline) noexcept;

}  // namespace compute
