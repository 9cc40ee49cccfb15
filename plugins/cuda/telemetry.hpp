// SPDX-License-Identifier: Apache-2.0
// Measurements of a device by NVML.
#pragma once

#include <compute/plugin.h>

#include <string>

namespace compute::cuda {

/// Fills in what NVML knows about the device with this UUID. The other fields stay as they are: all of them where NVML
/// is missing, and load, temperature and power on a part of a GPU (MIG), for which NVML measures the memory alone.
///
/// memory_process_bytes is not filled in: NVML lists processes by their ids outside of containers.
void measure(const std::string& uuid, compute_plugin_telemetry& telemetry);

}  // namespace compute::cuda
