// SPDX-License-Identifier: Apache-2.0
#include "core/loading/device_listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/sized.hpp"
#include "core/expressions/dtype.hpp"
#include "core/loading/pci_address.hpp"
#include "core/loading/plugin.hpp"
#include "core/loading/plugin_core.hpp"
#include "core/process/host_limits.hpp"
#include "core/text/ascii.hpp"

namespace compute {
namespace {

constexpr int32_t kMaxProperties = 4096;

// A text of one line for a table or a report.
std::string line_of(compute_string text, std::string_view what) {
  std::string line = plugin_text(text, what);
  std::replace_if(line.begin(), line.end(), is_control, ' ');
  return line;
}

std::vector<std::string> lines_of(compute_string text, std::string_view what) {
  std::vector<std::string> lines;
  const std::string all = plugin_text(text, what);
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    if (end > begin) lines.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

bool covers(uint32_t struct_size, size_t field_end) { return struct_size >= field_end; }

ListedDevice copied(const compute_plugin_device_info* given) {
  using Info = compute_plugin_device_info;
  const Info info = read_plugin_struct(given, "a device");
  ListedDevice device;
  device.id = info.id;
  device.description = line_of(info.description, "a device's description");
  device.vendor = line_of(info.vendor, "a device's vendor");
  device.driver_version = line_of(info.driver_version, "a device's driver version");
  device.pci_address = line_of(info.pci_address, "a device's PCI address");
  device.pci_address = canonical_pci_address(device.pci_address).value_or(device.pci_address);
  device.uuid = line_of(info.uuid, "a device's UUID");
  device.libraries = plugin_text(info.libraries, "a device's list of libraries");
  device.unusable = line_of(info.unusable, "a device's problem");
  device.platform = plugin_text(info.platform, "a device's platform");
  if (covers(info.struct_size, offsetof(Info, kind))) device.memory_bytes = info.memory_bytes;
  // a kind that is not stated ranks as an accelerator
  device.kind = info.kind > 0 ? info.kind : int32_t{COMPUTE_DEVICE_KIND_ACCELERATOR};
  device.score = info.score;
  device.platform_index = std::max<int32_t>(info.platform_index, 0) - 1;
  device.subnormals = info.subnormals;
  device.limits = {info.subgroup_size_min, info.subgroup_size_max, info.local_memory_bytes,
                   info.argument_bytes,    info.max_group_size,    info.atomic_alignment};
  if (info.dtype_count < 0 || (info.dtype_count > 0 && info.dtypes == nullptr)) {
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED,
                "a device has an invalid list of " + std::to_string(info.dtype_count) + " dtypes");
  }
  // later entries belong to dtypes that this library does not know
  device.dtypes.assign(info.dtypes, info.dtypes + std::min(info.dtype_count, kDtypeLimit));
  set_float8_levels(device.dtypes);
  if (info.property_count < 0 || info.property_count > kMaxProperties ||
      (info.property_count > 0 && info.properties == nullptr)) {
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED,
                "a device has an invalid list of " + std::to_string(info.property_count) + " properties");
  }
  for (int32_t i = 0; i < info.property_count; ++i) {
    const compute_plugin_property property = read_plugin_struct_at(info.properties, i, "a property");
    device.properties.emplace_back(line_of(property.name, "a property's name"),
                                   line_of(property.value, "a property's value"));
  }
  return device;
}

RequirementReport copied(const compute_plugin_requirement* given) {
  const compute_plugin_requirement info = read_plugin_struct(given, "a requirement");
  RequirementReport requirement;
  requirement.name = line_of(info.name, "a requirement's name");
  const bool known = info.state > 0 && info.state <= static_cast<int32_t>(RequirementReport::State::kUnusable);
  requirement.state = known ? static_cast<RequirementReport::State>(info.state) : RequirementReport::State::kUnknown;
  requirement.required = info.required == 1;
  requirement.tried = lines_of(info.tried, "what a requirement tried");
  requirement.found = line_of(info.found, "what a requirement found");
  requirement.error = line_of(info.error, "a requirement's error");
  requirement.effect = line_of(info.effect, "a requirement's effect");
  requirement.remedy = line_of(info.remedy, "a requirement's remedy");
  return requirement;
}

// The callbacks of enumerate. Exceptions must not pass through the plugin, so the first error is kept and reported
// afterwards.
struct Delivery {
  Listing listing;
  std::string fault;  // the first
  bool is_short = false;

  template <typename Action>
  void take(Action action) noexcept {
    compute_error* error = guard(action);
    if (error == nullptr) return;
    (void)guard([&] {
      is_short = is_short || error->code == COMPUTE_ERROR_OUT_OF_MEMORY;
      if (fault.empty()) fault = compute_error_message(error);
    });
    compute_error_free(error);
  }

  static void device(void* context, const compute_plugin_device_info* info) {
    auto& self = *static_cast<Delivery*>(context);
    self.take([&] {
      ListedDevice device = copied(info);
      for (const ListedDevice& other : self.listing.devices) {
        if (other.id != device.id) continue;
        self.listing.notes.push_back("it listed device " + std::to_string(device.id) + " twice");
        return;
      }
      self.listing.devices.push_back(std::move(device));
    });
  }

  static void requirement(void* context, const compute_plugin_requirement* requirement) {
    auto& self = *static_cast<Delivery*>(context);
    self.take([&] { self.listing.requirements.push_back(copied(requirement)); });
  }
};

// An entry that owns the strings that its `info` points to. Never destroyed.
struct OwnedEntry : DeviceEntry {
  std::deque<std::string> strings;  // keeps addresses

  const char* keep(std::string text) { return strings.emplace_back(std::move(text)).c_str(); }
};

std::deque<OwnedEntry>& all_entries() {
  static auto* const immortal = new std::deque<OwnedEntry>;
  return *immortal;
}

// Adds a property that the plugin did not give itself.
void add_property(OwnedEntry& entry, const char* name, std::string value) {
  const auto is_it = [&](const auto& property) { return property.first == name; };
  if (std::none_of(entry.properties.begin(), entry.properties.end(), is_it))
    entry.properties.emplace_back(name, std::move(value));
}

// As texts, for `compute info`.
void add_limits(OwnedEntry& entry) {
  const compute_device_info& info = entry.info;
  if (info.subnormals == COMPUTE_SUBNORMALS_KEPT) add_property(entry, "subnormals", "kept");
  if (info.subnormals == COMPUTE_SUBNORMALS_FLUSHED) add_property(entry, "subnormals", "flushed");
  if (info.subgroup_size_min > 0) {
    add_property(entry, "subgroup_size",
                 info.subgroup_size_min == info.subgroup_size_max
                     ? fmt::format("{}", info.subgroup_size_min)
                     : fmt::format("{} to {}", info.subgroup_size_min, info.subgroup_size_max));
  }
  const auto add = [&](const char* name, int64_t value, const char* unit) {
    if (value > 0) add_property(entry, name, fmt::format("{}{}", value, unit));
  };
  add("local_memory", info.local_memory_bytes, " bytes");
  add("kernel_arguments", info.argument_bytes, " bytes");
  add("max_group_size", info.max_group_size, "");
  add("atomic_alignment", info.atomic_alignment, " bytes");
}

void add_pci_ids(OwnedEntry& entry) {
  const PciIds ids = entry.info.pci_address_size > 0 ? read_pci_ids(entry.info.pci_address) : PciIds{};
  if (ids.vendor != 0) add_property(entry, "pci_vendor_id", fmt::format("{:#06x}", ids.vendor));
  if (ids.device != 0) add_property(entry, "pci_device_id", fmt::format("{:#06x}", ids.device));
}

}  // namespace

Listing list_devices(Plugin& plugin) {
  Delivery delivery;
  const compute_plugin_sink sink = {sizeof(compute_plugin_sink), &delivery, Delivery::device, Delivery::requirement};
  std::string failure;
  try {
    throw_if(plugin.table.enumerate(sink));
  } catch (const Error& error) {
    delivery.is_short = delivery.is_short || error.code == COMPUTE_ERROR_OUT_OF_MEMORY;
    failure = "enumerate failed: " + error.message;
  }
  if (failure.empty() && !delivery.fault.empty()) failure = "enumerate broke its contract: " + delivery.fault;
  delivery.listing.fault = std::move(failure);
  delivery.listing.is_short = delivery.is_short;
  return std::move(delivery.listing);
}

std::vector<KnownDevice> name_devices(const std::string& plugin_name, Plugin* plugin,
                                      std::vector<ListedDevice> listed) {
  const bool has_platforms =
      !listed.empty() &&
      std::all_of(listed.begin(), listed.end(), [](const ListedDevice& device) { return device.platform_index >= 0; });
  std::stable_sort(listed.begin(), listed.end(), [&](const ListedDevice& x, const ListedDevice& y) {
    const auto key = [&](const ListedDevice& device) {
      // addresses of one length sort as text; longer domains are larger
      return std::make_tuple(has_platforms ? device.platform_index : 0, device.pci_address.empty(),
                             device.pci_address.size(), std::string_view(device.pci_address));
    };
    return key(x) < key(y);
  });
  std::map<int32_t, int32_t> platform_numbers;
  for (const ListedDevice& device : listed) platform_numbers.emplace(device.platform_index, 0);
  int32_t platform_count = 0;
  for (auto& [index, number] : platform_numbers) number = platform_count++;
  const bool is_the_cpu = plugin_name == "cpu" && listed.size() == 1 && !has_platforms;
  std::map<int32_t, int32_t> on_platform;
  std::vector<KnownDevice> result;
  for (size_t i = 0; i < listed.size(); ++i) {
    ListedDevice& device = listed[i];
    DeviceRecord record;
    record.flat_index = static_cast<int32_t>(i);
    record.platform_index = has_platforms ? platform_numbers[device.platform_index] : -1;
    record.device_index = has_platforms ? on_platform[device.platform_index]++ : record.flat_index;
    record.name = is_the_cpu ? plugin_name
                             : plugin_name + (has_platforms ? std::to_string(record.platform_index) + ":" : "") +
                                   std::to_string(record.device_index);
    record.plugin = plugin_name;
    record.kind = device.kind;
    record.pci = device.pci_address;
    record.uuid = device.uuid;
    record.platform = device.platform;
    record.description = device.description;
    record.usable = device.unusable.empty();
    record.problem = device.unusable;
    record.priority = plugin != nullptr ? plugin->priority : 0;
    record.score = device.score;

    OwnedEntry* const entry = &all_entries().emplace_back();
    entry->info.struct_size = sizeof(entry->info);
    entry->info.struct_type = COMPUTE_STRUCT_DEVICE_INFO;
    const auto set = [&](const char*& data, int64_t& size, std::string text) {
      size = static_cast<int64_t>(text.size());
      data = entry->keep(std::move(text));
    };
    set(entry->info.name, entry->info.name_size, record.name);
    set(entry->info.plugin, entry->info.plugin_size, record.plugin);
    set(entry->info.description, entry->info.description_size, std::move(device.description));
    set(entry->info.vendor, entry->info.vendor_size, std::move(device.vendor));
    set(entry->info.driver_version, entry->info.driver_version_size, std::move(device.driver_version));
    set(entry->info.pci_address, entry->info.pci_address_size, std::move(device.pci_address));
    set(entry->info.uuid, entry->info.uuid_size, std::move(device.uuid));
    // Settled here rather than where the other device is known: `cpu` is always there, and its plugin may be opened
    // later.
    set(entry->info.same_as, entry->info.same_as_size, is_foreign_cpu(record) ? "cpu" : "");
    set(entry->info.libraries, entry->info.libraries_size, std::move(device.libraries));
    set(entry->info.unusable, entry->info.unusable_size, device.unusable);
    entry->info.memory_bytes = device.memory_bytes;
    // What a driver says of the host's memory differs from start to start; and neither knows of control groups.
    const bool is_on_host = record.name == "cpu" || is_foreign_cpu(record);
    if (is_on_host && host_memory_total() >= 0) entry->info.memory_bytes = host_memory_total();
    entry->info.kind = record.kind;
    entry->info.platform_index = record.platform_index;
    entry->info.device_index = record.device_index;
    entry->info.flat_index = record.flat_index;
    entry->dtypes = std::move(device.dtypes);
    entry->info.dtypes = entry->dtypes.data();
    entry->info.dtype_count = static_cast<int32_t>(entry->dtypes.size());
    entry->info.subnormals = device.subnormals;
    entry->info.subgroup_size_min = device.limits.subgroup_size_min;
    entry->info.subgroup_size_max = device.limits.subgroup_size_max;
    entry->info.local_memory_bytes = device.limits.local_memory_bytes;
    entry->info.argument_bytes = device.limits.argument_bytes;
    entry->info.max_group_size = device.limits.max_group_size;
    entry->info.atomic_alignment = device.limits.atomic_alignment;
    entry->properties = std::move(device.properties);
    add_limits(*entry);
    add_pci_ids(*entry);
    entry->unusable = std::move(device.unusable);
    entry->plugin = plugin;
    entry->id = device.id;
    result.push_back({entry, std::move(record)});
  }
  return result;
}

}  // namespace compute
