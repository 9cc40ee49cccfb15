// SPDX-License-Identifier: Apache-2.0
// The settings that plugins declare: rules for declarations, and the settings in compute_plugin_query.
#pragma once

#include <compute/plugin.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/settings/setting.hpp"

namespace compute {

// The fault of a declaration: the part at fault, with its name in manifests, and a description as the end of a
// sentence.
struct SettingFault {
  const char* part;
  std::string why;
};

// Fills in the derived fields of a declaration: `key`, and `values` from choices. `plugin` is the name of the plugin in
// lower case.
std::optional<SettingFault> complete_setting(DeclaredSetting& setting, const std::string& plugin,
                                             std::span<const std::string> choices);

// The settings in the struct that compute_plugin_query returned. Throws PLUGIN_REJECTED.
std::vector<DeclaredSetting> settings_of(const compute_plugin_manifest& manifest, const std::string& plugin);

}  // namespace compute
