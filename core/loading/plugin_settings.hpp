// SPDX-License-Identifier: Apache-2.0
// The settings that plugins declare in their manifests.
#pragma once

#include "core/settings/config.hpp"

namespace compute {

// Declares the settings of all manifests in the places that `config` names. Configurations of the process call it when
// they meet an unknown name.
void declare_settings_of_plugins(const Config& config);

}  // namespace compute
