// SPDX-License-Identifier: Apache-2.0
// Devices before they are opened: as plugins enumerate them, with the data for choosing one.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace compute {

struct Plugin;

// A device that a plugin enumerated, or `cpu` without its plugin. Never destroyed, and neither are the strings of
// `info`.
struct DeviceEntry {
  compute_device_info info{};
  std::vector<uint32_t> dtypes;  // levels of support by dtype id
  std::vector<std::pair<std::string, std::string>> properties;
  std::string unusable;      // "", or why it cannot be opened
  std::string no_ops;        // "", or why it runs none: `cpu` without its plugin
  Plugin* plugin = nullptr;  // NULL: `cpu` without its plugin
  uint64_t id = 0;           // for the plugin's device_open
};

// The data of a device before it is opened.
struct DeviceRecord {
  std::string name;    // `cuda0`, `opencl0:1`
  std::string plugin;  // `cuda`, `opencl`
  int32_t kind = 0;    // COMPUTE_DEVICE_KIND_
  int32_t flat_index = 0;
  int32_t platform_index = -1;  // -1: the plugin has no platforms
  int32_t device_index = 0;     // within the platform, or equal to the flat index
  std::string pci;              // empty if the device has none
  std::string uuid;
  std::string description;  // `NVIDIA H200`
  std::string platform;     // the platform's names, one a line
  bool usable = true;
  bool runs_ops = true;  // false: `cpu` without its plugin, which has only memory and copies
  std::string problem;   // why it is not usable
  int32_t priority = 0;  // the manifest's; higher is preferred
  int32_t score = 0;     // the plugin's own; higher is preferred
};

// The reason why a plugin has no device: `no NVIDIA driver: tried libcuda.so.1`.
struct PluginProblem {
  std::string plugin;
  std::string problem;
  std::string path = {};  // of the plugin
};

// True iff it is a CPU device of another plugin than cpu: it represents the same processor.
bool is_foreign_cpu(const DeviceRecord& device);

// True iff two plugins list the same card, by PCI address. (Partitions of one card in one plugin share an address.)
bool is_same_card(const DeviceRecord& x, const DeviceRecord& y);

}  // namespace compute
