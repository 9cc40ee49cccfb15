// SPDX-License-Identifier: Apache-2.0
// The device, its streams and its plans. Today the device is the host: memory is the host's, and work is done when a
// call returns. What to replace by the driver's functions is marked TODO.
#pragma once

#include <compute_kit/op.hpp>
#include <compute_kit/slots.hpp>

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler.hpp"

namespace acme {

namespace kit = compute::common;

struct Device {
  uint64_t id = 0;
  Kernels kernels;
};

/// A queue of work. TODO: hold the driver's queue.
class Stream {
 public:
  explicit Stream(Device& device) : device(device) {}

  // Throws if the stream has failed: it then takes no more work.
  void require_good();
  // All work so far has the numbers up to `number`. TODO: record an event.
  void mark(uint64_t number);
  // Work to come waits for mark `number` of `other`. Here all marked work has ended. TODO: let the queue wait.
  void wait(Stream& other, uint64_t number) { static_cast<void>(other), static_cast<void>(number); }
  // The greatest mark that work has reached; *failure is the error of a stream that has failed.
  uint64_t reached(compute_error** failure);
  uint64_t sync(uint64_t number, int64_t timeout_ns, compute_error** failure);
  void fail(const kit::Error& error);

  Device& device;

 private:
  std::mutex mutex_;
  uint64_t reached_ = 0;
  std::optional<kit::Error> failure_;
};

/// An op for given dtypes, shapes and strides; immutable.
class Plan : public kit::PlanAnswer {
 public:
  Plan(const kit::Op& op, Device& device);
  void run(const compute_plugin_run& run, Stream& stream) const;

 private:
  KernelFunction kernel_;
  int64_t points_;
  std::vector<int64_t> words_;
};

/// Why the device cannot run `op`, or nothing.
std::optional<kit::Refusal> refuse(const kit::Op& op);

/// The slots for memory, streams, copies and ops.
void fill_slots(compute_plugin_device_table& table);

inline std::byte* address(const compute_plugin_operand& operand) {
  return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(operand.buffer)) + operand.offset_bytes;
}

}  // namespace acme
