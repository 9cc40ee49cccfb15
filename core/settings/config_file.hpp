// SPDX-License-Identifier: Apache-2.0
// Configuration files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/settings/setting.hpp"

namespace compute {

// What a file says.
struct FileSettings {
  std::vector<std::pair<SettingId, SettingValue>> values;
  std::optional<Error> unknown;  // the first unknown key or section, with path and line
};

// The settings in a file with this content. `path` is for messages. Throws INVALID_ARGUMENT, with path and line, if it
// is not TOML, and for an invalid value.
FileSettings parse_config_file(const std::string& path, std::string_view content);

}  // namespace compute
