// SPDX-License-Identifier: Apache-2.0
#include "core/streams/submission.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <vector>

#include "core/base/small_vector.hpp"
#include "core/devices/device.hpp"
#include "core/observation/observed.hpp"

namespace compute {
namespace {

// Sorts by address and merges uses of one buffer, so that each lock is taken once and in one order. New memory at the
// end stays there, because no other thread uses it. A use in its right place is not moved, because reading a
// just-written struct as a whole stalls store forwarding.
std::span<Use> merge(std::span<Use> uses) {
  size_t known = uses.size(), count = 0;
  while (known > 0 && uses[known - 1].is_new) --known;
  for (size_t i = 0; i < known; ++i) {  // insertion sort: there are two of them
    if (count == i && (i == 0 || uses[i - 1].hazards < uses[i].hazards)) {
      ++count;
      continue;
    }
    const Use use = uses[i];
    size_t at = count;
    for (; at > 0 && uses[at - 1].hazards > use.hazards; --at) uses[at] = uses[at - 1];
    if (at > 0 && uses[at - 1].hazards == use.hazards) {
      for (size_t j = at; j < count; ++j) uses[j] = uses[j + 1];
      Use& same = uses[at - 1];
      same.covers = same.write && use.write && (same.covers || use.covers);
      same.write |= use.write;
      continue;
    }
    uses[at] = use;
    ++count;
  }
  if (count == known) return uses;
  for (size_t i = known; i < uses.size(); ++i) uses[count++] = uses[i];
  return uses.first(count);
}

using Dependencies = SmallVector<Access, 8>;

void add(Dependencies& found, const Timeline& own, const Access& access) {
  if (access.timeline == nullptr || access.timeline == &own || access.timeline->has_ended(access.number)) return;
  for (Access& seen : found) {
    if (seen.timeline == access.timeline) {
      seen.number = std::max(seen.number, access.number);
      return;
    }
  }
  found.push_back(access);
}

// Collects the work that a use must follow. The program orders work on untracked timelines, but does not know the
// previous users of the memory.
void collect(Dependencies& found, const Timeline& own, const Use& use) {
  if (own.untracked) {
    if (use.hazards->inherited != nullptr) add(found, own, *use.hazards->inherited);
    return;
  }
  add(found, own, use.hazards->last_write);
  if (!use.write) return;
  add(found, own, use.hazards->last_read);
  for (const Access& read : use.hazards->more_reads) add(found, own, read);
}

bool reads(const Use& use) { return !use.write || !use.covers; }

// The last write of the memory that a use reads, if the write may still turn out to have failed.
bool is_open(const Access& last, const Timeline& own) {
  if (last.timeline == nullptr) return false;
  return last.timeline == &own ? own.is_unsettled(last.number) : !last.timeline->has_reached(last.number);
}

// True iff the use comes after nothing that another timeline may still be doing, and is recorded without allocating.
bool is_settled(const Use& use, const Timeline& own) {
  const auto settled = [&](const Access& access) {
    return access.timeline == &own || access.timeline == nullptr || access.timeline->has_ended(access.number);
  };
  const Hazards& last = *use.hazards;
  if (!settled(last.last_write)) return false;
  if (use.write) return settled(last.last_read) && last.more_reads.empty();
  return last.last_read.timeline == &own || last.last_read.timeline == nullptr;
}

void record(const Use& use, Timeline& timeline, uint64_t number) {
  if (use.is_new && !timeline.untracked) {
    use.hazards->record_first_write(timeline, number);
  } else if (use.write && timeline.untracked) {
    use.hazards->record_untracked_write(timeline, number);
  } else if (use.write) {
    use.hazards->record_write(timeline, number);
  } else {
    use.hazards->record_read(timeline, number);
  }
}

}  // namespace

Submission::Submission(Timeline& timeline, std::span<Use> uses, const char* op, int64_t numbers, int64_t work_bytes)
    : timeline_(timeline), extra_numbers_(static_cast<uint64_t>(numbers - 1)) {
  if (observes(kWatchesWork)) [[unlikely]]
    begin_observed(op);
  const std::span<const Use> merged = merge(uses);
  if (!order_at_once(merged, op)) order_after_others(merged, op);
  timeline_.part_locked(number_ - extra_numbers_ - 1, work_bytes);
  if (unusual_ != nullptr) [[unlikely]]
    mark_begin();
}

// ---- Observed work --------------------------------------------------------------------------------------------------

[[gnu::noinline]] void Submission::begin_observed(const char* op) {
  unusual_ = std::make_unique<Unusual>();
  unusual_->work.reset(begin_work(op, timeline_.device, timeline_.id));
  Work& work = *unusual_->work;
  work.is_immediate = timeline_.immediate;
  work.is_timed = !timeline_.immediate && timeline_.plugin_stream != 0 && observes(kTimesWork) &&
                  timeline_.device.table.has_times();
  if (observes(kNamesRanges)) unusual_->range.open(op);
  if (work.is_timed) extra_numbers_ += 2;
}

[[gnu::noinline]] void Submission::mark_begin() noexcept {
  if (unusual_->work == nullptr) return;
  Work& work = *unusual_->work;
  work.on_host.begin = host_now();
  if (!work.is_timed) return;
  try {
    const uint64_t number = number_ - extra_numbers_;
    work.first = timeline_.times.begin_of_next(number - 1, work.on_host.begin);
    if (work.first != 0) return;
    timeline_.mark_at_locked(number, COMPUTE_PLUGIN_MARK_TIMED);
    work.first = number;
  } catch (...) {
    // The stream has failed, which the next submission will find.
  }
}

// With the timeline locked. Work that was not queued is not recorded.
void Submission::end_observed() noexcept {
  Work* const work = unusual_->work.release();
  work->on_host.end = host_now();
  if (parts_ > 0 && work->first != 0) {
    try {
      timeline_.mark_at_locked(number_, COMPUTE_PLUGIN_MARK_TIMED);
      work->last = number_;
    } catch (...) {
      // As above.
    }
  }
  if (work->last != 0) return timeline_.times.keep(work, work->on_host.end);
  timeline_.times.forget(*work);
  if (parts_ == 0 && !work->op && !work->transfer && !timeline_.immediate) return abandon_work(work);
  record_work(work);
}

// The usual case: one stream, nothing to wait for, nothing failed. Otherwise nothing is locked or recorded on return.
bool Submission::order_at_once(std::span<const Use> uses, const char* op) {
  timeline_.lock.lock();
  if (timeline_.must_throttle() || timeline_.has_unsettled()) {
    timeline_.lock.unlock();
    return false;
  }
  bool settled = true;
  for (const Use& use : uses) {
    if (!use.is_new) use.hazards->lock.lock();
    settled = settled && is_settled(use, timeline_);
  }
  settled = settled && !any_failure();  // checked last: reached work may have failed just before
  if (settled) {
    number_ = timeline_.next(op, numbers());
    for (const Use& use : uses) record(use, timeline_, number_);
  }
  for (const Use& use : uses) {
    if (!use.is_new) use.hazards->lock.unlock();
  }
  if (!settled) timeline_.lock.unlock();
  return settled;
}

namespace {

class BufferLocks {
 public:
  explicit BufferLocks(std::span<const Use> uses) : uses_(uses) {
    for (const Use& use : uses_) use.hazards->lock.lock();
  }
  ~BufferLocks() {
    for (const Use& use : uses_) use.hazards->lock.unlock();
  }
  BufferLocks(const BufferLocks&) = delete;
  BufferLocks& operator=(const BufferLocks&) = delete;

 private:
  const std::span<const Use> uses_;
};

// The locks of the timeline that is submitted to and of those that it comes after, taken in the order of their ids.
class TimelineLocks {
 public:
  explicit TimelineLocks(Timeline& own) : own_(own) {}
  ~TimelineLocks() { unlock(); }
  TimelineLocks(const TimelineLocks&) = delete;
  TimelineLocks& operator=(const TimelineLocks&) = delete;

  void lock() noexcept {
    if (held_) return;
    bool own_locked = false;
    for (Timeline* other : others_) {
      if (!own_locked && own_.id < other->id) {
        own_.lock.lock();
        own_locked = true;
      }
      other->lock.lock();
    }
    if (!own_locked) own_.lock.lock();
    held_ = true;
  }

  void unlock() noexcept {
    if (!held_) return;
    keep_own();
    own_.lock.unlock();
  }

  // Leaves the timeline's own lock to the caller.
  void keep_own() noexcept {
    for (Timeline* other : others_) other->lock.unlock();
    held_ = false;
  }

  bool cover(const Timeline& other) const noexcept {
    return std::find(others_.begin(), others_.end(), &other) != others_.end();
  }

  // Locked together with the rest from the next attempt on.
  void add(Timeline& other) {
    unlock();
    others_.push_back(&other);
    std::sort(others_.begin(), others_.end(), [](const Timeline* a, const Timeline* b) { return a->id < b->id; });
  }

 private:
  Timeline& own_;
  SmallVector<Timeline*, 4> others_;
  bool held_ = false;
};

// The failure because of which the buffer of a use has no values; NULL if it has values.
const Failure* poison_of(const Use& use) {
  const Access& last = use.hazards->last_write;
  return last.timeline != nullptr && any_failure() ? last.timeline->poison(last.number) : nullptr;
}

// A dependency, with the mark that represents it.
struct Ordered {
  Timeline* timeline = nullptr;
  uint64_t number = 0;
  uint64_t mark = 0;
};

// Whether work of `own` can only come after `access` by waiting on the host: it is another plugin's, or runs as it is
// called.
bool is_waited_for_on_host(const Access& access, const Timeline& own) {
  const Timeline& other = *access.timeline;
  const bool same_plugin =
      other.device.plugin == own.device.plugin && other.plugin_stream != 0 && own.plugin_stream != 0;
  return !same_plugin || own.immediate;
}

}  // namespace

// What the uses read and it is unknown whether it has values. Throws if it is known that something has none. Called
// with the buffers locked.
SmallVector<Access, 8> Submission::look_at_contents(std::span<const Use> uses) {
  SmallVector<Access, 8> sources;
  if (unusual_) unusual_->overwritten.clear();
  // In this order: the outcome of work that the first check finds ended is visible to the second.
  for (const Use& use : uses) {
    const Access last = use.hazards->last_write;
    if (!is_open(last, timeline_)) continue;
    if (reads(use)) {
      sources.push_back(last);
    } else {
      note_overwritten(use);
    }
  }
  for (const Use& use : uses) {
    const Failure* failure = poison_of(use);
    if (failure == nullptr) continue;
    if (reads(use)) throw_failure(*failure);
    note_overwritten(use);
  }
  return sources;
}

void Submission::note_overwritten(const Use& use) {
  if (!unusual_) unusual_ = std::make_unique<Unusual>();
  std::vector<Unusual::Place>& places = unusual_->overwritten;
  if (places.empty()) unusual_->exceptions = std::uncaught_exceptions();
  if (places.empty() || places.back().hazards != use.hazards) places.push_back({use.hazards, use.hazards->last_write});
}

// Nothing was queued. The buffers keep their previous writers, and later work stays ordered after everything that this
// submission was ordered after.
void Submission::keep_contents() noexcept {
  for (const Unusual::Place& place : unusual_->overwritten) {
    const std::lock_guard guard(place.hazards->lock);
    place.hazards->last_write = place.last_write;
    if (place.hazards->last_read.timeline == nullptr) place.hazards->record_read(timeline_, number_);
  }
}

// Records nothing before all waits are in the stream, because work that a record replaces counts as waited
// for.
void Submission::order_after_others(std::span<const Use> uses, const char* op) {
  TimelineLocks locks(timeline_);
  SmallVector<Ordered, 8> ordered;  // these are waited for, or will never end
  const auto order_of = [&](const Access& access) {
    return std::find_if(ordered.begin(), ordered.end(), [&](const Ordered& before) {
      return before.timeline == access.timeline && before.number >= access.number;
    });
  };
  const auto is_ordered = [&](const Access& access) { return order_of(access) != ordered.end(); };
  for (;;) {
    if (timeline_.must_throttle()) {
      locks.unlock();
      timeline_.throttle();
    }
    locks.lock();
    timeline_.require_healthy();
    Dependencies dependencies, unordered;
    {
      const BufferLocks buffers(uses);
      for (const Use& use : uses) collect(dependencies, timeline_, use);
      const SmallVector<Access, 8> sources = look_at_contents(uses);
      // The program orders the work of an untracked timeline. Core still makes a mark to learn how the work that it
      // reads from ended.
      if (timeline_.untracked)
        for (const Access& source : sources) add(unordered, timeline_, source);
      if (std::all_of(dependencies.begin(), dependencies.end(), is_ordered) &&
          std::all_of(unordered.begin(), unordered.end(), is_ordered)) {
        timeline_.reserve_sources_locked(sources.size());
        const uint64_t number = timeline_.submitted() + static_cast<uint64_t>(numbers());
        for (const Use& use : uses) record(use, timeline_, number);
        number_ = timeline_.next(op, numbers());
        for (const Access& source : sources) {
          const auto order = order_of(source);
          const uint64_t mark = order != ordered.end() ? order->mark : 0;
          timeline_.depend_locked({number_, source.timeline, source.number, mark});
        }
        locks.keep_own();
        return;
      }
    }
    Access on_host;
    Timeline* unlocked = nullptr;  // one of this plugin that is not locked yet
    for (const Access& access : dependencies) {
      if (is_ordered(access)) continue;
      if (is_waited_for_on_host(access, timeline_)) {
        on_host = access;
      } else if (!locks.cover(*access.timeline)) {
        unlocked = access.timeline;
      }
    }
    for (const Access& access : unordered) {
      if (!is_ordered(access) && !locks.cover(*access.timeline)) unlocked = access.timeline;
    }
    if (on_host.timeline != nullptr) {
      locks.unlock();
      // Whether it failed, and whether that matters here, is looked at again.
      on_host.timeline->require_end(on_host.number);
      ordered.push_back({on_host.timeline, on_host.number, 0});
    } else if (unlocked != nullptr) {
      locks.add(*unlocked);
    } else {
      for (const Access& access : dependencies) {
        if (is_ordered(access)) continue;
        ordered.push_back({access.timeline, access.number, timeline_.wait_for_locked(*access.timeline, access.number)});
      }
      for (const Access& access : unordered) {
        if (is_ordered(access)) continue;
        ordered.push_back({access.timeline, access.number, access.timeline->mark_of_locked(access.number)});
      }
    }
  }
}

void Submission::refuse(compute_error* refusal, const char* op) {
  Device& device = timeline_.device;
  device.note_error(refusal->code);
  Error error = Error::adopt(refusal).on_device(device.name);
  error.with_op(op);
  if (error.code == COMPUTE_ERROR_CANCELLED)
    ++parts_;  // the part that was cancelled may have written some of its results
  if (parts_ > 0) spoil(error);
  throw error;
}

[[gnu::noinline]] void Submission::end_unusual() noexcept {
  if (!unusual_->overwritten.empty() && parts_ == 0 && std::uncaught_exceptions() > unusual_->exceptions) {
    timeline_.ask();  // where a part was queued all the same, the plugin says that the stream has failed
    if (timeline_.failure() == nullptr) keep_contents();
  }
  if (unusual_->work != nullptr) end_observed();
  unusual_.reset();
  if (timeline_.immediate) timeline_.reach_immediately();
  const bool collects = timeline_.times.are_too_many();
  timeline_.lock.unlock();
  if (collects) timeline_.times.collect();
}

Submission::~Submission() {
  if (unusual_ != nullptr) [[unlikely]] {
    end_unusual();
    return;
  }
  if (timeline_.immediate) timeline_.reach_immediately();
  timeline_.lock.unlock();
}

}  // namespace compute
