// SPDX-License-Identifier: Apache-2.0
#include "system.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string without_prefix(const std::string& text, const char* prefix) {
  return text.starts_with(prefix) ? text.substr(std::strlen(prefix)) : text;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<PciDevice> pci_devices(const std::string& root) {
  std::vector<PciDevice> found;
  for (const fs::path& folder : entries_of(root + "/sys/bus/pci/devices")) {
    // Display controllers, and processing accelerators.
    const std::string kind = first_line(folder / "class");
    if (!kind.starts_with("0x03") && !kind.starts_with("0x12")) continue;
    PciDevice device;
    device.address = folder.filename();
    device.ids =
        without_prefix(first_line(folder / "vendor"), "0x") + ":" + without_prefix(first_line(folder / "device"), "0x");
    std::error_code error;
    const fs::path driver = fs::read_symlink(folder / "driver", error);
    if (!error) device.driver = driver.filename();
    found.push_back(device);
  }
  return found;
}

std::string remedy_for(const PciDevice& device) {
  if (device.driver == "vfio-pci")
    return "it is reserved for virtual machines (vfio-pci); bind it to its vendor's driver to use it here";
  const bool has_driver = !device.driver.empty();
  if (device.ids.starts_with("10de:")) {
    return has_driver && device.driver != "nouveau" ? "install libcuda1, or nvidia-opencl-icd, of the driver's version"
                                                    : "install nvidia-driver; nouveau does not run compute programs";
  }
  if (device.ids.starts_with("1002:")) return "install mesa-opencl-icd or rocm-opencl-icd";
  if (device.ids.starts_with("8086:")) return "install intel-opencl-icd";
  return has_driver ? "if it supports compute, install its vendor's OpenCL driver or plugin"
                    : "no kernel driver is bound; install its vendor's driver";
}

std::vector<std::string> closed_device_nodes(const std::string& root) {
  std::vector<fs::path> nodes = entries_of(root + "/dev/dri");
  for (const fs::path& node : entries_of(root + "/dev")) {
    const std::string name = node.filename();
    if (name.starts_with("nvidia") || name == "kfd") nodes.push_back(node);
  }
  std::vector<std::string> closed;
  for (const fs::path& node : nodes) {
    std::error_code error;
    const std::string name = node.filename();
    if (!fs::is_character_file(node, error) || name.starts_with("card")) continue;  // renderD* serves programs
    if (access(node.c_str(), R_OK | W_OK) == 0) continue;
    closed.push_back(fmt::format("{}: {}; join the group that owns it (often render or video)", node.string(),
                                 std::strerror(errno)));
  }
  return closed;
}

std::string system_name() {
  utsname name{};
  uname(&name);
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

std::string compiler_in(const nlohmann::json& load_report) {
  std::string path;
  for (const nlohmann::json& plugin : load_report["plugins"]) {
    for (const nlohmann::json& one : plugin.value("requirements", nlohmann::json::array()))
      if (one["name"] == "C++ compiler") path = one["found"];
  }
  if (path.empty() || path.find('\'') != std::string::npos) return path;
  std::array<char, 256> line{};
  if (FILE* const output = popen(("LC_ALL=C '" + path + "' --version 2>/dev/null").c_str(), "re")) {
    if (std::fgets(line.data(), line.size(), output) == nullptr) line[0] = '\0';
    pclose(output);
  }
  const std::string version(line.data(), std::strcspn(line.data(), "\n"));
  return version.empty() ? path : path + ": " + version;
}

std::vector<std::string> gpu_modules(const std::string& root) {
  std::vector<std::string> found;
  for (const char* module : {"nvidia", "nouveau", "amdgpu", "i915", "xe"}) {
    const fs::path folder = fs::path(root + "/sys/module") / module;
    std::error_code error;
    if (!fs::exists(folder, error)) continue;
    const std::string version = first_line(folder / "version");
    found.push_back(version.empty() ? module : fmt::format("{} {}", module, version));
  }
  return found;
}
