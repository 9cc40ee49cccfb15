// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 for the devices of the fake driver.
//
//   FAKE_NVML  broken: it cannot be initialized; other: it knows other devices; parts: the devices are parts of GPUs
//              (MIG), of which it measures the memory alone
#include <cstdlib>
#include <string>
#include <string_view>

#include "plugins/cuda/nvml_api.hpp"

using namespace compute::cuda;

namespace compute::cuda {
struct nvmlDevice_st {
  const char* uuid;  // as the fake driver says, without its prefix
  nvmlUtilization utilization;
  uint32_t degrees, milliwatts;
  uint64_t used;
};
}  // namespace compute::cuda

namespace {

// In another order than the driver's.
nvmlDevice_st devices[] = {
    {"10111213-1415-1617-1819-1a1b1c1d1e1f", {0, 0}, 52, 98765, uint64_t{3} << 28},
    {"00010203-0405-0607-0809-0a0b0c0d0e0f", {37, 12}, 41, 123456, uint64_t{1} << 28},
};

bool is(std::string_view wanted) {
  const char* text = std::getenv("FAKE_NVML");
  return text != nullptr && text == wanted;
}

template <class T>
nvmlReturn answer(T value, T* out) {
  if (is("parts")) return NVML_ERROR_NOT_SUPPORTED;
  *out = value;
  return NVML_SUCCESS;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) nvmlReturn

FAKE nvmlInit_v2() { return is("broken") ? 9 : NVML_SUCCESS; }

FAKE nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice* device) {
  for (nvmlDevice_st& one : devices) {
    if (is("other") || (is("parts") ? "MIG-" : "GPU-") + std::string(one.uuid) != uuid) continue;
    *device = &one;
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

FAKE nvmlDeviceGetUtilizationRates(nvmlDevice device, nvmlUtilization* utilization) {
  return answer(device->utilization, utilization);
}

FAKE nvmlDeviceGetTemperature(nvmlDevice device, int32_t, uint32_t* degrees) {
  return answer(device->degrees, degrees);
}

FAKE nvmlDeviceGetPowerUsage(nvmlDevice device, uint32_t* milliwatts) { return answer(device->milliwatts, milliwatts); }

FAKE nvmlDeviceGetMemoryInfo_v2(nvmlDevice device, nvmlMemoryInfo* memory) {
  if (memory->version != 0x2000028) return 25;  // NVML_ERROR_ARGUMENT_VERSION_MISMATCH
  memory->used = device->used;
  return NVML_SUCCESS;
}

// 70 processes, more than a caller guesses at first. The second one's memory is unknown.
FAKE nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice device, uint32_t* count, nvmlProcessInfo* processes) {
  if (is("parts")) return NVML_ERROR_NOT_SUPPORTED;
  constexpr uint32_t kCount = 70;
  const bool fits = *count >= kCount;
  *count = kCount;
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (uint32_t i = 0; i < kCount; ++i) {
    processes[i] = {1000 + i, i == 1 ? nvmlProcessInfo::kUnknownBytes : device->used, 0, 0};
  }
  return NVML_SUCCESS;
}
