// SPDX-License-Identifier: Apache-2.0
// The C interface of streams and events.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "core/base/sized.hpp"
#include "core/interface/about.hpp"
#include "core/process/service.hpp"
#include "core/runner/graph.hpp"
#include "core/streams/stream.hpp"
#include "core/streams/submission.hpp"

using namespace compute;

namespace {

// Waiting, querying and recording events make no sense on a stream whose work is being recorded.
void require_not_recording(const Timeline& timeline, const char* what) {
  if (timeline.recording.load(std::memory_order_relaxed) != nullptr) {
    Error error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{} is not possible while the stream is recording a graph", what));
    note_recording_error(const_cast<Timeline&>(timeline), error);
    throw error;
  }
}

compute_stream& usable(compute_stream* stream, const char* what) {
  compute_stream& self = checked(stream);
  self.device.require_usable();
  require_not_recording(self.timeline, what);
  return self;
}

}  // namespace

compute_stream::~compute_stream() {
  if (borrowed_) return;
  std::unique_ptr<Recording> unfinished;  // that no caller can end any more
  {
    std::lock_guard guard(timeline.lock);
    unfinished.reset(timeline.recording.exchange(nullptr));
  }
  timeline.retire();
}

void compute_event::keep_time(compute_stream& stream) noexcept {
  stream.retain();
  timed_ = &stream;
}

compute_event::~compute_event() {
  if (timed_ == nullptr) return;
  if (!time_ns_ && timeline.device.health.load() != COMPUTE_HEALTH_FORKED) {
    const StreamInUse stream(timeline);
    if (stream.handle() != 0) compute_error_free(timeline.device.table.mark_time(stream.handle(), number, nullptr));
  }
  release_handle(timed_);
}

int64_t compute_event::time_ns() {
  const std::lock_guard guard(mutex_);
  if (!time_ns_) {
    const StreamInUse stream(timeline);
    if (stream.handle() == 0)
      throw Error(COMPUTE_ERROR_STREAM_FAILED, "the stream of the event failed later; its times are lost");
    int64_t time_ns = 0;
    timeline.device.check(timeline.device.table.mark_time(stream.handle(), number, &time_ns));
    time_ns_ = time_ns;
  }
  return *time_ns_;
}

namespace {

// Makes a separate mark, because an existing one may not be timed.
std::unique_ptr<compute_event> record_timed(compute_stream& stream) {
  Timeline& timeline = stream.timeline;
  if (!stream.device.table.has_times() || timeline.immediate) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("compute_event_record: {} does not support timed events", stream.device.name));
  }
  if (timeline.must_throttle()) timeline.throttle();
  std::lock_guard guard(timeline.lock);
  timeline.require_healthy();
  auto event = std::make_unique<compute_event>(timeline, timeline.next("timed event"));
  timeline.mark_at_locked(event->number, COMPUTE_PLUGIN_MARK_TIMED);
  event->keep_time(stream);
  return event;
}

compute_event& finished_timed(compute_event* event, const char* name) {
  compute_event& self = checked(event);
  if (!self.is_timed()) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("compute_event_elapsed: {} was recorded without COMPUTE_EVENT_TIMED", name));
  }
  self.timeline.wait_for_all(self.number, COMPUTE_TIMEOUT_NONE);
  return self;
}

// On the host's clock.
int64_t host_time_ns(compute_event& event) {
  Device& device = event.timeline.device;
  ClockReading now;
  device.check(device.table.clock(&now));
  return now.on_host(event.time_ns());
}

// Of two events of one device.
int64_t device_time_between(compute_event& from, compute_event& to) {
  Device& device = from.timeline.device;
  ClockReading clock;
  clock.wrap_ns = device.clock_wrap_ns.load(std::memory_order_relaxed);
  if (clock.wrap_ns < 0) {
    device.check(device.table.clock(&clock));
    device.clock_wrap_ns.store(clock.wrap_ns, std::memory_order_relaxed);
  }
  return clock.between(from.time_ns(), to.time_ns());
}

}  // namespace

extern "C" {

compute_error* compute_stream_create(compute_device* device, const compute_stream_options* options,
                                     compute_stream** out_stream) {
  if (out_stream != nullptr) *out_stream = nullptr;
  return guard(about(device), [&] {
    require_not_null(out_stream, "out_stream");
    Device& self = checked(device);
    const Running running;
    self.require_usable();
    compute_stream_options given{};
    if (options != nullptr) given = read_sized(options, "options");
    require_known_flags(given.flags, COMPUTE_STREAM_UNTRACKED, "options");
    if (self.plugin == nullptr) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("streams on {}: {}", self.name, self.no_ops_reason));
    }
    const int32_t priority = std::clamp(given.priority, self.priority_least, self.priority_greatest);
    Timeline& timeline = acquire_timeline(self, 0, priority);
    timeline.untracked = (given.flags & COMPUTE_STREAM_UNTRACKED) != 0;
    *out_stream = new compute_stream(self, timeline);
  });
}

compute_error* compute_device_default_stream(compute_device* device, compute_stream** out_stream) {
  if (out_stream != nullptr) *out_stream = nullptr;
  return guard(about(device), [&] {
    require_not_null(out_stream, "out_stream");
    Device& self = checked(device);
    const Running running;
    self.require_usable();
    *out_stream = new compute_stream(self, default_timeline(self), compute_stream::Borrowed{});
  });
}

void compute_stream_retain(compute_stream* stream) {
  if (stream != nullptr && stream->is_alive()) stream->retain();
}
void compute_stream_release(compute_stream* stream) { release_handle(stream); }
compute_device* compute_stream_device(const compute_stream* stream) {
  return stream != nullptr && stream->is_alive() ? &stream->device : nullptr;
}

compute_error* compute_stream_synchronize(compute_stream* stream) {
  return guard(about(stream), [&] {
    const Running running;
    compute_stream& self = usable(stream, "compute_stream_synchronize");
    const uint64_t number = self.timeline.submitted();
    if (number > 0) self.timeline.wait_for_all(number, COMPUTE_TIMEOUT_NONE);
  });
}

compute_error* compute_stream_wait_for(compute_stream* stream, int64_t timeout_ns, int32_t* out_finished) {
  if (out_finished != nullptr) *out_finished = 0;
  return guard(about(stream), [&] {
    const Running running;
    require_not_null(out_finished, "out_finished");
    if (timeout_ns < 0)
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("timeout_ns is {}; it must not be negative", timeout_ns));
    compute_stream& self = usable(stream, "compute_stream_wait_for");
    const uint64_t number = self.timeline.submitted();
    *out_finished = number == 0 || self.timeline.wait_for_all(number, timeout_ns) ? 1 : 0;
  });
}

compute_error* compute_stream_query(compute_stream* stream, int32_t* out_finished) {
  if (out_finished != nullptr) *out_finished = 0;
  return guard(about(stream), [&] {
    const Running running;
    require_not_null(out_finished, "out_finished");
    compute_stream& self = usable(stream, "compute_stream_query");
    const uint64_t number = self.timeline.submitted();
    self.timeline.poll();
    self.timeline.report(number);
    *out_finished = self.timeline.has_reached(number) ? 1 : 0;
  });
}

// Takes no lock, allocates nothing and logs nothing if the work can be cancelled: a signal handler can call it.
compute_error* compute_stream_cancel(compute_stream* stream) {
  return guard(about(stream), [&] {
    compute_stream& self = checked(stream);
    self.device.require_usable();
    if (!self.device.table.has_cancel()) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED,
                  fmt::format("compute_stream_cancel: {} cannot cancel work", self.device.name));
    }
    const StreamInUse in_plugin(self.timeline);
    if (in_plugin.handle() != 0) self.device.check(self.device.table.stream_cancel(in_plugin.handle()));
    if (!self.timeline.immediate) self.timeline.poll();
  });
}

compute_error* compute_stream_notify(compute_stream* stream, compute_stream_callback callback, void* user_data) {
  return guard(about(stream), [&] {
    const Running running;
    if (callback == nullptr) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "callback is NULL");
    compute_stream& self = usable(stream, "compute_stream_notify");
    Timeline& timeline = self.timeline;
    const uint64_t number = timeline.submitted();
    self.retain();  // keeps the stream alive until its callbacks have run
    try {
      run_in_background([&timeline, number, callback, user_data, stream] {
        compute_error* error = guard([&] {
          if (number > 0) timeline.wait_for_all(number, COMPUTE_TIMEOUT_NONE);
        });
        callback(error, user_data);
        compute_error_free(error);
        compute_stream_release(stream);
      });
    } catch (...) {
      compute_stream_release(stream);
      throw;
    }
  });
}

compute_error* compute_event_record(compute_stream* stream, const compute_event_options* options,
                                    compute_event** out_event) {
  if (out_event != nullptr) *out_event = nullptr;
  return guard(about(stream), [&] {
    const Running running;
    require_not_null(out_event, "out_event");
    compute_stream& self = usable(stream, "compute_event_record");
    compute_event_options given{};
    if (options != nullptr) given = read_sized(options, "options");
    require_known_flags(given.flags, COMPUTE_EVENT_TIMED, "options");
    require_zero(given.reserved, "options");
    if ((given.flags & COMPUTE_EVENT_TIMED) != 0) {
      *out_event = record_timed(self).release();
      return;
    }
    auto event = std::make_unique<compute_event>(self.timeline, self.timeline.submitted());
    if (!self.timeline.immediate && event->number > self.timeline.reached()) {
      std::lock_guard guard(self.timeline.lock);
      self.timeline.require_healthy();
      self.timeline.marked_locked(event->number);
    }
    *out_event = event.release();
  });
}

compute_error* compute_event_wait(compute_event* event, compute_stream* stream) {
  return guard(about(event, stream), [&] {
    const Running running;
    compute_event& self = checked(event);
    compute_stream& waiting = usable(stream, "compute_event_wait");
    Timeline& own = waiting.timeline;
    Timeline& other = self.timeline;
    if (&own == &other || other.has_reached(self.number)) return;
    if (other.has_ended(self.number)) other.require_healthy();
    if (other.device.plugin != own.device.plugin || own.plugin_stream == 0) {
      other.require_end(self.number);
      other.require_healthy();
      return;
    }
    Timeline& first = own.id < other.id ? own : other;
    Timeline& second = own.id < other.id ? other : own;
    std::lock_guard first_guard(first.lock);
    std::lock_guard second_guard(second.lock);
    own.require_healthy();
    if (other.plugin_stream == 0) return;
    // The wait has a number, so that events and synchronisations behind it include it.
    if (own.wait_for_locked(other, self.number) != 0 && !own.immediate) own.next("event wait");
  });
}

compute_error* compute_event_synchronize(compute_event* event) {
  return guard(about(event), [&] {
    compute_event& self = checked(event);
    const Running running;
    if (self.number > 0) self.timeline.wait_for_all(self.number, COMPUTE_TIMEOUT_NONE);
  });
}

compute_error* compute_event_query(compute_event* event, int32_t* out_finished) {
  if (out_finished != nullptr) *out_finished = 0;
  return guard(about(event), [&] {
    require_not_null(out_finished, "out_finished");
    compute_event& self = checked(event);
    const Running running;
    self.timeline.poll();
    self.timeline.report(self.number);
    *out_finished = self.timeline.has_reached(self.number) ? 1 : 0;
  });
}

compute_error* compute_event_elapsed(compute_event* start, compute_event* end, int64_t* out_ns) {
  if (out_ns != nullptr) *out_ns = 0;
  return guard(about(start, end), [&] {
    require_not_null(out_ns, "out_ns");
    const Running running;
    compute_event& from = finished_timed(start, "start");
    compute_event& to = finished_timed(end, "end");
    const bool is_one_clock = &from.timeline.device == &to.timeline.device;
    *out_ns = is_one_clock ? device_time_between(from, to) : host_time_ns(to) - host_time_ns(from);
  });
}

void compute_event_retain(compute_event* event) {
  if (event != nullptr && event->is_alive()) event->retain();
}
void compute_event_release(compute_event* event) { release_handle(event); }

}  // extern "C"
