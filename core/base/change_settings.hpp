// SPDX-License-Identifier: Apache-2.0
// Changes of the process's settings, and what is said of settings that do nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/setting.hpp"

namespace compute {

void set_setting(std::string_view name, Origin origin, std::optional<std::string_view> text);

void take_process_flags(int32_t* argc, char** argv);

// Logs what is misspelt or has no effect, each line once in the process. The configuration must not be in use by the
// caller.
void warn_of_settings();

}  // namespace compute
