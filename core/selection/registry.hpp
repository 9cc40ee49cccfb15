// SPDX-License-Identifier: Apache-2.0
// Which plugins and devices there are, and which one a selector means. Implemented on loader.hpp, device_choice.hpp and
// config.hpp; opens no device.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/loading/device_entry.hpp"
#include "core/selection/selector.hpp"

struct compute_device;

namespace compute {

struct Plugin;

// What a selector came to.
struct DeviceSelection {
  const DeviceEntry* device = nullptr;
  DeviceOptions options;
  std::string chosen_by;  // "COMPUTE_DEVICE", "compute_device_open", "auto", …
  bool strict = false;    // one named device: work that it cannot do is an error, not a fallback
  bool fell_through = false;
};

class Registry {
 public:
  static Registry& instance();

  // `cpu` first, then by plugin name and PCI address. Opens every plugin. Those of a plugin that lacks something now
  // (memory, descriptors) are left out until a later call; OUT_OF_MEMORY where nothing is left. The same goes for
  // select, which and find.
  std::vector<const DeviceEntry*> devices();

  // NULL: COMPUTE_DEVICE, the config file, auto. Opens the plugins that the selector can match, `auto` all of them.
  // Logs the selection line when a device is chosen for the first time, except where the program itself names `cpu`.
  // Throws NOT_FOUND with the load report, INVALID_ARGUMENT. `open` is called with each candidate in turn and throws
  // where it cannot be opened: a list falls through to the next.
  DeviceSelection select(const char* selector, const std::function<void(const DeviceSelection&)>& open);

  // The answer of `compute which`, without opening anything.
  std::string which(const char* selector, int32_t format);

  std::string load_report(int32_t format);

  // The entry with that canonical name, opening the plugins that it needs; NULL if there is none.
  const DeviceEntry* find(const char* name);

  // Every plugin opened so far, for shutdown and fork.
  std::vector<Plugin*> opened_plugins();
};

}  // namespace compute
