// SPDX-License-Identifier: Apache-2.0
#include "core/base/config.hpp"

#include <compute/compute.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/ascii.hpp"
#include "core/base/config_file.hpp"
#include "core/base/error.hpp"
#include "core/base/library_file.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/printable.hpp"

namespace compute {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
// Known, so that programs may set them, but read by nobody: their code is still to come.
constexpr SettingId kNotYet[] = {SettingId::kProfile, SettingId::kPlacement, SettingId::kLeaks};

const Setting& setting_of(SettingId id) { return all_settings()[static_cast<size_t>(id)]; }

}  // namespace

bool process_is_privileged() { return getauxval(AT_SECURE) != 0; }

ConfigInputs ConfigInputs::of_process() {
  ConfigInputs inputs;
  inputs.environment = [](const char* name) -> const char* { return std::getenv(name); };
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    inputs.environment_names.emplace_back(text.substr(0, text.find('=')));
  }
  inputs.privileged = process_is_privileged();
  inputs.trust = files::Trust::of_process(inputs.privileged);
  inputs.trust.believe_neighbours(library_file());
  return inputs;
}

Config::Config(ConfigInputs inputs) : inputs_(std::move(inputs)), values_(all_settings().size()) {
  for (const Setting& setting : all_settings()) {
    layer(setting.id, Origin::kDefault) = parse_setting(setting, Origin::kDefault, "default", "");
  }
  read_environment();
  find_misspelt();
  read_files();
}

std::optional<SettingValue>& Config::layer(SettingId id, Origin origin) {
  return values_[static_cast<size_t>(id)][static_cast<size_t>(origin)];
}

const SettingValue& Config::get(SettingId id) const {
  const Layers& layers = values_[static_cast<size_t>(id)];
  size_t strongest = kLayers - 1;
  while (!layers[strongest]) --strongest;  // the default is always there
  return *layers[strongest];
}

void Config::set(SettingId id, Origin origin, std::optional<std::string_view> text) {
  const Setting& setting = setting_of(id);
  std::optional<SettingValue> value;
  if (text) {
    value = parse_setting(setting, origin, origin == Origin::kFlag ? setting.flag() : setting.environment, *text);
    if (origin == Origin::kApi) value->source = "the API";
  }
  std::swap(layer(id, origin), value);
  if (id != SettingId::kConfig && id != SettingId::kTrustAll) return;
  try {
    read_files();
  } catch (...) {
    std::swap(layer(id, origin), value);
    throw;
  }
}

void Config::read_environment() {
  for (const Setting& setting : all_settings()) {
    const char* text = inputs_.environment(setting.environment);
    if (text == nullptr || trimmed(text).empty()) continue;
    if (inputs_.privileged && setting.names_files) {
      ignored_.push_back(std::string(setting.environment) + " is ignored: the process is privileged");
      continue;
    }
    layer(setting.id, Origin::kEnvironment) = parse_setting(setting, Origin::kEnvironment, setting.environment, text);
  }
  ignored_variables_ = ignored_.size();
}

files::Trust Config::trust() const {
  files::Trust trust = inputs_.trust;
  trust.everybody = get(SettingId::kTrustAll).flag;
  trust.remedy = inputs_.privileged ? "" : "; COMPUTE_TRUST_ALL=1 takes it all the same";
  return trust;
}

// The contents of a configuration file; empty where it does not count. A file of the user's own that cannot be opened is as good as none:
// HOME may be that of somebody else.
std::optional<std::string> Config::content_of(const std::filesystem::path& path, bool named) {
  const std::string shown = printable(path.string(), kLongestPath);
  if (path == "/dev/null") return std::nullopt;  // the usual word for no file
  files::File file(path);
  if (!file || !S_ISREG(file.status().st_mode)) {
    if (file.is_short()) throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, "cannot read " + shown + " now: " + file.problem());
    if (!named) return std::nullopt;
    throw Error(COMPUTE_ERROR_NOT_FOUND, "COMPUTE_CONFIG: cannot read " + shown + ": " + file.problem());
  }
  if (const std::string reason = trust().why_not(file, path); !reason.empty()) {
    if (named) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "COMPUTE_CONFIG: " + shown + " is not read: " + reason);
    ignored_.push_back(shown + " is not read: " + reason);
    return std::nullopt;
  }
  std::optional<std::string> content = file.read(kMaxFileBytes);
  if (!content) {
    const compute_error_code code = file.is_short() ? COMPUTE_ERROR_OUT_OF_MEMORY : COMPUTE_ERROR_INVALID_ARGUMENT;
    throw Error(code, shown + ": a configuration file that is " + file.problem());
  }
  return content;
}

void Config::find_misspelt() {
  constexpr size_t kMostLetters = 2;
  std::vector<std::string> known;
  for (const Setting& setting : all_settings()) known.emplace_back(setting.environment);
  for (const std::string& name : inputs_.environment_names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearest_name(name, known, kMostLetters);
    if (nearest.empty()) continue;
    misspelt_.push_back(in_quotes(name) + " in the environment is no setting; did you mean " + nearest + "?");
  }
}

std::vector<std::string> Config::without_effect() const {
  std::vector<std::string> lines;
  for (const SettingId id : kNotYet) {
    const Setting& setting = setting_of(id);
    const SettingValue& value = get(id);
    if (!value.is_set() || value.text == setting.default_text) continue;
    lines.push_back(std::string(setting.environment) + " has no effect: it is not implemented yet in this version");
  }
  return lines;
}

void Config::read_files() {
  std::vector<std::filesystem::path> paths;  // from strong to weak
  const bool named = get(SettingId::kConfig).is_set();
  if (named) {
    paths.emplace_back(get(SettingId::kConfig).text);
  } else {
    const char* config_home = inputs_.privileged ? nullptr : inputs_.environment("XDG_CONFIG_HOME");
    const char* home = inputs_.privileged ? nullptr : inputs_.environment("HOME");
    if (config_home != nullptr && *config_home == '/') {
      paths.push_back(std::filesystem::path(config_home) / "compute/config.toml");
    } else if (home != nullptr && *home == '/') {
      paths.push_back(std::filesystem::path(home) / ".config/compute/config.toml");
    }
    paths.push_back(inputs_.system_file);
  }
  std::vector<std::optional<SettingValue>> found(all_settings().size());
  ignored_.resize(ignored_variables_);
  for (const std::filesystem::path& path : paths) {
    const std::optional<std::string> content = content_of(path, named);
    if (!content) continue;
    for (auto& [id, value] : parse_config_file(path.string(), *content)) {
      std::optional<SettingValue>& slot = found[static_cast<size_t>(id)];
      if (!slot) slot = std::move(value);
    }
  }
  for (const Setting& setting : all_settings()) layer(setting.id, Origin::kFile) = found[static_cast<size_t>(setting.id)];
}

void take_flags(Config& config, int32_t* argc, char** argv) {
  Config changed = config;
  std::vector<char*> kept;
  bool ended = false;
  for (int32_t i = 0; i < *argc; ++i) {
    if (argv[i] == nullptr) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "argv[" + std::to_string(i) + "] is NULL, and argc " + std::to_string(*argc));
    }
    const std::string_view argument = argv[i];
    ended = ended || argument == "--";
    if (i == 0 || ended || !argument.starts_with("--compute-")) {
      kept.push_back(argv[i]);
      continue;
    }
    const size_t equals = std::min(argument.find('='), argument.size());
    const Setting& setting = find_setting(argument.substr(0, equals));
    if (equals == argument.size() && setting.kind != SettingKind::kFlag && setting.kind != SettingKind::kWords) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, setting.flag() + " needs a value: " + setting.flag() + "=…");
    }
    if (setting.names_files && config.inputs().privileged) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, setting.flag() + " is refused: the process is privileged");
    }
    changed.set(setting.id, Origin::kFlag, equals == argument.size() ? "1" : argument.substr(equals + 1));
  }
  config = std::move(changed);
  std::copy(kept.begin(), kept.end(), argv);
  *argc = static_cast<int32_t>(kept.size());
  argv[*argc] = nullptr;
}

}  // namespace compute
