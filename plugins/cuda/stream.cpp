// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/stream.hpp"

#include <algorithm>

#include "plugins/common/driver/polling.hpp"
#include "plugins/common/table/mark_times.hpp"

namespace compute::cuda {
namespace {

CUstream create_stream(Device& device, int32_t priority) {
  const Current current = device.current();
  int least = 0, greatest = 0;  // the greatest priority is the smallest number
  cu.ctx_get_stream_priority_range(&least, &greatest);
  CUstream stream = nullptr;
  check(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING, std::clamp(-priority, greatest, least)), "creating a stream");
  return stream;
}

}  // namespace

Stream::Stream(Device& device, int32_t priority)
    : device_(device), owns_handle_(true), memory_(device.take_launch_memory()) {
  try {
    handle_ = create_stream(device, priority);
  } catch (...) {
    device_.give_launch_memory(memory_);
    throw;
  }
}

Stream::Stream(Device& device, CUstream handle)
    : device_(device), owns_handle_(false), memory_(device.take_launch_memory()), handle_(handle) {}

Stream::~Stream() {
  try {
    const Current current = device_.current();
    // Memory that a kernel may still write to is not given to another stream.
    if (cu.stream_query(handle_) == CUDA_SUCCESS) device_.give_launch_memory(memory_);
    for (const Mark& mark : marks_) mark.timed ? device_.give_timed_event(mark.event) : device_.give_event(mark.event);
    for (const Device::EventTime& one : timed_) device_.give_timed_event(one.event);
    if (owns_handle_) cu.stream_destroy(handle_);
  } catch (...) {
    // Of a context that cannot be made current nothing is left.
  }
}

void Stream::mark(uint64_t number, bool timed) {
  const CUevent event = timed ? device_.take_timed_event() : device_.take_event();
  if (const CUresult result = cu.event_record(event, handle_); result != CUDA_SUCCESS) {
    timed ? device_.give_timed_event(event) : device_.give_event(event);
    throw failure(result, "marking the stream");
  }
  const std::lock_guard lock(mutex_);
  marks_.push_back({number, launches_.load(std::memory_order_relaxed), event, timed, timed});
}

void Stream::take_time(uint64_t number, int64_t* out_ns) {
  const std::lock_guard times_lock(times_mutex_);
  auto found = common::find_mark(times_, number);
  if (found == times_.end()) {
    if (out_ns == nullptr) {
      const std::lock_guard lock(mutex_);
      const auto waiting = common::find_mark(marks_, number);
      if (waiting != marks_.end()) {
        waiting->wants_time = false;
        return;
      }
    }
    read_times();
    found = common::find_mark(times_, number);
  }
  if (found != times_.end()) {
    if (out_ns != nullptr) *out_ns = found->time_ns;
    times_.erase(found);
  } else if (out_ns != nullptr) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "mark " + std::to_string(number) + " was recorded without a time");
  }
}

// Reads the times of all reached marks. Call with the lock of the times held.
void Stream::read_times() {
  const Current current = device_.current();
  {
    const std::lock_guard lock(mutex_);
    poll();
    being_read_.clear();
    being_read_.swap(timed_);
  }
  device_.take_times(being_read_);
  for (const Device::EventTime& one : being_read_) times_.push_back({one.number, one.time_ns});
}

void Stream::wait(Stream& other, uint64_t number) {
  CUresult result = CUDA_SUCCESS;
  {
    const std::lock_guard lock(other.mutex_);
    const auto mark =
        std::find_if(other.marks_.begin(), other.marks_.end(), [&](const Mark& m) { return m.number >= number; });
    if (mark == other.marks_.end()) return;  // it has finished
    result = cu.stream_wait_event(handle_, mark->event, 0);
  }
  if (result != CUDA_SUCCESS) throw failure(result, "waiting for another stream");
}

// With the lock held.
std::string Stream::window() const {
  const uint64_t seen = launches_.load(std::memory_order_relaxed);
  const uint64_t count = seen - good_launches_;
  if (count == 0) return "";
  const auto name = [&](uint64_t launch) -> std::string {
    const char* text = seen - launch <= kNames ? names_[launch % kNames].load(std::memory_order_relaxed) : nullptr;
    return text != nullptr ? text : "an earlier one";
  };
  if (count == 1) return "kernel " + name(good_launches_);
  return "one of " + std::to_string(count) + " kernels from " + name(good_launches_) + " to " + name(seen - 1) +
         "; set COMPUTE_SYNC=1 to find out which";
}

Error Stream::failure(CUresult result, const char* what) {
  const std::lock_guard lock(mutex_);
  Error error = error_of(result, what, is_final(result) ? window() : "");
  if (is_final(result)) fail(error);
  return error;
}

Error Stream::break_off(Error error) {
  error.message += "; part of the work had been queued";
  // A graph's capture ends by this, and has failed in any case.
  cu.stream_synchronize(handle_);
  const std::lock_guard lock(mutex_);
  poll();
  fail(error);
  return error;
}

// With the lock held. The first failure stays.
void Stream::fail(Error error) noexcept {
  if (has_failed_.load(std::memory_order_relaxed)) return;
  error_code_ = error.code;
  error_argument_ = error.argument;
  error_native_code_ = error.native_code;
  error_message_ = std::move(error.message);
  has_failed_.store(true, std::memory_order_release);
}

void Stream::throw_failure() const {
  const std::lock_guard lock(mutex_);
  throw Error(error_code_, error_message_, error_argument_, error_native_code_);
}

// With the lock held.
void Stream::look_for_faults() {
  const auto look = [&](compute_plugin_fault* record) {
    if (__atomic_load_n(&record->code, __ATOMIC_ACQUIRE) == COMPUTE_PLUGIN_FAULT_NONE) return;
    const compute_plugin_fault fault = *record;
    *record = {};
    fail(Error(COMPUTE_ERROR_KERNEL_FAILED,
               "index " + std::to_string(fault.value) + " at position " + std::to_string(fault.position) +
                   " is out of range for an extent of " + std::to_string(fault.limit),
               fault.argument));
  };
  look(memory_.fault_record);
  std::erase_if(watched_, [&](const std::weak_ptr<const LaunchMemory>& watched) {
    const std::shared_ptr<const LaunchMemory> memory = watched.lock();
    if (memory) look(memory->fault_record);
    return !memory;
  });
}

// With the lock held: removes finished marks. They finish in order, so that one query covers all marks before it: it is
// asked for the first, then further and further on, then in halves back to the last.
void Stream::poll() {
  if (has_failed_.load(std::memory_order_relaxed)) return;
  size_t done = 0, open = marks_.size();  // this many have finished, and this one has not
  CUresult fault = CUDA_SUCCESS;
  for (size_t step = 1; done < open;) {
    const size_t at = std::min(done + step, open) - 1;
    const CUresult result = cu.event_query(marks_[at].event);
    if (result == CUDA_SUCCESS) {
      done = at + 1;
      step = open == marks_.size() ? 2 * step : (open - done + 1) / 2;
    } else if (result == CUDA_ERROR_NOT_READY) {
      open = at;
      step = (open - done + 1) / 2;
    } else {
      fault = result;
      break;
    }
  }
  if (done > 0) {
    look_for_faults();
    if (has_failed_.load(std::memory_order_relaxed)) return;
    retire(done);
  }
  if (fault != CUDA_SUCCESS) fail(error_of(fault, "queued work failed", window()));
}

// With the lock held: the first `count` marks have finished.
void Stream::retire(size_t count) {
  for (; count > 0; --count) {
    const Mark mark = marks_.front();
    reached_ = mark.number;
    good_launches_ = mark.launches;
    marks_.pop_front();
    if (!mark.timed) {
      device_.give_event(mark.event);
    } else if (!mark.wants_time) {
      device_.give_timed_event(mark.event);
    } else {
      try {
        timed_.push_back({mark.event, mark.number});
      } catch (...) {
        device_.give_timed_event(mark.event);  // later queries report that there is no time
      }
    }
  }
}

bool Stream::is_settled(uint64_t number, uint64_t* out_reached, compute_error** out_error) {
  const std::lock_guard lock(mutex_);
  poll();
  *out_reached = reached_;
  *out_error = nullptr;
  if (has_failed_.load(std::memory_order_relaxed)) {
    // After a checked fault the stream's work continues, and may touch memory until it has ended.
    if (cu.stream_query(handle_) == CUDA_ERROR_NOT_READY) return false;
    *out_error = common::make_error(error_code_, error_message_, error_argument_, error_native_code_);
    return true;
  }
  return reached_ >= number;
}

uint64_t Stream::reached(compute_error** out_error) {
  const common::Polling polling;
  const Current current = device_.current();
  uint64_t reached = 0;
  is_settled(UINT64_MAX, &reached, out_error);
  return reached;
}

uint64_t Stream::sync(uint64_t number, int64_t timeout_ns, compute_error** out_error) {
  common::Polling polling;
  const Current current = device_.current();
  common::Pauses pauses(polling, device_.spin_ns(), timeout_ns);
  uint64_t reached = 0;
  while (!is_settled(number, &reached, out_error) && pauses.next()) {
  }
  return reached;
}

void Stream::watch(const std::shared_ptr<const LaunchMemory>& memory) {
  const std::lock_guard lock(mutex_);
  const auto is_memory = [&](const std::weak_ptr<const LaunchMemory>& watched) { return watched.lock() == memory; };
  if (std::none_of(watched_.begin(), watched_.end(), is_memory)) watched_.push_back(memory);
}

}  // namespace compute::cuda
