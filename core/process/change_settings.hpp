// SPDX-License-Identifier: Apache-2.0
// Changes of the process's settings, and messages about settings without effect.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/settings/setting.hpp"

namespace compute {

void set_setting(std::string_view name, Origin origin, std::optional<std::string_view> text);

void take_process_flags(int32_t* argc, char** argv);

// Logs settings that are misspelt or have no effect, each once per process. The caller must not be using the
// configuration.
void warn_of_settings();

}  // namespace compute
