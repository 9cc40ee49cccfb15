// SPDX-License-Identifier: Apache-2.0
// Loads plugins: finds them and opens those that are needed. A bad plugin never hides the others; the report contains
// the state of each. Plugins stay loaded until the process exits.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/loading/device_listing.hpp"
#include "core/loading/load_report.hpp"
#include "core/loading/plugin.hpp"
#include "core/loading/plugin_search.hpp"
#include "core/loading/probe.hpp"

namespace compute {

class Error;

// Why a plugin of another draft of the interface is rejected. 0 is the released version.
std::string why_other_draft(uint32_t theirs, uint32_t own);

struct LoaderOptions {
  ProbeOptions probe;  // by default never
};

// Not thread-safe; the registry's lock protects it.
//
// A temporary shortage (memory, descriptors) is not a result about a plugin: that plugin stays closed with the shortage
// in its report, the others continue, and the next call tries it again. A shortage of core itself is thrown.
class Loader {
 public:
  // Finds the plugins and reads their manifests. Opens no plugin file.
  Loader(const PluginPlaces& places, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The names of all plugins, including rejected ones: as manifest or file name state it, else the name that the file
  // name suggests until the plugin is asked.
  std::vector<std::string> names() const;

  // The same, and the names of plugins that are not installed but whose manifests exist: selectors may name them.
  std::vector<std::string> known_names() const;

  // The kinds of device that the manifest of that plugin states; empty: any.
  std::vector<int32_t> kinds_of(std::string_view name) const;

  // Makes the plugin of that name declare its settings, without opening it; does nothing for a name that no good plugin
  // has.
  void ask(std::string_view name);

  // Opens the plugin of that name and lists its devices, once; does nothing for a name that no good plugin has. Returns
  // true if it opened the plugin now. Files that state another name are not opened.
  bool open(std::string_view name);

  // Opens the plugins whose file name does not state a name and asks for it. Returns true if there were any that had
  // not been asked.
  bool ask_unnamed();

  void open_all();

  // The devices of the open plugins, by plugin in the order of opening.
  const std::vector<KnownDevice>& devices() const { return devices_; }
  const std::vector<Plugin*>& opened_plugins() const { return opened_; }

  // The shortage when a plugin was last tried, for plugins that stay closed because of it; without a name if it is not
  // known.
  std::vector<PluginProblem> shortages() const;

  // Why a plugin has no devices, for those that have none.
  std::vector<PluginProblem> problems() const;

  // `refresh` asks opened plugins again for the libraries that they open at run time: they may have searched since they
  // were opened.
  LoadReport report(bool refresh = false);

 private:
  struct Candidate;

  void take(PluginCandidate found);
  bool ask(Candidate& candidate);
  void refuse(Candidate& candidate, const Error& error);
  void fail(Candidate& candidate, const Error& error);
  void admit(Candidate& candidate);
  void load(Candidate& candidate);
  void query(Candidate& candidate);
  void negotiate(Candidate& candidate) const;
  bool open(Candidate& candidate);
  void enter(Candidate& candidate);
  void take_table(Candidate& candidate);

  Prober prober_;
  LoadReport report_;  // without the plugins, which the candidates contain
  std::vector<KnownManifest> known_;
  std::vector<std::string> names_of_ours_ = {"cpu"};  // names that plugins from elsewhere must not have
  std::vector<std::unique_ptr<Candidate>> candidates_;
  std::vector<KnownDevice> devices_;
  std::vector<Plugin*> opened_;
};

}  // namespace compute
