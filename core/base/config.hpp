// SPDX-License-Identifier: Apache-2.0
// Settings: what settings.def lists, and which of the API, a flag, the environment, a configuration file and the
// default says what each is. The stronger in this order wins, setting by setting.
#pragma once

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

#include "core/base/error.hpp"
#include "core/base/setting.hpp"
#include "core/files/files.hpp"

namespace compute {

class Config;

// What a configuration is read from; the defaults are this process's.
struct ConfigInputs {
  std::function<const char*(const char*)> environment;  // NULL where unset
  std::vector<std::string> environment_names;           // of all variables
  bool privileged = false;  // more rights than its caller: no file that environment or arguments name is read
  std::filesystem::path system_file = "/etc/compute/config.toml";
  files::Trust trust;  // of files; Config::trust() is what the settings make of it

  // Finds what plugins declare, in the places that the settings name, and passes it to declare_setting. Empty: nobody
  // looks.
  std::function<void(const Config&)> find_declared;

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
  // an unknown key or section; NOT_FOUND where COMPUTE_CONFIG names no readable file. Plugins are asked for what core
  // does not know.
  explicit Config(ConfigInputs inputs);

  // Unset for one that was declared since it last learned.
  const SettingValue& get(SettingId id) const;

  // Looks for what plugins declare and reads it. Throws INVALID_ARGUMENT for a value that such a setting cannot have;
  // then it is not known here.
  void learn();

  // As find_setting; learns where the name is not known.
  const Setting& find(std::string_view name);

  // Sets or, with nothing as text, takes back a value of the API or of a flag. INVALID_ARGUMENT leaves all as it was.
  void set(SettingId id, Origin origin, std::optional<std::string_view> text);

  // What environment and files said and was not heard, one line each.
  const std::vector<std::string>& ignored() const { return ignored_; }

  // Variables that are no settings but nearly called like one, one line each: they differ in at most two letters, so
  // that settings of plugins that are not there are not taken for mistakes.
  std::vector<std::string> misspelt() const;

  // Settings that were set and whose code is still to come, one line each.
  std::vector<std::string> without_effect() const;

  // Who may have written the files that are read and loaded.
  files::Trust trust() const;

  const ConfigInputs& inputs() const { return inputs_; }

 private:
  static constexpr size_t kLayers = static_cast<size_t>(Origin::kApi) + 1;
  using Layers = std::array<std::optional<SettingValue>, kLayers>;

  void take_rows();
  void read_environment(size_t first);
  void read_files();
  std::optional<Error> read_known_files();
  std::optional<std::string> content_of(const std::filesystem::path& path, bool named);
  std::optional<SettingValue>& layer(SettingId id, Origin origin);

  ConfigInputs inputs_;
  std::vector<Layers> values_;        // by id, of the settings that are known here
  std::vector<std::string> ignored_;  // those of the environment first
  size_t ignored_variables_ = 0;
};

// Who finds what plugins declare, for configurations of the process: given before the first is read.
void find_declared_settings_by(void (*finder)(const Config&)) noexcept;

// Takes the `--compute-…=value` flags out of a program's arguments; the rest keep their order. A kFlag needs no value.
// What stands behind `--` is the program's. In a privileged process a flag that names files is refused: whoever started
// it wrote it. Nothing changes on error: INVALID_ARGUMENT, NOT_FOUND with the nearest flag.
void take_flags(Config& config, int32_t* argc, char** argv);

}  // namespace compute
