// SPDX-License-Identifier: Apache-2.0
#include "core/registry.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "core/ascii.hpp"
#include "core/config.hpp"
#include "core/device_choice.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/loader.hpp"
#include "core/log.hpp"
#include "core/printable.hpp"

namespace compute {
namespace {

// What was asked for and by whom.
struct Request {
  Selector selector;
  std::string chosen_by;
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) {
      return std::string(trimmed(std::string_view(line).substr(colon + 1)));
    }
  }
  return "host processor";
}

// `cpu` as core alone provides it: memory and copies, no ops.
ListedDevice bare_cpu() {
  ListedDevice device;
  device.description = processor_name();
  device.kind = COMPUTE_DEVICE_KIND_CPU;
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page_bytes > 0) device.memory_bytes = int64_t{pages} * page_bytes;
  device.dtypes.assign(kDtypeCount, COMPUTE_DTYPE_STORAGE);
  device.dtypes[COMPUTE_DTYPE_NONE] = 0;
  return device;
}

class Catalogue {
 public:
  static Catalogue& instance() {
    static auto* const immortal = new Catalogue;
    return *immortal;
  }

  std::mutex mutex;  // around all that follows

  Loader& loader() {
    if (!loader_) {
      const Config config = process_config();
      loader_.emplace(PluginPlaces::of_process(config), LoaderOptions{.probe = config.get(SettingId::kProbe).flag});
      notes_ = config.ignored();
    }
    return *loader_;
  }

  void open_all() {
    for (const std::string& name : loader().names()) loader_->open(name);
  }

  void open_for(const Selector& selector) {
    for (const std::string& name : loader().names()) {
      if (selector.may_choose_from(name)) loader_->open(name);
    }
  }

  // Of the plugins that are open, with `cpu` where the selector can mean it.
  std::vector<KnownDevice> known(const Selector& selector) {
    std::vector<KnownDevice> devices = loader().devices();
    if (!selector.may_choose_from("cpu")) return devices;
    const auto is_cpu = [](const KnownDevice& device) { return device.record.name == "cpu"; };
    if (std::none_of(devices.begin(), devices.end(), is_cpu)) devices.push_back(host());
    return devices;
  }

  // `cpu`, of its plugin where that is good. It is settled at the first call, for an open device cannot change plugins.
  const KnownDevice& host() {
    if (host_.entry == nullptr) {
      loader().open("cpu");
      for (const KnownDevice& device : loader_->devices()) {
        if (device.record.name == "cpu") host_ = device;
      }
      if (host_.entry == nullptr) host_ = name_devices("cpu", nullptr, {bare_cpu()}).front();
    }
    return host_;
  }

  const std::vector<const DeviceEntry*>& all() {
    if (!all_) {
      open_all();
      std::vector<KnownDevice> devices = known(Selector());  // an unset one can mean all
      std::stable_sort(devices.begin(), devices.end(), [](const KnownDevice& x, const KnownDevice& y) {
        const auto key = [](const KnownDevice& device) {
          return std::make_tuple(device.record.name != "cpu", std::string_view(device.record.plugin),
                                 device.record.flat_index);
        };
        return key(x) < key(y);
      });
      all_.emplace();
      for (const KnownDevice& device : devices) all_->push_back(device.entry);
    }
    return *all_;
  }

  LoadReport report() {
    LoadReport report = loader().report();
    report.notes.insert(report.notes.begin(), notes_.begin(), notes_.end());
    return report;
  }

  // True the first time.
  bool note_chosen(const DeviceEntry* device) { return chosen_.insert(device).second; }

  bool has_loader() const { return loader_.has_value(); }

 private:
  std::optional<Loader> loader_;
  std::vector<std::string> notes_;
  KnownDevice host_;
  std::optional<std::vector<const DeviceEntry*>> all_;
  std::set<const DeviceEntry*> chosen_;
};

// NULL and an empty text ask for what is configured. A name of COMPUTE_DEVICES stands for its selector.
Request request_of(const char* text, Catalogue& catalogue) {
  const std::vector<std::string> plugins = catalogue.loader().names();
  if (text == nullptr || trimmed(text).empty()) {
    const SettingValue configured = setting(SettingId::kDevice);
    Selector selector = parse_selector(configured.text, configured.source, plugins);
    if (!selector.is_unset()) return {std::move(selector), configured.source};
    return {parse_selector("auto", "auto", plugins), "auto"};
  }
  const SettingValue named = setting(SettingId::kDevices);
  for (NamedSelector& one : parse_named_selectors(named.text, named.source, plugins)) {
    if (one.name == trimmed(text)) return {std::move(one.selector), named.source};
  }
  return {parse_selector(text, "compute_device_open", plugins), "compute_device_open"};
}

[[noreturn]] void throw_not_found(const Request& request, const DeviceChoice& choice, Catalogue& catalogue) {
  throw Error(COMPUTE_ERROR_NOT_FOUND, failure_message(request.selector, choice) + "\n" + catalogue.report().to_text());
}

std::vector<DeviceRecord> records_of(const std::vector<KnownDevice>& devices) {
  std::vector<DeviceRecord> records;
  for (const KnownDevice& device : devices) records.push_back(device.record);
  return records;
}

DeviceSelection selection_of(const Request& request, const DeviceChoice& choice,
                             const std::vector<KnownDevice>& devices) {
  DeviceSelection selection;
  selection.device = devices[*choice.device].entry;
  selection.options = request.selector.items[*choice.item].options;
  selection.chosen_by = request.chosen_by;
  selection.strict = request.selector.is_strict();
  selection.fell_through = !choice.warning.empty();
  return selection;
}

}  // namespace

Registry& Registry::instance() {
  static Registry registry;
  return registry;
}

const std::vector<const DeviceEntry*>& Registry::devices() {
  Catalogue& catalogue = Catalogue::instance();
  const std::lock_guard lock(catalogue.mutex);
  return catalogue.all();
}

DeviceSelection Registry::select(const char* text, const std::function<void(const DeviceSelection&)>& open) {
  Catalogue& catalogue = Catalogue::instance();
  Request request;
  std::vector<KnownDevice> devices;
  std::vector<PluginProblem> problems;
  {
    const std::lock_guard lock(catalogue.mutex);
    request = request_of(text, catalogue);
    catalogue.open_for(request.selector);
    devices = catalogue.known(request.selector);
    problems = catalogue.loader().problems();
  }
  std::vector<DeviceRecord> records = records_of(devices);
  std::optional<Error> first_failure;
  for (;;) {
    const DeviceChoice choice = choose_device(request.selector, records, problems);
    if (!choice.device) {
      if (first_failure && request.selector.is_strict()) throw *first_failure;
      const std::lock_guard lock(catalogue.mutex);
      throw_not_found(request, choice, catalogue);
    }
    const DeviceSelection selection = selection_of(request, choice, devices);
    try {
      open(selection);  // without the lock: it calls the plugin, which may take seconds
    } catch (const Error& error) {
      // a wrong call is wrong on every device
      if (error.code == COMPUTE_ERROR_INVALID_ARGUMENT) throw;
      DeviceRecord& record = records[*choice.device];
      record.usable = false;
      record.problem = error.message;
      if (!first_failure) first_failure = error;
      continue;
    }
    const std::lock_guard lock(catalogue.mutex);
    if (catalogue.note_chosen(selection.device)) {
      if (selection.fell_through) log(COMPUTE_LOG_WARNING, "select", choice.warning);
      log(COMPUTE_LOG_INFO, "select", selection_message(records[*choice.device], selection.chosen_by));
    }
    return selection;
  }
}

std::string Registry::which(const char* text, int32_t format) {
  Catalogue& catalogue = Catalogue::instance();
  const std::lock_guard lock(catalogue.mutex);
  const Request request = request_of(text, catalogue);
  catalogue.open_for(request.selector);
  const std::vector<KnownDevice> devices = catalogue.known(request.selector);
  const std::vector<DeviceRecord> records = records_of(devices);
  const DeviceChoice choice = choose_device(request.selector, records, catalogue.loader().problems());
  if (!choice.device) throw_not_found(request, choice, catalogue);
  const DeviceRecord& chosen = records[*choice.device];
  if (format == COMPUTE_FORMAT_JSON) {
    nlohmann::ordered_json json = {{"device", chosen.name},
                                   {"plugin", chosen.plugin},
                                   {"description", chosen.description},
                                   {"pci_address", chosen.pci},
                                   {"uuid", chosen.uuid},
                                   {"chosen_by", request.chosen_by},
                                   {"selector", request.selector.text},
                                   {"strict", request.selector.is_strict()},
                                   {"warning", choice.warning},
                                   {"others", nlohmann::ordered_json::array()}};
    for (const Refusal& other : choice.others)
      json["others"].push_back({{"name", other.name}, {"reason", other.reason}});
    return dump_json(json) + "\n";
  }
  std::string answer = selection_message(chosen, request.chosen_by).substr(std::strlen("using ")) + "\n";
  if (!choice.warning.empty()) answer += "warning: " + choice.warning + "\n";
  for (const Refusal& other : choice.others) answer += "  not " + other.name + ": " + other.reason + "\n";
  return answer;
}

std::string Registry::load_report(int32_t format) {
  Catalogue& catalogue = Catalogue::instance();
  const std::lock_guard lock(catalogue.mutex);
  const LoadReport report = catalogue.report();
  return format == COMPUTE_FORMAT_JSON ? report.to_json() : report.to_text();
}

const DeviceEntry* Registry::find(const char* name) {
  const std::string wanted = to_lower(trimmed(name));
  Catalogue& catalogue = Catalogue::instance();
  const std::lock_guard lock(catalogue.mutex);
  if (wanted == "cpu") return catalogue.host().entry;
  catalogue.loader().open(std::string_view(wanted).substr(0, wanted.find_first_of("0123456789")));
  for (const KnownDevice& device : catalogue.loader().devices()) {
    if (device.record.name == wanted) return device.entry;
  }
  return nullptr;
}

std::vector<Plugin*> Registry::opened_plugins() {
  Catalogue& catalogue = Catalogue::instance();
  const std::lock_guard lock(catalogue.mutex);
  return catalogue.has_loader() ? catalogue.loader().opened_plugins() : std::vector<Plugin*>();
}

}  // namespace compute
