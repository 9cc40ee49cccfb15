// SPDX-License-Identifier: Apache-2.0
// The driver's data about its devices, without a context on any of them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plugins/cuda/driver_api.hpp"

namespace compute::cuda {

struct DeviceInfo {
  CUdevice handle = 0;
  int ordinal = 0;  // the driver's number, which depends on CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER
  std::string name;
  std::string pci_address;
  std::string uuid;
  int64_t memory_bytes = -1;
  bool is_integrated = false;
  bool has_fast_doubles = false;  // half as many operations a second as in single precision
  int compute_capability = 0;     // 90 for 9.0
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int threads_per_block = 0;
  int warp_size = 0;
  int64_t shared_bytes_per_block = 0;
  int64_t shared_bytes_per_block_opt_in = 0;
  std::string unusable;
  std::vector<std::pair<std::string, std::string>> properties;
};

/// Devices in the order of their PCI addresses. The driver must be open.
std::vector<DeviceInfo> read_devices();

}  // namespace compute::cuda
