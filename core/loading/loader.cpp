// SPDX-License-Identifier: Apache-2.0
#include "core/loading/loader.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/sized.hpp"
#include "core/loading/declared_setting.hpp"
#include "core/loading/library_check.hpp"
#include "core/loading/plugin_core.hpp"
#include "core/loading/probe.hpp"
#include "core/loading/vendor_ops.hpp"
#include "core/process/log.hpp"
#include "core/process/process_config.hpp"
#include "core/text/ascii.hpp"
#include "core/text/printable.hpp"

// The plugin and the call that core is in, for readers of core dumps (`p compute_in_plugin`).
extern "C" char compute_in_plugin[512];
char compute_in_plugin[512] = "";

namespace compute {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kInterfaceMin = 1;
constexpr uint32_t kInterfaceMax = COMPUTE_PLUGIN_INTERFACE;

constexpr const char* kNotAsked = "not requested";

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

// Records for the debugger and the log which plugin function core enters, so that a call that never returns can be
// identified.
class InPlugin {
 public:
  InPlugin(const std::string& path, const char* step) {
    std::snprintf(compute_in_plugin, sizeof(compute_in_plugin), "%s of %s", step, path.c_str());
    log(COMPUTE_LOG_DEBUG, "load", std::string("entering ") + step + " of " + printable(path, kLongestPath));
  }
  ~InPlugin() { compute_in_plugin[0] = '\0'; }
};

[[noreturn]] void reject_file(const std::string& why) { throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, why); }

// A temporary shortage is not a verdict: the next call repeats the step.
[[noreturn]] void throw_shortage(const PluginReport& report, const std::string& what) {
  throw Error(COMPUTE_ERROR_OUT_OF_MEMORY,
              "the plugin " + printable(report.path, kLongestPath) + " cannot be opened now: " + what);
}

bool is_shortage(const Error& error) { return error.code == COMPUTE_ERROR_OUT_OF_MEMORY; }

// Whether a message of the dynamic loader reports a shortage.
bool tells_shortage(std::string_view message) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, EAGAIN}) {
    if (message.find(std::generic_category().message(error)) != std::string_view::npos) return true;
  }
  return false;
}

// Runs `call`, which enters the plugin; an exception becomes a rejection that names `function`.
template <typename Call>
auto entered(const PluginReport& report, const char* function, Call call) {
  const InPlugin note(report.path, function);
  try {
    return call();
  } catch (const std::bad_alloc&) {
    throw_shortage(report, std::string("out of memory in ") + function);
  } catch (const std::exception& exception) {
    reject_file(std::string(function) + " threw an exception: " + exception.what());
  } catch (...) {
    reject_file(std::string(function) + " threw an exception");
  }
}

// Why a plugin found there must not have its name; `ours` are the names of this library's plugins. Empty if it may.
std::string why_not_ours(const PluginCandidate& found, const std::vector<std::string>& ours, std::string_view name) {
  if (found.may_be_ours || std::find(ours.begin(), ours.end(), to_lower(name)) == ours.end()) return "";
  return "its name " + to_lower(name) +
         " is that of a plugin of this library; to replace that plugin, list this file in COMPUTE_PLUGIN_FILES";
}

std::string range_text(uint32_t least, uint32_t most) {
  return least == most ? "version " + std::to_string(least)
                       : "versions " + std::to_string(least) + " to " + std::to_string(most);
}

// Declares settings and reads their values from the environment. Throws INVALID_ARGUMENT for an invalid
// value.
void declare(const std::vector<DeclaredSetting>& settings) {
  const size_t known = all_settings().size();
  for (const DeclaredSetting& setting : settings) declare_setting(setting);
  if (all_settings().size() != known) change_process_config([](Config& config) { config.learn(); });
}

void require_common_version(uint32_t least, uint32_t most, const char* who) {
  if (least != 0 && least <= most && least <= kInterfaceMax && most >= kInterfaceMin) return;
  reject_file(std::string(who) + " requires plugin interface " + range_text(least, most) + "; this library supports " +
              range_text(kInterfaceMin, kInterfaceMax));
}

}  // namespace

std::string why_other_draft(uint32_t theirs, uint32_t own) {
  const auto named = [](uint32_t draft) {
    return draft == 0 ? "the released version " + std::to_string(kInterfaceMax) : "draft " + std::to_string(draft);
  };
  return "it was built for " + named(theirs) + " of the plugin interface; this library supports " + named(own);
}

struct Loader::Candidate {
  PluginCandidate found;
  PluginReport report;
  boost::dll::shared_library library;
  compute_plugin_open_function open_function = nullptr;
  uint32_t interface_version = 0;  // negotiated
  std::unique_ptr<Plugin> plugin;  // from the query on

  // How far it has come. A step that met a shortage is taken again.
  bool is_admitted = false;
  bool is_queried = false;
  bool has_table = false;
  bool is_short = false;  // a shortage keeps it from the next step; report.note says which

  bool is_good() const { return report.rejected.empty() && is_queried; }
  bool is_rejected() const { return !report.rejected.empty(); }
};

Loader::Loader(const PluginPlaces& places, LoaderOptions options) : prober_(std::move(options.probe)) {
  known_ = known_manifests(places);
  FoundPlugins found = find_plugins(places, known_);
  report_.refused = std::move(found.refused);
  report_.searched = std::move(found.searched);
  for (const KnownManifest& known : known_) {
    if (known.is_ours) names_of_ours_.push_back(known.manifest.name);
  }
  for (PluginCandidate& candidate : found.candidates) take(std::move(candidate));
}

// Libraries, tables and plugins are for good: vendor threads may still run in them.
Loader::~Loader() {
  static auto* const immortal = new std::vector<std::unique_ptr<Candidate>>;
  for (std::unique_ptr<Candidate>& candidate : candidates_) immortal->push_back(std::move(candidate));
}

void Loader::take(PluginCandidate found) {
  candidates_.push_back(std::make_unique<Candidate>());
  PluginReport& report = candidates_.back()->report;
  report.name = found.name;
  report.path = found.library.string();
  report.source = found.source;
  report.note = kNotAsked;
  if (found.manifest) {
    report.manifest = found.manifest->file.string();
    report.version = found.manifest->version;
    report.vendor = found.manifest->vendor;
    report.license = found.manifest->license;
    report.url = found.manifest->url;
  }
  if (found.manifest && found.manifest->drivers) {
    found.drivers = {*found.manifest->drivers};
  } else {
    for (const KnownManifest& known : known_) {
      if (known.manifest.drivers) found.drivers.push_back(*known.manifest.drivers);
    }
  }
  candidates_.back()->found = std::move(found);
}

// Takes a candidate as far as its query. False if it is rejected.
bool Loader::ask(Candidate& candidate) {
  PluginReport& report = candidate.report;
  if (candidate.is_rejected()) return false;
  if (candidate.is_queried) return true;
  try {
    if (!candidate.is_admitted) admit(candidate);
    candidate.is_admitted = true;
    if (!candidate.library.is_loaded()) load(candidate);
    report.step = LoadStep::kDependencies;
    query(candidate);
    report.step = LoadStep::kQuery;
    negotiate(candidate);
    report.step = LoadStep::kInterface;
    if (candidate.is_short) report.note = kNotAsked;
    candidate.is_short = false;
    candidate.is_queried = true;
    return true;
  } catch (const Error& error) {
    fail(candidate, error);
    return false;
  }
}

// A shortage is this plugin's row until the next call; anything else is for good.
void Loader::fail(Candidate& candidate, const Error& error) {
  candidate.is_short = is_shortage(error);
  if (!candidate.is_short) return refuse(candidate, error);
  candidate.report.note = error.message;
  log(COMPUTE_LOG_DEBUG, "load", error.message);
}

void Loader::refuse(Candidate& candidate, const Error& error) {
  PluginReport& report = candidate.report;
  report.rejected = error.message;
  report.note.clear();
  log(COMPUTE_LOG_DEBUG, "load", printable(report.path, kLongestPath) + ": rejected: " + report.rejected);
  if (!candidate.found.manifest || !report.requirements.empty()) return;
  // until the plugin is opened, only the manifest describes its run-time libraries
  for (const ManifestRequirement& requirement : candidate.found.manifest->requirements) {
    RequirementReport row;
    row.name = requirement.min_version.empty() ? requirement.name : requirement.name + " " + requirement.min_version;
    row.tried = requirement.files;
    row.remedy = requirement.remedy;
    report.requirements.push_back(std::move(row));
  }
}

// What can be said without entering the file, and its trial in another process.
void Loader::admit(Candidate& candidate) {
  if (!candidate.found.distrust.empty()) reject_file("it was not opened: " + candidate.found.distrust);
  if (candidate.found.name_is_known) {
    if (const std::string why = why_not_ours(candidate.found, names_of_ours_, candidate.found.name); !why.empty())
      reject_file(why);
    negotiate(candidate);
  }
  if (candidate.found.manifest) {
    const Manifest& manifest = *candidate.found.manifest;
    if (!manifest.arch.empty() && !kArchitecture.empty() && manifest.arch != kArchitecture) {
      reject_file("its manifest is for " + manifest.arch + ", not " + std::string(kArchitecture));
    }
    if (manifest.interface_max != 0) {
      require_common_version(manifest.interface_min, manifest.interface_max, "its manifest");
    }
    candidate.report.step = LoadStep::kManifest;
  }
  // dlopen itself dies of a file that is shorter than its segments
  bool is_short = false;
  const std::string problem = why_no_library(candidate.found.real, &is_short);
  if (is_short) throw_shortage(candidate.report, problem);
  if (!problem.empty()) reject_file(problem);
  if (const std::string crash = prober_.reason_against(candidate.found); !crash.empty()) {
    // warn the user, whichever device is chosen instead
    log(COMPUTE_LOG_WARNING, "load",
        "the plugin " + printable(candidate.report.path, kLongestPath) + " is left out: " + crash);
    reject_file(crash);
  }
}

void Loader::load(Candidate& candidate) {
  const fs::path& file = candidate.found.real;  // the one that was judged and tried
  std::string first;
  {
    const InPlugin note(candidate.report.path, "dlopen");
    boost::dll::fs::error_code error;
    try {
      candidate.library.load(file, error, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    } catch (const std::bad_alloc&) {
      throw_shortage(candidate.report, "out of memory in dlopen");
    } catch (...) {
      // A constructor threw, and the dynamic loader keeps its lock: nothing more can be loaded well. The trial in
      // another process ends here.
      log(COMPUTE_LOG_ERROR, "load", "dlopen of " + printable(file.string(), kLongestPath) + " threw an exception");
      reject_file("dlopen threw an exception, which a static constructor of the library did not catch");
    }
    if (!error) return;
    // Boost's code is always EBADF; the loader's own words name a library or symbol, the first that is missing
    const char* words = ::dlerror();
    first = words != nullptr ? words : error.message();
  }
  if (tells_shortage(first)) throw_shortage(candidate.report, printable(first, kLongestPath));
  std::vector<std::string>& missing = candidate.report.missing_libraries;
  missing = missing_libraries(file);
  if (missing.empty()) reject_file(printable(first, kLongestPath));
  std::string names;
  for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
  const size_t count = missing.size();
  reject_file(std::to_string(count) + (count == 1 ? " library is missing: " : " libraries are missing: ") + names);
}

void Loader::query(Candidate& candidate) {
  const PluginCandidate& found = candidate.found;
  PluginReport& report = candidate.report;
  const auto symbol = [&](const char* name) {
    if (!candidate.library.has(name)) reject_file(std::string("it does not export ") + name);
    return &candidate.library.get<void()>(name);
  };
  const auto query_function = reinterpret_cast<compute_plugin_query_function>(symbol("compute_plugin_query"));

  const compute_plugin_manifest stated = read_plugin_struct(entered(report, "compute_plugin_query", query_function),
                                                            "the manifest from compute_plugin_query");
  const std::string name = plugin_text(stated.name, "its name");
  if (const std::string why = why_no_plugin_name(name); !why.empty())
    reject_file("its name " + in_quotes(name) + " " + why);
  if (const std::string why = why_not_ours(found, names_of_ours_, name); !why.empty()) reject_file(why);
  if (found.manifest && found.manifest->name != to_lower(name)) {
    reject_file("its manifest names it " + found.manifest->name + ", but compute_plugin_query names it " +
                to_lower(name));
  }
  if (found.name_is_known && found.name != to_lower(name)) {
    reject_file("its file name is that of " + found.name + ", but compute_plugin_query names it " + to_lower(name) +
                "; rename the file to compute_plugin_" + to_lower(name) + ".so");
  }
  report.name = to_lower(name);
  report.version = plugin_text(stated.version, "its version");
  report.vendor = plugin_text(stated.vendor, "its vendor");
  report.license = plugin_text(stated.license, "its license");
  report.url = plugin_text(stated.url, "its URL");
  report.build_id = plugin_text(stated.build_id, "its build id");

  candidate.plugin = std::make_unique<Plugin>();
  Plugin& plugin = *candidate.plugin;
  plugin.name = report.name;
  plugin.path = report.path;
  plugin.version = report.version;
  plugin.build_id = report.build_id;
  plugin.priority = found.manifest && found.manifest->priority ? *found.manifest->priority : stated.priority;

  const std::string sanitizer = plugin_text(stated.sanitizer, "its sanitizer");
  if (!sanitizer.empty() && sanitizer != kSanitizer) {
    reject_file("it was built with the sanitizer " + in_quotes(sanitizer) + "; this process uses " +
                (kSanitizer.empty() ? "none" : "\"" + std::string(kSanitizer) + "\""));
  }
  require_common_version(stated.interface_min, stated.interface_max, "it");
  candidate.interface_version = std::min(stated.interface_max, kInterfaceMax);
  // The draft matters only if both sides agreed on their newest version.
  if (candidate.interface_version == kInterfaceMax && candidate.interface_version == stated.interface_max &&
      stated.draft != COMPUTE_PLUGIN_DRAFT) {
    reject_file(why_other_draft(stated.draft, COMPUTE_PLUGIN_DRAFT));
  }
  // Each version has an entry point of its own; this library supports one version.
  candidate.open_function = reinterpret_cast<compute_plugin_open_function>(symbol("compute_plugin_open"));
  declare(settings_of(stated, report.name));
}

void Loader::negotiate(Candidate& candidate) const {
  for (const std::unique_ptr<Candidate>& other : candidates_) {
    if (other.get() != &candidate && other->is_good() && other->report.name == candidate.report.name) {
      reject_file("another plugin named " + candidate.report.name +
                  " was found first: " + printable(other->report.path, kLongestPath));
    }
  }
}

void Loader::ask(std::string_view name) {
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    if (candidate->report.name == name && candidate->found.name_is_known) ask(*candidate);
  }
}

bool Loader::open(std::string_view name) {
  const auto states_it = [&](const std::unique_ptr<Candidate>& candidate) {
    return candidate->found.name_is_known && candidate->report.name == name;
  };
  // a file without a name may be the plugin that no other file provides
  if (std::none_of(candidates_.begin(), candidates_.end(), states_it)) ask_unnamed();
  bool opened = false;
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    if (candidate->report.name != name || candidate->report.is_opened() || candidate->is_rejected()) continue;
    if (!candidate->found.name_is_known && !candidate->is_queried) continue;
    if (ask(*candidate)) opened = open(*candidate) || opened;
  }
  return opened;
}

bool Loader::ask_unnamed() {
  bool asked = false;
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    if (candidate->found.name_is_known || candidate->is_queried || candidate->is_rejected()) continue;
    asked = true;
    ask(*candidate);
  }
  return asked;
}

void Loader::open_all() {
  ask_unnamed();
  for (const std::string& name : names()) open(name);
}

// False if it is rejected.
bool Loader::open(Candidate& candidate) {
  try {
    enter(candidate);
    candidate.is_short = false;
    return true;
  } catch (const Error& error) {
    fail(candidate, error);
    if (candidate.is_short) return false;
    log(COMPUTE_LOG_WARNING, "load", "the plugin " + candidate.report.name + " failed to open: " + error.message);
    return false;
  }
}

void Loader::enter(Candidate& candidate) {
  PluginReport& report = candidate.report;
  if (!candidate.has_table) take_table(candidate);
  Listing listing = entered(report, "enumerate", [&] { return list_devices(*candidate.plugin); });
  if (listing.is_short) throw_shortage(report, listing.fault);
  report.requirements = std::move(listing.requirements);
  report.note.clear();
  for (const std::string& note : listing.notes) report.note += (report.note.empty() ? "" : "\n") + note;
  if (!listing.fault.empty()) {
    report.step = LoadStep::kOpened;
    reject_file(listing.fault);
  }
  std::vector<KnownDevice> named =
      name_devices(candidate.plugin->name, candidate.plugin.get(), std::move(listing.devices));
  std::vector<DeviceReport> rows;
  for (KnownDevice& device : named) {
    for (const KnownDevice& other : devices_) {
      if (!is_same_card(device.record, other.record)) continue;
      device.entry->info.same_as = other.entry->info.name;
      device.entry->info.same_as_size = other.entry->info.name_size;
    }
    rows.push_back({device.record.name, device.record.description, device.record.problem});
  }
  devices_.reserve(devices_.size() + named.size());
  report.devices = std::move(rows);
  for (KnownDevice& device : named) devices_.push_back(std::move(device));
  report.step = LoadStep::kOpened;  // whatever could be lacking is there
}

void Loader::take_table(Candidate& candidate) {
  Plugin& plugin = *candidate.plugin;
  opened_.reserve(opened_.size() + 1);
  const compute_plugin_table* table = nullptr;
  compute_error* const error = entered(candidate.report, "compute_plugin_open", [&] {
    return candidate.open_function(candidate.interface_version, &plugin_core(), &table);
  });
  if (error != nullptr) {
    const Error failure = Error::adopt(take_plugin_error({plugin.name, ""}, "compute_plugin_open", error));
    if (is_shortage(failure)) throw_shortage(candidate.report, "compute_plugin_open failed: " + failure.message);
    reject_file("compute_plugin_open failed: " + failure.message);
  }
  if (table == nullptr) reject_file("compute_plugin_open returned no table");
  plugin.table.take(table, plugin.name);
  add_vendor_ops(plugin);
  opened_.push_back(&plugin);
  candidate.has_table = true;
}

std::vector<std::string> Loader::names() const {
  std::vector<std::string> names;
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    const std::string& name = candidate->report.name;
    if (is_plugin_name(name) && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Loader::known_names() const {
  std::vector<std::string> all = names();
  for (const KnownManifest& known : known_) {
    if (std::find(all.begin(), all.end(), known.manifest.name) == all.end()) all.push_back(known.manifest.name);
  }
  return all;
}

std::vector<int32_t> Loader::kinds_of(std::string_view name) const {
  std::vector<int32_t> kinds;
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    if (candidate->report.name != name) continue;
    const std::optional<Manifest>& manifest = candidate->found.manifest;
    if (!manifest || manifest->device_kinds.empty()) return {};
    kinds.insert(kinds.end(), manifest->device_kinds.begin(), manifest->device_kinds.end());
  }
  return kinds;
}

std::vector<PluginProblem> Loader::shortages() const {
  std::vector<PluginProblem> shortages;
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    if (candidate->is_short)
      shortages.push_back({candidate->found.name_is_known ? candidate->report.name : "", candidate->report.note,
                           candidate->report.path});
  }
  return shortages;
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
      problems.push_back({report.name, report.problem(), report.path});
    }
  }
  return problems;
}

LoadReport Loader::report(bool refresh) {
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    if (!refresh || !candidate->is_good() || !candidate->report.is_opened()) continue;
    Listing listing = list_devices(*candidate->plugin);
    if (listing.fault.empty()) candidate->report.requirements = std::move(listing.requirements);
  }
  LoadReport report = report_;
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    report.plugins.push_back(candidate->report);
  }
  report.notes.insert(report.notes.end(), prober_.notes().begin(), prober_.notes().end());
  return report;
}

}  // namespace compute
