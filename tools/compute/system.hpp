// SPDX-License-Identifier: Apache-2.0
// What the operating system says about devices. `root` is the folder above its /sys and /dev; "" is the system's own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

struct PciDevice {
  std::string address;  // 0000:65:00.0
  std::string ids;      // 10de:2335
  std::string driver;   // the kernel's; "" if none drives it
};

// GPUs and accelerators.
std::vector<PciDevice> pci_devices(const std::string& root);

// What would make a GPU usable that no plugin drives.
std::string remedy_for(const PciDevice& device);

// Device nodes of GPUs that this user cannot open, with the reason.
std::vector<std::string> closed_device_nodes(const std::string& root);

// "Linux 6.1.0 x86_64"
std::string system_name();

// "/usr/bin/clang++: Debian clang version 14.0.6": the C++ compiler that a load report in JSON names, asked for its
// version; "" without one.
std::string compiler_in(const nlohmann::json& load_report);

// The kernel modules of GPUs that are loaded, with their versions.
std::vector<std::string> gpu_modules(const std::string& root);
