// SPDX-License-Identifier: Apache-2.0
// Opening devices.
#pragma once

#include "core/devices/device.hpp"

namespace compute {

// Opens a device, or returns it if it is already open. A NULL selector means the same as in compute_device_open.
Device& open_device(const char* selector);
Device& host_device();

// Scalars are on the host.
Device& device_of(const compute_tensor& tensor);

}  // namespace compute
