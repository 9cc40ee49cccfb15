// SPDX-License-Identifier: Apache-2.0
// Observed work whose times are not known yet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/deadline.hpp"
#include "core/base/lock.hpp"

namespace compute {

class Timeline;
struct Work;

// The observed work of one stream whose times are not known yet. Times are read off the path of those who submit: by
// the background thread once there are many of them, else for a report. (L) is under the timeline's lock.
class PendingTimes {
 public:
  explicit PendingTimes(Timeline& timeline) noexcept : timeline_(timeline) {}
  PendingTimes(const PendingTimes&) = delete;
  PendingTimes& operator=(const PendingTimes&) = delete;

  // (L) The timed mark at the end of submission `before`, if it can serve as the begin of the work that is submitted
  // next, at `now`; else 0.
  uint64_t begin_of_next(uint64_t before, int64_t now) const noexcept;
  // (L) Something other than a submission precedes the next submission.
  void separate() noexcept { end_ = 0; }
  // (L) The stream is a new one of the plugin.
  void begin_stream() noexcept {
    separate();
    never_shares_.store(false);
  }
  // The program has the stream's native handle: its own work may precede any submission.
  void always_separate() noexcept { never_shares_.store(true); }

  // (L) Work whose marks have been made, at `now`. It is recorded once its times are known. Takes it.
  void keep(Work* work, int64_t now) noexcept;
  // (L) The times of its marks are not needed.
  void forget(Work& work) noexcept;
  // (L) Whether too much is kept for the background thread to be waited for.
  bool are_too_many() const noexcept { return kept_ >= kMostKept; }

  // Records the work that has ended. Without the timeline's lock. False if a lock was not free by the deadline.
  bool collect(Deadline deadline = Deadline::max()) noexcept;
  // For collect_reading, whose caller holds it, so that no other thread collects.
  Lock& reading_lock() noexcept { return reading_; }
  bool collect_reading(Deadline deadline) noexcept;

 private:
  struct Queue {
    Work* first = nullptr;
    Work* last = nullptr;

    void push(Work* work) noexcept;
    void append(Queue& other) noexcept;
    Work* pop() noexcept;
  };
  struct End {
    uint64_t number = 0;
    int64_t device_ns = 0;
    bool is_known = false;  // the plugin gave the time
  };

  bool read(Work& work, uint64_t stream) noexcept;

  static constexpr size_t kReadTogether = 2048;
  static constexpr size_t kMostKept = 4096;
  // Work that follows sooner begins when the work before it ends, or when it is submitted.
  static constexpr int64_t kFollowsWithin = 20'000;

  Timeline& timeline_;
  Queue fresh_;                // (L)
  size_t kept_ = 0;            // (L) in `fresh_`
  bool is_scheduled_ = false;  // (L) the background thread will collect
  uint64_t end_ = 0;           // (L) the timed mark after the last work that was kept
  int64_t ended_at_ = 0;       // (L) when it was made
  std::atomic<bool> never_shares_{false};

  Lock reading_;   // guards the members below; before the timeline's lock
  Queue waiting_;  // older than `fresh_`
  End previous_;   // of the work that was read last
};

}  // namespace compute
