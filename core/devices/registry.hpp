// SPDX-License-Identifier: Apache-2.0
// Which plugins and devices there are, and which one a selector selects. Implemented with loader.hpp, device_choice.hpp
// and config.hpp; opens no device.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/devices/selector.hpp"
#include "core/loading/device_entry.hpp"

struct compute_device;

namespace compute {

struct Plugin;

// The device that a selector selected.
struct DeviceSelection {
  const DeviceEntry* device = nullptr;
  DeviceOptions options;
  std::string chosen_by;  // "COMPUTE_DEVICE", "compute_device_open", "auto", …
  bool strict = false;    // one named device: an op that it does not support is an error, without a fallback
  bool fell_through = false;
};

class Registry {
 public:
  static Registry& instance();

  // `cpu` first, then by plugin name and PCI address. Opens every plugin. If a plugin has run out of memory or
  // descriptors, its devices are left out until a later call; OUT_OF_MEMORY if no device is left. The same holds for
  // select, which and find.
  std::vector<const DeviceEntry*> devices();

  // NULL: COMPUTE_DEVICE, the configuration file, auto. Opens the plugins that the selector can match; for `auto` all
  // plugins. Logs the selection line when a device is chosen for the first time, except if the program itself names
  // `cpu`. Throws NOT_FOUND with the load report, INVALID_ARGUMENT. `open` is called with each candidate in turn and
  // throws if it cannot be opened; then a list continues with the next item.
  DeviceSelection select(const char* selector, const std::function<void(const DeviceSelection&)>& open);

  // The result for `compute which`, without opening a device.
  std::string which(const char* selector, int32_t format);

  std::string load_report(int32_t format);

  // The entry with this canonical name; NULL if there is none. Opens the plugins that it needs.
  const DeviceEntry* find(const char* name);

  // The options that the configured selector gives `cpu`, if that is its first choice. The host device is also opened
  // for memory of the program, which may come first.
  DeviceOptions host_options();

  // Every plugin opened so far, for shutdown and fork.
  std::vector<Plugin*> opened_plugins();
};

}  // namespace compute
