// SPDX-License-Identifier: Apache-2.0
// Streams: one in-order queue each, with one event per mark. The first mark that needs a time gives the stream another
// queue, whose events have times.
#pragma once

#include <compute/plugin.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plugins/common/op/core.hpp"
#include "plugins/opencl/device.hpp"

namespace compute::opencl {

// One thread submits at a time. reached() and sync() may be called from any thread at the same time.
class Stream {
 public:
  explicit Stream(Device* device);

  Device* device() const { return device_; }
  // For a command: throws if the stream has failed. Called while a Submitting exists.
  cl_command_queue queue() const;

  // Exists while a call of core queues commands.
  class Submitting {
   public:
    explicit Submitting(Stream& stream) : stream_(stream) {
      stream_.submitting_.store(true, std::memory_order_seq_cst);
    }
    Submitting(const Submitting&) = delete;
    Submitting& operator=(const Submitting&) = delete;
    ~Submitting() { stream_.submitting_.store(false, std::memory_order_release); }

   private:
    Stream& stream_;
  };

  void mark(uint64_t number, bool timed);
  // The time of a timed mark, which is then forgotten; without `out_ns` it is only forgotten.
  void take_time(uint64_t number, int64_t* out_ns);
  // The queue, which the stream then keeps.
  cl_command_queue share_queue();
  void wait(Stream& other, uint64_t number);
  // The greatest marked number that has finished. A failure is reported only when the work that was queued after it no
  // longer accesses memory: then *out_error is the error, and the result is the last number known to be good.
  uint64_t reached(compute_error** out_error);
  uint64_t sync(uint64_t number, int64_t timeout_ns, compute_error** out_error);

  // A zeroed record on the device for the faults of one run, and its offset. Its contents are copied to `target` before
  // a later mark counts as reached. Without a target a fault makes the stream fail.
  struct FaultSlot {
    cl_mem memory;
    int64_t offset_bytes;
  };
  FaultSlot fault_slot(compute_plugin_fault* target);

  // Dialect::counters of them, which are 0 between launches.
  cl_mem counters();

  // For a partly queued submission: waits until the queued part no longer accesses memory, and fails the stream.
  // Returns the error to throw.
  common::Error break_off(common::Error error);

 private:
  static constexpr int64_t kFaultSlots = 64;  // read back together, at marks or when all are in use

  // Records that are being read back to the host, in pinned memory: drivers wait for copies to other memory.
  struct FaultBatch {
    compute_plugin_fault records[kFaultSlots];
    compute_plugin_fault* targets[kFaultSlots];
    int64_t count;
  };
  struct FreeBatch {
    Device* device = nullptr;
    void operator()(FaultBatch* batch) const;
  };
  using FaultBatches = std::vector<std::unique_ptr<FaultBatch, FreeBatch>>;
  struct Mark {
    uint64_t number;
    Event event;
    Event end;  // of the work before faults are read, if the mark wants a time and there are faults
    bool wants_time;
    FaultBatches faults;  // read when `event` has completed
  };

  struct MarkTime {
    uint64_t number;
    int64_t ns;
  };

  void start_times();
  void read_faults();
  uint64_t settled(compute_error** out_error);
  void settle_locked();
  bool is_over_locked();
  void fail_locked(compute_error_code code, std::string message, int32_t argument, int64_t native_code);

  Device* const device_;
  Queue queue_;
  Memory counters_;
  Memory fault_slots_;
  std::vector<compute_plugin_fault*> fault_targets_;  // of the slots in use
  FaultBatches fault_batches_;                        // for the next mark

  mutable std::mutex mutex_;  // guards the members below
  std::deque<Mark> marks_;
  std::deque<MarkTime> times_;  // that were not taken yet
  FaultBatches spare_batches_;
  uint64_t reached_ = 0;
  std::optional<common::Error> error_;
  Event end_;  // after all work that was queued before `error_` was set
  bool is_over_ = false;
  bool keeps_queue_ = false;  // the program has the queue, or the driver makes none with times
  bool has_times_ = false;    // the queue's events have times

  std::atomic<bool> submitting_{false};
};

}  // namespace compute::opencl
