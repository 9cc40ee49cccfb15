// SPDX-License-Identifier: Apache-2.0
// Timelines: the numbered submissions of streams, and what is known of how far they got.
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
#include "core/base/lock.hpp"

struct compute_device;

namespace compute {

struct Recording;
class Timeline;

// What went wrong. Numbers in (last_good, seen] are named as those that may be at fault. Immortal, since spoilt results
// refer to it.
struct Failure {
  enum class Kind : uint8_t {
    kStream,   // the plugin says that the stream failed: everything behind last_good is lost
    kFault,    // a kernel reported a checked fault: what used its results is lost
    kOwnWords  // the error says all by itself
  };
  const Timeline* timeline = nullptr;
  uint64_t last_good = 0;
  uint64_t seen = 0;
  Kind kind = Kind::kStream;
  std::unique_ptr<compute_error, decltype(&compute_error_free)> error{nullptr, compute_error_free};
  mutable std::atomic<bool> told{false};   // to a caller
  mutable std::atomic<bool> ended{false};  // of the plugin's: nothing that was queued touches memory any more
};

// What a submission reads, as long as it is unknown whether that has values: number `number` of `other`, for submission
// `own`.
struct Source {
  uint64_t own = 0;
  Timeline* other = nullptr;
  uint64_t number = 0;
  uint64_t mark = 0;     // of `other`, not below `number`; 0 on the same timeline
  bool onwards = false;  // everything from `own` on depends on it
};

// The numbers of one stream. Immortal: when its stream goes, the record is recycled for another one of the same device
// and the numbers continue, so that a hazard that names (timeline, number) never dangles.
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

  // 0: work runs in core on the calling thread (cpu without its plugin), or the stream was given back. Whoever uses it
  // without the lock holds a StreamInUse.
  std::atomic<uint64_t> plugin_stream{0};
  std::atomic<bool> immediate{false};          // work is complete when its submission returns
  bool untracked = false;                      // no hazard tracking
  std::atomic<Recording*> recording{nullptr};  // (L) set between compute_graph_begin and _end

  bool has_reached(uint64_t number) const noexcept { return reached_.load(std::memory_order_acquire) >= number; }
  uint64_t submitted() const noexcept { return submitted_.load(std::memory_order_acquire); }
  uint64_t reached() const noexcept { return reached_.load(std::memory_order_acquire); }
  // Why the stream takes no more work; NULL while it does.
  const Failure* failure() const noexcept { return failure_.load(std::memory_order_acquire); }
  // `number` touches no memory any more: it has been reached, or the plugin gave the stream up before it.
  bool has_ended(uint64_t number) const noexcept {
    if (has_reached(number)) return true;
    const Failure* death = death_.load(std::memory_order_acquire);
    return death != nullptr && number > death->last_good && death->ended.load(std::memory_order_acquire);
  }

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
  void reach_immediately() noexcept {
    reached_.store(submitted_.load(std::memory_order_relaxed), std::memory_order_release);
  }

  // (L) Counts an op; not by an atomic addition, which costs more than all else that a number takes.
  void count_op() noexcept { ops_run_.store(ops_run() + 1, std::memory_order_relaxed); }
  int64_t ops_run() const noexcept { return ops_run_.load(std::memory_order_relaxed); }

  // (L) Makes sure that a mark covers `number`, and returns the least such mark.
  uint64_t marked_locked(uint64_t number);

  // (L) For the parts of a submission of several numbers: marks one, in ascending order, and waits for one that is
  // marked.
  // `flags` as of stream_mark.
  void mark_at_locked(uint64_t number, uint32_t flags = 0);
  void wait_locked(uint64_t number);

  // Asks the plugin which marks have been reached, without waiting and without throwing.
  void ask() noexcept;

  // (L) Orders what is submitted here from now on after `number` of `other`, which is locked too. Returns the mark that
  // is waited for, 0 if nothing is. The order says nothing about values: see depend_locked.
  uint64_t wait_for_locked(Timeline& other, uint64_t number);

  // (L) What submissions depend on, of which it is unknown whether it has values. Does not throw after
  // reserve_sources_locked.
  void reserve_sources_locked(size_t count);
  void depend_locked(const Source& source) noexcept;
  // (L) Whether results of `number` of this timeline may yet turn out to be worthless though it is not the stream that
  // fails.
  bool is_unsettled(uint64_t number) const noexcept;
  // Whether any number is so: then submissions note what they read.
  bool has_unsettled() const noexcept { return has_unsettled_.load(std::memory_order_acquire); }

  // (L) What `fault`, whose memory `records` keeps, says once the plugin reports that submission `number` of this
  // stream has been reached, `op` reported. It is zeroed then. To be called before the work is queued.
  void expect_fault_locked(uint64_t number, const char* op, compute_plugin_fault* fault,
                           std::shared_ptr<const void> records);

  // COMPUTE_HANG_SECONDS have passed in a wait without progress, and `number` may touch memory yet.
  bool is_hung(uint64_t number) const noexcept { return hung_.load(std::memory_order_acquire) && !has_ended(number); }

  // Waits until `number` has ended, at most `timeout_ns`; false after that, and if the stream hangs. Says nothing about
  // how it ended.
  bool wait_for_end(uint64_t number, int64_t timeout_ns);
  // The same without a limit; throws if the stream hangs.
  void require_end(uint64_t number);
  // The same without a limit, for who releases what `number` uses: false if that may be in use yet, since the stream
  // hangs. A plugin that takes no mark leaves nothing to wait for.
  bool wait_quietly(uint64_t number) noexcept;
  // The same, and throws what made the results of `number` worthless.
  bool wait(uint64_t number, int64_t timeout_ns);
  // The same for a stream as a whole: throws why it takes no more work, or once what spoilt something else of its
  // numbers up to this one.
  bool wait_for_all(uint64_t number, int64_t timeout_ns);
  // Throws what wait_for_all throws, for numbers that have ended already.
  void report(uint64_t number);
  // A failure of this timeline that nobody was told of yet; NULL if there is none.
  const Failure* untold() noexcept;

  // Asks the plugin how far the stream is, without waiting and without throwing.
  void poll() noexcept;

  // Whether the submitter is to be held back, since 4096 submissions are in flight, or to ask how many are.
  bool must_throttle() const noexcept {
    const uint64_t now = submitted_.load(std::memory_order_relaxed);
    return !immediate && (now % kPollEvery == kPollEvery - 1 || now - reached() >= kInFlightLimit);
  }
  // Does so. No timeline is locked by the caller: others may wait for this one meanwhile, and their limits hold.
  void throttle();

  // The plugin gave the stream up: numbers from last_good + 1 on are lost. `ended`: they touch no memory any more. The
  // first failure stays. Consumes `error`.
  void fail(uint64_t last_good, uint64_t seen, compute_error* error, bool ended) noexcept;
  // The results of `number` are worthless, the stream goes on.
  void spoil(uint64_t number, const Error& error) noexcept;
  // The results of `number` are those of a graph that has not run. Throws std::bad_alloc.
  void note_unfilled(uint64_t number);
  // They have got values after all: for a number that was spoilt beforehand.
  void restore(uint64_t number) noexcept;

  // Throws if the timeline has failed: for whoever wants to queue work on it.
  void require_healthy() const;

  // The failure that makes what `number` wrote worthless: its own, or that of something that it read; NULL if none is
  // known.
  const Failure* poison(uint64_t number);

  // "exp", or "submission 7" if that was long ago.
  std::string name_of(uint64_t number) const;

  // (L) The plugin's stream that carries what is submitted from now on.
  void begin_stream(uint64_t stream) noexcept {
    plugin_stream = stream;
    last_mark_.store(0, std::memory_order_release);
  }

  // Destroys the plugin's stream at shutdown; nobody uses the timeline any more.
  void close() noexcept;

  // Gives the stream back once its work is done; the record is recycled.
  void retire() noexcept;

 private:
  struct Wait {
    Timeline* other = nullptr;
    uint64_t number = 0;  // marked there
  };
  struct PendingFault {
    uint64_t number;
    const char* op;
    compute_plugin_fault* fault;
    std::shared_ptr<const void> records;
    bool shares_fault;  // an earlier run with the same record faulted while this one was queued
    compute_plugin_fault shared;
  };
  struct Spoilt {
    uint64_t number;
    const Failure* failure;
    bool told;
  };
  friend class TimelineRecycler;
  friend class StreamInUse;

  // Asks the plugin's stream `stream`, of this timeline.
  compute_error* sync_plugin(uint64_t stream, uint64_t number, int64_t timeout_ns, uint64_t* out_reached) noexcept;
  compute_error* ask_plugin(uint64_t stream, uint64_t* out_reached) noexcept;
  // The same, and takes the answer.
  void sync_with_plugin(uint64_t stream, uint64_t mark, int64_t timeout_ns) noexcept;
  void take_plugin_answer(compute_error* error, uint64_t reached, int64_t timeout_ns) noexcept;
  // Once, at most `timeout_ns`.
  void sync_once(uint64_t stream, uint64_t mark, int64_t timeout_ns) noexcept;
  void give_up() noexcept;
  std::unique_lock<Lock> lock_until(Deadline deadline, uint64_t number);
  void check_faults(uint64_t reached);
  uint64_t settle_sources(uint64_t reached, int64_t timeout_ns);
  void publish(uint64_t reached);
  void take_failure(const Failure* failure) noexcept;
  void note_end(const Failure& death) noexcept;
  void spoil_by(uint64_t number, const Failure* failure);
  void note_unsettled_locked() noexcept;
  // Everything submitted is settled: what is left is of submissions that never came.
  void forget_sources() noexcept;

  static constexpr uint64_t kInFlightLimit = 4096;
  static constexpr uint64_t kPollEvery = 256;

  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> reached_{0};
  std::atomic<int64_t> ops_run_{0};
  std::atomic<const Failure*> failure_{nullptr};  // the first one that ended the stream
  std::atomic<const Failure*> death_{nullptr};    // the plugin's
  std::atomic<uint64_t> last_mark_{0};            // of the plugin's stream
  std::atomic<int32_t> users_{0};                 // of plugin_stream without the lock
  std::atomic<bool> hung_{false};                 // its failure is that it made no progress
  std::vector<uint64_t> marks_;                   // (L) ascending, above reached_
  std::vector<Wait> waits_;                       // (L) the latest for each other timeline
  std::array<std::atomic<const char*>, 64> names_{};

  mutable Lock outcome_lock_;          // of what follows; held for look-ups only
  std::vector<Source> sources_;        // by own, ascending
  std::vector<PendingFault> faults_;   // by number, ascending
  std::vector<Spoilt> spoilt_;         // by number, ascending
  std::unique_ptr<Failure> unfilled_;  // the one of all outputs of graphs that have not run
  std::atomic<bool> has_unsettled_{false};
};

// COMPUTE_HANG_SECONDS in nanoseconds, as it was at the first call; COMPUTE_TIMEOUT_NONE without it.
int64_t hang_limit_ns() noexcept;

// "take: index 5 is out of range for an extent of 3"
Error fault_error(const char* op, const compute_plugin_fault& fault, const compute_device& device);

// Throws the error of `failure`, saying which work it was.
[[noreturn]] void throw_failure(const Failure& failure);

// Keeps the plugin's stream of a timeline open while it is used without the timeline's lock.
class StreamInUse {
 public:
  explicit StreamInUse(Timeline& timeline) noexcept : timeline_(timeline) {
    timeline_.users_.fetch_add(1, std::memory_order_seq_cst);
    handle_ = timeline_.plugin_stream.load(std::memory_order_seq_cst);
  }
  StreamInUse(const StreamInUse&) = delete;
  StreamInUse& operator=(const StreamInUse&) = delete;
  ~StreamInUse() { timeline_.users_.fetch_sub(1, std::memory_order_release); }

  // 0: the stream was given back, so all its work has ended.
  uint64_t handle() const noexcept { return handle_; }

 private:
  Timeline& timeline_;
  uint64_t handle_ = 0;
};

// How many reasons there are to look for worthless results: before the first nobody needs to. Failures stay; what a
// graph will fill is one until its first run.
extern std::atomic<int64_t> reasons_to_look;
inline bool any_failure() noexcept { return reasons_to_look.load(std::memory_order_relaxed) != 0; }

// The head of the list that goes on with Timeline::made_before; NULL before the first. Takes no lock.
Timeline* last_timeline_made() noexcept;

// A new stream's record, recycled where possible. `flags` and `priority` as in plugin.h.
Timeline& acquire_timeline(compute_device& device, uint32_t plugin_flags, int32_t priority);

// The timeline that a NULL stream means: the device's, or on immediate devices the calling thread's. After a failure it
// is a new one.
Timeline& default_timeline(compute_device& device);

// Every timeline of a device that has work in flight or may have: for synchronizing a device.
std::vector<Timeline*> timelines_of(const compute_device& device);

}  // namespace compute
