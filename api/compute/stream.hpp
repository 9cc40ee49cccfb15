// SPDX-License-Identifier: Apache-2.0
//
// stream.hpp: streams and events. Include compute.hpp.
#ifndef COMPUTE_STREAM_HPP_
#define COMPUTE_STREAM_HPP_

#include <concepts>

#include "compute/types.hpp"

namespace compute {

class Device;
class Event;

/// Options of a stream.
struct StreamOptions {
  int32_t priority = 0;    ///< 0 is normal, greater is sooner; a hint
  bool untracked = false;  ///< no hazard tracking: the program orders its streams by events itself
};

/// An in-order queue of work. A default-constructed one stands for the default stream of the device that work runs on.
///
/// Threads: any. Handles share one queue.
class Stream : public Reference<compute_stream, compute_stream_retain, compute_stream_release> {
 public:
  using Reference::Reference;
  explicit Stream(const Device& device, const StreamOptions& options = {});
  /// The stream that a default-constructed one stands for, for what concerns the stream itself. After its work has
  /// failed another one takes its place. On `cpu` each thread has its own.
  [[nodiscard]] static Stream default_of(const Device& device);

  [[nodiscard]] Device device() const;
  /// Waits until all work queued before has finished. Throws what it failed with.
  void synchronize() const { check(compute_stream_synchronize(get())); }
  /// The same for at most `timeout`; false if the time is up.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> timeout) const {
    int32_t finished = 0;
    check(compute_stream_wait_for(get(), detail::timeout_ns(timeout), &finished));
    return finished != 0;
  }
  /// The same until `time`.
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(std::chrono::time_point<Clock, Duration> time) const {
    const auto left = time - Clock::now();
    return wait_for(left > left.zero() ? left : left.zero());
  }
  /// Asks the stream to end early; see compute.h. UNSUPPORTED if the device cannot cancel work.
  void cancel() const { check(compute_stream_cancel(get())); }
  /// Whether all queued work has finished; never waits.
  [[nodiscard]] bool finished() const {
    int32_t finished = 0;
    check(compute_stream_query(get(), &finished));
    return finished != 0;
  }
  /// The point that the stream has reached with the work queued so far.
  [[nodiscard]] Event record() const;
  /// Work queued from now on runs after `event`.
  void wait(const Event& event) const;

  /// Calls `callback` with an ErrorView once all work queued before has finished: empty, or why it failed.
  ///
  /// Callbacks run one after another on a thread of the library. A callback may queue work; it must not wait for any.
  /// An exception that leaves it is dropped.
  ///
  /// Ownership: `callback` is kept until it was called. If this call throws, it is not called.
  template <std::invocable<ErrorView> F>
  void notify(F callback) const {
    auto kept = std::make_unique<F>(std::move(callback));
    const auto call = [](const compute_error* error, void* data) {
      const std::unique_ptr<F> owned(static_cast<F*>(data));
      try {
        (*owned)(ErrorView(error));
      } catch (...) {  // the thread is the library's: nobody could catch it
      }
    };
    check(compute_stream_notify(get(), call, kept.get()));
    static_cast<void>(kept.release());
  }

  /// The objects below the stream, as native<compute_native_cuda>().stream, borrowed; see compute.h. UNSUPPORTED if it
  /// has none of this kind.
  template <class Handle>
  [[nodiscard]] Handle native() const {
    auto handle = sized<Handle>();
    check(compute_stream_native_handle(get(), detail::native_kind<Handle>, &handle));
    return handle;
  }
};

/// Options of an event.
struct EventOptions {
  bool timed = false;  ///< takes the time, for elapsed_since; UNSUPPORTED if the device has no times
};

/// A point on a stream.
class Event : public Reference<compute_event, compute_event_retain, compute_event_release> {
 public:
  using Reference::Reference;
  explicit Event(const Stream& stream, const EventOptions& options = {})
      : Reference(detail::made<compute_event>([&](compute_event** out) {
          compute_event_options given{};
          given.struct_size = sizeof given;
          given.struct_type = COMPUTE_STRUCT_EVENT_OPTIONS;
          given.flags = options.timed ? COMPUTE_EVENT_TIMED : 0u;
          return compute_event_record(stream.get(), &given, out);
        })) {}

  /// Waits for the work before the event. Throws what it failed with.
  void synchronize() const { check(compute_event_synchronize(get())); }
  /// Whether the work before the event has finished; never waits.
  [[nodiscard]] bool finished() const {
    int32_t finished = 0;
    check(compute_event_query(get(), &finished));
    return finished != 0;
  }
  /// The time from `start` to this event; waits for both, which are timed.
  [[nodiscard]] std::chrono::nanoseconds elapsed_since(const Event& start) const {
    int64_t ns = 0;
    check(compute_event_elapsed(start.get(), get(), &ns));
    return std::chrono::nanoseconds(ns);
  }
};

inline Event Stream::record() const { return Event(*this); }

inline void Stream::wait(const Event& event) const { check(compute_event_wait(event.get(), get())); }

}  // namespace compute

#endif  // COMPUTE_STREAM_HPP_
