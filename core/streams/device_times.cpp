// SPDX-License-Identifier: Apache-2.0
#include "core/streams/device_times.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "core/devices/device.hpp"
#include "core/observation/observed.hpp"
#include "core/observation/work.hpp"
#include "core/process/service.hpp"
#include "core/streams/pending_times.hpp"
#include "core/streams/timeline.hpp"

namespace compute {
namespace {

// The relation of a device's clock to the host's. It is re-read before the clocks drift apart.
class Clocks {
 public:
  bool to_host(const Device& device, TimeSpan& span) {
    const std::lock_guard guard(mutex_);
    Relation& relation = relations_[&device];
    const int64_t now = host_now();
    if (relation.read_at == 0 || now - relation.read_at > kFreshFor) {
      if (compute_error* error = device.table.clock(&relation.reading)) {
        compute_error_free(error);
        return false;
      }
      relation.read_at = host_now();
    }
    span.begin = relation.reading.on_host(span.begin);
    span.end = relation.reading.on_host(span.end);
    return true;
  }

 private:
  struct Relation {
    ClockReading reading;
    int64_t read_at = 0;
  };
  static constexpr int64_t kFreshFor = 200'000'000;

  std::mutex mutex_;
  std::unordered_map<const Device*, Relation> relations_;
};

Clocks& clocks() {
  static auto* const immortal = new Clocks;
  return *immortal;
}

}  // namespace

// ---- Work whose times are not known ---------------------------------------------------------------------------------

void PendingTimes::Queue::push(Work* work) noexcept {
  (last != nullptr ? last->next : first) = work;
  last = work;
}

void PendingTimes::Queue::append(Queue& other) noexcept {
  if (other.first == nullptr) return;
  (last != nullptr ? last->next : first) = other.first;
  last = other.last;
  other = {};
}

Work* PendingTimes::Queue::pop() noexcept {
  Work* const work = first;
  first = work->next;
  if (first == nullptr) last = nullptr;
  return work;
}

// If the mark has been reached, the device may have been idle since, and only a new mark shows when work begins.
uint64_t PendingTimes::begin_of_next(uint64_t before, int64_t now) const noexcept {
  const bool follows = end_ != 0 && end_ == before && now - ended_at_ < kFollowsWithin;
  return follows && !never_shares_.load(std::memory_order_relaxed) && !timeline_.has_reached(end_) ? end_ : 0;
}

void PendingTimes::keep(Work* work, int64_t now) noexcept {
  end_ = work->last;
  ended_at_ = now;
  fresh_.push(work);
  if (++kept_ < kReadTogether || is_scheduled_) return;
  try {
    run_in_background([this] {
      timeline_.ask();
      collect();
    });
    is_scheduled_ = true;
  } catch (...) {
    // Tried again with the next.
  }
}

// The plugin may discard them. Others need the mark that is the end of the work before.
void PendingTimes::forget(Work& work) noexcept {
  work.is_timed = false;
  for (const uint64_t number : {work.first, work.last}) {
    if (number != 0 && number != end_)
      compute_error_free(timeline_.device.table.mark_time(timeline_.plugin_stream, number, nullptr));
  }
}

// Whether the plugin gave both times. Each is read once.
bool PendingTimes::read(Work& work, uint64_t stream) noexcept {
  const Device& device = timeline_.device;
  TimeSpan& span = work.on_device;
  const bool is_shared = work.first == previous_.number;
  bool failed = is_shared && !previous_.is_known;
  compute_error* first = nullptr;
  if (is_shared) {
    span.begin = previous_.device_ns;
  } else {
    first = device.table.mark_time(stream, work.first, &span.begin);
  }
  compute_error* last = device.table.mark_time(stream, work.last, &span.end);
  previous_ = {work.last, span.end, last == nullptr};
  failed = failed || first != nullptr || last != nullptr;
  compute_error_free(first);
  compute_error_free(last);
  try {
    if (failed || !clocks().to_host(device, span)) return false;
  } catch (...) {
    return false;
  }
  // Work begins no earlier than it is submitted, except where the error of the clocks puts that after its end.
  if (is_shared && work.on_host.begin < span.end) span.begin = std::max(span.begin, work.on_host.begin);
  return true;
}

bool PendingTimes::collect_reading(Deadline deadline) noexcept {
  const StreamInUse stream(timeline_);
  if (!timeline_.lock.try_lock_until(deadline)) return false;
  waiting_.append(fresh_);
  kept_ = 0;
  is_scheduled_ = false;
  timeline_.lock.unlock();
  while (waiting_.first != nullptr) {
    Work& work = *waiting_.first;
    const bool reached = timeline_.has_reached(work.last);
    if (!reached && !timeline_.has_ended(work.last) && timeline_.failure() == nullptr) break;
    if (!reached || stream.handle() == 0 || !read(work, stream.handle())) work.is_timed = false;
    record_work(waiting_.pop());
  }
  return true;
}

bool PendingTimes::collect(Deadline deadline) noexcept {
  if (!reading_.try_lock_until(deadline)) return false;
  const std::lock_guard guard(reading_, std::adopt_lock);
  return collect_reading(deadline);
}

void collect_all_times(Deadline deadline) noexcept {
  for (Timeline* timeline = last_timeline_made(); timeline != nullptr; timeline = timeline->made_before) {
    if (timeline->immediate || timeline->device.health.load() == COMPUTE_HEALTH_FORKED) continue;
    const uint64_t number = timeline->submitted();
    try {
      timeline->wait_for_end(number, left_until(deadline));
    } catch (...) {
      // Waits for results report its failure.
    }
    timeline->times.collect(deadline);
  }
}

}  // namespace compute
