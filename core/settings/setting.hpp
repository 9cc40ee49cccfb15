// SPDX-License-Identifier: Apache-2.0
// One setting: its row of settings.def, and a value that was given for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/byte_amount.hpp"

namespace compute {

enum class SettingId {
#define COMPUTE_SETTING(id, ...) id,
#include "core/settings/settings.def"
#undef COMPUTE_SETTING
};

enum class SettingKind { kText, kFlag, kInteger, kBytes, kChoice, kWords, kLevels, kPath, kPaths };

struct Setting {
  SettingId id;
  const char* environment;
  const char* key;
  SettingKind kind;
  const char* default_text;
  const char* values;
  bool names_files;
  const char* summary;
  bool of_device = false;  // selectors can set it for a device

  std::string flag() const;  // `--compute-memory-limit`
};

// All settings, in the order of their ids: those of settings.def, then settings that plugins declare, which have no
// name in SettingId. The address of a row never changes.
std::span<const Setting> all_settings();

// A row that a plugin declares.
struct DeclaredSetting {
  std::string environment;  // COMPUTE_ACME_MODE
  std::string key;          // acme.mode
  SettingKind kind = SettingKind::kText;
  std::string default_text;
  std::string values;
  bool names_files = false;
  std::string summary;
  bool of_device = false;
};

// Adds a row permanently. If its names are known already, nothing changes. Rows beyond the 256th are ignored.
// Thread-safe.
void declare_setting(const DeclaredSetting& declared);

// What is wrong with a declaration, as the end of a sentence; "" if nothing is.
std::string why_no_setting(const DeclaredSetting& declared);

// The device settings of a plugin, by the plugin's name, in the order of their declaration.
std::vector<const Setting*> device_settings_of(std::string_view plugin);
// `mode` of `acme.mode`: a device setting's name in selectors.
std::string_view option_name(const Setting& setting);

// By the name of the environment variable, the key of the file, or the flag; NOT_FOUND, with the nearest name, if there
// is none.
const Setting& find_setting(std::string_view name);

// From lowest to highest priority.
enum class Origin { kDefault, kFile, kEnvironment, kFlag, kApi };

struct SettingValue {
  std::string text;  // as given, without leading and trailing blanks; empty: unset
  Origin origin = Origin::kDefault;
  std::string source;  // `COMPUTE_DEVICE`, `/etc/compute/config.toml:3`, `--compute-device`, `the API`, `default`

  bool flag = false;                // of a kFlag; of kWords whether the first one is among them
  std::optional<int64_t> integer;   // of a kInteger
  std::optional<ByteAmount> bytes;  // of kBytes
  std::vector<std::string> paths;   // of kPaths
  std::vector<std::string> words;   // of kWords, and the items of kLevels

  bool is_set() const { return !text.empty(); }
};

// The value of a setting with the text `given`. An empty text means the default. Throws INVALID_ARGUMENT with a message
// that begins with `source`.
SettingValue parse_setting(const Setting& setting, Origin origin, const std::string& source, std::string_view given);
// Throws INVALID_ARGUMENT for more or longer paths than a list may have.
void check_setting_paths(const std::string& source, const std::vector<std::string>& paths);

}  // namespace compute
