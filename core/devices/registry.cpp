// SPDX-License-Identifier: Apache-2.0
#include "core/devices/registry.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>

#include "core/base/error.hpp"
#include "core/devices/device_choice.hpp"
#include "core/expressions/dtype.hpp"
#include "core/loading/loader.hpp"
#include "core/process/change_settings.hpp"
#include "core/process/log.hpp"
#include "core/process/process_config.hpp"
#include "core/text/ascii.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

// What was asked for and by whom.
struct Request {
  Selector selector;
  std::string chosen_by;
  bool by_program = false;  // the program names it itself
};

std::string processor_name() {
  const std::string all = files::File("/proc/cpuinfo").read(size_t{1} << 24).value_or("");
  const size_t begin = all.find("model name");
  if (begin == std::string::npos) return "host processor";
  const std::string_view line = std::string_view(all).substr(begin, all.find('\n', begin) - begin);
  return std::string(trimmed(line.substr(std::min(line.find(':'), line.size() - 1) + 1)));
}

// `cpu` as core alone provides it: memory and copies, no ops.
ListedDevice bare_cpu() {
  ListedDevice device;
  device.description = processor_name();
  device.kind = COMPUTE_DEVICE_KIND_CPU;
  device.dtypes.assign(kDtypeCount, COMPUTE_DTYPE_LEVEL_STORAGE);
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
      change_process_config([](Config& config) { config.learn(); });
      const Config config = process_config();
      loader_.emplace(PluginPlaces::of_process(config), LoaderOptions{ProbeOptions::of_process(config)});
      notes_ = config.ignored();
      const std::vector<std::string> misspelt = config.misspelt();
      notes_.insert(notes_.end(), misspelt.begin(), misspelt.end());
      warn_of_settings();
    }
    return *loader_;
  }

  void open_all() { loader().open_all(); }

  // Files that the selector cannot match are not touched; `auto` can match all.
  void open_for(const Selector& selector) {
    if (selector.may_choose_from("")) loader().ask_unnamed();
    for (const std::string& name : loader().names()) {
      if (may_choose_from(selector, name)) loader_->open(name);
    }
  }

  // Of the plugins that are open, with `cpu` where the selector can mean it.
  std::vector<KnownDevice> known(const Selector& selector) {
    std::vector<KnownDevice> devices = loader().devices();
    if (!selector.may_choose_from("cpu")) return devices;
    const auto is_cpu = [](const KnownDevice& device) { return device.record.name == "cpu"; };
    if (std::none_of(devices.begin(), devices.end(), is_cpu) && !is_host_short()) devices.push_back(host());
    return devices;
  }

  // `cpu`, from its plugin if that works. It is determined at the first call, because an open device cannot change
  // plugins.
  const KnownDevice& host() {
    if (host_.entry == nullptr) {
      loader().open("cpu");
      for (const KnownDevice& device : loader_->devices()) {
        if (device.record.name == "cpu") host_ = device;
      }
      if (host_.entry == nullptr) {
        if (is_host_short()) throw_if_short("cpu");
        host_ = name_devices("cpu", nullptr, {bare_cpu()}).front();
        host_.record.runs_ops = false;
        host_.entry->no_ops = why_no_cpu();
      }
    }
    return host_;
  }

  // If nothing was found, and a candidate plugin could not be loaded because of a shortage.
  void throw_if_short(const Selector& selector) const {
    for (const PluginProblem& shortage : loader_->shortages()) {
      if (selector.may_choose_from(shortage.plugin)) throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, shortage.problem);
    }
  }
  void throw_if_short(std::string_view plugin) const {
    for (const PluginProblem& shortage : loader_->shortages()) {
      if (shortage.plugin == plugin || shortage.plugin.empty())
        throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, shortage.problem);
    }
  }

  std::string why_no_cpu() const {
    for (const PluginProblem& row : loader_->problems()) {
      if (row.plugin == "cpu") return "the cpu plugin was rejected: " + row.path + ": " + row.problem;
    }
    if (!setting(SettingId::kPluginFiles).text.empty())
      return "the cpu plugin is not among the files that COMPUTE_PLUGIN_FILES names; run compute doctor for details";
    return "the cpu plugin is not installed (the package compute-plugin-cpu); run compute doctor to see where it was "
           "searched for";
  }

  // Kept once no plugin lacks anything.
  std::vector<const DeviceEntry*> all() {
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
      std::vector<const DeviceEntry*> all;
      for (const KnownDevice& device : devices) all.push_back(device.entry);
      if (all.empty()) throw_if_short(Selector());
      if (!loader_->shortages().empty()) return all;
      all_ = std::move(all);
    }
    return *all_;
  }

  LoadReport report(bool refresh = false) {
    LoadReport report = loader().report(refresh);
    report.notes.insert(report.notes.begin(), notes_.begin(), notes_.end());
    return report;
  }

  // True the first time.
  bool note_chosen(const DeviceEntry* device) { return chosen_.insert(device).second; }

  bool has_chosen() const { return !chosen_.empty(); }

  bool has_loader() const { return loader_.has_value(); }

 private:
  // The same as Selector's, using manifests: `gpu` excludes a plugin whose manifest lists no GPU.
  bool may_choose_from(const Selector& selector, const std::string& name) const {
    if (!selector.may_choose_from(name)) return false;
    const std::vector<int32_t> kinds = loader_->kinds_of(name);
    const auto is_gpu = [](int32_t kind) {
      return kind == COMPUTE_DEVICE_KIND_DISCRETE_GPU || kind == COMPUTE_DEVICE_KIND_INTEGRATED_GPU;
    };
    if (kinds.empty() || std::any_of(kinds.begin(), kinds.end(), is_gpu)) return true;
    Selector others = selector;
    std::erase_if(others.items, [](const SelectorItem& item) { return item.is_gpu() && !item.exclude; });
    return (selector.is_unset() || !others.is_unset()) && others.may_choose_from(name);
  }

  // The plugin could not be loaded because of a temporary shortage; until then `cpu` is undefined.
  bool is_host_short() const {
    const std::vector<PluginProblem> shortages = loader_->shortages();
    return host_.entry == nullptr && std::any_of(shortages.begin(), shortages.end(),
                                                 [](const PluginProblem& row) { return row.plugin == "cpu"; });
  }

  std::optional<Loader> loader_;
  std::vector<std::string> notes_;
  KnownDevice host_;
  std::optional<std::vector<const DeviceEntry*>> all_;
  std::set<const DeviceEntry*> chosen_;
};

// NULL and an empty text request the configured device.
Request request_among_known(const char* text, Catalogue& catalogue) {
  const std::vector<std::string> plugins = catalogue.loader().known_names();
  const SettingValue named = setting(SettingId::kDevices);
  const AskPlugin ask = [&](std::string_view plugin) { catalogue.loader().ask(plugin); };
  const std::vector<NamedSelector> aliases = parse_named_selectors(named.text, named.source, plugins, ask);
  if (text == nullptr || trimmed(text).empty()) {
    const SettingValue configured = setting(SettingId::kDevice);
    Selector selector = parse_selector(configured.text, configured.source, plugins, aliases, ask);
    if (!selector.is_unset()) return {std::move(selector), configured.source};
    return {parse_selector("auto", "auto", plugins), "auto"};
  }
  return {parse_selector(text, "compute_device_open", plugins, aliases, ask), "compute_device_open", true};
}

// The same, but an unknown name may belong to a plugin whose file does not state it.
Request request_of(const char* text, Catalogue& catalogue) {
  try {
    return request_among_known(text, catalogue);
  } catch (const Error& error) {
    if (error.code != COMPUTE_ERROR_INVALID_ARGUMENT || !catalogue.loader().ask_unnamed()) throw;
  }
  try {
    return request_among_known(text, catalogue);
  } catch (const Error& error) {
    if (error.code == COMPUTE_ERROR_INVALID_ARGUMENT) catalogue.throw_if_short("");
    throw;
  }
}

[[noreturn]] void throw_not_found(const Request& request, const DeviceChoice& choice, Catalogue& catalogue) {
  catalogue.throw_if_short(request.selector);
  // The report says more of plugins that may have the device and have none, or one that cannot be used.
  LoadReport report = catalogue.report();
  std::erase_if(report.plugins,
                [&](const PluginReport& plugin) { return !request.selector.may_choose_from(plugin.name); });
  const bool is_settled = !report.plugins.empty();
  std::erase_if(report.plugins, [](const PluginReport& plugin) {
    const auto is_usable = [](const DeviceReport& device) { return device.problem.empty(); };
    return plugin.problem().empty() && std::all_of(plugin.devices.begin(), plugin.devices.end(), is_usable);
  });
  const bool explains = !is_settled || !report.plugins.empty();
  throw Error(COMPUTE_ERROR_NOT_FOUND,
              failure_message(request.selector, choice) + (explains ? "\n" + report.to_text() : ""));
}

std::vector<DeviceRecord> records_of(const std::vector<KnownDevice>& devices) {
  std::vector<DeviceRecord> records;
  for (const KnownDevice& device : devices) records.push_back(device.record);
  return records;
}

// "COMPUTE_DEVICE", or "COMPUTE_DEVICE as a" where that is a name of COMPUTE_DEVICES.
std::string chosen_by(const Request& request, const DeviceChoice& choice) {
  const std::string& alias = request.selector.items[*choice.item].alias;
  return alias.empty() ? request.chosen_by : request.chosen_by + " as " + alias;
}

// The program opens `cpu` for its own memory in addition to its compute device: that is not worth a log line.
bool is_beside_another(const Request& request, const DeviceSelection& selection, const Catalogue& catalogue) {
  return request.by_program && selection.strict && selection.device->info.name == std::string_view("cpu") &&
         catalogue.has_chosen();
}

DeviceSelection selection_of(const Request& request, const DeviceChoice& choice,
                             const std::vector<KnownDevice>& devices) {
  DeviceSelection selection;
  selection.device = devices[*choice.device].entry;
  selection.options = request.selector.items[*choice.item].options;
  selection.chosen_by = chosen_by(request, choice);
  selection.strict = request.selector.is_strict();
  selection.fell_through = !choice.warning.empty();
  return selection;
}

}  // namespace

Registry& Registry::instance() {
  static Registry registry;
  return registry;
}

std::vector<const DeviceEntry*> Registry::devices() {
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
    if (!is_beside_another(request, selection, catalogue) && catalogue.note_chosen(selection.device)) {
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
    JsonWriter out;
    out.begin_object()
        .field("device", chosen.name)
        .field("plugin", chosen.plugin)
        .field("description", chosen.description);
    out.field("pci_address", chosen.pci).field("uuid", chosen.uuid).field("chosen_by", chosen_by(request, choice));
    out.field("selector", request.selector.text)
        .field("strict", request.selector.is_strict())
        .field("warning", choice.warning);
    out.key("others").begin_array();
    for (const Refusal& other : choice.others)
      out.begin_object().field("name", other.name).field("reason", other.reason).end_object();
    out.end_array().end_object();
    return out.take() + "\n";
  }
  std::string answer = selection_message(chosen, chosen_by(request, choice)).substr(std::strlen("using ")) + "\n";
  if (!choice.warning.empty()) answer += "warning: " + choice.warning + "\n";
  for (const Refusal& other : choice.others) answer += "  not " + other.name + ": " + other.reason + "\n";
  return answer;
}

std::string Registry::load_report(int32_t format) {
  Catalogue& catalogue = Catalogue::instance();
  const std::lock_guard lock(catalogue.mutex);
  const LoadReport report = catalogue.report(true);
  return format == COMPUTE_FORMAT_JSON ? report.to_json() : report.to_text();
}

DeviceOptions Registry::host_options() {
  Catalogue& catalogue = Catalogue::instance();
  const std::lock_guard lock(catalogue.mutex);
  try {
    const Request request = request_of(nullptr, catalogue);
    const std::vector<SelectorItem>& items = request.selector.items;
    if (!items.empty() && items.front().name == "cpu" && !items.front().exclude) return items.front().options;
  } catch (const Error& error) {
    if (error.code != COMPUTE_ERROR_INVALID_ARGUMENT) throw;  // a faulty selector is reported to who selects
  }
  return {};
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
  catalogue.throw_if_short(std::string_view(wanted).substr(0, wanted.find_first_of("0123456789")));
  return nullptr;
}

std::vector<Plugin*> Registry::opened_plugins() {
  Catalogue& catalogue = Catalogue::instance();
  const std::lock_guard lock(catalogue.mutex);
  return catalogue.has_loader() ? catalogue.loader().opened_plugins() : std::vector<Plugin*>();
}

}  // namespace compute
