// SPDX-License-Identifier: Apache-2.0
// Configuration files.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/setting.hpp"

namespace compute {

// The settings that a file with this content gives. `path` is for messages: INVALID_ARGUMENT, with path and line, for what is no TOML, an unknown key or section, and
// a value that a setting cannot have.
std::vector<std::pair<SettingId, SettingValue>> parse_config_file(const std::string& path, std::string_view content);

}  // namespace compute
