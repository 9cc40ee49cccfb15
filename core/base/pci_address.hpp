// SPDX-License-Identifier: Apache-2.0
// PCI addresses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace compute {

// The usual form of a PCI address (`0000:65:00.0`), or nothing. Takes short and long domains, and upper case.
std::optional<std::string> canonical_pci_address(std::string_view text);

}  // namespace compute
