// SPDX-License-Identifier: Apache-2.0
#include "core/devices/opened_devices.hpp"

#include <algorithm>
#include <atomic>

namespace compute {
namespace {

std::atomic<Device*> opened_last{nullptr};

}  // namespace

Device* last_opened_device() noexcept { return opened_last.load(std::memory_order_acquire); }

std::vector<Device*> open_devices() {
  std::vector<Device*> devices;
  for (Device* device = last_opened_device(); device != nullptr; device = device->opened_before)
    devices.push_back(device);
  std::reverse(devices.begin(), devices.end());
  return devices;
}

Device& add_opened_device(std::unique_ptr<Device> device) noexcept {
  device->opened_before = opened_last.load(std::memory_order_relaxed);
  opened_last.store(device.get(), std::memory_order_release);
  return *device.release();
}

}  // namespace compute
