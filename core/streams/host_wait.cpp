// SPDX-License-Identifier: Apache-2.0
#include "core/streams/host_wait.hpp"

#include <fmt/format.h>

namespace compute {

HostWait::HostWait(Timeline& timeline) : device_(&timeline.device) {
  if (!is_possible(timeline)) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("streams of {} do not wait for the host", device_->name))
        .on_device(device_->name);
  }
  device_->check(device_->table.stream_wait_host(timeline.plugin_stream, &wait_));
  timeline.times.separate();
}

void HostWait::signal() noexcept {
  if (const uint64_t wait = std::exchange(wait_, 0); wait != 0) device_->table.signal_host_wait(wait);
}

}  // namespace compute
