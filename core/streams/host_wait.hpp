// SPDX-License-Identifier: Apache-2.0
// A stream that waits for the host, for work that the host does for a device, as a transfer to another process.
#pragma once

#include <cstdint>
#include <utility>

#include "core/devices/device.hpp"
#include "core/streams/timeline.hpp"

namespace compute {

// Queued work waits from the constructor to signal(). A wait does not say whether the host succeeded: if it did not,
// its owner spoils the submission that the wait belongs to, and then ends the wait.
class HostWait {
 public:
  HostWait() = default;
  // Whether the streams of the device can wait so. `cpu` cannot where a thread runs its work itself.
  static bool is_possible(const Timeline& timeline) noexcept {
    return !timeline.immediate && timeline.device.table.has_host_waits();
  }
  // (L) Work that is submitted to the timeline from now on waits. Throws UNSUPPORTED unless is_possible.
  explicit HostWait(Timeline& timeline);
  HostWait(HostWait&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), wait_(std::exchange(other.wait_, 0)) {}
  HostWait& operator=(HostWait&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(wait_, other.wait_);
    return *this;
  }
  ~HostWait() { signal(); }

  // Ends the wait, on any thread, also if the stream has failed. Does nothing the second time.
  void signal() noexcept;

 private:
  compute_device* device_ = nullptr;
  uint64_t wait_ = 0;
};

}  // namespace compute
