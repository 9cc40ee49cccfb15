// SPDX-License-Identifier: Apache-2.0
// Which programs are too small for a device.
#pragma once

#include <compute/compute.hpp>
#include <functional>
#include <string>

#include "trace.hpp"

namespace onnxruntime_compute {

struct Placement {
  bool is_on_host = false;
  std::string reason;  // times and what they come from
};

/// Compares what a run of `tape` takes at least on `device` with an estimate of what it takes on the host. Where that
/// leaves both possible, `run_there` runs it on the device and waits, a few times. The first call for a device measures
/// it, in some milliseconds.
Placement place(const Tape& tape, const compute::Device& device, const std::function<void()>& run_there);

}  // namespace onnxruntime_compute
