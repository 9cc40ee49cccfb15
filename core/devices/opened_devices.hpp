// SPDX-License-Identifier: Apache-2.0
// The devices that are open.
#pragma once

#include <memory>
#include <vector>

#include "core/devices/device.hpp"

namespace compute {

// In the order of opening.
std::vector<Device*> open_devices();

// The head of the list that continues with opened_before; NULL before the first device is opened. Takes no lock.
Device* last_opened_device() noexcept;

// Devices are never destroyed. Called by one thread at a time.
Device& add_opened_device(std::unique_ptr<Device> device) noexcept;

}  // namespace compute
