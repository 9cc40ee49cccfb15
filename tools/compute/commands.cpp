// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <fmt/format.h>
#include <compute/compute.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "print_json.hpp"
#include "table.hpp"

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

// The dtypes with `level`: "all 15", or their names.
std::string dtypes_with(const DeviceInfo& info, DTypeSupport level) {
  std::string names;
  size_t count = 0;
  for (const DType dtype : kDtypes) {
    if (!info.supports(dtype, level)) continue;
    ++count;
    names += fmt::format("{}{}", names.empty() ? "" : " ", dtype.name());
  }
  return count == std::size(kDtypes) ? fmt::format("all {}", count) : names;
}

// Those that a device stores without computing with them.
std::string stored_dtypes(const DeviceInfo& info) {
  std::string names;
  for (const DType dtype : dtypes_of(info)) {
    if (info.supports(dtype, DTypeSupport::storage) && !info.supports(dtype, DTypeSupport::arithmetic))
      names += fmt::format("{}{}", names.empty() ? "" : " ", dtype.name());
  }
  return names;
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
  for (const DType dtype : dtypes_of(info)) {
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
  using enum Table::Column;
  Table table{{"name", kText},     {"description", kElastic}, {"kind", kText},         {"PCI", kText},
              {"memory", kNumber}, {"dtypes", kText},         {"libraries", kElastic}, {"same as", kText}};
  for (const auto& info : infos) {
    const std::vector<std::string> libraries = lines_of(info.libraries);
    const std::string dtypes = dtypes_with(info, DTypeSupport::arithmetic), stored = stored_dtypes(info);
    std::string names;  // the first word of each line
    for (const std::string& line : libraries)
      names += (names.empty() ? "" : ", ") + line.substr(0, line.find_first_of(" :,"));
    std::string below;
    if (verbose) {
      below = fmt::format("    vendor {}, driver {}, uuid {}\n    dtypes {}\n", info.vendor,
                          info.driver_version.empty() ? "-" : info.driver_version, info.uuid.empty() ? "-" : info.uuid,
                          dtypes);
      if (!stored.empty()) below += fmt::format("    dtypes without arithmetic {}\n", stored);
      for (const std::string& line : libraries) below += fmt::format("    {}\n", line);
      below += fmt::format("    free memory {}\n", free_memory_text(std::string(info.name)));
    }
    table.add({std::string(info.name), std::string(info.description), kind_text(info.kind),
               info.pci_address.empty() ? "-" : std::string(info.pci_address), bytes_text(info.memory_bytes),
               dtypes.starts_with("all ") ? dtypes : "some", names.empty() ? "-" : names, std::string(info.same_as)},
              below);
  }
  fmt::print("{}", table.text());
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

int print_info(const compute::Device& device, bool json) {
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
  row("dtypes", dtypes_with(info, DTypeSupport::arithmetic));
  row("dtypes without arithmetic", stored_dtypes(info));
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

}  // namespace

int show_info(const std::string& selector, bool json) {
  if (!selector.empty()) log_no_choice();
  return print_info(selector.empty() ? compute::Device::open() : compute::Device::open(selector), json);
}

int show_info_of_all(bool json) {
  log_no_choice();
  int failures = 0;
  const char* before = json ? "[" : "";
  for (const DeviceInfo& info : compute::Device::list()) {
    fmt::print("{}", std::exchange(before, json ? "," : "\n"));
    try {
      failures += print_info(compute::Device::open(std::string(info.name)), json);
    } catch (const compute::Error& error) {
      ++failures;
      if (json) {
        print_json({{"name", info.name}, {"works", false}, {"error", error.what()}});
      } else {
        fmt::print("Device {}: {}\n", info.name, error.what());
      }
    }
  }
  if (json) fmt::print("]\n");
  return failures == 0 ? 0 : 1;
}

namespace {

// "37 %"; "-" if it is unknown.
std::string measured(int64_t value, double scale, const char* unit) {
  return value == -1 ? "-" : fmt::format("{:.0f} {}", static_cast<double>(value) * scale, unit);
}

// The driver's number if it has one, as nvidia-smi shows it; else what is not free. -1 if it is unknown.
int64_t memory_in_use(const compute::DeviceTelemetry& now, const compute::DeviceStatistics& memory) {
  if (now.memory_used_bytes >= 0) return now.memory_used_bytes;
  return memory.memory_total >= 0 && memory.memory_available >= 0 ? memory.memory_total - memory.memory_available : -1;
}

int print_smi(bool json) {
  int failures = 0;
  nlohmann::json all = nlohmann::json::array();
  using enum Table::Column;
  Table table{{"name", kText},   {"PCI", kText},    {"used", kNumber},  {"free", kNumber},        {"total", kNumber},
              {"busy", kNumber}, {"temp", kNumber}, {"power", kNumber}, {"description", kElastic}};
  for (const DeviceInfo& info : compute::Device::list()) {
    try {
      const compute::Device device = compute::Device::open(std::string(info.name));
      const compute::DeviceTelemetry now = device.telemetry();
      compute::DeviceStatistics memory = device.statistics();
      if (memory.memory_total < 0) memory.memory_total = info.memory_bytes;
      all.push_back({{"name", info.name},
                     {"description", info.description},
                     {"pci_address", info.pci_address},
                     {"utilization_percent", now.utilization_percent},
                     {"temperature_millidegrees", now.temperature_millidegrees},
                     {"power_milliwatts", now.power_milliwatts},
                     {"memory_process_bytes", now.memory_process_bytes},
                     {"memory_used_bytes", now.memory_used_bytes},
                     {"memory_available_bytes", memory.memory_available},
                     {"memory_total_bytes", memory.memory_total}});
      table.add({std::string(info.name), info.pci_address.empty() ? "-" : std::string(info.pci_address),
                 bytes_text(memory_in_use(now, memory)), bytes_text(memory.memory_available),
                 bytes_text(memory.memory_total), measured(now.utilization_percent, 1, "%"),
                 measured(now.temperature_millidegrees, 1e-3, "C"), measured(now.power_milliwatts, 1e-3, "W"),
                 std::string(info.description)});
    } catch (const compute::Error& error) {
      ++failures;
      all.push_back({{"name", info.name}, {"error", error.what()}});
      table.add({std::string(info.name), "-", "-", "-", "-", "-", "-", "-", std::string(info.description)},
                fmt::format("    {}\n", error.what()));
    }
  }
  if (json) {
    print_json(all);
  } else {
    fmt::print("{}", table.text());
  }
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
  bool convolves = true;
  if (device.info().plugin == "cpu") {
    // The load report names oneDNN and OpenBLAS once a convolution and a decomposition have looked for them.
    const compute::Tensor image = device.full({1, 16, 14, 14}, 1.f), weight = device.full({16, 16, 3, 3}, 1.f);
    convolves = compute::convolution(image, weight).to_vector<float>()[0] == 144.f;
    try {
      static_cast<void>(compute::svdvals(matrix));
    } catch (const compute::Error& error) {
      if (error.code() != COMPUTE_ERROR_UNSUPPORTED) throw;  // the report says what is missing
    }
  }
  if (works(device) && multiplies && convolves) return 0;
  fmt::print(stderr, "compute: {} is wrong\n",
             !multiplies  ? "a product of two matrices"
             : !convolves ? "a convolution"
                          : "a sum of two vectors");
  return 1;
}

Table settings_table() {
  Table table{{"", Table::Column::kText}, {"", Table::Column::kText}, {"", Table::Column::kText}};
  for (const compute::Setting& one : compute::config_list())
    table.add({std::string(one.name), std::string(one.value), std::string(one.origin)});
  return table;
}

int show_config(bool json, bool describe) {
  // Plugins without a JSON manifest declare their settings once they are loaded.
  static_cast<void>(compute::load_report());
  if (json || describe) {
    fmt::print("{}", compute::config_describe(json ? compute::Format::json : compute::Format::text));
    return 0;
  }
  fmt::print("{}", settings_table().text());
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
