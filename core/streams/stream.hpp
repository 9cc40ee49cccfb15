// SPDX-License-Identifier: Apache-2.0
// The handles of streams and events.
#pragma once

#include <mutex>
#include <optional>

#include "core/devices/device.hpp"
#include "core/process/handle.hpp"
#include "core/streams/timeline.hpp"

struct compute_stream : compute::Handle<compute::HandleKind::kStream> {
  compute_stream(compute::Device& device, compute::Timeline& timeline) : device(device), timeline(timeline) {}
  // A handle of a timeline that belongs to another object.
  struct Borrowed {};
  compute_stream(compute::Device& device, compute::Timeline& timeline, Borrowed)
      : device(device), timeline(timeline), borrowed_(true) {}
  ~compute_stream();

  compute::Device& device;
  compute::Timeline& timeline;

  bool is_borrowed() const noexcept { return borrowed_; }

 private:
  const bool borrowed_ = false;
};

struct compute_event : compute::Handle<compute::HandleKind::kEvent> {
  compute_event(compute::Timeline& timeline, uint64_t number) : timeline(timeline), number(number) {}
  ~compute_event();

  // Retains the stream, which is later asked for the time of the timed mark `number`.
  void keep_time(compute_stream& stream) noexcept;
  bool is_timed() const noexcept { return timed_ != nullptr; }
  // On the device's clock; only once `number` has been reached.
  int64_t time_ns();

  compute::Timeline& timeline;
  const uint64_t number;

 private:
  compute_stream* timed_ = nullptr;  // retained
  std::mutex mutex_;                 // guards the members below
  std::optional<int64_t> time_ns_;
};
