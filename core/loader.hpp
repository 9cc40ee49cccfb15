// SPDX-License-Identifier: Apache-2.0
//
// Loads plugins: finds them, asks each what it is, and opens those that are wanted. One bad plugin never hides the
// others; what became of each is in the report. Plugins stay loaded until the process ends.
#ifndef COMPUTE_CORE_LOADER_HPP_
#define COMPUTE_CORE_LOADER_HPP_

#include <compute/plugin.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_listing.hpp"
#include "core/load_report.hpp"
#include "core/plugin.hpp"
#include "core/plugin_search.hpp"

namespace compute {

struct LoaderOptions {
  bool probe = false;  // try each plugin in a process of its own before it is loaded
};

// Not safe from several threads; the registry's lock is around it.
class Loader {
 public:
  // Looks at every plugin and runs its query. Throws for want of memory only.
  Loader(const PluginPlaces& places, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The names of all plugins, of those that were rejected too (what their files are called, at worst).
  std::vector<std::string> names() const;

  // Opens the plugin of that name and lists its devices, once; does nothing for a name that no good plugin has.
  // Returns true if it did open it now.
  bool open(std::string_view name);

  // The devices of the plugins that are open, by plugin in the order of opening.
  const std::vector<KnownDevice>& devices() const { return devices_; }
  const std::vector<Plugin*>& opened_plugins() const { return opened_; }

  // Why a plugin has no devices, for those that have none.
  std::vector<PluginProblem> problems() const;

  LoadReport report() const;

 private:
  struct Candidate;

  void look_at(PluginCandidate found);
  void load(Candidate& candidate, const PluginCandidate& found);
  void query(Candidate& candidate, const PluginCandidate& found);
  void negotiate(Candidate& candidate) const;
  void open(Candidate& candidate);

  LoaderOptions options_;
  LoadReport report_;  // without the plugins, which the candidates hold
  std::vector<std::unique_ptr<Candidate>> candidates_;
  std::vector<KnownDevice> devices_;
  std::vector<Plugin*> opened_;
};

}  // namespace compute

#endif  // COMPUTE_CORE_LOADER_HPP_
