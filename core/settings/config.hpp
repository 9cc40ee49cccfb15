// SPDX-License-Identifier: Apache-2.0
// The settings in settings.def, and their values. Values come from the API, a flag, the environment, a configuration
// file or the default. For each setting the first of these that sets it wins.
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
#include "core/settings/setting.hpp"
#include "core/trusted_files/trusted_files.hpp"

namespace compute {

class Config;

// The sources of a configuration. The defaults are those of this process.
struct ConfigInputs {
  std::function<const char*(const char*)> environment;  // NULL where unset
  std::vector<std::string> environment_names;           // of all variables
  bool privileged = false;  // a privileged process: files that environment or arguments name are not read
  std::filesystem::path system_file = "/etc/compute/config.toml";
  files::Trust trust;  // of files, before settings; see Config::trust()

  // Finds the settings that plugins declare, in the places that the settings name, and passes them to declare_setting.
  // Empty: plugins are not searched.
  std::function<void(const Config&)> find_declared;

  static ConfigInputs of_process();
};

// True iff the process is privileged: it has rights that the user who started it lacks (the rule of secure_getenv).
bool process_is_privileged();

class Config {
 public:
  // Reads environment and files. The file that COMPUTE_CONFIG names replaces both $XDG_CONFIG_HOME/compute/config.toml
  // (else ~/.config/…) and the system's file. Of these two, the former is the stronger.
  //
  // Throws INVALID_ARGUMENT, with file and line or the variable's name, for an invalid value and for an unknown key or
  // section; NOT_FOUND if COMPUTE_CONFIG names no readable file. For a name that core does not know, the settings of
  // plugins are searched first.
  explicit Config(ConfigInputs inputs);

  // Unset for a setting that was declared after this configuration last searched plugins.
  const SettingValue& get(SettingId id) const;

  // Searches the settings that plugins declare, and reads their values. Throws INVALID_ARGUMENT for an invalid value;
  // then that setting stays unknown here.
  void learn();

  // As find_setting; searches the settings of plugins if the name is not known.
  const Setting& find(std::string_view name);

  // Sets the value from the API or a flag, or removes it if there is no text. INVALID_ARGUMENT leaves everything
  // unchanged.
  void set(SettingId id, Origin origin, std::optional<std::string_view> text);

  // What environment and files contained and was ignored, one line each.
  const std::vector<std::string>& ignored() const { return ignored_; }

  // Variables that are not settings but have a similar name, one line each. They differ in at most two letters, so that
  // settings of plugins that are not installed are not taken for mistakes.
  std::vector<std::string> misspelt() const;

  // Whose files are trusted, for files that are read and loaded.
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

// The function that finds settings of plugins, for configurations of the process. It is set before the first is read.
void find_declared_settings_by(void (*finder)(const Config&)) noexcept;

// Takes the `--compute-…=value` flags out of a program's arguments; the rest keep their order. A kFlag needs no value.
// Arguments after `--` belong to the program. In a privileged process a flag that names files is refused, because the
// user who started it wrote it. Nothing changes on error: INVALID_ARGUMENT, NOT_FOUND with the nearest flag.
void take_flags(Config& config, int32_t* argc, char** argv);

}  // namespace compute
