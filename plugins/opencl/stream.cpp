// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/stream.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "plugins/common/driver/polling.hpp"
#include "plugins/common/table/mark_times.hpp"

namespace compute::opencl {
namespace {

cl_int status_of(cl_event event) {
  cl_int status = CL_COMPLETE;
  const cl_int asked = api().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return asked == CL_SUCCESS ? status : asked;
}

// An event of another context has come: `user_data` is the event here that waited for it. Errors pass on as they are.
void pass_on(cl_event, cl_int status, void* user_data) {
  const auto event = static_cast<cl_event>(user_data);
  api().clSetUserEventStatus(event, status < 0 ? status : static_cast<cl_int>(CL_COMPLETE));
  api().clReleaseEvent(event);
}

}  // namespace

Stream::Stream(Device* device) : device_(device), queue_(device->make_queue()) {}

cl_command_queue Stream::queue() const {
  std::lock_guard lock(mutex_);
  if (error_) throw *error_;
  return queue_.get();
}

Stream::FaultSlot Stream::fault_slot(compute_plugin_fault* target) {
  if (!fault_slots_) {
    Memory slots = device_->make_memory(kFaultSlots * static_cast<int64_t>(sizeof(compute_plugin_fault)));
    fault_targets_.reserve(kFaultSlots);
    const uint64_t zero = 0;
    check(api().clEnqueueFillBuffer(queue(), slots.get(), &zero, sizeof zero, 0,
                                    kFaultSlots * sizeof(compute_plugin_fault), 0, nullptr, nullptr),
          "clEnqueueFillBuffer");
    fault_slots_ = std::move(slots);
  }
  if (static_cast<int64_t>(fault_targets_.size()) == kFaultSlots) read_faults();
  const auto slot = static_cast<int64_t>(fault_targets_.size());
  fault_targets_.push_back(target);
  return {fault_slots_.get(), slot * static_cast<int64_t>(sizeof(compute_plugin_fault))};
}

cl_mem Stream::counters() {
  if (!counters_) {
    const int64_t size = device_->dialect().counters * static_cast<int64_t>(sizeof(int32_t));
    Memory counters = device_->make_memory(size);
    const uint64_t zero = 0;
    check(api().clEnqueueFillBuffer(queue(), counters.get(), &zero, sizeof zero, 0, static_cast<size_t>(size), 0,
                                    nullptr, nullptr),
          "clEnqueueFillBuffer");
    counters_ = std::move(counters);
  }
  return counters_.get();
}

void Stream::FreeBatch::operator()(FaultBatch* batch) const { device->free_pinned(batch); }

void Stream::read_faults() {
  FaultBatches::value_type batch;
  {
    std::lock_guard lock(mutex_);
    if (!spare_batches_.empty()) {
      batch = std::move(spare_batches_.back());
      spare_batches_.pop_back();
    }
  }
  if (!batch) {
    void* const memory = device_->allocate_pinned(sizeof(FaultBatch));
    batch = FaultBatches::value_type(static_cast<FaultBatch*>(memory), FreeBatch{device_});
  }
  batch->count = static_cast<int64_t>(fault_targets_.size());
  std::copy(fault_targets_.begin(), fault_targets_.end(), batch->targets);
  const size_t size = fault_targets_.size() * sizeof(compute_plugin_fault);
  check(api().clEnqueueReadBuffer(queue(), fault_slots_.get(), 0, 0, size, batch->records, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
  fault_batches_.push_back(std::move(batch));
  fault_targets_.clear();
  const uint64_t zero = 0;
  const cl_int status =
      api().clEnqueueFillBuffer(queue_.get(), fault_slots_.get(), &zero, sizeof zero, 0, size, 0, nullptr, nullptr);
  // Old faults in the slots would be attributed to later runs.
  if (status != CL_SUCCESS) throw break_off(error_of(status, "clEnqueueFillBuffer"));
}

common::Error Stream::break_off(common::Error error) {
  const bool is_finished = api().clFinish(queue_.get()) == CL_SUCCESS;
  std::lock_guard lock(mutex_);
  settle_locked();
  // An event may become complete a moment after the queue has.
  while (is_finished && !error_ && !marks_.empty()) {
    std::this_thread::yield();
    settle_locked();
  }
  if (!error_) {
    error.message += "; part of the work had been queued";
    error_ = std::move(error);
  }
  is_over_ = is_over_ || is_finished;
  return *error_;
}

cl_command_queue Stream::share_queue() {
  std::lock_guard lock(mutex_);
  if (error_) throw *error_;
  keeps_queue_ = true;
  return queue_.get();
}

// Switches to another queue, which continues after this one. Work in the old queue ends as before.
void Stream::start_times() {
  {
    std::lock_guard lock(mutex_);
    if (keeps_queue_ || has_times_) return;
  }
  Queue timed;
  try {
    timed = device_->make_queue(CL_QUEUE_PROFILING_ENABLE);
  } catch (const common::Error&) {
    std::lock_guard lock(mutex_);
    keeps_queue_ = true;  // work continues without times
    return;
  }
  cl_event event = nullptr;
  check(api().clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  const Event end(event);
  check(api().clFlush(queue_.get()), "clFlush");
  check(api().clEnqueueBarrierWithWaitList(timed.get(), 1, &event, nullptr), "clEnqueueBarrierWithWaitList");
  std::lock_guard lock(mutex_);
  queue_ = std::move(timed);
  has_times_ = true;
}

void Stream::mark(uint64_t number, bool timed) {
  if (timed && !has_times_) start_times();
  const auto marker = [&] {
    cl_event event = nullptr;
    check(api().clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
    return Event(event);
  };
  Event end;
  if (!fault_targets_.empty()) {
    if (timed && has_times_) end = marker();
    read_faults();
  }
  Event event = marker();
  check(api().clFlush(queue_.get()), "clFlush");
  std::lock_guard lock(mutex_);
  marks_.push_back({number, std::move(event), std::move(end), timed && has_times_, std::move(fault_batches_)});
  fault_batches_.clear();
}

void Stream::take_time(uint64_t number, int64_t* out_ns) {
  std::lock_guard lock(mutex_);
  auto found = common::find_mark(times_, number);
  if (found == times_.end()) {
    settle_locked();
    found = common::find_mark(times_, number);
  }
  if (out_ns == nullptr) {
    const auto waiting = common::find_mark(marks_, number);
    if (waiting != marks_.end()) waiting->wants_time = false;
  }
  if (found == times_.end()) {
    if (out_ns == nullptr) return;
    if (keeps_queue_ && !has_times_) {
      throw common::Error(COMPUTE_ERROR_UNSUPPORTED,
                          "timing unavailable: the stream's queue was created without profiling");
    }
    throw common::Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                        "mark " + std::to_string(number) + " was recorded without a time");
  }
  if (out_ns != nullptr) *out_ns = found->ns;
  times_.erase(found);
}

void Stream::wait(Stream& other, uint64_t number) {
  Event event, end;
  {
    std::lock_guard lock(other.mutex_);
    other.settle_locked();
    if (other.reached_ >= number) return;
    if (other.error_) {
      // Work queued after the failure may still write. Its end may count as failed, which this stream must not: it is
      // waited for here.
      if (other.is_over_locked() || !other.end_) return;
      check(api().clRetainEvent(other.end_.get()), "clRetainEvent");
      end = Event(other.end_.get());
    }
    const auto found =
        std::find_if(other.marks_.begin(), other.marks_.end(), [&](const Mark& mark) { return mark.number >= number; });
    if (!end) {
      if (found == other.marks_.end()) return;
      check(api().clRetainEvent(found->event.get()), "clRetainEvent");
      event = Event(found->event.get());
    }
  }
  if (end) {
    const cl_event waited = end.get();
    api().clWaitForEvents(1, &waited);
    return;
  }
  if (other.device_ != device_) {
    // Events are of one context: one of this context takes the other's place.
    cl_int status = CL_SUCCESS;
    Event here(api().clCreateUserEvent(device_->context(), &status));
    check(status, "clCreateUserEvent");
    check(api().clRetainEvent(here.get()), "clRetainEvent");
    status = api().clSetEventCallback(event.get(), CL_COMPLETE, pass_on, here.get());
    if (status != CL_SUCCESS) {
      api().clSetUserEventStatus(here.get(), CL_COMPLETE);
      api().clReleaseEvent(here.get());
      check(status, "clSetEventCallback");
    }
    event = std::move(here);
  }
  const cl_event waited = event.get();
  check(api().clEnqueueBarrierWithWaitList(queue(), 1, &waited, nullptr), "clEnqueueBarrierWithWaitList");
}

void Stream::fail_locked(compute_error_code code, std::string message, int32_t argument, int64_t native_code) {
  error_.emplace(code, std::move(message), argument, native_code);
}

void Stream::settle_locked() {
  while (!marks_.empty() && !error_) {
    Mark& mark = marks_.front();
    const cl_int status = status_of(mark.event.get());
    if (status < 0) {
      fail_locked(COMPUTE_ERROR_STREAM_FAILED, "queued work failed: " + status_text(status), -1, status);
      return;
    }
    if (status != CL_COMPLETE) return;
    for (const auto& batch : mark.faults) {
      for (int64_t i = 0; i < batch->count; ++i) {
        const compute_plugin_fault& fault = batch->records[i];
        if (fault.code == COMPUTE_PLUGIN_FAULT_NONE) continue;
        if (batch->targets[i] != nullptr) {
          *batch->targets[i] = fault;
          continue;
        }
        fail_locked(COMPUTE_ERROR_KERNEL_FAILED,
                    "index " + std::to_string(fault.value) + " at position " + std::to_string(fault.position) +
                        " is out of range for an extent of " + std::to_string(fault.limit),
                    fault.argument, 0);
        return;
      }
    }
    if (mark.wants_time) {
      try {
        times_.push_back({mark.number, end_of(mark.end ? mark.end.get() : mark.event.get())});
      } catch (...) {
        // Later queries report that there is none.
      }
    }
    reached_ = mark.number;
    for (auto& batch : mark.faults) spare_batches_.push_back(std::move(batch));
    marks_.pop_front();
  }
}

// After a failure: whether the work queued behind it has ended. A queue continues after a checked fault, and may
// continue after a failed command.
bool Stream::is_over_locked() {
  if (is_over_ || submitting_.load(std::memory_order_seq_cst)) return is_over_;
  if (!end_) {
    cl_event event = nullptr;
    if (api().clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &event) != CL_SUCCESS) {
      is_over_ = true;  // the queue takes nothing, not even a marker
      return true;
    }
    end_ = Event(event);
    api().clFlush(queue_.get());
  }
  is_over_ = status_of(end_.get()) <= CL_COMPLETE;
  return is_over_;
}

uint64_t Stream::reached(compute_error** out_error) {
  const common::Polling polling;
  return settled(out_error);
}

uint64_t Stream::settled(compute_error** out_error) {
  std::lock_guard lock(mutex_);
  settle_locked();
  if (error_ && is_over_locked())
    *out_error = common::make_error(error_->code, error_->message, error_->argument, error_->native_code);
  return reached_;
}

// GPUs' drivers wake a thread some 100 us after its event is complete, so the event's status is asked for. Processors'
// drivers need the time themselves.
uint64_t Stream::sync(uint64_t number, int64_t timeout_ns, compute_error** out_error) {
  common::Polling polling;
  const bool sleeps = device_->spin_ns == 0 && timeout_ns == INT64_MAX;
  common::Pauses pauses(polling, device_->spin_ns, timeout_ns);
  for (;;) {
    Event event;
    {
      std::lock_guard lock(mutex_);
      settle_locked();
      if (reached_ >= number || (error_ && is_over_locked())) break;
      const auto found =
          std::find_if(marks_.begin(), marks_.end(), [&](const Mark& mark) { return mark.number >= number; });
      if (!error_ && found == marks_.end()) break;  // never marked
      const cl_event next = error_ ? end_.get() : found->event.get();
      if (sleeps && next != nullptr && api().clRetainEvent(next) == CL_SUCCESS) event = Event(next);
    }
    if (event) {
      const cl_event waited = event.get();
      api().clWaitForEvents(1, &waited);
      // PoCL's events become complete a moment after their waiters are woken.
    } else if (!pauses.next()) {
      break;
    }
  }
  return settled(out_error);
}

}  // namespace compute::opencl
