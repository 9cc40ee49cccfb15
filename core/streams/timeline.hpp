// SPDX-License-Identifier: Apache-2.0
// Timelines: the numbered submissions of streams, and their known progress.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/base/deadline.hpp"
#include "core/base/error.hpp"
#include "core/base/index_place.hpp"
#include "core/base/lock.hpp"
#include "core/streams/pending_times.hpp"

struct compute_device;

namespace compute {

struct Recording;
class Timeline;

// A failure. Numbers in (last_good, seen] are named as possibly at fault. Never freed, because invalid results refer to
// it.
struct Failure {
  enum class Kind : uint8_t {
    kStream,   // the plugin reports that the stream failed: all work after last_good is lost
    kFault,    // a kernel reported a checked fault: its results and what is computed from them have no values
    kOwnWords  // the error's own message is complete
  };
  const Timeline* timeline = nullptr;
  uint64_t last_good = 0;
  uint64_t seen = 0;
  Kind kind = Kind::kStream;
  std::unique_ptr<compute_error, decltype(&compute_error_free)> error{nullptr, compute_error_free};
  mutable std::atomic<bool> told{false};   // to a caller
  mutable std::atomic<bool> ended{false};  // of the plugin: queued work no longer accesses memory
};

// A result that a submission reads while it is unknown whether the result has values: submission `own` reads the result
// of number `number` of `other`.
struct Source {
  uint64_t own = 0;
  Timeline* other = nullptr;
  uint64_t number = 0;
  uint64_t mark = 0;  // of `other`, not below `number`; 0 on the same timeline
};

// The numbers of one stream. Never freed: when its stream is destroyed, the record is reused for another stream of the
// same device and the numbers continue. So a hazard (timeline, number) is always valid.
class Timeline {
 public:
  Timeline(uint32_t id, compute_device& device);
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  const uint32_t id;  // the order in which several timelines are locked
  compute_device& device;
  Timeline* const made_before;  // the timeline made before this one: a list of all that needs no lock

  // Guards submission to the plugin's stream and the members marked (L).
  Lock lock;

  // 0: work runs in core on the calling thread (cpu without its plugin), or the stream was destroyed. Code that uses it
  // without the lock holds a StreamInUse.
  std::atomic<uint64_t> plugin_stream{0};
  std::atomic<bool> immediate{false};          // work is complete when its submission returns
  bool untracked = false;                      // no hazard tracking
  std::atomic<Recording*> recording{nullptr};  // (L) set between compute_graph_begin and _end
  // (L) Bytes of work after a result without a mark: about a millisecond. A mark takes up to 2 us of a GPU, where ops
  // of 10 us would otherwise be slower by a fifth.
  int64_t most_behind = int64_t{16} << 20;
  PendingTimes times{*this};

  bool has_reached(uint64_t number) const noexcept { return reached_.load(std::memory_order_acquire) >= number; }
  uint64_t submitted() const noexcept { return submitted_.load(std::memory_order_acquire); }
  uint64_t reached() const noexcept { return reached_.load(std::memory_order_acquire); }
  // The reason why the stream accepts no more work; NULL if it does.
  const Failure* failure() const noexcept { return failure_.load(std::memory_order_acquire); }
  // `number` no longer accesses memory: it has been reached, or the plugin's stream failed before it.
  bool has_ended(uint64_t number) const noexcept {
    if (has_reached(number)) return true;
    const Failure* failure = this->failure();
    return failure != nullptr && number > failure->last_good && failure->ended.load(std::memory_order_acquire);
  }

  // (L) The number of the next submission, which is about to be made; `op` is a string that lives as long as the
  // process. If it has several numbers, the last one.
  uint64_t next(const char* op, int64_t numbers = 1) noexcept {
    const uint64_t number = submitted_.load(std::memory_order_relaxed) + static_cast<uint64_t>(numbers);
    names_[number % names_.size()].store(op, std::memory_order_relaxed);
    for (int64_t i = 1; i < numbers && i < static_cast<int64_t>(names_.size()); ++i) {
      names_[(number - static_cast<uint64_t>(i)) % names_.size()].store(op, std::memory_order_relaxed);
    }
    submitted_.store(number, std::memory_order_release);
    return number;
  }

  // All work up to `number` has finished, as the plugin reported.
  void reach(uint64_t number) noexcept;
  // (L) The last submission on an immediate stream has finished.
  void reach_immediately() noexcept {
    reached_.store(submitted_.load(std::memory_order_relaxed), std::memory_order_release);
  }

  // (L) Counts an op. Without an atomic addition, which would cost more than everything else that a number needs.
  void count_op() noexcept { ops_run_.store(ops_run() + 1, std::memory_order_relaxed); }
  int64_t ops_run() const noexcept { return ops_run_.load(std::memory_order_relaxed); }

  // (L) Ensures that a mark covers `number`, and returns the least such mark.
  uint64_t marked_locked(uint64_t number);
  // (L) The same; 0 if the number has ended.
  uint64_t mark_of_locked(uint64_t number);

  // (L) For the parts of a submission with several numbers: marks one, in ascending order, and waits for one that is
  // marked. `flags` as in stream_mark.
  void mark_at_locked(uint64_t number, uint32_t flags = 0);
  void wait_locked(uint64_t number);

  // Whether work after `number` is queued, which a wait for this number does not include.
  bool has_work_behind(uint64_t number) const noexcept {
    return !immediate && number < submitted() && last_mark_.load(std::memory_order_acquire) >= number &&
           !has_reached(submitted());
  }
  // (L) Called before the work of a submission that comes after number `before`, and keeps the device about as long as
  // to move `work_bytes`. Marks `before` if a wait for a result without a mark would otherwise wait for much more.
  void part_locked(uint64_t before, int64_t work_bytes) noexcept;

  // Asks the plugin which marks have been reached. Does not wait or throw.
  void ask() noexcept;

  // (L) Orders future submissions here after `number` of `other`, which is locked too. Returns the mark to wait for, 0
  // if there is none. The order does not concern values: see depend_locked.
  uint64_t wait_for_locked(Timeline& other, uint64_t number);

  // (L) The results that submissions depend on and that may have no values. Does not throw after
  // reserve_sources_locked.
  void reserve_sources_locked(size_t count);
  void depend_locked(const Source& source) noexcept;
  // (L) Whether results of `number` of this timeline may still turn out to have no values without a failure of the
  // stream itself.
  bool is_unsettled(uint64_t number) const noexcept;
  // Whether this holds for any number: then submissions record what they read.
  bool has_unsettled() const noexcept { return has_unsettled_.load(std::memory_order_acquire); }

  // (L) Registers `fault`, whose memory `records` keeps: it is read when the plugin reports that submission `number` of
  // this stream has been reached, and then zeroed. `op` and the place of its indices are named in the report. Must be
  // called before the work is queued.
  struct ExpectedFault {
    const char* op;
    std::shared_ptr<const IndexPlace> indices;
    compute_plugin_fault* fault;
    const std::unique_ptr<Error>* words = nullptr;  // says what the fault is, if it is not NULL then
  };
  void expect_fault_locked(uint64_t number, ExpectedFault expected, std::shared_ptr<const void> records);

  // A wait passed COMPUTE_HANG_SECONDS without progress, and `number` may still access memory.
  bool is_hung(uint64_t number) const noexcept { return hung_.load(std::memory_order_acquire) && !has_ended(number); }

  // Waits until `number` has ended, at most `timeout_ns`; false after that, and if the stream hangs. Does not report
  // how it ended.
  bool wait_for_end(uint64_t number, int64_t timeout_ns);
  // The same for a number that is marked. Takes no lock, which a reader may hold while it waits for later work.
  bool wait_for_mark(uint64_t mark, int64_t timeout_ns);
  // The same without a limit; throws if the stream hangs.
  void require_end(uint64_t number);
  // The same without a limit, for callers that release what `number` uses. False if the stream hangs, so that `number`
  // may still use it. If the plugin accepts no mark, there is nothing to wait for.
  bool wait_quietly(uint64_t number) noexcept;
  // The same, but throws the failure because of which the results of `number` have no values.
  bool wait(uint64_t number, int64_t timeout_ns);
  // The same without a limit for the caller's own submission, whose failure no later wait for the stream reports.
  void wait_for_own(uint64_t number);
  // The same for a whole stream: throws the reason why it accepts no more work, or once the failure of results among
  // its numbers up to this one.
  bool wait_for_all(uint64_t number, int64_t timeout_ns);
  // Throws like wait_for_all, for numbers that have already ended.
  void report(uint64_t number);
  // The failure of the stream if no caller has received it, else the first failure of results since the last call. NULL
  // if there is none.
  const Failure* untold() noexcept;

  // Asks the plugin for the progress of the stream. Does not wait or throw.
  void poll() noexcept;

  // Whether the submitter must be held back, because 4096 submissions are in flight, or must query their number.
  bool must_throttle() const noexcept {
    const uint64_t now = submitted_.load(std::memory_order_relaxed);
    return !immediate && (now % kPollEvery == kPollEvery - 1 || now - reached() >= kInFlightLimit);
  }
  // Does so. The caller must not hold the lock of a timeline, because other threads may wait for this one with a time
  // limit.
  void throttle();

  // The plugin's stream has failed: numbers from last_good + 1 on are lost. `ended`: they no longer access memory. The
  // first failure is kept. Consumes `error`.
  void fail(uint64_t last_good, uint64_t seen, compute_error* error, bool ended) noexcept;
  // The results of `number` have no values; the stream continues.
  void spoil(uint64_t number, const Error& error) noexcept;
  // The results of `number` belong to a graph that has not run. Throws std::bad_alloc.
  void note_unfilled(uint64_t number);
  // The results have values now, for a number that was marked as failed beforehand.
  void restore(uint64_t number) noexcept;

  // Throws if the timeline has failed; called before work is queued on it.
  void require_healthy() const;

  // The failure because of which the results of `number` have no values: its own failure, or that of something that it
  // read; NULL if none is known.
  const Failure* poison(uint64_t number);

  // "exp", or "submission 7" if the submission was long ago.
  std::string name_of(uint64_t number) const;

  // (L) The plugin's stream for future submissions.
  void begin_stream(uint64_t stream) noexcept {
    plugin_stream = stream;
    times.begin_stream();
    last_mark_.store(0, std::memory_order_release);
    std::lock_guard guard(outcome_lock_);
    first_ = told_below_ = submitted() + 1;
  }

  // Destroys the plugin's stream at shutdown; the timeline is no longer used.
  void close() noexcept;

  // Destroys the stream when its work is done; the record is reused.
  void retire() noexcept;

 private:
  struct Wait {
    Timeline* other = nullptr;
    uint64_t number = 0;  // marked there
  };
  struct PendingFault {
    uint64_t number;
    const char* op;
    std::shared_ptr<const IndexPlace> indices;
    compute_plugin_fault* fault;
    std::shared_ptr<const void> records;
    const std::unique_ptr<Error>* words = nullptr;
    bool shares_fault = false;  // an earlier run with the same record faulted while this one was queued
    compute_plugin_fault shared{};
    std::shared_ptr<const std::string> scope{};  // in which the work was submitted; NULL outside of any
  };
  struct Spoilt {
    uint64_t number;
    const Failure* failure;
    bool told;  // by a wait for the stream, or its caller knows
  };
  friend class TimelineRecycler;
  friend class StreamInUse;

  // Queries the plugin's stream `stream` of this timeline.
  compute_error* sync_plugin(uint64_t stream, uint64_t number, int64_t timeout_ns, uint64_t* out_reached) noexcept;
  compute_error* ask_plugin(uint64_t stream, uint64_t* out_reached) noexcept;
  // The same, and processes the result.
  void sync_with_plugin(uint64_t stream, uint64_t mark, int64_t timeout_ns) noexcept;
  void take_plugin_answer(compute_error* error, uint64_t reached, int64_t timeout_ns) noexcept;
  // Once, at most `timeout_ns`.
  void sync_once(uint64_t stream, uint64_t mark, int64_t timeout_ns) noexcept;
  void give_up() noexcept;
  std::unique_lock<Lock> lock_until(Deadline deadline, uint64_t number);
  void check_faults(uint64_t reached);
  uint64_t settle_sources(uint64_t reached, int64_t timeout_ns);
  void publish(uint64_t reached);
  void note_end(const Failure& failure) noexcept;
  void spoil_by(uint64_t number, const Failure* failure);
  std::vector<Spoilt>::iterator spoilt_from(uint64_t number) noexcept;
  bool insert_spoilt(const Spoilt& entry);
  void note_unsettled_locked() noexcept;
  // The outcome of all submissions is known: remaining entries belong to submissions that were never made.
  void forget_sources() noexcept;

  static constexpr uint64_t kInFlightLimit = 4096;
  static constexpr uint64_t kPollEvery = 256;

  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> reached_{0};
  std::atomic<int64_t> ops_run_{0};
  std::atomic<const Failure*> failure_{nullptr};
  std::atomic<uint64_t> last_mark_{0};  // of the plugin's stream
  int64_t behind_ = 0;                  // (L) bytes of work after the first submission since the last mark
  std::atomic<int32_t> users_{0};       // of plugin_stream without the lock
  std::atomic<bool> hung_{false};       // its failure is that it made no progress
  std::vector<uint64_t> marks_;         // (L) ascending, above reached_
  std::vector<Wait> waits_;             // (L) the latest for each other timeline
  std::array<std::atomic<const char*>, 64> names_{};

  mutable Lock outcome_lock_;          // guards the members below; held only for look-ups
  std::vector<Source> sources_;        // by own, ascending
  std::vector<PendingFault> faults_;   // by number, ascending
  std::vector<Spoilt> spoilt_;         // by number, ascending
  uint64_t first_ = 0;                 // first number of the present stream; earlier streams had smaller ones
  uint64_t told_below_ = 0;            // waits for the stream do not report entries with smaller numbers
  uint64_t device_told_below_ = 0;     // no wait for the device does
  std::unique_ptr<Failure> unfilled_;  // the failure of all outputs of graphs that have not run
  std::atomic<bool> has_unsettled_{false};
};

// COMPUTE_HANG_SECONDS in nanoseconds, as it was at the first call; COMPUTE_TIMEOUT_NONE without it.
int64_t hang_limit_ns() noexcept;

// "take: index 5 is out of range for axis 0 of extent 3, at indices[1]"; without the place of the indices,
// "take: index 5 is out of range for an extent of 3".
Error fault_error(const char* op, const IndexPlace* indices, const compute_plugin_fault& fault,
                  const compute_device& device);

// Throws the error of `failure`, and names the failed work.
[[noreturn]] void throw_failure(const Failure& failure);

// Keeps the plugin's stream of a timeline open while code uses it without the timeline's lock.
class StreamInUse {
 public:
  explicit StreamInUse(Timeline& timeline) noexcept : timeline_(timeline) {
    timeline_.users_.fetch_add(1, std::memory_order_seq_cst);
    handle_ = timeline_.plugin_stream.load(std::memory_order_seq_cst);
  }
  // The stream on which `number` was submitted. Once the number has ended, the timeline may have a new stream, which
  // knows nothing of it: the handle is 0 then.
  StreamInUse(Timeline& timeline, uint64_t number) noexcept : StreamInUse(timeline) {
    if (timeline.has_ended(number)) handle_ = 0;
  }
  StreamInUse(const StreamInUse&) = delete;
  StreamInUse& operator=(const StreamInUse&) = delete;
  ~StreamInUse() { timeline_.users_.fetch_sub(1, std::memory_order_release); }

  // 0: the stream was destroyed, or the number has ended.
  uint64_t handle() const noexcept { return handle_; }

 private:
  Timeline& timeline_;
  uint64_t handle_ = 0;
};

// The number of reasons to check for results without values; the check is skipped while it is 0. Failures count
// forever; the outputs of a graph count until its first run.
[[gnu::visibility("hidden")]] extern std::atomic<int64_t> reasons_to_look;
inline bool any_failure() noexcept { return reasons_to_look.load(std::memory_order_relaxed) != 0; }

// The head of the list linked by Timeline::made_before; NULL if empty. Takes no lock.
Timeline* last_timeline_made() noexcept;

// The record of a new stream, reused if possible. `flags` and `priority` as in plugin.h.
Timeline& acquire_timeline(compute_device& device, uint32_t plugin_flags, int32_t priority);

// The timeline of a NULL stream: the device's, or on immediate devices the calling thread's. After a failure it is a
// new one.
Timeline& default_timeline(compute_device& device);

// A timeline for copies of results, so that they do not wait for other work on the default timeline.
Timeline& reading_timeline(compute_device& device);

// Every timeline of a device that may have work in flight, for synchronizing a device.
std::vector<Timeline*> timelines_of(const compute_device& device);

}  // namespace compute
