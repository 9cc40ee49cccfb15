// SPDX-License-Identifier: Apache-2.0
//
// The choice of a device: what a selector asks for, applied to the devices that are there.
#ifndef COMPUTE_CORE_DEVICE_CHOICE_HPP_
#define COMPUTE_CORE_DEVICE_CHOICE_HPP_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/selector.hpp"

namespace compute {

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

struct Refusal {
  std::string name;    // a selector's item, or a device
  std::string reason;  // one line
};

struct DeviceChoice {
  std::optional<size_t> device;   // an index into the records; empty where nothing matched
  std::optional<size_t> item;     // the selector's item that chose it
  std::vector<Refusal> failures;  // the items that were tried before it, or all
  std::vector<Refusal> others;    // every other device, and why it was not chosen
  std::string warning;            // one line where something better was asked for and could not be had, else empty
};

// Chooses a device; reads nothing but its arguments. An unset selector is taken as `auto`.
//
// `auto` ranks by kind (discrete GPU, integrated GPU, accelerator, CPU), then the manifest's priority, then the
// plugin's score, then name; among CPUs the plugin `cpu` goes first. A caller whose device fails to open marks its
// record as not usable and asks again.
//
// Throws INVALID_ARGUMENT, with a caret, where an item names a device of a platform (`cuda0:1`) and the plugin has
// none.
DeviceChoice choose_device(const Selector& selector, std::span<const DeviceRecord> devices,
                           std::span<const PluginProblem> problems);

// True iff it is a CPU of another plugin than cpu: another view of the processor.
bool is_foreign_cpu(const DeviceRecord& device);

// True iff both are one card, by PCI address, that two plugins see. (Parts of one card in one plugin share an address.)
bool is_same_card(const DeviceRecord& x, const DeviceRecord& y);

// One line that says why `choice` holds no device: `COMPUTE_DEVICE "cuda3": cuda has no device 3 (it has cuda0)`.
std::string failure_message(const Selector& selector, const DeviceChoice& choice);

// The line of the log at first use, without its prefix: `using cuda0: NVIDIA H200 (0000:65:00.0), chosen by auto`.
std::string selection_message(const DeviceRecord& device, std::string_view origin);

}  // namespace compute

#endif  // COMPUTE_CORE_DEVICE_CHOICE_HPP_
