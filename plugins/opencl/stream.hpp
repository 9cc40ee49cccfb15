// SPDX-License-Identifier: Apache-2.0
// Streams: an in-order queue each, with an event per mark.
#pragma once

#include <compute/plugin.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "plugins/common/host.hpp"
#include "plugins/opencl/device.hpp"

namespace compute::opencl {

// One thread submits at a time; reached() and sync() may be called from any thread meanwhile.
class Stream {
 public:
  explicit Stream(Device* device);

  Device* device() const { return device_; }
  // For a command: throws if the stream has failed.
  cl_command_queue queue() const;

  void mark(uint64_t number);
  void wait(Stream* other, uint64_t number);
  // The greatest marked number that has finished, or the last one known to be good; *out_error is then the error.
  uint64_t reached(compute_error** out_error);
  uint64_t sync(uint64_t number, int64_t timeout_ns, compute_error** out_error);

  // Where kernels report checked faults; looked at with the next mark.
  cl_mem fault_record();

 private:
  struct Mark {
    uint64_t number;
    Event event;
    std::unique_ptr<compute_plugin_fault> fault;  // filled when `event` has completed
  };

  void settle_locked();
  void fail_locked(compute_error_code code, std::string message, int32_t argument, int64_t native_code);

  Device* const device_;
  Queue queue_;
  Memory fault_;
  bool may_have_fault_ = false;

  mutable std::mutex mutex_;  // of what follows
  std::deque<Mark> marks_;
  uint64_t reached_ = 0;
  std::optional<common::Error> error_;
};

}  // namespace compute::opencl
