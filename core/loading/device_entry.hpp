// SPDX-License-Identifier: Apache-2.0
// Devices before they are opened: as plugins enumerate them, and what a choice needs to know.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace compute {

struct Plugin;

// A device that some plugin enumerated, or `cpu` without its plugin. Immortal; the strings of `info` live as long.
struct DeviceEntry {
  compute_device_info info{};
  std::vector<uint32_t> dtypes;  // levels of support by dtype id
  std::vector<std::pair<std::string, std::string>> properties;
  std::string unusable;      // "", or why it cannot be opened
  std::string no_ops;        // "", or why it runs none: `cpu` without its plugin
  Plugin* plugin = nullptr;  // NULL: `cpu` without its plugin
  uint64_t id = 0;           // for the plugin's device_open
};

// What is known of a device before it is opened.
struct DeviceRecord {
  std::string name;    // `cuda0`, `opencl0:1`
  std::string plugin;  // `cuda`, `opencl`
  int32_t kind = 0;    // COMPUTE_DEVICE_KIND_
  int32_t flat_index = 0;
  int32_t platform_index = -1;  // -1: the plugin has no platforms
  int32_t device_index = 0;     // within the platform, or equal to the flat index
  std::string pci;              // empty where the device has none
  std::string uuid;
  std::string description;  // `NVIDIA H200`
  std::string platform;     // the platform's names, one a line
  bool usable = true;
  bool runs_ops = true;  // false: `cpu` without its plugin, which has memory and copies alone
  std::string problem;   // why it is not usable
  int32_t priority = 0;  // the manifest's; higher is preferred
  int32_t score = 0;     // the plugin's own; higher is preferred
};

// Why a plugin has no device: `no NVIDIA driver: tried libcuda.so.1`.
struct PluginProblem {
  std::string plugin;
  std::string problem;
};

// True iff it is a CPU of another plugin than cpu: another view of the processor.
bool is_foreign_cpu(const DeviceRecord& device);

// True iff both are one card, by PCI address, that two plugins see. (Parts of one card in one plugin share an address.)
bool is_same_card(const DeviceRecord& x, const DeviceRecord& y);

}  // namespace compute
