// SPDX-License-Identifier: Apache-2.0
// Streams: a thread and a queue each. Copies and ops become tasks; marks are tasks that say how far the stream has
// come.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "minimal.hpp"

namespace minimal {

// ---- Timelines ------------------------------------------------------------------------------------------------------

void Timeline::reach(uint64_t number) {
  {
    std::lock_guard lock(mutex_);
    progress_.reached = std::max(progress_.reached, number);
    if (const auto time = times_.find(number); time != times_.end()) time->second = device_clock_ns();
  }
  changed_.notify_all();
}

void Timeline::fail(const Failure& failure) {
  {
    std::lock_guard lock(mutex_);
    progress_.failure = failure;
  }
  changed_.notify_all();
}

void Timeline::keep_time(uint64_t number) {
  std::lock_guard lock(mutex_);
  times_.emplace(number, std::nullopt);
}

void Timeline::take_time(uint64_t number, int64_t* out_ns) {
  std::lock_guard lock(mutex_);
  const auto time = times_.find(number);
  if (time == times_.end() || (out_ns != nullptr && !time->second)) {
    throw Failure(COMPUTE_ERROR_INVALID_ARGUMENT, "minimal: mark " + std::to_string(number) + " has no time");
  }
  if (out_ns != nullptr) *out_ns = *time->second;
  times_.erase(time);
}

Timeline::Progress Timeline::wait(uint64_t number, int64_t timeout_ns) {
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1'000'000'000;  // so that now + timeout fits
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, kYear)),
                    [&] { return progress_.reached >= number || progress_.failure; });
  return progress_;
}

// ---- Streams --------------------------------------------------------------------------------------------------------

Stream::Stream(Device& owner) : device(owner), memory(owner.memory), thread_([this] { work(); }) {}

Stream::~Stream() {
  retire();
  thread_.join();
}

int64_t host_clock_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}
int64_t device_clock_ns() { return (host_clock_ns() + int64_t{3600} * 1'000'000'000) % kClockWrapNs; }

void Stream::submit(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  filled_.notify_one();
}

void Stream::cancel() {
  {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  filled_.notify_one();
}

// Within the lock: once the thread has finished, stream_create of another thread may delete the stream.
void Stream::retire() {
  std::lock_guard lock(mutex_);
  retired_ = true;
  filled_.notify_one();
}

bool Stream::finished() {
  std::lock_guard lock(mutex_);
  return finished_;
}

void Stream::settle() {
  std::unique_lock lock(mutex_);
  emptied_.wait(lock, [&] { return tasks_.empty() && !busy_; });
}

// After a failure the tasks are dropped, marks too: the timeline stays at the last number that is known to be good.
void Stream::work() {
  bool failed = false;
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      busy_ = false;
      if (tasks_.empty()) emptied_.notify_all();
      filled_.wait(lock, [&] { return !tasks_.empty() || retired_ || (cancelled_ && !failed); });
      if (cancelled_ && !failed) {
        timeline->fail(Failure(COMPUTE_ERROR_CANCELLED, "minimal: the work was cancelled"));
        failed = true;
      }
      if (tasks_.empty()) {
        if (!retired_) continue;
        finished_ = true;
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
    }
    if (failed) continue;
    try {
      task();
    } catch (const Failure& failure) {
      timeline->fail(failure);
      failed = true;
    } catch (const std::exception& exception) {
      timeline->fail(Failure(COMPUTE_ERROR_STREAM_FAILED, exception.what()));
      failed = true;
    }
  }
}

// ---- Slots ----------------------------------------------------------------------------------------------------------

namespace {

compute_error* stream_create(uint64_t device, const compute_plugin_stream_options* options, uint64_t* out_stream) {
  *out_stream = 0;
  return guard([&] {
    understand(*options, "the stream's options");
    Device& owner = from_handle<Device>(device);
    if (options->priority < kPriorityLeast || options->priority > kPriorityGreatest) {
      throw Failure(COMPUTE_ERROR_INVALID_ARGUMENT,
                    "minimal: a stream of the priority " + std::to_string(options->priority));
    }
    auto stream = std::make_unique<Stream>(owner);
    std::lock_guard lock(owner.mutex);
    std::erase_if(owner.streams, [](const auto& other) { return other->finished(); });
    *out_stream = to_handle(owner.streams.emplace_back(std::move(stream)).get());
  });
}

void stream_destroy(uint64_t stream) { from_handle<Stream>(stream).retire(); }

compute_error* stream_mark(uint64_t stream, uint64_t number, uint32_t flags) {
  return guard([&] {
    understand_flags(flags, "the mark", lacks("times") ? 0u : COMPUTE_PLUGIN_MARK_TIMED);
    Stream& self = from_handle<Stream>(stream);
    if (flags & COMPUTE_PLUGIN_MARK_TIMED) self.timeline->keep_time(number);
    self.submit([timeline = self.timeline, number] { timeline->reach(number); });
  });
}

// Goes on also where the other stream fails: what that means for our work is core's to say.
compute_error* stream_wait(uint64_t stream, uint64_t other, uint64_t number, uint32_t flags) {
  return guard([&] {
    understand_flags(flags, "the wait");
    if (lacks("wait")) throw Failure(COMPUTE_ERROR_UNSUPPORTED, "minimal: streams do not wait for each other");
    from_handle<Stream>(stream).submit(
        [timeline = from_handle<Stream>(other).timeline, number] { timeline->wait(number, INT64_MAX); });
  });
}

// A wait that the host ends. The task that waits and core each hold it.
struct HostWait {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
};
using SharedWait = std::shared_ptr<HostWait>;

compute_error* stream_wait_host(uint64_t stream, uint64_t* out_wait) {
  *out_wait = 0;
  return guard([&] {
    Stream& self = from_handle<Stream>(stream);
    auto handle = std::make_unique<SharedWait>(std::make_shared<HostWait>());
    self.submit([wait = *handle, &self] {
      std::unique_lock lock(wait->mutex);
      while (!wait->over && !self.is_cancelled()) wait->changed.wait_for(lock, std::chrono::milliseconds(1));
    });
    *out_wait = to_handle(handle.release());
  });
}

void signal_host_wait(uint64_t, uint64_t wait) {
  const std::unique_ptr<SharedWait> handle(&from_handle<SharedWait>(wait));
  {
    std::lock_guard lock((*handle)->mutex);
    (*handle)->over = true;
  }
  (*handle)->changed.notify_all();
}

compute_error* stream_cancel(uint64_t stream) {
  return guard([&] { from_handle<Stream>(stream).cancel(); });
}

compute_error* stream_sync(uint64_t stream, uint64_t number, int64_t timeout_ns, uint64_t* out_reached) {
  *out_reached = 0;
  return guard([&] {
    const Timeline::Progress progress = from_handle<Stream>(stream).timeline->wait(number, timeout_ns);
    *out_reached = progress.reached;
    if (progress.failure) throw *progress.failure;
  });
}

compute_error* stream_reached(uint64_t stream, uint64_t* out_reached) { return stream_sync(stream, 0, 0, out_reached); }

compute_error* mark_time(uint64_t stream, uint64_t number, int64_t* out_ns) {
  if (out_ns != nullptr) *out_ns = 0;
  return guard([&] { from_handle<Stream>(stream).timeline->take_time(number, out_ns); });
}

compute_error* device_clock(uint64_t, int64_t* out_device_ns, int64_t* out_host_ns, int64_t* out_wrap_ns) {
  *out_wrap_ns = kClockWrapNs;
  *out_host_ns = host_clock_ns();
  *out_device_ns = device_clock_ns();
  return nullptr;
}

// A driver would copy between two of its buffers.
void require_same(const Memory& memory, const compute_plugin_operand* pinned, const void* data, int64_t size_bytes) {
  if (pinned != nullptr && memory.resolve(*pinned, 0, size_bytes) != data)
    throw Failure(COMPUTE_ERROR_INTERNAL, "minimal: the pinned place is not that of the host's memory");
}

compute_error* copy_from_host(uint64_t stream, const void* src, const compute_plugin_operand* pinned,
                              const compute_plugin_operand* dst, int64_t size_bytes, uint32_t flags) {
  return guard([&] {
    understand_flags(flags, "the copy");
    Stream& self = from_handle<Stream>(stream);
    require_same(self.memory, pinned, src, size_bytes);
    std::byte* to = self.memory.resolve(*dst, 0, size_bytes);
    self.submit([=] { std::memcpy(to, src, size_bytes); });
  });
}

compute_error* copy_to_host(uint64_t stream, const compute_plugin_operand* src, void* dst,
                            const compute_plugin_operand* pinned, int64_t size_bytes, uint32_t flags) {
  return guard([&] {
    understand_flags(flags, "the copy");
    Stream& self = from_handle<Stream>(stream);
    require_same(self.memory, pinned, dst, size_bytes);
    const std::byte* from = self.memory.resolve(*src, 0, size_bytes);
    self.submit([=] { std::memcpy(dst, from, size_bytes); });
  });
}

compute_error* fill(uint64_t stream, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern,
                    int32_t pattern_size, uint32_t flags) {
  return guard([&] {
    understand_flags(flags, "the fill");
    Stream& self = from_handle<Stream>(stream);
    std::byte* to = self.memory.resolve(*dst, 0, size_bytes);
    struct {
      std::byte bytes[16];
    } copied = {};  // `pattern` is valid during the call only
    std::memcpy(copied.bytes, pattern, pattern_size);
    self.submit([=] {
      for (int64_t at = 0; at < size_bytes; at += pattern_size) std::memcpy(to + at, copied.bytes, pattern_size);
    });
  });
}

}  // namespace

void fill_stream_slots(compute_plugin_device_table& table) {
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_mark = stream_mark;
  table.stream_wait = stream_wait;
  table.stream_wait_host = stream_wait_host;
  table.signal_host_wait = signal_host_wait;
  if (!lacks("cancel")) table.stream_cancel = stream_cancel;
  table.stream_reached = stream_reached;
  table.stream_sync = stream_sync;
  if (!lacks("times")) {
    table.mark_time = mark_time;
    table.clock = device_clock;
  }
  table.copy_from_host = copy_from_host;
  table.copy_to_host = copy_to_host;
  table.fill = fill;
}

}  // namespace minimal
