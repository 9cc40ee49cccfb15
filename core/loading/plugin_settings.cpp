// SPDX-License-Identifier: Apache-2.0
#include "core/loading/plugin_settings.hpp"

#include "core/loading/plugin_search.hpp"

namespace compute {
namespace {

// Before anybody reads a configuration: base knows nothing of plugins.
[[maybe_unused]] const bool is_given = [] {
  find_declared_settings_by(declare_settings_of_plugins);
  return true;
}();

}  // namespace

void declare_settings_of_plugins(const Config& config) {
  for (const KnownManifest& known : known_manifests(PluginPlaces::of_process(config))) {
    for (const DeclaredSetting& setting : known.manifest.settings) declare_setting(setting);
  }
}

}  // namespace compute
