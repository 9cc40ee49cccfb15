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

}  // namespace
}  // namespace compute
