// SPDX-License-Identifier: Apache-2.0
// The settings that plugins declare in their manifests.
#pragma once

#include "core/base/config.hpp"

namespace compute {

// Declares those of all manifests in the places that `config` names. Configurations of the process call it where they
// meet what they do not know.
void declare_settings_of_plugins(const Config& config);

}  // namespace compute
