// SPDX-License-Identifier: Apache-2.0
// Timelines: the numbered submissions of streams, and what is known of how far they got.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/lock.hpp"
#include "core/memory.hpp"

struct compute_device;

namespace compute {

struct Recording;
class FaultRecords;
class Timeline;

// What went wrong, once per timeline: numbers in (last_good, seen] may have failed.
struct Failure {
  const Timeline* timeline = nullptr;
  uint64_t last_good = 0;
  uint64_t seen = 0;
  std::unique_ptr<compute_error, decltype(&compute_error_free)> error{nullptr, compute_error_free};
};

// The numbers of one stream. Immortal: when its stream goes, the record is recycled for another one of the same device and the
// numbers continue, so that a hazard that names (timeline, number) never dangles.
class Timeline {
 public:
  Timeline(uint32_t id, compute_device& device);
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  const uint32_t id;  // the order in which several timelines are locked
  compute_device& device;
  Timeline* const made_before;  // the one made before this one: a list of all that needs no lock

  // Guards submission to the plugin's stream and the members marked (L).
  Lock lock;

  uint64_t plugin_stream = 0;  // 0: work runs in core on the calling thread (cpu without its plugin)
  std::atomic<bool> immediate{false};  // work is complete when its submission returns
  bool untracked = false;              // no hazard tracking
  std::atomic<Recording*> recording{nullptr};  // (L) set between compute_graph_begin and _end

  bool has_reached(uint64_t number) const noexcept { return reached_.load(std::memory_order_acquire) >= number; }
  uint64_t submitted() const noexcept { return submitted_.load(std::memory_order_acquire); }
  uint64_t reached() const noexcept { return reached_.load(std::memory_order_acquire); }
  const Failure* failure() const noexcept { return failure_.load(std::memory_order_acquire); }

  // (L) The number of the submission that is about to be made; `op` is a string that lives as long as the process.
  // Of several, the last.
  uint64_t next(const char* op, int64_t numbers = 1) noexcept {
    const uint64_t number = submitted_.load(std::memory_order_relaxed) + static_cast<uint64_t>(numbers);
    names_[number % names_.size()].store(op, std::memory_order_relaxed);
    for (int64_t i = 1; i < numbers && i < static_cast<int64_t>(names_.size()); ++i) {
      names_[(number - static_cast<uint64_t>(i)) % names_.size()].store(op, std::memory_order_relaxed);
    }
    submitted_.store(number, std::memory_order_release);
    return number;
  }

  // Everything up to `number` is done, as the plugin reported.
  void reach(uint64_t number) noexcept;
  // (L) The submission that was just made on an immediate stream is done.
  void reach_immediately() noexcept { reached_.store(submitted_.load(std::memory_order_relaxed), std::memory_order_release); }

  // (L) Counts an op; not by an atomic addition, which costs more than all else that a number takes.
  void count_op() noexcept { ops_run_.store(ops_run() + 1, std::memory_order_relaxed); }
  int64_t ops_run() const noexcept { return ops_run_.load(std::memory_order_relaxed); }

  // (L) Makes sure that a mark covers `number`, and returns the least such mark.
  uint64_t marked_locked(uint64_t number);

  // (L) For the parts of a submission of several numbers: marks one, in ascending order, and waits for one that is marked.
  void mark_at_locked(uint64_t number);
  void wait_locked(uint64_t number);

  // Asks the plugin which marks have been reached, without waiting and without throwing.
  void ask() noexcept;

  // (L) Orders what is submitted here from now on, from number `own` on, after `number` of `other`, which is locked too, and remembers
  // it.
  void wait_for_locked(Timeline& other, uint64_t number, uint64_t own);

  // (L) What `fault`, one of `records`, says once submission `number` has been reached, `op` reported. It is zeroed then.
  void expect_fault_locked(uint64_t number, const char* op, compute_plugin_fault* fault, std::shared_ptr<FaultRecords> records);

  // Waits until `number` has been reached, at most `timeout_ns`; false after that. Throws what made work up to `number` fail.
  bool wait(uint64_t number, int64_t timeout_ns);

  // Asks the plugin how far the stream is, without waiting and without throwing.
  void poll() noexcept;

  // (L) Holds the submitter back while more than 4096 submissions are in flight, and asks at times how many are.
  bool must_throttle() const noexcept {
    const uint64_t now = submitted_.load(std::memory_order_relaxed);
    return !immediate && (now % kPollEvery == kPollEvery - 1 || now - reached() >= kInFlightLimit);
  }
  void throttle_locked();

  // Records a failure; the first one stays. Consumes `error`.
  void fail(uint64_t last_good, uint64_t seen, compute_error* error) noexcept;

  // Throws if the timeline has failed: for whoever wants to queue work on it.
  void require_healthy() const;

  // The failure that makes what `number` wrote worthless: its own window's, or that of something it waited for; NULL if none.
  const Failure* poison(uint64_t number);


  // "exp", or "submission 7" if that was long ago.
  std::string name_of(uint64_t number) const;

  // Destroys the plugin's stream at shutdown; nobody uses the timeline any more.
  void close() noexcept;

  // Gives the stream back once its work is done; the record is recycled.
  void retire() noexcept;

 private:
  struct CrossWait {
    uint64_t own = 0;  // submissions from this number on come after …
    Timeline* other = nullptr;
    uint64_t number = 0;  // … this one
  };
  struct PendingFault {
    uint64_t number;
    const char* op;
    compute_plugin_fault* fault;
    std::shared_ptr<FaultRecords> records;
  };
  friend class TimelineRecycler;

  void take_plugin_answer(compute_error* error, uint64_t reached) noexcept;
  void check_faults(uint64_t reached) noexcept;
  void check_faults_waited_for(uint64_t reached) noexcept;

  // This (timeline, number) and all that it was ordered after, by way of others too.
  std::set<std::pair<Timeline*, uint64_t>> waited_for(uint64_t number);

  static constexpr uint64_t kInFlightLimit = 4096;
  static constexpr uint64_t kPollEvery = 256;

  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> reached_{0};
  std::atomic<int64_t> ops_run_{0};
  std::atomic<Failure*> failure_{nullptr};
  std::atomic<int32_t> waiters_{0};
  std::vector<uint64_t> marks_;   // (L) ascending, above reached_
  Lock waits_lock_;
  std::vector<CrossWait> waits_;
  std::array<std::atomic<const char*>, 64> names_{};
  Lock fault_lock_;
  std::vector<PendingFault> faults_;
  std::atomic<bool> has_faults_{false};
};

// "take: index 5 is out of range for an extent of 3"
Error fault_error(const char* op, const compute_plugin_fault& fault, const compute_device& device);

// Throws the error of `failure`, saying which work it was.
[[noreturn]] void throw_failure(const Failure& failure);

// True once any timeline of the process has failed: before, nobody needs to look for poison.
extern std::atomic<bool> failed_somewhere;
inline bool any_failure() noexcept { return failed_somewhere.load(std::memory_order_relaxed); }

// The head of the list that goes on with Timeline::made_before; NULL before the first. Takes no lock.
Timeline* last_timeline_made() noexcept;

// A new stream's record, recycled where possible. `flags` and `priority` as in plugin.h.
Timeline& acquire_timeline(compute_device& device, uint32_t plugin_flags, int32_t priority);

// The timeline that a NULL stream means: the device's, or on immediate devices the calling thread's. After a failure it is a new one.
Timeline& default_timeline(compute_device& device);

// Every timeline of a device that has work in flight or may have: for synchronizing a device.
std::vector<Timeline*> timelines_of(const compute_device& device);

}  // namespace compute
