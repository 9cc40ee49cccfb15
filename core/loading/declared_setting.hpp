// SPDX-License-Identifier: Apache-2.0
// The settings that plugins declare: the rules for a declaration, and those of compute_plugin_query.
#pragma once

#include <compute/plugin.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/setting.hpp"

namespace compute {

// What is wrong with a declaration: with which part of it, as manifests call it, and what, as the end of a sentence.
struct SettingFault {
  const char* part;
  std::string why;
};

// Fills in what follows from the rest of a declaration: `key`, and `values` from choices. `plugin` is the name of the
// one that declares it, in small letters.
std::optional<SettingFault> complete_setting(DeclaredSetting& setting, const std::string& plugin,
                                             std::span<const std::string> choices);

// The settings of the struct that compute_plugin_query returned. Throws PLUGIN_REJECTED.
std::vector<DeclaredSetting> settings_of(const compute_plugin_manifest& manifest, const std::string& plugin);

}  // namespace compute
