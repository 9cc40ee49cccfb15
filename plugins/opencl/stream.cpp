// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/stream.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

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

cl_mem Stream::fault_record() {
  if (!fault_) {
    fault_ = device_->make_memory(sizeof(compute_plugin_fault));
    const uint64_t zero = 0;
    check(api().clEnqueueFillBuffer(queue_.get(), fault_.get(), &zero, sizeof zero, 0, sizeof(compute_plugin_fault), 0, nullptr, nullptr),
          "clEnqueueFillBuffer");
  }
  may_have_fault_ = true;
  return fault_.get();
}

void Stream::mark(uint64_t number) {
  cl_event event = nullptr;
  std::unique_ptr<compute_plugin_fault> fault;
  if (may_have_fault_) {
    fault = std::make_unique<compute_plugin_fault>();
    check(api().clEnqueueReadBuffer(queue(), fault_.get(), 0, 0, sizeof *fault, fault.get(), 0, nullptr, &event), "clEnqueueReadBuffer");
    may_have_fault_ = false;
  } else {
    check(api().clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  }
  Event owned(event);
  check(api().clFlush(queue_.get()), "clFlush");
  std::lock_guard lock(mutex_);
  marks_.push_back({number, std::move(owned), std::move(fault)});
}

void Stream::wait(Stream* other, uint64_t number) {
  Event event;
  {
    std::lock_guard lock(other->mutex_);
    other->settle_locked();
    if (other->reached_ >= number || other->error_) return;
    const auto found = std::find_if(other->marks_.begin(), other->marks_.end(), [&](const Mark& mark) { return mark.number >= number; });
    if (found == other->marks_.end()) return;
    check(api().clRetainEvent(found->event.get()), "clRetainEvent");
    event = Event(found->event.get());
  }
  if (other->device_ != device_) {
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
    if (mark.fault && mark.fault->code != COMPUTE_FAULT_NONE) {
      const compute_plugin_fault& fault = *mark.fault;
      fail_locked(COMPUTE_ERROR_KERNEL_FAILED,
                  "index " + std::to_string(fault.value) + " at position " + std::to_string(fault.position) +
                      " is out of range for an extent of " + std::to_string(fault.limit),
                  fault.argument, 0);
      return;
    }
    reached_ = mark.number;
    marks_.pop_front();
  }
}

uint64_t Stream::reached(compute_error** out_error) {
  std::lock_guard lock(mutex_);
  settle_locked();
  if (error_) *out_error = common::make_error(error_->code, error_->message, error_->argument, error_->native_code);
  return reached_;
}

uint64_t Stream::sync(uint64_t number, int64_t timeout_ns, compute_error** out_error) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    Event event;
    {
      std::lock_guard lock(mutex_);
      settle_locked();
      if (error_ || reached_ >= number) break;
      const auto found = std::find_if(marks_.begin(), marks_.end(), [&](const Mark& mark) { return mark.number >= number; });
      if (found == marks_.end()) break;  // never marked
      if (api().clRetainEvent(found->event.get()) == CL_SUCCESS) event = Event(found->event.get());
    }
    if (timeout_ns == INT64_MAX) {
      const cl_event waited = event.get();
      api().clWaitForEvents(1, &waited);
      // PoCL's events become complete a moment after what waits for them is woken.
      continue;
    }
    // There is no wait with a limit.
    const auto passed = std::chrono::steady_clock::now() - start;
    const int64_t passed_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count();
    if (passed_ns >= timeout_ns) break;
    if (passed_ns < 50'000) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::clamp<int64_t>(timeout_ns - passed_ns, 1000, 100'000)));
    }
  }
  return reached(out_error);
}

}  // namespace compute::opencl
