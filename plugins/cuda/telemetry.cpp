// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/telemetry.hpp"

#include <algorithm>

#include "plugins/cuda/libraries.hpp"

namespace compute::cuda {
namespace {

// NVML's numbers of devices ignore CUDA_VISIBLE_DEVICES, and a part of a GPU has the PCI address of the whole: a UUID
// alone tells devices apart. NULL if NVML does not know the device.
nvmlDevice find_device(const NvmlApi& nvml, const std::string& uuid) {
  nvmlDevice device = nullptr;
  if (nvml.device_get_handle_by_uuid(uuid.c_str(), &device) == NVML_SUCCESS) return device;
  const std::string part = "MIG-" + uuid.substr(uuid.find('-') + 1);
  return nvml.device_get_handle_by_uuid(part.c_str(), &device) == NVML_SUCCESS ? device : nullptr;
}

}  // namespace

void measure(const std::string& uuid, compute_plugin_telemetry& telemetry) {
  const NvmlApi* const nvml = cuda::nvml();
  if (nvml == nullptr || uuid.empty()) return;
  const nvmlDevice device = find_device(*nvml, uuid);
  if (device == nullptr) return;
  nvmlUtilization utilization;
  if (nvml->device_get_utilization_rates(device, &utilization) == NVML_SUCCESS)
    telemetry.utilization_percent = static_cast<int32_t>(std::min(utilization.gpu, 100u));
  uint32_t value = 0;
  if (nvml->device_get_temperature(device, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS)
    telemetry.temperature_millidegrees = static_cast<int32_t>(value) * 1000;
  if (nvml->device_get_power_usage(device, &value) == NVML_SUCCESS) telemetry.power_milliwatts = value;
  nvmlMemoryInfo memory;
  if (nvml->device_get_memory_info(device, &memory) == NVML_SUCCESS)
    telemetry.memory_used_bytes = static_cast<int64_t>(memory.used);
}

std::vector<ProcessOfDevice> processes_of(const std::string& uuid) {
  std::vector<ProcessOfDevice> processes;
  const NvmlApi* const nvml = cuda::nvml();
  const nvmlDevice device = nvml != nullptr && !uuid.empty() ? find_device(*nvml, uuid) : nullptr;
  if (device == nullptr) return processes;
  std::vector<nvmlProcessInfo> found(64);
  auto count = static_cast<uint32_t>(found.size());
  nvmlReturn result = nvml->device_get_processes(device, &count, found.data());
  for (int tries = 0; result == NVML_ERROR_INSUFFICIENT_SIZE && tries < 3; ++tries) {  // others may start meanwhile
    found.resize(size_t{2} * count);
    count = static_cast<uint32_t>(found.size());
    result = nvml->device_get_processes(device, &count, found.data());
  }
  if (result != NVML_SUCCESS) return processes;
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_known = found[i].used_bytes != nvmlProcessInfo::kUnknownBytes;
    processes.push_back({found[i].pid, is_known ? static_cast<int64_t>(found[i].used_bytes) : -1});
  }
  return processes;
}

}  // namespace compute::cuda
