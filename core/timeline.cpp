// SPDX-License-Identifier: Apache-2.0
#include "core/timeline.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "core/device.hpp"
#include "core/fault_records.hpp"

namespace compute {
namespace {

std::atomic<int64_t> faults_pending{0};

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

}  // namespace

// Made under the population's lock.
Timeline::Timeline(uint32_t id, compute_device& device)
    : id(id), device(device), made_before(made_last.load(std::memory_order_relaxed)) {
  made_last.store(this, std::memory_order_release);
}

Timeline* last_timeline_made() noexcept { return made_last.load(std::memory_order_acquire); }

std::atomic<bool> failed_somewhere{false};

void Timeline::reach(uint64_t number) noexcept {
  uint64_t now = reached_.load(std::memory_order_relaxed);
  while (now < number && !reached_.compare_exchange_weak(now, number, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

// A stream that takes no mark may have failed unseen: stream_reached tells.
void Timeline::mark_at_locked(uint64_t number) {
  marks_.reserve(marks_.size() + 1);
  if (compute_error* error = device.table.stream_mark(plugin_stream, number, 0)) {
    ask();
    if (failure() == nullptr) device.check(error);
    compute_error_free(error);
    require_healthy();
  }
  marks_.push_back(number);
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

void Timeline::wait_locked(uint64_t number) {
  if (has_reached(number)) return;
  uint64_t done = 0;
  compute_error* error = device.table.stream_sync(plugin_stream, number, COMPUTE_TIMEOUT_NONE, &done);
  take_plugin_answer(error, done);
  require_healthy();
}

void Timeline::wait_for_locked(Timeline& other, uint64_t number, uint64_t own) {
  if (other.has_reached(number)) return;
  const uint64_t done = reached();
  {
    std::lock_guard guard(waits_lock_);
    for (const CrossWait& wait : waits_) {
      if (wait.other == &other && wait.number >= number) return;  // the stream waits for it already
    }
    std::erase_if(waits_, [&](const CrossWait& wait) {
      return wait.own <= done && wait.other->has_reached(wait.number) && wait.other->failure() == nullptr;
    });
    waits_.reserve(waits_.size() + 1);
  }
  const uint64_t mark = other.marked_locked(number);
  compute_error* error = device.table.stream_wait(plugin_stream, other.plugin_stream, mark);
  if (error != nullptr && error->code == COMPUTE_ERROR_UNSUPPORTED) {
    compute_error_free(error);  // these two cannot wait for each other
    other.wait_locked(mark);
  } else {
    device.check(error);
  }
  std::lock_guard guard(waits_lock_);
  waits_.push_back({own, &other, mark});
}

void Timeline::expect_fault_locked(uint64_t number, const char* op, compute_plugin_fault* fault,
                                   std::shared_ptr<FaultRecords> records) {
  std::lock_guard guard(fault_lock_);
  faults_.push_back({number, op, fault, std::move(records)});
  faults_pending.fetch_add(1, std::memory_order_relaxed);
  has_faults_.store(true, std::memory_order_release);
}

Error fault_error(const char* op, const compute_plugin_fault& fault, const compute_device& device) {
  Error error(COMPUTE_ERROR_KERNEL_FAILED,
              fmt::format("{}: index {} is out of range for an extent of {}", op, fault.value, fault.limit));
  error.op = op;
  error.argument = fault.argument;
  error.device = device.name;
  return error;
}

void Timeline::check_faults(uint64_t reached) noexcept {
  if (!has_faults_.load(std::memory_order_acquire)) return;
  std::vector<PendingFault> finished;
  {
    std::lock_guard guard(fault_lock_);
    for (PendingFault& pending : faults_) {
      if (pending.number <= reached) finished.push_back(std::move(pending));
    }
    std::erase_if(faults_, [&](const PendingFault& pending) { return pending.number <= reached; });
    has_faults_.store(!faults_.empty(), std::memory_order_release);
  }
  faults_pending.fetch_sub(static_cast<int64_t>(finished.size()), std::memory_order_relaxed);
  for (const PendingFault& pending : finished) {
    if (pending.fault->code == COMPUTE_FAULT_NONE) continue;
    // What was queued behind it may have used its results.
    fail(pending.number - 1, submitted(), make_error(fault_error(pending.op, *pending.fault, device)));
    *pending.fault = {};
  }
}

// What this timeline waited for has been reached as well, although nobody asked the other timeline.
void Timeline::check_faults_waited_for(uint64_t reached) noexcept {
  if (faults_pending.load(std::memory_order_relaxed) == 0) return;
  try {
    for (const auto& [timeline, number] : waited_for(reached)) {
      if (timeline != this) timeline->check_faults(number);
    }
  } catch (const std::bad_alloc&) {
    // They are found when somebody waits for the other timelines.
  }
}

void Timeline::take_plugin_answer(compute_error* error, uint64_t reached) noexcept {
  if (error != nullptr) {
    device.note_error(error->code);
    fail(reached, submitted(), error);
  }
  check_faults(reached);
  check_faults_waited_for(reached);
  reach(reached);
}

bool Timeline::wait(uint64_t number, int64_t timeout_ns) {
  if (!has_reached(number)) {
    if (immediate) {
      // The submission is running on another thread, which holds the lock until it is done.
      std::lock_guard guard(lock);
    } else {
      uint64_t mark = 0;
      waiters_.fetch_add(1, std::memory_order_acq_rel);
      try {
        std::lock_guard guard(lock);
        mark = plugin_stream == 0 ? 0 : marked_locked(number);
      } catch (...) {
        waiters_.fetch_sub(1, std::memory_order_acq_rel);
        throw;
      }
      if (mark != 0) {
        uint64_t done = 0;
        compute_error* error = device.table.stream_sync(plugin_stream, mark, timeout_ns, &done);
        take_plugin_answer(error, done);
      }
      waiters_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }
  if (any_failure()) {
    if (const Failure* failure = poison(number)) throw_failure(*failure);
  }
  return has_reached(number);
}

void Timeline::poll() noexcept {
  if (immediate || plugin_stream == 0 || reached() >= submitted()) return;
  waiters_.fetch_add(1, std::memory_order_acq_rel);
  {
    std::unique_lock guard(lock, std::defer_lock);
    if (guard.try_lock() && plugin_stream != 0) {
      try {
        marked_locked(submitted());
      } catch (...) {
        // Asking is enough: the answer below carries the failure.
      }
    }
  }
  if (plugin_stream != 0) ask();
  waiters_.fetch_sub(1, std::memory_order_acq_rel);
}

void Timeline::ask() noexcept {
  uint64_t done = 0;
  compute_error* error = device.table.stream_reached(plugin_stream, &done);
  take_plugin_answer(error, done);
}

void Timeline::throttle_locked() {
  const uint64_t now = submitted();
  if (now % kPollEvery == kPollEvery - 1 && plugin_stream != 0) {
    marked_locked(now);
    ask();
  }
  if (now - reached() < kInFlightLimit || plugin_stream == 0) return;
  const uint64_t mark = marked_locked(now - kInFlightLimit / 2);
  uint64_t done = 0;
  compute_error* error = device.table.stream_sync(plugin_stream, mark, COMPUTE_TIMEOUT_NONE, &done);
  take_plugin_answer(error, done);
  require_healthy();
}

void Timeline::fail(uint64_t last_good, uint64_t seen, compute_error* error) noexcept {
  auto* failure = new (std::nothrow) Failure;
  if (failure == nullptr) {
    compute_error_free(error);
    return;
  }
  failure->timeline = this;
  failure->last_good = last_good;
  failure->seen = std::max(seen, last_good + 1);
  failure->error.reset(error);
  Failure* expected = nullptr;
  failed_somewhere.store(true, std::memory_order_seq_cst);
  if (!failure_.compare_exchange_strong(expected, failure, std::memory_order_acq_rel)) delete failure;
}

void Timeline::require_healthy() const {
  if (const Failure* failure = this->failure()) throw_failure(*failure);
}

// Streams that wait for each other in turn make many ways to one number: each number is looked at once.
std::set<std::pair<Timeline*, uint64_t>> Timeline::waited_for(uint64_t number) {
  std::set<std::pair<Timeline*, uint64_t>> seen;
  std::vector<std::pair<Timeline*, uint64_t>> open{{this, number}};
  while (!open.empty()) {
    const auto [timeline, at] = open.back();
    open.pop_back();
    if (!seen.emplace(timeline, at).second) continue;
    std::lock_guard guard(timeline->waits_lock_);
    for (const CrossWait& wait : timeline->waits_) {
      if (wait.own <= at) open.emplace_back(wait.other, wait.number);
    }
  }
  return seen;
}

const Failure* Timeline::poison(uint64_t number) {
  const auto holds = [](const Timeline& timeline, uint64_t at) {
    const Failure* own = timeline.failure();
    return own != nullptr && at > own->last_good && at <= own->seen ? own : nullptr;
  };
  if (const Failure* own = holds(*this, number)) return own;
  for (const auto& [timeline, at] : waited_for(number)) {
    if (const Failure* failure = holds(*timeline, at)) return failure;
  }
  return nullptr;
}

std::string Timeline::name_of(uint64_t number) const {
  const char* name = submitted() - number < names_.size() ? names_[number % names_.size()].load(std::memory_order_relaxed) : nullptr;
  return name != nullptr ? std::string(name) : fmt::format("submission {}", number);
}

void throw_failure(const Failure& failure) {
  const Timeline& timeline = *failure.timeline;
  const std::string& device = timeline.device.name;
  Error error = Error::adopt(copy_error(failure.error.get()));
  if (error.device.empty()) error.device = device;
  const uint64_t first = failure.last_good + 1;
  if (error.op.empty() && first == failure.seen) error.op = timeline.name_of(first);
  if (error.code != COMPUTE_ERROR_KERNEL_FAILED) {
    const std::string where = first == failure.seen
                                  ? timeline.name_of(first)
                                  : fmt::format("one of {} submissions, {} to {}", failure.seen - failure.last_good,
                                                timeline.name_of(first), timeline.name_of(failure.seen));
    error.message = fmt::format("a stream of {} failed in {}: {}", device, where, error.message);
    const bool severe = error.code == COMPUTE_ERROR_CONTEXT_LOST || error.code == COMPUTE_ERROR_DEVICE_LOST ||
                        error.code == COMPUTE_ERROR_RESTART_REQUIRED;
    if (!severe) error.code = COMPUTE_ERROR_STREAM_FAILED;
  }
  throw error;
}

// ---- Making, finding and recycling -----------------------------------------------------------------------------------

class TimelineRecycler {
 public:
  // Closes the streams of retired timelines whose work is done. Called with the population locked.
  static void sweep(Population& all) noexcept {
    std::erase_if(all.retiring, [&](Timeline* timeline) {
      timeline->poll();
      if (timeline->reached() < timeline->submitted() && timeline->failure() == nullptr) return false;
      if (timeline->waiters_.load(std::memory_order_acquire) != 0) return false;
      std::unique_lock guard(timeline->lock, std::try_to_lock);
      if (!guard.owns_lock()) return false;
      if (timeline->plugin_stream != 0) timeline->device.table.stream_destroy(timeline->plugin_stream);
      timeline->plugin_stream = 0;
      timeline->marks_.clear();
      if (timeline->failure() == nullptr) {
        {
          std::lock_guard waits_guard(timeline->waits_lock_);
          timeline->waits_.clear();
        }
        try {
          all.idle.push_back(timeline);
        } catch (const std::bad_alloc&) {
          // It is not recycled then.
        }
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
    const auto found = std::find_if(all.idle.begin(), all.idle.end(), [&](Timeline* idle) { return &idle->device == &device; });
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
    compute_plugin_stream_options options{};
    options.struct_size = sizeof options;
    options.struct_type = COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS;
    options.flags = plugin_flags;
    options.priority = priority;
    options.host_stream = reinterpret_cast<uint64_t>(timeline);
    uint64_t stream = 0;
    if (compute_error* error = device.table.stream_create(device.plugin_device, &options, &stream)) {
      {
        std::lock_guard guard(all.mutex);
        all.idle.push_back(timeline);
      }
      device.check(error);
    }
    std::lock_guard guard(timeline->lock);
    timeline->plugin_stream = stream;
  }
  return *timeline;
}

void Timeline::close() noexcept {
  std::lock_guard guard(lock);
  if (plugin_stream != 0) device.table.stream_destroy(plugin_stream);
  plugin_stream = 0;
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

// The default timelines of one thread, one per immediate device. At the thread's end their numbers have all been reached.
struct ThreadTimelines {
  struct Entry {
    compute_device* device;
    Timeline* timeline;
    pid_t process;
  };
  std::vector<Entry> entries;

  ~ThreadTimelines() {
    for (const Entry& entry : entries) entry.timeline->retire();
  }
};

thread_local ThreadTimelines thread_timelines;
[[gnu::tls_model("initial-exec")]] constinit thread_local compute_device* last_device = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local Timeline* last_timeline = nullptr;

}  // namespace

Timeline& default_timeline(compute_device& device) {
  if (last_device == &device && (!any_failure() || last_timeline->failure() == nullptr)) return *last_timeline;
  if (device.immediate) {
    for (const auto& entry : thread_timelines.entries) {
      if (entry.device == &device) {
        last_device = &device;
        last_timeline = entry.timeline;
        return *entry.timeline;
      }
    }
    Timeline& timeline = acquire_timeline(device, COMPUTE_PLUGIN_STREAM_IMMEDIATE, 0);
    thread_timelines.entries.push_back({&device, &timeline, getpid()});
    last_device = &device;
    last_timeline = &timeline;
    return timeline;
  }
  static std::mutex mutex;
  static auto* const timelines = new std::vector<std::pair<compute_device*, Timeline*>>;
  std::lock_guard guard(mutex);
  for (auto& [owner, timeline] : *timelines) {
    if (owner == &device) {
      if (timeline->failure() != nullptr) {
        Timeline& fresh = acquire_timeline(device, COMPUTE_PLUGIN_STREAM_DEFAULT, 0);
        timeline->retire();
        timeline = &fresh;
      }
      last_device = &device;
      last_timeline = timeline;
      return *timeline;
    }
  }
  Timeline& timeline = acquire_timeline(device, COMPUTE_PLUGIN_STREAM_DEFAULT, 0);
  timelines->emplace_back(&device, &timeline);
  last_device = &device;
  last_timeline = &timeline;
  return timeline;
}

}  // namespace compute
