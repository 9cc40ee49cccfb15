// SPDX-License-Identifier: Apache-2.0
// Platforms and devices, in an order that does not change between boots, and their properties.
#pragma once

#include <string>
#include <vector>

#include "plugins/common/source/generator.hpp"
#include "plugins/opencl/api.hpp"

namespace compute::opencl {

// Features to avoid on a device; see faults.inc.
enum class Fault : uint8_t {
  kHalfIo,         // float16 is converted with integer code
  kWideIntrinsic,  // the float32 form of an intrinsic exceeds its bound
  kBinaries,       // programs are not stored on disk
  kFp64,           // float64 is not used
  kClblast,        // CLBlast is used only where the setting asks for it
  kDevice          // the device is not used
};

struct KnownFault {
  Fault avoid;
  int32_t argument;
  const char* reason;
};

struct DeviceInfo {
  uint64_t id = 0;  // 1 + its index among all devices
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  int32_t platform_number = 0;  // from 1
  std::string platform_name, platform_version, platform_suffix, name, vendor, driver_version, version, c_version,
      extensions, pci_address, uuid;
  uint64_t type = 0;
  int64_t memory_bytes = 0, max_allocation_bytes = 0;
  int32_t base_alignment = 128;  // alignment of sub-buffers, in bytes
  bool is_unified = false;
  int32_t max_group_size = 0;
  bool keeps_subnormals = true;  // of float32; float64 always does
  std::string unusable;
  std::vector<KnownFault> faults;
  common::Dialect dialect;

  // NULL if the device is not known to have it.
  const KnownFault* known(Fault fault) const;
  bool avoids(Fault fault) const { return known(fault) != nullptr; }
  bool has_extension(std::string_view name) const;

  // In keys of the cache on disk.
  std::string model() const { return platform_name + "\n" + name + "\n" + vendor; }
  std::string driver() const { return platform_version + "\n" + version + "\n" + driver_version; }
};

/// All devices. `out_status` is the result of clGetPlatformIDs.
/// `out_idle` gets the names of platforms without a device.
std::vector<DeviceInfo> list_devices(cl_int* out_status, std::string* out_idle = nullptr);

}  // namespace compute::opencl
