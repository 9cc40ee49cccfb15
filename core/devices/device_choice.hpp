// SPDX-License-Identifier: Apache-2.0
// The choice of a device: applies a selector to the devices that there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/devices/selector.hpp"
#include "core/loading/device_entry.hpp"

namespace compute {

struct Refusal {
  std::string name;    // a selector's item, or a device
  std::string reason;  // one line
};

struct DeviceChoice {
  std::optional<size_t> device;   // an index into the records; empty if nothing matched
  std::optional<size_t> item;     // the selector's item that chose it
  std::vector<Refusal> failures;  // the items tried before it; all if no device was chosen
  std::vector<Refusal> others;    // every other device, and why it was not chosen
  std::string warning;            // one line if a preferred device was requested but is not usable, else empty
};

// Chooses a device; depends only on its arguments. An unset selector means `auto`.
//
// `auto` ranks by kind (discrete GPU, integrated GPU, accelerator, CPU), then the manifest's priority, then the
// plugin's score, then name. Among CPUs the plugin `cpu` comes first. If a device fails to open, the caller marks its
// record as not usable and asks again.
//
// Throws INVALID_ARGUMENT, with a caret, if an item names a device of a platform (`cuda0:1`) and the plugin has no
// platforms.
DeviceChoice choose_device(const Selector& selector, std::span<const DeviceRecord> devices,
                           std::span<const PluginProblem> problems);

// One line that states why `choice` contains no device: `COMPUTE_DEVICE "cuda3": cuda has no device 3 (it has cuda0)`.
std::string failure_message(const Selector& selector, const DeviceChoice& choice);

// The line of the log at first use, without its prefix: `using cuda0: NVIDIA H200 (0000:65:00.0), chosen by auto`.
std::string selection_message(const DeviceRecord& device, std::string_view origin);

}  // namespace compute
