// SPDX-License-Identifier: Apache-2.0
// What a driver does not state and a trial on the device shows.
#pragma once

namespace vulkan {

struct Device;

// Sets Device::is_fused.
void try_fused(Device& device);

}  // namespace vulkan
