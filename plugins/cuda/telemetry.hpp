// SPDX-License-Identifier: Apache-2.0
// Measurements of a device by NVML.
#pragma once

#include <compute/plugin.h>

#include <string>
#include <vector>

namespace compute::cuda {

/// Fills in what NVML knows about the device with this UUID. The other fields stay as they are: all of them where NVML
/// is missing, and load, temperature and power on a part of a GPU (MIG), for which NVML measures the memory alone.
///
/// memory_process_bytes is not filled in: NVML lists processes by their ids outside of containers.
void measure(const std::string& uuid, compute_plugin_telemetry& telemetry);

struct ProcessOfDevice {
  int64_t id;
  int64_t bytes;  // of device memory; -1: unknown
};

/// The processes that compute on the device with this UUID; none where NVML is missing.
std::vector<ProcessOfDevice> processes_of(const std::string& uuid);

}  // namespace compute::cuda
