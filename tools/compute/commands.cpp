// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <fmt/format.h>
#include <compute/compute.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using compute::DeviceInfo;
using compute::DeviceKind;
using compute::DType;
using compute::DTypeSupport;

std::string bytes_text(int64_t bytes) {
  if (bytes < 0) return "-";
  if (bytes >= int64_t{1} << 30) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

const char* kind_text(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return "CPU";
    case DeviceKind::discrete_gpu:
      return "discrete GPU";
    case DeviceKind::integrated_gpu:
      return "integrated GPU";
    default:
      return "accelerator";
  }
}

// "all 15", or those with arithmetic and in brackets those that are stored only.
std::string dtypes_text(const DeviceInfo& info) {
  std::string all, arithmetic;
  size_t count = 0;
  for (const DType dtype : kDtypes) {
    if (info.supports(dtype, DTypeSupport::arithmetic)) {
      ++count;
      arithmetic += fmt::format("{}{}", arithmetic.empty() ? "" : " ", dtype.name());
    } else if (info.supports(dtype, DTypeSupport::storage)) {
      arithmetic += fmt::format("{}({})", arithmetic.empty() ? "" : " ", dtype.name());
    }
  }
  return count == std::size(kDtypes) ? fmt::format("all {}", count) : arithmetic;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::string line;
  for (const char c : text) {
    if (c != '\n') {
      line += c;
    } else if (!line.empty()) {
      lines.push_back(std::exchange(line, ""));
    }
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

nlohmann::json device_json(const DeviceInfo& info) {
  nlohmann::json dtypes;
  for (const DType dtype : kDtypes) {
    nlohmann::json names = nlohmann::json::array();
    if (info.supports(dtype, DTypeSupport::storage)) names.push_back("storage");
    if (info.supports(dtype, DTypeSupport::convert)) names.push_back("convert");
    if (info.supports(dtype, DTypeSupport::arithmetic)) names.push_back("arithmetic");
    if (info.supports(dtype, DTypeSupport::matmul)) names.push_back("matmul");
    dtypes[std::string(dtype.name())] = names;
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

void print_json(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Opens the device.
std::string free_memory_text(const std::string& name) {
  try {
    const compute::DeviceStatistics now = compute::Device::open(name).statistics();
    return fmt::format("{} of {}", bytes_text(now.memory_available), bytes_text(now.memory_total));
  } catch (const compute::Error& error) {
    return fmt::format("unknown: {}", error.what());
  }
}

}  // namespace

void log_no_choice() {
  if (compute::config_get("COMPUTE_LOG").origin == "default") compute::config_set("COMPUTE_LOG", "info,select=warn");
}

int show_devices(bool json, bool verbose) {
  log_no_choice();
  const std::vector<DeviceInfo> infos = compute::Device::list();
  if (json) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& info : infos) all.push_back(device_json(info));
    print_json(all);
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
               kind_text(info.kind), info.pci_address.empty() ? "-" : info.pci_address, bytes_text(info.memory_bytes),
               dtypes.size() <= 10 ? dtypes : "some", names.empty() ? "-" : names,
               info.same_as.empty() ? "" : fmt::format("  (same as {})", info.same_as));
    if (!verbose) continue;
    fmt::print("    vendor {}, driver {}, uuid {}\n    dtypes {}\n", info.vendor,
               info.driver_version.empty() ? "-" : info.driver_version, info.uuid.empty() ? "-" : info.uuid, dtypes);
    for (const std::string& line : libraries) fmt::print("    {}\n", line);
    fmt::print("    free memory {}\n", free_memory_text(std::string(info.name)));
  }
  if (verbose) fmt::print("\n{}", compute::load_report());
  return 0;
}

int show_which(const std::string& selector, bool json) {
  const auto format = json ? compute::Format::json : compute::Format::text;
  const std::string answer =
      selector.empty() ? compute::Device::which(format) : compute::Device::which(selector, format);
  fmt::print("{}{}", answer, !answer.empty() && answer.back() == '\n' ? "" : "\n");
  return 0;
}

namespace {

// An allocation, a copy there, a kernel and a copy back, checked.
bool works(const compute::Device& device) {
  constexpr int64_t kCount = 1000;
  std::vector<int32_t> values(kCount);
  for (int64_t i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  const compute::Tensor x = device.from_host(values);
  const std::vector<int32_t> doubled = compute::add(x, x).to_vector<int32_t>();
  bool good = doubled.size() == values.size();
  for (size_t i = 0; good && i < values.size(); ++i) good = doubled[i] == 2 * values[i];
  return good;
}

}  // namespace

int show_info(const std::string& selector, bool json) {
  if (!selector.empty()) log_no_choice();
  const compute::Device device = selector.empty() ? compute::Device::open() : compute::Device::open(selector);
  const DeviceInfo info = device.info();
  const compute::DeviceStatistics statistics = device.statistics();
  const bool good = works(device);
  if (json) {
    nlohmann::json all = device_json(info);
    for (const compute::DeviceAttribute& attribute : device.attributes())
      all["attributes"][std::string(attribute.name)] = attribute.value;
    all["memory_available"] = statistics.memory_available;
    all["memory_limit"] = statistics.memory_limit;
    all["works"] = good;
    print_json(all);
    return good ? 0 : 1;
  }
  const auto row = [](std::string_view name, std::string_view value) {
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
  for (const compute::DeviceAttribute& attribute : device.attributes()) {
    std::string name(attribute.name);
    for (char& c : name) c = c == '_' ? ' ' : c;
    row(name, attribute.value);
  }
  row("memory available", statistics.memory_available >= 0 ? bytes_text(statistics.memory_available) : "");
  const compute::DeviceTelemetry telemetry = device.telemetry();
  row("memory used by all processes", telemetry.memory_used_bytes >= 0 ? bytes_text(telemetry.memory_used_bytes) : "");
  row("memory used by this process",
      telemetry.memory_process_bytes >= 0 ? bytes_text(telemetry.memory_process_bytes) : "");
  row("utilization", telemetry.utilization_percent >= 0 ? fmt::format("{} %", telemetry.utilization_percent) : "");
  row("temperature", telemetry.temperature_millidegrees != -1
                         ? fmt::format("{:.1f} °C", telemetry.temperature_millidegrees / 1000.0)
                         : "");
  row("power", telemetry.power_milliwatts >= 0 ? fmt::format("{:.1f} W", telemetry.power_milliwatts / 1000.0) : "");
  row("memory limit", statistics.memory_limit >= 0 ? bytes_text(statistics.memory_limit) : "none");
  fmt::print("Result = {}\n", good ? "PASS" : "FAIL");
  return good ? 0 : 1;
}

namespace {

// "37 %"; "-" if it is unknown.
std::string measured(int64_t value, double scale, const char* unit) {
  return value < 0 ? "-" : fmt::format("{:.0f} {}", static_cast<double>(value) * scale, unit);
}

void print_smi_line(const DeviceInfo& info, const compute::DeviceTelemetry& now, int64_t total, int64_t free) {
  const std::string used = total >= 0 && free >= 0 ? bytes_text(total - free) : "-";
  fmt::print("{:<14} {:<14} {:>11} {:>11} {:>11} {:>7} {:>7} {:>7}  {}\n", info.name,
             info.pci_address.empty() ? "-" : info.pci_address, used, bytes_text(free), bytes_text(total),
             measured(now.utilization_percent, 1, "%"), measured(now.temperature_millidegrees, 1e-3, "C"),
             measured(now.power_milliwatts, 1e-3, "W"), info.description);
}

int print_smi(bool json) {
  int failures = 0;
  nlohmann::json all = nlohmann::json::array();
  if (!json) {
    fmt::print("{:<14} {:<14} {:>11} {:>11} {:>11} {:>7} {:>7} {:>7}  {}\n", "name", "PCI", "used", "free", "total",
               "busy", "temp", "power", "description");
  }
  for (const DeviceInfo& info : compute::Device::list()) {
    try {
      const compute::Device device = compute::Device::open(std::string(info.name));
      const compute::DeviceTelemetry now = device.telemetry();
      const compute::DeviceStatistics memory = device.statistics();
      all.push_back({{"device", info.name},
                     {"description", info.description},
                     {"pci_address", info.pci_address},
                     {"utilization_percent", now.utilization_percent},
                     {"temperature_millidegrees", now.temperature_millidegrees},
                     {"power_milliwatts", now.power_milliwatts},
                     {"memory_process_bytes", now.memory_process_bytes},
                     {"memory_used_bytes", now.memory_used_bytes},
                     {"memory_available_bytes", memory.memory_available},
                     {"memory_total_bytes", memory.memory_total}});
      if (!json) print_smi_line(info, now, memory.memory_total, memory.memory_available);
    } catch (const compute::Error& error) {
      ++failures;
      all.push_back({{"device", info.name}, {"error", error.what()}});
      if (!json) fmt::print("{:<14} {}\n", info.name, error.what());
    }
  }
  if (json) print_json(all);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int show_smi(bool json, int turns) {
  log_no_choice();
  for (int turn = 1;; ++turn) {
    const int code = print_smi(json);
    if (turn >= turns || std::fflush(stdout) != 0) return code;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    fmt::print("\n");
  }
}

int attempt_device(const std::string& selector) {
  const compute::Device device = compute::Device::open(selector);
  const compute::Tensor matrix = device.full({64, 64}, 1.f);
  const bool multiplies = compute::matmul(matrix, matrix).to_vector<float>()[0] == 64.f;
  if (works(device) && multiplies) return 0;
  fmt::print(stderr, "compute: {} is wrong\n", multiplies ? "a sum of two vectors" : "a product of two matrices");
  return 1;
}

int show_config(bool json, bool describe) {
  // Plugins without a JSON manifest declare their settings once they are loaded.
  static_cast<void>(compute::load_report());
  if (json || describe) {
    fmt::print("{}", compute::config_describe(json ? compute::Format::json : compute::Format::text));
    return 0;
  }
  for (const compute::Setting& one : compute::config_list())
    fmt::print("{:<24} {:<24} {}\n", one.name, one.value, one.origin);
  return 0;
}

int show_version(bool json) {
  const compute::Version library = compute::version();
  const std::string own = fmt::format("{}.{}.{}", COMPUTE_VERSION_MAJOR, COMPUTE_VERSION_MINOR, COMPUTE_VERSION_PATCH);
  const std::string theirs = fmt::format("{}.{}.{}", library.major, library.minor, library.patch);
  if (json) {
    print_json({{"program", own}, {"library", theirs}});
  } else {
    fmt::print("compute {} (library {})\n", own, theirs);
  }
  return 0;
}
