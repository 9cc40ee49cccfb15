// SPDX-License-Identifier: Apache-2.0
// What core adds to a plugin's list of devices.
#include "core/loading/device_listing.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/loading/pci_address.hpp"

namespace compute {
namespace {

namespace fs = std::filesystem;

TEST(PciIdsTest, AreWhatTheSystemSays) {
  std::string pattern = (fs::temp_directory_path() / "compute-pci-XXXXXX").string();
  const fs::path folder = mkdtemp(pattern.data());
  fs::create_directories(folder / "0000:65:00.0");
  std::ofstream(folder / "0000:65:00.0/vendor") << "0x10de\n";
  std::ofstream(folder / "0000:65:00.0/device") << "0x2335\n";
  const PciIds ids = read_pci_ids("0000:65:00.0", folder);
  EXPECT_EQ(ids.vendor, 0x10deU);
  EXPECT_EQ(ids.device, 0x2335U);
  EXPECT_EQ(read_pci_ids("0000:66:00.0", folder).vendor, 0U);
  EXPECT_EQ(read_pci_ids("65:00.0", folder).vendor, 0U) << "not in the usual form";
  EXPECT_EQ(read_pci_ids("../0000:65:00.0", folder).vendor, 0U);
  std::ofstream(folder / "0000:65:00.0/vendor") << "10de\n";
  EXPECT_EQ(read_pci_ids("0000:65:00.0", folder).vendor, 0U);
  fs::remove_all(folder);
}

using Properties = std::vector<std::pair<std::string, std::string>>;

TEST(DeviceListing, AddsPartitionsAndPciIdsToTheProperties) {
  std::vector<ListedDevice> listed(3);
  listed[0].id = 7;
  listed[0].pci_ids = {0x1002, 0x74a1};
  listed[1].id = 8;
  listed[1].parent_id = 7;
  listed[2].id = 9;
  listed[2].parent_id = 99;  // of a device that is not listed
  listed[2].pci_ids = {0x1002, 0};
  listed[2].properties = {{"pci_vendor_id", "its own word"}};
  const std::vector<KnownDevice> known = name_devices("acme", nullptr, std::move(listed));
  EXPECT_EQ(known[0].entry->properties, (Properties{{"pci_vendor_id", "0x1002"}, {"pci_device_id", "0x74a1"}}));
  EXPECT_EQ(known[1].entry->properties, (Properties{{"partition_of", "acme0"}}));
  EXPECT_EQ(known[2].entry->properties, (Properties{{"pci_vendor_id", "its own word"}}));
}

}  // namespace
}  // namespace compute
