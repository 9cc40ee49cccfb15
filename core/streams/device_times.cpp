// SPDX-License-Identifier: Apache-2.0
#include "core/streams/device_times.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "core/observation/observed.hpp"
#include "core/observation/work.hpp"
#include "core/selection/device.hpp"
#include "core/streams/timeline.hpp"

namespace compute {
namespace {

constexpr size_t kCollectFrom = 32;  // so that the plugin is asked once for many

// The relation of a device's clock to the host's. It is read anew before the clocks have drifted apart.
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
    const int64_t shift = relation.reading.host_ns - relation.reading.device_ns;
    span.begin += shift;
    span.end += shift;
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

// Whether the plugin gave both times.
bool Timeline::read_times_locked(Work& work) noexcept {
  compute_error* first = device.table.mark_time(plugin_stream, work.first, &work.on_device.begin);
  compute_error* last = device.table.mark_time(plugin_stream, work.last, &work.on_device.end);
  const bool failed = first != nullptr || last != nullptr;
  compute_error_free(first);
  compute_error_free(last);
  try {
    return !failed && clocks().to_host(device, work.on_device);
  } catch (...) {
    return false;
  }
}

void Timeline::keep_for_times_locked(Work* work) noexcept {
  try {
    timed_.push_back(work);
  } catch (...) {
    forget_times_locked(*work);
    record_work(work);
    return;
  }
  if (timed_.size() < collect_at_) return;
  ask();
  collect_times_locked();
}

// The plugin may discard them.
void Timeline::forget_times_locked(Work& work) noexcept {
  work.is_timed = false;
  for (const uint64_t number : {work.first, work.last}) {
    if (number != 0) compute_error_free(device.table.mark_time(plugin_stream, number, nullptr));
  }
}

void Timeline::collect_times_locked() noexcept {
  size_t done = 0;
  for (; done < timed_.size(); ++done) {
    Work& work = *timed_[done];
    const bool reached = has_reached(work.last);
    if (!reached && !has_ended(work.last) && failure() == nullptr) break;
    if (!reached || plugin_stream == 0 || !read_times_locked(work)) work.is_timed = false;
    record_work(&work);
  }
  timed_.erase(timed_.begin(), timed_.begin() + static_cast<std::ptrdiff_t>(done));
  collect_at_ = std::max(kCollectFrom, 2 * timed_.size());
}

void collect_all_times(Deadline deadline) noexcept {
  for (Timeline* timeline = last_timeline_made(); timeline != nullptr; timeline = timeline->made_before) {
    if (timeline->immediate || timeline->device.health.load() == COMPUTE_HEALTH_FORKED) continue;
    const uint64_t number = timeline->submitted();
    try {
      timeline->wait_for_end(number, left_until(deadline));
    } catch (...) {
      // Its failure is for whoever waits for results.
    }
    if (!timeline->lock.try_lock_until(deadline)) continue;
    const std::lock_guard guard(timeline->lock, std::adopt_lock);
    timeline->collect_times_locked();
  }
}

}  // namespace compute
