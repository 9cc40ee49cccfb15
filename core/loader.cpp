// SPDX-License-Identifier: Apache-2.0
#include "core/loader.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <utility>

#include "core/ascii.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/plugin_host.hpp"
#include "core/printable.hpp"
#include "core/probe.hpp"

// What core was doing in which plugin: for whoever reads a core dump (`p compute_in_plugin`).
extern "C" char compute_in_plugin[512];
char compute_in_plugin[512] = "";

namespace compute {
namespace {

constexpr uint32_t kInterfaceMin = 1;
constexpr uint32_t kInterfaceMax = COMPUTE_PLUGIN_INTERFACE;

constexpr std::string_view kSanitizer =
#if defined(__SANITIZE_ADDRESS__)
    "address";
#elif defined(__SANITIZE_THREAD__)
    "thread";
#else
    "";
#endif

constexpr std::string_view kArchitecture =
#if defined(__x86_64__)
    "x86_64";
#elif defined(__aarch64__)
    "aarch64";
#else
    "";
#endif

class InPlugin {
 public:
  InPlugin(const std::string& path, const char* step) {
    std::snprintf(compute_in_plugin, sizeof(compute_in_plugin), "%s of %s", step, path.c_str());
  }
  ~InPlugin() { compute_in_plugin[0] = '\0'; }
};

[[noreturn]] void reject(const std::string& why) { throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, why); }

// Runs `call`, which enters the plugin; what it throws becomes a rejection that names `function`.
template <typename Call>
auto entered(const PluginReport& report, const char* function, Call call) {
  const InPlugin note(report.path, function);
  try {
    return call();
  } catch (const std::exception& exception) {
    reject(std::string(function) + " threw an exception: " + exception.what());
  } catch (...) {
    reject(std::string(function) + " threw an exception");
  }
}

// compute_plugin_acme.so suggests acme; so does libacme.so.
std::string name_of_file(const std::filesystem::path& file) {
  std::string stem = file.filename().string();
  stem = stem.substr(0, stem.find('.'));
  for (const std::string_view prefix : {"compute_plugin_", "lib"}) {
    if (stem.starts_with(prefix)) stem.erase(0, prefix.size());
  }
  return to_lower(stem);
}

std::string range_text(uint32_t least, uint32_t most) {
  return least == most ? "version " + std::to_string(least)
                       : "versions " + std::to_string(least) + " to " + std::to_string(most);
}

void require_common_version(uint32_t least, uint32_t most, const char* who) {
  if (least != 0 && least <= most && least <= kInterfaceMax && most >= kInterfaceMin) return;
  reject(std::string(who) + " states interface " + range_text(least, most) + ", this library has " +
         range_text(kInterfaceMin, kInterfaceMax));
}

}  // namespace

struct Loader::Candidate {
  PluginReport report;
  boost::dll::shared_library library;
  compute_plugin_open_function open_function = nullptr;
  uint32_t interface_version = 0;  // negotiated
  std::unique_ptr<Plugin> plugin;  // from the query on

  bool is_good() const { return report.rejected.empty() && plugin != nullptr; }
};

Loader::Loader(const PluginPlaces& places, LoaderOptions options) : options_(options) {
  FoundPlugins found = find_plugins(places);
  report_.refused = std::move(found.refused);
  report_.searched = std::move(found.searched);
  for (PluginCandidate& candidate : found.candidates) look_at(std::move(candidate));
}

// Libraries, tables and plugins are for good: vendor threads may still run in them.
Loader::~Loader() {
  static auto* const immortal = new std::vector<std::unique_ptr<Candidate>>;
  for (std::unique_ptr<Candidate>& candidate : candidates_) immortal->push_back(std::move(candidate));
}

void Loader::look_at(PluginCandidate found) {
  candidates_.push_back(std::make_unique<Candidate>());
  Candidate& candidate = *candidates_.back();
  PluginReport& report = candidate.report;
  report.name = found.manifest ? found.manifest->name : name_of_file(found.library);
  report.path = found.library.string();
  report.source = found.source;
  try {
    if (found.manifest) {
      const Manifest& manifest = *found.manifest;
      report.manifest = manifest.file.string();
      report.version = manifest.version;
      report.vendor = manifest.vendor;
      if (!manifest.arch.empty() && !kArchitecture.empty() && manifest.arch != kArchitecture) {
        reject("its manifest says that it is for " + manifest.arch + ", not " + std::string(kArchitecture));
      }
      if (manifest.interface_max != 0) {
        require_common_version(manifest.interface_min, manifest.interface_max, "its manifest");
      }
      report.step = LoadStep::kManifest;
    }
    if (options_.probe) {
      const std::string crash = probe_plugin(found.library);
      if (!crash.empty()) reject(crash);
    }
    load(candidate, found);
    report.step = LoadStep::kDependencies;
    query(candidate, found);
    report.step = LoadStep::kQuery;
    negotiate(candidate);
    report.step = LoadStep::kInterface;
    report.note = "it was not asked for";
  } catch (const Error& error) {
    report.rejected = error.message;
  }
  if (!report.rejected.empty()) {
    // what the manifest says of run-time libraries is all that is known of them now
    if (found.manifest) {
      for (ManifestRequirement& requirement : found.manifest->requirements) {
        RequirementReport row;
        row.name =
            requirement.min_version.empty() ? requirement.name : requirement.name + " " + requirement.min_version;
        row.tried = std::move(requirement.files);
        row.remedy = std::move(requirement.remedy);
        report.requirements.push_back(std::move(row));
      }
    }
    log(COMPUTE_LOG_DEBUG, "load", printable(report.path, kLongestPath) + ": rejected: " + report.rejected);
  }
}

void Loader::load(Candidate& candidate, const PluginCandidate& found) {
  const InPlugin note(candidate.report.path, "dlopen");
  // dlopen itself dies of a file that is shorter than its segments
  if (const std::string problem = read_elf_file(found.library).problem; !problem.empty()) reject(problem);
  boost::dll::fs::error_code error;
  candidate.library.load(found.library, error, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (!error) return;
  // Boost's code is always EBADF; the loader's own words name a library or symbol, the first that is missing
  const char* words = ::dlerror();
  const std::string first = words != nullptr ? words : error.message();
  ElfDependencies dependencies = find_dependencies(found.library, ElfSearch::of_process());
  if (!dependencies.problem.empty()) reject(dependencies.problem);
  if (dependencies.missing.empty()) reject(printable(first, kLongestPath));
  std::string names;
  for (const MissingLibrary& library : dependencies.missing) names += (names.empty() ? "" : ", ") + library.name;
  const size_t count = dependencies.missing.size();
  candidate.report.missing_libraries = std::move(dependencies.missing);
  reject(std::to_string(count) + (count == 1 ? " library is missing: " : " libraries are missing: ") + names);
}

void Loader::query(Candidate& candidate, const PluginCandidate& found) {
  PluginReport& report = candidate.report;
  const auto symbol = [&](const char* name) {
    if (!candidate.library.has(name)) reject(std::string("it does not export ") + name);
    return &candidate.library.get<void()>(name);
  };
  const auto query_function = reinterpret_cast<compute_plugin_query_function>(symbol("compute_plugin_query"));
  candidate.open_function = reinterpret_cast<compute_plugin_open_function>(symbol("compute_plugin_open"));

  using Stated = compute_plugin_manifest;
  const Stated* const given = entered(report, "compute_plugin_query", query_function);
  if (given == nullptr) reject("compute_plugin_query returned NULL");
  if (given->struct_type != COMPUTE_PLUGIN_STRUCT_MANIFEST ||
      given->struct_size < offsetof(Stated, name) + sizeof(Stated::name)) {
    reject("compute_plugin_query returned struct_type " + std::to_string(given->struct_type) + " of " +
           std::to_string(given->struct_size) + " bytes, which is no manifest");
  }
  const Stated stated = copy_sized(given, given->struct_size);
  const std::string name = plugin_text(stated.name, "its name");
  if (!is_plugin_name(name)) reject("its name " + in_quotes(name) + " is not made of letters and \"_\" alone");
  if (found.manifest && found.manifest->name != to_lower(name)) {
    reject("its manifest calls it " + found.manifest->name + ", it calls itself " + to_lower(name));
  }
  report.name = to_lower(name);
  report.version = plugin_text(stated.version, "its version");
  report.vendor = plugin_text(stated.vendor, "its vendor");
  report.build_id = plugin_text(stated.build_id, "its build id");

  candidate.plugin = std::make_unique<Plugin>();
  Plugin& plugin = *candidate.plugin;
  plugin.name = report.name;
  plugin.path = report.path;
  plugin.version = report.version;
  plugin.build_id = report.build_id;
  plugin.flags = stated.flags;
  plugin.priority = found.manifest && found.manifest->priority ? *found.manifest->priority : stated.priority;

  const std::string sanitizer = plugin_text(stated.sanitizer, "its sanitizer");
  if (!sanitizer.empty() && sanitizer != kSanitizer) {
    reject("it was built with the sanitizer " + in_quotes(sanitizer) + ", this process " +
           (kSanitizer.empty() ? "without one" : "with \"" + std::string(kSanitizer) + "\""));
  }
  require_common_version(stated.interface_min, stated.interface_max, "it");
  candidate.interface_version = std::min(stated.interface_max, kInterfaceMax);
  // A draft counts where the newest version of both is what they agreed on.
  if (candidate.interface_version == kInterfaceMax && candidate.interface_version == stated.interface_max &&
      stated.draft != COMPUTE_PLUGIN_DRAFT) {
    reject("it was built for draft " + std::to_string(stated.draft) + " of the interface, this library has draft " +
           std::to_string(COMPUTE_PLUGIN_DRAFT));
  }
}

void Loader::negotiate(Candidate& candidate) const {
  for (const std::unique_ptr<Candidate>& other : candidates_) {
    if (other.get() != &candidate && other->is_good() && other->report.name == candidate.report.name) {
      reject("another plugin called " + candidate.report.name + " was found first: " + printable(other->report.path, kLongestPath));
    }
  }
}

bool Loader::open(std::string_view name) {
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    if (!candidate->is_good() || candidate->report.name != name || candidate->report.is_opened()) continue;
    try {
      open(*candidate);
    } catch (const Error& error) {
      candidate->report.rejected = error.message;
      log(COMPUTE_LOG_WARNING, "load", "the plugin " + candidate->report.name + " failed to open: " + error.message);
    }
    return true;
  }
  return false;
}

void Loader::open(Candidate& candidate) {
  PluginReport& report = candidate.report;
  Plugin& plugin = *candidate.plugin;
  report.note.clear();
  const compute_plugin_table* table = nullptr;
  compute_error* const error = entered(report, "compute_plugin_open", [&] {
    const PluginGuard lock(plugin);
    return candidate.open_function(candidate.interface_version, &plugin_host(), &table);
  });
  if (error != nullptr) reject("compute_plugin_open failed: " + Error::adopt(error).message);
  if (table == nullptr) reject("compute_plugin_open returned no table");
  plugin.table = copy_sized(table, table->table_size);
  if (plugin.table.enumerate == nullptr) reject("its table lacks enumerate");
  if (plugin.table.device_open == nullptr) reject("its table lacks device_open");
  report.step = LoadStep::kOpened;
  opened_.push_back(&plugin);

  Listing listing = entered(report, "enumerate", [&] { return list_devices(plugin); });
  report.requirements = std::move(listing.requirements);
  for (const std::string& note : listing.notes) report.note += (report.note.empty() ? "" : "\n") + note;
  if (!listing.fault.empty()) reject(listing.fault);
  for (KnownDevice& device : name_devices(plugin.name, &plugin, std::move(listing.devices))) {
    for (const KnownDevice& other : devices_) {
      if (!is_same_card(device.record, other.record)) continue;
      device.entry->info.same_as = other.entry->info.name;
      device.entry->info.same_as_size = other.entry->info.name_size;
    }
    report.devices.push_back({device.record.name, device.record.description, device.record.problem});
    devices_.push_back(std::move(device));
  }
}

std::vector<std::string> Loader::names() const {
  std::vector<std::string> names;
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    const std::string& name = candidate->report.name;
    if (is_plugin_name(name) && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<PluginProblem> Loader::problems() const {
  std::vector<PluginProblem> problems;
  const auto has_row = [&](const std::string& name) {
    return std::any_of(problems.begin(), problems.end(), [&](const PluginProblem& row) { return row.plugin == name; });
  };
  // a good plugin speaks for its name before a rejected namesake does
  for (const bool good : {true, false}) {
    for (const std::unique_ptr<Candidate>& candidate : candidates_) {
      const PluginReport& report = candidate->report;
      if (candidate->is_good() != good || has_row(report.name)) continue;
      const auto is_its = [&](const KnownDevice& device) { return device.record.plugin == report.name; };
      if (std::any_of(devices_.begin(), devices_.end(), is_its)) continue;
      problems.push_back({report.name, report.problem()});
    }
  }
  return problems;
}

LoadReport Loader::report() const {
  LoadReport report = report_;
  for (const std::unique_ptr<Candidate>& candidate : candidates_) report.plugins.push_back(candidate->report);
  return report;
}

}  // namespace compute
