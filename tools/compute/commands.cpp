// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <fmt/format.h>
#include <compute/compute.hpp>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <vector>

namespace {

using compute::check;

constexpr compute_dtype kDtypes[] = {
#define COMPUTE_DTYPE(id, name, NAME, size, category, computed_in, cuda, opencl) COMPUTE_DTYPE_##NAME,
#include <compute/dtypes.def>
#undef COMPUTE_DTYPE
};

std::string bytes_text(int64_t bytes) {
  if (bytes < 0) return "-";
  if (bytes >= int64_t{1} << 30) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

const char* kind_text(int32_t kind) {
  switch (kind) {
    case COMPUTE_DEVICE_KIND_CPU:
      return "CPU";
    case COMPUTE_DEVICE_KIND_DISCRETE_GPU:
      return "discrete GPU";
    case COMPUTE_DEVICE_KIND_INTEGRATED_GPU:
      return "integrated GPU";
    default:
      return "accelerator";
  }
}

// "all 15", or those with arithmetic and in brackets those that are stored only.
std::string dtypes_text(const compute_device_info& info) {
  std::string all, arithmetic;
  size_t count = 0;
  for (const compute_dtype dtype : kDtypes) {
    const uint32_t levels = dtype < info.dtype_count ? info.dtypes[dtype] : 0;
    if ((levels & COMPUTE_DTYPE_ARITHMETIC) != 0) {
      ++count;
      arithmetic += fmt::format("{}{}", arithmetic.empty() ? "" : " ", compute_dtype_name(dtype));
    } else if ((levels & COMPUTE_DTYPE_STORAGE) != 0) {
      arithmetic += fmt::format("{}({})", arithmetic.empty() ? "" : " ", compute_dtype_name(dtype));
    }
  }
  return count == std::size(kDtypes) ? fmt::format("all {}", count) : arithmetic;
}

std::vector<std::string> lines_of(const char* text) {
  std::vector<std::string> lines;
  std::string line;
  for (const char* at = text; *at != 0; ++at) {
    if (*at != '\n') {
      line += *at;
    } else if (!line.empty()) {
      lines.push_back(std::exchange(line, ""));
    }
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

std::vector<compute_device_attribute> attributes_of(const std::string& name) {
  int64_t count = 0;
  check(compute_device_attributes(name.c_str(), nullptr, 0, &count));
  std::vector<compute_device_attribute> attributes(static_cast<size_t>(count));
  if (count > 0) {
    attributes[0].struct_size = sizeof(compute_device_attribute);
    check(compute_device_attributes(name.c_str(), attributes.data(), count, &count));
  }
  return attributes;
}

nlohmann::json device_json(const compute_device_info& info) {
  nlohmann::json dtypes;
  for (const compute_dtype dtype : kDtypes) {
    const uint32_t levels = dtype < info.dtype_count ? info.dtypes[dtype] : 0;
    nlohmann::json names = nlohmann::json::array();
    if ((levels & COMPUTE_DTYPE_STORAGE) != 0) names.push_back("storage");
    if ((levels & COMPUTE_DTYPE_CONVERT) != 0) names.push_back("convert");
    if ((levels & COMPUTE_DTYPE_ARITHMETIC) != 0) names.push_back("arithmetic");
    if ((levels & COMPUTE_DTYPE_MATMUL) != 0) names.push_back("matmul");
    dtypes[compute_dtype_name(dtype)] = names;
  }
  return {{"name", info.name},
          {"plugin", info.plugin},
          {"description", info.description},
          {"vendor", info.vendor},
          {"kind", kind_text(info.kind)},
          {"driver_version", info.driver_version},
          {"pci_address", info.pci_address},
          {"uuid", info.uuid},
          {"same_as", info.same_as},
          {"memory_bytes", info.memory_bytes},
          {"libraries", lines_of(info.libraries)},
          {"dtypes", dtypes}};
}

std::string text_of(compute_error* (*call)(int32_t, compute_text**), int32_t format) {
  compute::detail::TextFree text;
  check(call(format, &text.text));
  return text.str();
}

std::string settings_text() {
  compute::detail::TextFree text;
  check(compute_config_get(nullptr, &text.text));
  std::string out;
  for (const std::string& line : lines_of(text.str().c_str())) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    out += fmt::format("{:<24} {:<24} {}\n", line.substr(0, first), line.substr(first + 1, second - first - 1),
                       line.substr(second + 1));
  }
  return out;
}

}  // namespace

int show_devices(bool json, bool verbose) {
  const std::vector<compute_device_info> infos = compute::Device::list();
  if (json) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& info : infos) all.push_back(device_json(info));
    fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{:<14} {:<36} {:<16} {:<14} {:>11}  {:<10} {}\n", "name", "description", "kind", "PCI", "memory",
             "dtypes", "libraries");
  for (const auto& info : infos) {
    const std::vector<std::string> libraries = lines_of(info.libraries);
    const std::string dtypes = dtypes_text(info);
    std::string names;  // the first word of each line
    for (const std::string& line : libraries)
      names += (names.empty() ? "" : ", ") + line.substr(0, line.find_first_of(" :,"));
    fmt::print("{:<14} {:<36.36} {:<16} {:<14} {:>11}  {:<10} {}{}\n", info.name, info.description,
               kind_text(info.kind), info.pci_address[0] != 0 ? info.pci_address : "-", bytes_text(info.memory_bytes),
               dtypes.size() <= 10 ? dtypes : "some", names.empty() ? "-" : names,
               info.same_as[0] != 0 ? fmt::format("  (the same as {})", info.same_as) : "");
    if (!verbose) continue;
    fmt::print("    vendor {}, driver {}, uuid {}\n    dtypes {}\n", info.vendor,
               info.driver_version[0] != 0 ? info.driver_version : "-", info.uuid[0] != 0 ? info.uuid : "-", dtypes);
    for (const std::string& line : libraries) fmt::print("    {}\n", line);
  }
  if (verbose) fmt::print("\n{}", compute::load_report());
  return 0;
}

int show_which(const std::string& selector, bool json) {
  compute::detail::TextFree text;
  check(compute_device_which(selector.empty() ? nullptr : selector.c_str(),
                             json ? COMPUTE_FORMAT_JSON : COMPUTE_FORMAT_TEXT, &text.text));
  const std::string answer = text.str();
  fmt::print("{}{}", answer, !answer.empty() && answer.back() == '\n' ? "" : "\n");
  return 0;
}

int show_info(const std::string& selector) {
  const compute::Device device = selector.empty() ? compute::Device::open() : compute::Device::open(selector);
  const compute_device_info info = device.info();
  const auto row = [](const std::string& name, const std::string& value) {
    if (!value.empty()) fmt::print("  {:<44} {}\n", name, value);
  };
  fmt::print("Device {}: {}\n", info.name, info.description);
  row("plugin", info.plugin);
  row("kind", kind_text(info.kind));
  row("vendor", info.vendor);
  row("driver version", info.driver_version);
  row("PCI address", info.pci_address);
  row("UUID", info.uuid);
  row("same as", info.same_as);
  row("memory",
      info.memory_bytes >= 0 ? fmt::format("{} bytes ({})", info.memory_bytes, bytes_text(info.memory_bytes)) : "");
  row("dtypes with arithmetic (stored only)", dtypes_text(info));
  for (const std::string& line : lines_of(info.libraries)) row("library", line);
  for (const auto& attribute : attributes_of(info.name)) {
    std::string name = attribute.name;
    for (char& c : name) c = c == '_' ? ' ' : c;
    row(name, attribute.value);
  }
  const compute_device_statistics statistics = device.statistics();
  row("memory available", statistics.memory_available >= 0 ? bytes_text(statistics.memory_available) : "");
  row("memory limit", statistics.memory_limit >= 0 ? bytes_text(statistics.memory_limit) : "none");

  // An allocation, a copy there, a kernel and a copy back, checked.
  constexpr int64_t kCount = 1000;
  std::vector<int32_t> values(kCount);
  for (int64_t i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  const compute::Tensor x = device.from_host(values);
  const std::vector<int32_t> doubled = compute::add(x, x).to_vector<int32_t>();
  bool good = doubled.size() == values.size();
  for (size_t i = 0; good && i < values.size(); ++i) good = doubled[i] == 2 * values[i];
  fmt::print("Result = {}\n", good ? "PASS" : "FAIL");
  return good ? 0 : 1;
}

int show_doctor(bool environment) {
  // Each plugin is tried in a process of its own first, whatever was found before: one that crashes shows up as a line
  // of the report.
  check(compute_config_set("COMPUTE_PROBE", "always"));
  fmt::print("{}", text_of(compute_load_report, COMPUTE_FORMAT_TEXT));
  if (environment) fmt::print("\n{}", settings_text());
  return 0;
}

int show_config() {
  fmt::print("{}", settings_text());
  return 0;
}

int show_version() {
  int32_t major = 0, minor = 0, patch = 0;
  compute_version(&major, &minor, &patch);
  fmt::print("compute {}.{}.{} (library {}.{}.{})\n", COMPUTE_VERSION_MAJOR, COMPUTE_VERSION_MINOR,
             COMPUTE_VERSION_PATCH, major, minor, patch);
  return 0;
}
