// SPDX-License-Identifier: Apache-2.0
// The devices that a plugin enumerates: copied, numbered and named.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/loading/device_entry.hpp"
#include "core/loading/load_report.hpp"
#include "core/loading/pci_address.hpp"

namespace compute {

// A device as the plugin passed it.
// As in compute_device_info; 0: unknown.
struct KernelLimits {
  int32_t subgroup_size_min = 0, subgroup_size_max = 0;
  int64_t local_memory_bytes = 0, argument_bytes = 0;
  int32_t max_group_size = 0, atomic_alignment = 0;
};

struct ListedDevice {
  uint64_t id = 0;
  std::string description, vendor, driver_version, pci_address, uuid, libraries, unusable, platform;
  int64_t memory_bytes = -1;
  int32_t kind = 0;
  int32_t score = 0;
  int32_t platform_index = -1;
  int32_t subnormals = COMPUTE_SUBNORMALS_UNKNOWN;
  KernelLimits limits;
  std::vector<uint32_t> dtypes;  // levels of support by dtype id
  std::vector<std::pair<std::string, std::string>> properties;
};

struct Listing {
  std::vector<ListedDevice> devices;
  std::vector<RequirementReport> requirements;
  std::string fault;               // how the plugin violated its contract or failed; other devices may still be usable
  std::vector<std::string> notes;  // devices that were left out
  bool is_short = false;           // the fault is a temporary shortage
};

// Calls the plugin's enumerate; catches all its exceptions.
Listing list_devices(Plugin& plugin);

// A device with its name, and the data for choosing it.
struct KnownDevice {
  DeviceEntry* entry = nullptr;  // immortal
  DeviceRecord record;
};

// Numbers and names the devices of a plugin, in the order of PCI addresses; devices without an address keep their order
// and come last. If the plugin has platforms, this is done within each platform. Platforms with devices are numbered
// from 0 in the plugin's order; platforms without devices have no number. The only device of the plugin `cpu` is called
// cpu, and a CPU device of any other plugin is marked as the same.
std::vector<KnownDevice> name_devices(const std::string& plugin_name, Plugin* plugin, std::vector<ListedDevice> listed);

}  // namespace compute
