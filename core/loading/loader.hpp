// SPDX-License-Identifier: Apache-2.0
// Loads plugins: finds them and opens those that are wanted. One bad plugin never hides the
// others; what became of each is in the report. Plugins stay loaded until the process ends.
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

struct LoaderOptions {
  ProbeOptions probe;  // never, by default
};

// Not safe from several threads; the registry's lock is around it.
//
// What has run out for now (memory, descriptors) is no verdict on a plugin: that stays closed, with the shortage in its
// report, the others go on, and the next call takes it up again. What core itself lacks is thrown.
class Loader {
 public:
  // Finds the plugins and reads their manifests. No plugin's file is opened.
  Loader(const PluginPlaces& places, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The names of all plugins, of those that were rejected too: as manifest or file name state it, else what the file's
  // name suggests until it is asked.
  std::vector<std::string> names() const;

  // The same, and those of plugins that manifests tell of and that are not there: selectors may name them.
  std::vector<std::string> known_names() const;

  // The kinds of device that the manifest of that plugin states; empty: any.
  std::vector<int32_t> kinds_of(std::string_view name) const;

  // Has the plugin of that name declare its settings, without opening it; does nothing for a name that no good plugin
  // has.
  void ask(std::string_view name);

  // Opens the plugin of that name and lists its devices, once; does nothing for a name that no good plugin has.
  // Returns true if it did open it now. Files that state another name are left alone.
  bool open(std::string_view name);

  // Asks those whose file name says nothing what they are. Returns true if there were any that had not been asked.
  bool ask_unnamed();

  void open_all();

  // The devices of the plugins that are open, by plugin in the order of opening.
  const std::vector<KnownDevice>& devices() const { return devices_; }
  const std::vector<Plugin*>& opened_plugins() const { return opened_; }

  // What had run out when a plugin was last asked, for those that it still keeps closed; without a name where that is
  // not known.
  std::vector<PluginProblem> shortages() const;

  // Why a plugin has no devices, for those that have none.
  std::vector<PluginProblem> problems() const;

  // `refresh` asks opened plugins again for what they look for at run time: they may have looked since they were
  // opened.
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
  LoadReport report_;  // without the plugins, which the candidates hold
  std::vector<KnownManifest> known_;
  std::vector<std::string> names_of_ours_ = {"cpu"};  // which plugins from elsewhere must not have
  std::vector<std::unique_ptr<Candidate>> candidates_;
  std::vector<KnownDevice> devices_;
  std::vector<Plugin*> opened_;
};

}  // namespace compute
