// SPDX-License-Identifier: Apache-2.0
//
// Settings: what settings.def lists, and which of the API, a flag, the environment, a configuration file and the
// default says what each is. The stronger in this order wins, setting by setting.
#ifndef COMPUTE_CORE_CONFIG_HPP_
#define COMPUTE_CORE_CONFIG_HPP_

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/selector.hpp"

namespace compute {

enum class SettingId {
#define COMPUTE_SETTING(id, ...) id,
#include "core/settings.def"
#undef COMPUTE_SETTING
};

enum class SettingKind { kText, kFlag, kInteger, kBytes, kChoice, kPath, kPaths };

struct Setting {
  SettingId id;
  const char* environment;
  const char* key;
  SettingKind kind;
  const char* default_text;
  const char* values;
  bool names_files;
  const char* summary;

  std::string flag() const;  // `--compute-memory-limit`
};

// All settings, in the order of their ids.
std::span<const Setting> all_settings();

// By the environment's name, the file's key or the flag; NOT_FOUND, with the nearest name, where there is none.
const Setting& find_setting(std::string_view name);

// From weak to strong.
enum class Origin { kDefault, kFile, kEnvironment, kFlag, kApi };

struct SettingValue {
  std::string text;  // as it was given, without blanks at its ends; empty: unset
  Origin origin = Origin::kDefault;
  std::string source;  // `COMPUTE_DEVICE`, `/etc/compute/config.toml:3`, `--compute-device`, `the API`, `default`

  bool flag = false;                // of a kFlag
  std::optional<int64_t> integer;   // of a kInteger
  std::optional<ByteAmount> bytes;  // of kBytes
  std::vector<std::string> paths;   // of kPaths

  bool is_set() const { return !text.empty(); }
};

// What a configuration is read from; the defaults are this process's.
struct ConfigInputs {
  std::function<const char*(const char*)> environment;  // NULL where unset
  bool privileged = false;  // more rights than its caller: no file that the environment names is read
  std::filesystem::path system_file = "/etc/compute/config.toml";

  static ConfigInputs of_process();
};

// True iff the process has rights that whoever started it has not (secure_getenv's rule).
bool process_is_privileged();

class Config {
 public:
  // Reads environment and files. COMPUTE_CONFIG's file takes the place of $XDG_CONFIG_HOME/compute/config.toml (else
  // ~/.config/…) and the system's file, of which the former is the stronger.
  //
  // Throws INVALID_ARGUMENT, with file and line or the variable's name, for a value that a setting cannot have and for
  // an unknown key or section; NOT_FOUND where COMPUTE_CONFIG names no readable file.
  explicit Config(ConfigInputs inputs);

  const SettingValue& get(SettingId id) const;

  // Sets or, with nothing as text, takes back a value of the API or of a flag. INVALID_ARGUMENT leaves all as it was.
  void set(SettingId id, Origin origin, std::optional<std::string_view> text);

  // What the environment said and was not heard, one line each.
  const std::vector<std::string>& ignored() const { return ignored_; }

  const ConfigInputs& inputs() const { return inputs_; }

 private:
  static constexpr size_t kLayers = static_cast<size_t>(Origin::kApi) + 1;
  using Layers = std::array<std::optional<SettingValue>, kLayers>;

  void read_environment();
  void read_files();
  std::optional<SettingValue>& layer(SettingId id, Origin origin);

  ConfigInputs inputs_;
  std::vector<Layers> values_;  // by id
  std::vector<std::string> ignored_;
};

// Takes the `--compute-…=value` flags out of a program's arguments; the rest keep their order. A kFlag needs no value.
// What stands behind `--` is the program's. Nothing changes on error: INVALID_ARGUMENT, NOT_FOUND with the nearest
// flag.
void take_flags(Config& config, int32_t* argc, char** argv);

// ---- The process's configuration: read at first use, never destroyed, safe from any thread --------------------------

SettingValue setting(SettingId id);
void set_setting(std::string_view name, Origin origin, std::optional<std::string_view> text);

// A consistent copy, for what reads many settings.
Config process_config();

void take_process_flags(int32_t* argc, char** argv);

}  // namespace compute

#endif  // COMPUTE_CORE_CONFIG_HPP_
