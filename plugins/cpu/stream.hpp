// SPDX-License-Identifier: Apache-2.0
// Streams: immediate ones, on which work has finished when the call returns, and queued ones, each with a worker
// thread.
#pragma once

#include <compute/plugin.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugins/cpu/base/plan.hpp"
#include "plugins/cpu/command_queue.hpp"

namespace compute::cpu {

class Device;
struct HostWait;

// The kinds of work on a stream other than runs of plans.
struct CopyWork {
  const void* src;
  void* dst;
  int64_t size_bytes;
};

struct FillWork {
  void* dst;
  int64_t size_bytes;
  int32_t pattern_size;
  uint8_t pattern[16];
};

// One thread submits at a time. reached() and sync() may be called from any thread at the same time. Reference counted:
// a queued wait retains the stream that it waits for.
class Stream {
 public:
  static Stream* make_immediate(Device* device);
  // Starts the worker. `spin_ns` is how long the worker, and threads that wait for it, poll before they sleep.
  static Stream* make_queued(Device* device, int64_t spin_ns);

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device* device() const { return device_; }
  bool is_immediate() const { return is_immediate_; }

  void run(const Plan& plan, const compute_plugin_run& run);
  void copy(const CopyWork& work);
  void fill(const FillWork& work);
  void mark(uint64_t number, bool timed);
  // Returns the time of a timed mark and forgets it; if out_ns is NULL it only forgets it. False if there is none.
  bool take_time(uint64_t number, int64_t* out_ns);
  void wait(Stream* other, uint64_t number);

  // Work that is submitted later waits for end_host_wait.
  HostWait* wait_for_host();
  static void end_host_wait(HostWait* wait);

  // Asks running work to end, and fails the stream with CANCELLED. On an immediate stream it only asks the call that is
  // running, which throws CANCELLED, and is safe in a signal handler.
  void cancel();

  // The greatest marked number that has finished. If the stream has failed, it is the last number known to be good, and
  // *out_error is the error; else *out_error is NULL.
  uint64_t reached(compute_error** out_error) const;

  // The same after waiting for `number`, at most timeout_ns.
  uint64_t sync(uint64_t number, int64_t timeout_ns, compute_error** out_error);

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release();

  // Lets the worker end after the queued work.
  void finish();
  bool has_finished() const { return finished_.load(std::memory_order_acquire); }
  void join();

  // In the child after fork(): the worker does not exist any more, and its current work is lost.
  void forked();

 private:
  struct Command;

  Stream(Device* device, bool is_immediate, int64_t spin_ns);
  ~Stream();

  void work();
  bool is_newly_cancelled() const;
  void fail_if_cancelled();
  void await(HostWait* wait);
  void execute(const Command& command);
  template <class F>
  void run_now(const F& f);
  void fail(compute_error_code code, std::string_view message) noexcept;
  void throw_if_failed() const;
  void publish(uint64_t number, bool timed);
  void wake_waiters();
  bool is_settled(uint64_t number) const;
  // False after a time-out.
  bool wait_until_settled(uint64_t number, int64_t timeout_ns);
  template <class F>
  void submit(int64_t size_bytes, const F& fill_in);

  Device* const device_;
  const bool is_immediate_;
  const int64_t spin_ns_;
  std::atomic<int32_t> references_{1};
  std::atomic<uint64_t> reached_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> finishing_{false};
  std::atomic<bool> finished_{false};
  std::atomic<bool> cancel_{false};

  CommandQueue queue_;
  std::thread worker_;

  mutable std::mutex mutex_;  // guards the members below, and both sleeps
  std::condition_variable work_ready_;
  std::condition_variable progress_;
  std::atomic<bool> worker_sleeps_{false};
  std::atomic<int32_t> waiters_{0};
  compute_error_code error_code_ = COMPUTE_OK;
  std::string error_message_;
  struct MarkTime {
    uint64_t number;
    int64_t ns;  // once the mark is reached
  };
  std::deque<MarkTime> times_;
};

}  // namespace compute::cpu
