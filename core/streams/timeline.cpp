// SPDX-License-Identifier: Apache-2.0
#include "core/streams/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "core/base/per_thread.hpp"
#include "core/devices/device.hpp"

namespace compute {
namespace {

// All timelines ever made, and those that wait for their last work or for a new stream.
struct Population {
  std::mutex mutex;
  std::vector<std::unique_ptr<Timeline>> all;
  std::vector<Timeline*> retiring;  // stream still open in the plugin
  std::vector<Timeline*> idle;      // ready for a new stream
};

Population& population() {
  static auto* const immortal = new Population;
  return *immortal;
}

std::atomic<Timeline*> made_last{nullptr};

constexpr size_t kMarksKept = 16;

}  // namespace

// Made under the population's lock.
Timeline::Timeline(uint32_t id, compute_device& device)
    : id(id), device(device), made_before(made_last.load(std::memory_order_relaxed)) {
  marks_.reserve(kMarksKept);
  // Read in a call, for whose end a fork waits. It does not wait for a shutdown, which may be the first to ask.
  hang_limit_ns();
  made_last.store(this, std::memory_order_release);
}

Timeline* last_timeline_made() noexcept { return made_last.load(std::memory_order_acquire); }

void Timeline::reach(uint64_t number) noexcept {
  uint64_t now = reached_.load(std::memory_order_relaxed);
  while (now < number &&
         !reached_.compare_exchange_weak(now, number, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

// A stream that refuses a mark may have failed unnoticed: stream_reached reports it. Needs no memory, since work may be
// queued that can only be waited for by the mark.
void Timeline::mark_at_locked(uint64_t number, uint32_t flags) {
  last_mark_.store(number, std::memory_order_release);  // stored first: another thread may see the mark reached at once
  if (compute_error* error = device.table.stream_mark(plugin_stream, number, flags)) {
    ask();
    if (failure() == nullptr) device.check(error);
    compute_error_free(error);
    require_healthy();
  }
  try {
    marks_.push_back(number);
  } catch (const std::bad_alloc&) {
    marks_.back() = number;  // also represents the previous one
  }
}

uint64_t Timeline::marked_locked(uint64_t number) {
  const uint64_t done = reached_.load(std::memory_order_acquire);
  std::erase_if(marks_, [&](uint64_t mark) { return mark <= done; });
  const auto found = std::lower_bound(marks_.begin(), marks_.end(), number);
  if (found != marks_.end()) return *found;
  const uint64_t mark = submitted();
  mark_at_locked(mark);
  return mark;
}

void Timeline::part_locked(uint64_t before, int64_t work_bytes) noexcept {
  if (immediate) return;
  if (last_mark_.load(std::memory_order_relaxed) < before && !has_reached(before)) {
    if (work_bytes <= most_behind - behind_) {
      behind_ += work_bytes;
      return;
    }
    try {
      mark_at_locked(before);
    } catch (...) {
      // The stream has failed, which the next submission will find.
    }
  }
  behind_ = 0;
}

void Timeline::wait_locked(uint64_t number) {
  if (has_reached(number)) return;
  sync_with_plugin(plugin_stream, number, COMPUTE_TIMEOUT_NONE);
  if (!has_reached(number)) require_healthy();
}

uint64_t Timeline::mark_of_locked(uint64_t number) {
  if (has_ended(number)) return 0;
  try {
    return marked_locked(number);
  } catch (const Error&) {
    if (has_ended(number)) return 0;  // it has failed just now
    throw;
  }
}

uint64_t Timeline::wait_for_locked(Timeline& other, uint64_t number) {
  if (other.has_ended(number)) return 0;
  waits_.reserve(waits_.size() + 1);
  const auto known = std::find_if(waits_.begin(), waits_.end(), [&](const Wait& wait) { return wait.other == &other; });
  if (known != waits_.end() && known->number >= number) return known->number;
  const uint64_t mark = other.mark_of_locked(number);
  if (mark == 0) return 0;
  compute_error* error = device.table.stream_wait(plugin_stream, other.plugin_stream, mark);
  if (error != nullptr && error->code == COMPUTE_ERROR_UNSUPPORTED) {
    compute_error_free(error);  // these two cannot wait for each other
    other.sync_with_plugin(other.plugin_stream, mark, COMPUTE_TIMEOUT_NONE);
    if (other.is_hung(mark)) other.require_healthy();
    return mark;
  }
  device.check(error);
  times.separate();
  if (known != waits_.end()) {
    known->number = mark;
  } else {
    waits_.push_back({&other, mark});
  }
  return mark;
}

// The lock may be held for long: by a submission that runs on its thread, or by a plugin that does not return.
std::unique_lock<Lock> Timeline::lock_until(Deadline deadline, uint64_t number) {
  const int64_t limit = hang_limit_ns();
  const bool may_hang = deadline == Deadline::max() && limit != COMPUTE_TIMEOUT_NONE;
  if (may_hang) deadline = deadline_after(limit);
  if (deadline == Deadline::max()) return std::unique_lock(lock);
  if (lock.try_lock_until(deadline)) return {lock, std::adopt_lock};
  if (may_hang) {
    if (!immediate) {
      give_up();
      return {};
    }
    throw Error(COMPUTE_ERROR_STREAM_FAILED,
                fmt::format("a stream of {}: another thread has been submitting {} for {} s "
                            "(COMPUTE_HANG_SECONDS)",
                            device.name, name_of(number), limit / 1'000'000'000))
        .on_device(device.name);
  }
  return {};
}

void Timeline::require_end(uint64_t number) {
  if (!wait_for_end(number, COMPUTE_TIMEOUT_NONE) && is_hung(number)) require_healthy();
}

bool Timeline::wait_quietly(uint64_t number) noexcept {
  try {
    if (wait_for_end(number, COMPUTE_TIMEOUT_NONE)) return true;
  } catch (...) {
    // No caller is left to receive the error.
  }
  return !hung_ && !immediate;
}

bool Timeline::wait_for_end(uint64_t number, int64_t timeout_ns) {
  if (has_ended(number)) return true;
  if (device.health.load(std::memory_order_relaxed) == COMPUTE_HEALTH_FORKED) device.throw_unusable();
  const Deadline deadline = deadline_after(timeout_ns);
  const StreamInUse stream(*this, number);
  uint64_t mark = 0;
  {
    const std::unique_lock guard = lock_until(deadline, number);
    if (!guard.owns_lock()) return false;
    if (immediate) return true;  // the submission that ran on another thread held the lock until it was done
    if (stream.handle() != 0) {
      try {
        mark = marked_locked(number);
      } catch (const Error&) {
        if (!has_ended(number)) throw;
      }
    }
  }
  if (mark != 0) sync_with_plugin(stream.handle(), mark, left_until(deadline));
  return has_ended(number);
}

bool Timeline::wait_for_mark(uint64_t mark, int64_t timeout_ns) {
  if (has_ended(mark)) return true;
  if (device.health.load(std::memory_order_relaxed) == COMPUTE_HEALTH_FORKED) device.throw_unusable();
  const StreamInUse stream(*this, mark);
  if (stream.handle() != 0) sync_with_plugin(stream.handle(), mark, timeout_ns);
  return has_ended(mark);
}

void Timeline::poll() noexcept {
  if (immediate || reached() >= submitted()) return;
  if (device.health.load(std::memory_order_relaxed) == COMPUTE_HEALTH_FORKED) return;
  const StreamInUse stream(*this);
  if (stream.handle() == 0) return;
  {
    std::unique_lock guard(lock, std::defer_lock);
    if (guard.try_lock()) {
      try {
        marked_locked(submitted());
      } catch (...) {
        // Querying is enough: the result below has the failure.
      }
    }
  }
  ask();
}

void Timeline::throttle() {
  const StreamInUse stream(*this);
  uint64_t mark = 0;
  {
    std::lock_guard guard(lock);
    if (immediate || stream.handle() == 0) return;
    const uint64_t now = submitted();
    if (now % kPollEvery == kPollEvery - 1) {
      marked_locked(now);
      ask();
    }
    if (now - reached() < kInFlightLimit) return;
    mark = marked_locked(now - kInFlightLimit / 2);
  }
  sync_with_plugin(stream.handle(), mark, COMPUTE_TIMEOUT_NONE);
}

std::string Timeline::name_of(uint64_t number) const {
  const char* name =
      submitted() - number < names_.size() ? names_[number % names_.size()].load(std::memory_order_relaxed) : nullptr;
  return name != nullptr ? std::string(name) : fmt::format("submission {}", number);
}

// ---- Making, finding and recycling ----------------------------------------------------------------------------------

class TimelineRecycler {
 public:
  // Closes the streams of retired timelines whose work is done. Called with the population locked.
  static void sweep(Population& all) noexcept {
    std::erase_if(all.retiring, [&](Timeline* timeline) {
      if (timeline->device.health.load(std::memory_order_relaxed) == COMPUTE_HEALTH_FORKED) return true;
      timeline->poll();
      if (!timeline->has_ended(timeline->submitted())) return false;
      if (!timeline->times.collect(deadline_after(0))) return false;
      std::unique_lock guard(timeline->lock, std::try_to_lock);
      if (!guard.owns_lock()) return false;
      // Threads that start to use the stream from now on find none; wait for those that have started.
      const uint64_t stream = timeline->plugin_stream.exchange(0, std::memory_order_seq_cst);
      if (timeline->users_.load(std::memory_order_seq_cst) != 0) {
        timeline->plugin_stream.store(stream, std::memory_order_seq_cst);
        return false;
      }
      if (stream != 0) timeline->device.table.stream_destroy(stream);
      timeline->marks_.clear();
      timeline->waits_.clear();
      timeline->forget_sources();
      if (timeline->failure() != nullptr) return true;
      try {
        all.idle.push_back(timeline);
      } catch (const std::bad_alloc&) {
        // It is not recycled then.
      }
      return true;
    });
  }
};

Timeline& acquire_timeline(compute_device& device, uint32_t plugin_flags, int32_t priority) {
  Population& all = population();
  Timeline* timeline = nullptr;
  {
    std::lock_guard guard(all.mutex);
    TimelineRecycler::sweep(all);
    const auto found =
        std::find_if(all.idle.begin(), all.idle.end(), [&](Timeline* idle) { return &idle->device == &device; });
    if (found != all.idle.end()) {
      timeline = *found;
      all.idle.erase(found);
    } else {
      all.all.reserve(all.all.size() + 1);
      all.all.push_back(std::make_unique<Timeline>(static_cast<uint32_t>(all.all.size()), device));
      timeline = all.all.back().get();
    }
  }
  timeline->immediate = (plugin_flags & COMPUTE_PLUGIN_STREAM_IMMEDIATE) != 0;
  timeline->untracked = false;
  if (device.plugin != nullptr) {
    uint64_t stream = 0;
    if (compute_error* error = device.table.stream_create(plugin_flags, priority, &stream)) {
      {
        std::lock_guard guard(all.mutex);
        all.idle.push_back(timeline);
      }
      device.check(error);
    }
    std::lock_guard guard(timeline->lock);
    if (device.entry.info.kind == COMPUTE_DEVICE_KIND_DISCRETE_GPU) timeline->most_behind = int64_t{1} << 30;
    timeline->begin_stream(stream);
  }
  return *timeline;
}

void Timeline::close() noexcept {
  const std::lock_guard reading(times.reading_lock());
  times.collect_reading(Deadline::max());
  const std::lock_guard guard(lock);
  if (const uint64_t stream = plugin_stream.exchange(0)) device.table.stream_destroy(stream);
}

void Timeline::retire() noexcept {
  const InUse in_use;
  if (is_shut_down()) return;
  Population& all = population();
  std::lock_guard guard(all.mutex);
  try {
    all.retiring.push_back(this);
    TimelineRecycler::sweep(all);
  } catch (const std::bad_alloc&) {
    // The stream stays open.
  }
}

std::vector<Timeline*> timelines_of(const compute_device& device) {
  Population& all = population();
  std::lock_guard guard(all.mutex);
  std::vector<Timeline*> found;
  for (const auto& timeline : all.all) {
    if (&timeline->device == &device) found.push_back(timeline.get());
  }
  return found;
}

namespace {

// The default timelines of one thread, one per immediate device. At the thread's end their numbers have all been
// reached.
struct ThreadTimelines {
  struct Entry {
    compute_device* device;
    Timeline* timeline;
  };
  std::vector<Entry> entries;

  ~ThreadTimelines();
};

// One timeline for each device. After a failure it is a new one.
class DeviceTimelines {
 public:
  Timeline& get(compute_device& device) {
    std::lock_guard guard(mutex_);
    for (auto& [owner, timeline] : timelines_) {
      if (owner != &device) continue;
      if (timeline->failure() != nullptr) {
        Timeline& fresh = acquire_timeline(device, 0, 0);
        timeline->retire();
        timeline = &fresh;
      }
      return *timeline;
    }
    timelines_.reserve(timelines_.size() + 1);
    return *timelines_.emplace_back(&device, &acquire_timeline(device, 0, 0)).second;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<compute_device*, Timeline*>> timelines_;
};

[[gnu::tls_model("initial-exec")]] constinit thread_local compute_device* last_device = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local Timeline* last_timeline = nullptr;

ThreadTimelines::~ThreadTimelines() {
  last_device = nullptr;
  last_timeline = nullptr;
  for (const Entry& entry : entries) entry.timeline->retire();
}

}  // namespace

Timeline& default_timeline(compute_device& device) {
  if (last_device == &device && (!any_failure() || last_timeline->failure() == nullptr)) return *last_timeline;
  if (device.immediate) {
    std::vector<ThreadTimelines::Entry>& entries = PerThread<ThreadTimelines>::get().entries;
    for (auto& entry : entries) {
      if (entry.device == &device) {
        if (entry.timeline->failure() != nullptr) {
          Timeline& fresh = acquire_timeline(device, COMPUTE_PLUGIN_STREAM_IMMEDIATE, 0);
          entry.timeline->retire();
          entry.timeline = &fresh;
        }
        last_device = &device;
        last_timeline = entry.timeline;
        return *entry.timeline;
      }
    }
    entries.reserve(entries.size() + 1);
    Timeline& timeline = acquire_timeline(device, COMPUTE_PLUGIN_STREAM_IMMEDIATE, 0);
    entries.push_back({&device, &timeline});
    last_device = &device;
    last_timeline = &timeline;
    return timeline;
  }
  static auto* const timelines = new DeviceTimelines;
  last_timeline = &timelines->get(device);
  last_device = &device;
  return *last_timeline;
}

Timeline& reading_timeline(compute_device& device) {
  static auto* const timelines = new DeviceTimelines;
  return timelines->get(device);
}

}  // namespace compute
