// SPDX-License-Identifier: Apache-2.0
// The functions of NVML, NVIDIA's library for monitoring, that this plugin calls: its own declarations, which a test
// compares with nvml.h.
#pragma once

#include <cstdint>

namespace compute::cuda {

using nvmlReturn = int32_t;
using nvmlDevice = struct nvmlDevice_st*;

enum : int32_t {
  NVML_SUCCESS = 0,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_TEMPERATURE_GPU = 0
};

struct nvmlUtilization {
  uint32_t gpu = 0;  // percent of the last sample period in which a kernel ran
  uint32_t memory = 0;
};

struct nvmlMemoryInfo {
  uint32_t version = sizeof(nvmlMemoryInfo) | 2u << 24;
  uint64_t total = 0;
  uint64_t reserved = 0;
  uint64_t free = 0;
  uint64_t used = 0;  // without what the driver reserves
};

struct nvmlProcessInfo {
  uint32_t pid = 0;
  uint64_t used_bytes = 0;  // kUnknownBytes: not available
  uint32_t gpu_instance = 0;
  uint32_t compute_instance = 0;

  static constexpr uint64_t kUnknownBytes = ~uint64_t{0};
};

// FUNCTION(member of NvmlApi, exported symbol, result, parameters); drivers for CUDA 12 have all of them.
#define COMPUTE_NVML_FUNCTIONS(FUNCTION)                                                                             \
  FUNCTION(init, nvmlInit_v2, nvmlReturn, ())                                                                        \
  FUNCTION(device_get_handle_by_uuid, nvmlDeviceGetHandleByUUID, nvmlReturn, (const char* uuid, nvmlDevice* device)) \
  FUNCTION(device_get_utilization_rates, nvmlDeviceGetUtilizationRates, nvmlReturn,                                  \
           (nvmlDevice device, nvmlUtilization * utilization))                                                       \
  FUNCTION(device_get_temperature, nvmlDeviceGetTemperature, nvmlReturn,                                             \
           (nvmlDevice device, int32_t sensor, uint32_t * degrees))                                                  \
  FUNCTION(device_get_power_usage, nvmlDeviceGetPowerUsage, nvmlReturn, (nvmlDevice device, uint32_t * milliwatts))  \
  FUNCTION(device_get_memory_info, nvmlDeviceGetMemoryInfo_v2, nvmlReturn,                                           \
           (nvmlDevice device, nvmlMemoryInfo * memory))                                                             \
  FUNCTION(device_get_processes, nvmlDeviceGetComputeRunningProcesses_v3, nvmlReturn,                                \
           (nvmlDevice device, uint32_t * count, nvmlProcessInfo * processes))

struct NvmlApi {
#define COMPUTE_NVML_MEMBER(member, symbol, result, parameters) result(*member) parameters;
  COMPUTE_NVML_FUNCTIONS(COMPUTE_NVML_MEMBER)
#undef COMPUTE_NVML_MEMBER
};

}  // namespace compute::cuda
