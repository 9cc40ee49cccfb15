// SPDX-License-Identifier: Apache-2.0
// Streams: CUstreams with marks, and the known failures of their work.
#pragma once

#include <compute/plugin.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugins/cuda/device.hpp"

namespace compute::cuda {

/// One thread submits at a time. reached() and sync() may be called from any thread at the same time.
class Stream {
 public:
  Stream(Device& device, int32_t priority);
  /// For a CUstream of the program, which stays open.
  Stream(Device& device, CUstream handle);
  /// Queued work still runs.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() const { return device_; }
  CUstream handle() const { return handle_; }

  /// Throws if the stream has failed.
  void require_good() const {
    if (has_failed_.load(std::memory_order_acquire)) [[unlikely]]
      throw_failure();
  }

  /// Records a launch, so that a failure can name it. `name` lives as long as the device.
  void note_launch(const char* name) noexcept {
    const uint64_t count = launches_.load(std::memory_order_relaxed);
    names_[count % kNames].store(name, std::memory_order_relaxed);
    launches_.store(count + 1, std::memory_order_relaxed);
  }

  void mark(uint64_t number, bool timed);
  /// Returns the time of a timed mark that has been reached and forgets it. With NULL it only forgets the time, whether
  /// the mark has been reached or not.
  void take_time(uint64_t number, int64_t* out_ns);
  void wait(Stream& other, uint64_t number);

  /// The greatest marked number that has finished. If the stream has failed and queued work no longer accesses memory,
  /// it is the last number known to be good, and *out_error is the error; else *out_error is NULL.
  uint64_t reached(compute_error** out_error);
  /// The same after waiting for `number`, at most timeout_ns.
  uint64_t sync(uint64_t number, int64_t timeout_ns, compute_error** out_error);

  /// What its launches share. The record is for faults of runs that have no record; it is checked with each mark that
  /// finishes.
  const LaunchMemory& memory() const { return memory_; }
  /// Also checks the fault record of a graph, as long as the graph owns it.
  void watch(const std::shared_ptr<const LaunchMemory>& memory);

  /// The error for a result of a call on this stream, with the work that may be at fault.
  Error failure(CUresult result, const char* what);
  /// The same if a part of the submission was already queued. The stream has then failed whatever the error is, because
  /// core takes any other error as a submission that queued nothing. Waits for that part, because core reuses the
  /// memory of failed work.
  Error break_off(Error error);

 private:
  static constexpr size_t kNames = 16;

  struct Mark {
    uint64_t number;
    uint64_t launches;  // recorded before the mark
    CUevent event;
    bool timed = false;
    bool wants_time = false;
  };
  struct MarkTime {
    uint64_t number;
    int64_t time_ns;
  };

  [[noreturn]] void throw_failure() const;
  void poll();
  void retire(size_t count);
  void look_for_faults();
  void fail(Error error) noexcept;
  std::string window() const;
  bool is_settled(uint64_t number, uint64_t* out_reached, compute_error** out_error);

  Device& device_;
  const bool owns_handle_;
  const LaunchMemory memory_;
  CUstream handle_ = nullptr;
  std::atomic<bool> has_failed_{false};
  std::atomic<uint64_t> launches_{0};
  std::array<std::atomic<const char*>, kNames> names_{};

  mutable std::mutex mutex_;  // guards the members below; never held across a call that blocks
  std::deque<Mark> marks_;
  std::vector<Device::EventTime> timed_;  // marks that have been reached and whose times were not read yet
  uint64_t reached_ = 0;
  uint64_t good_launches_ = 0;
  compute_error_code error_code_ = COMPUTE_OK;
  int32_t error_argument_ = -1;
  int64_t error_native_code_ = 0;
  std::string error_message_;
  std::vector<std::weak_ptr<const LaunchMemory>> watched_;

  // Reads times from the driver in batches and without the lock above, so that submitters do not wait.
  void read_times();
  std::mutex times_mutex_;      // guards the members below; taken before the lock above
  std::deque<MarkTime> times_;  // that were not taken yet
  std::vector<Device::EventTime> being_read_;
};

}  // namespace compute::cuda
