// SPDX-License-Identifier: Apache-2.0
// PCI addresses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace compute {

// The usual form of a PCI address (`0000:65:00.0`), or nothing. Accepts short and long domains, and upper case.
std::optional<std::string> canonical_pci_address(std::string_view text);

// The ids of a card; 0: unknown.
struct PciIds {
  uint32_t vendor = 0, device = 0;
};

// What the system reports about the card at a canonical address; `folder` is where the system lists all cards.
PciIds read_pci_ids(std::string_view address, const std::filesystem::path& folder = "/sys/bus/pci/devices");

}  // namespace compute
