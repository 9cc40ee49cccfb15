// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compute/compute.hpp>
#include <cstring>

// Whether the device's driver is real, and not the fake one, which accepts kernels but does not run them.
inline bool runs_kernels(const compute::Device& device) {
  compute_device_info info{};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_STRUCT_DEVICE_INFO;
  compute::check(compute_device_get_info(device.get(), &info));
  return std::strncmp(info.description, "Fake", 4) != 0;
}
