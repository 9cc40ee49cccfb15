// SPDX-License-Identifier: Apache-2.0
#include "core/loading/device_entry.hpp"

#include "core/loading/pci_address.hpp"

namespace compute {

bool is_foreign_cpu(const DeviceRecord& device) {
  return device.kind == COMPUTE_DEVICE_KIND_CPU && device.plugin != "cpu";
}

bool is_same_card(const DeviceRecord& x, const DeviceRecord& y) {
  const std::optional<std::string> address = canonical_pci_address(x.pci);
  return x.plugin != y.plugin && address && address == canonical_pci_address(y.pci);
}

}  // namespace compute
