// SPDX-License-Identifier: Apache-2.0
// Configuration files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/setting.hpp"

namespace compute {

// What a file says.
struct FileSettings {
  std::vector<std::pair<SettingId, SettingValue>> values;
  std::optional<Error> unknown;  // the first key or section that nobody knows, with path and line
};

// The settings that a file with this content gives. `path` is for messages: INVALID_ARGUMENT, with path and line, for
// what is no TOML, and a value that a setting cannot have.
FileSettings parse_config_file(const std::string& path, std::string_view content);

}  // namespace compute
