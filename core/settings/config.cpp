// SPDX-License-Identifier: Apache-2.0
#include "core/settings/config.hpp"

#include <compute/compute.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/library_file.hpp"
#include "core/settings/config_file.hpp"
#include "core/text/ascii.hpp"
#include "core/text/nearest_name.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

const Setting& setting_of(SettingId id) { return all_settings()[static_cast<size_t>(id)]; }

std::atomic<void (*)(const Config&)> finder_of_declared{nullptr};

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
  if (const auto finder = finder_of_declared.load(std::memory_order_acquire)) inputs.find_declared = finder;
  return inputs;
}

void find_declared_settings_by(void (*finder)(const Config&)) noexcept {
  finder_of_declared.store(finder, std::memory_order_release);
}

Config::Config(ConfigInputs inputs) : inputs_(std::move(inputs)) {
  take_rows();
  read_files();
}

// Adds settings that were declared since, with their values from the environment.
void Config::take_rows() {
  const auto rows = all_settings();
  const size_t first = values_.size();
  try {
    for (const Setting& setting : rows.subspan(first)) {
      values_.emplace_back();
      layer(setting.id, Origin::kDefault) = parse_setting(setting, Origin::kDefault, "default", "");
    }
    read_environment(first);
  } catch (...) {
    values_.resize(first);
    throw;
  }
}

void Config::learn() {
  if (inputs_.find_declared) inputs_.find_declared(*this);
  if (values_.size() == all_settings().size()) return;
  Config changed = *this;
  changed.take_rows();
  changed.read_files();
  *this = std::move(changed);
}

const Setting& Config::find(std::string_view name) {
  try {
    return find_setting(name);
  } catch (const Error& error) {
    if (error.code != COMPUTE_ERROR_NOT_FOUND) throw;
  }
  learn();
  return find_setting(name);
}

std::optional<SettingValue>& Config::layer(SettingId id, Origin origin) {
  return values_[static_cast<size_t>(id)][static_cast<size_t>(origin)];
}

const SettingValue& Config::get(SettingId id) const {
  static const auto* const kUnknown = new SettingValue;
  if (static_cast<size_t>(id) >= values_.size()) return *kUnknown;
  const Layers& layers = values_[static_cast<size_t>(id)];
  size_t strongest = kLayers - 1;
  while (!layers[strongest]) --strongest;  // the default is always there
  return *layers[strongest];
}

void Config::set(SettingId id, Origin origin, std::optional<std::string_view> text) {
  const Setting& setting = setting_of(id);
  if (static_cast<size_t>(id) >= values_.size()) learn();
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

void Config::read_environment(size_t first) {
  ignored_.resize(ignored_variables_);
  for (const Setting& setting : all_settings().subspan(first, values_.size() - first)) {
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
  trust.remedy = inputs_.privileged ? "" : "; set COMPUTE_TRUST_ALL=1 to use it anyway";
  return trust;
}

// The contents of a configuration file; empty if it is ignored. A user's file that cannot be opened counts as missing,
// because HOME may be another user's.
std::optional<std::string> Config::content_of(const std::filesystem::path& path, bool named) {
  const std::string shown = printable(path.string(), kLongestPath);
  if (path == "/dev/null") return std::nullopt;  // the usual word for no file
  files::File file(path);
  if (!file || !S_ISREG(file.status().st_mode)) {
    if (file.is_short()) throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, "cannot read " + shown + ": " + file.problem());
    if (!named) return std::nullopt;
    throw Error(COMPUTE_ERROR_IO, "COMPUTE_CONFIG: cannot read " + shown + ": " + file.problem());
  }
  if (const std::string reason = trust().why_not(file, path); !reason.empty()) {
    if (named) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "COMPUTE_CONFIG: " + shown + " was not read: " + reason);
    ignored_.push_back(shown + " is ignored: " + reason);
    return std::nullopt;
  }
  std::optional<std::string> content = file.read(kMaxFileBytes);
  if (!content) {
    const compute_error_code code = file.is_short() ? COMPUTE_ERROR_OUT_OF_MEMORY : COMPUTE_ERROR_IO;
    throw Error(code, "cannot read " + shown + ": " + file.problem());
  }
  return content;
}

std::vector<std::string> Config::misspelt() const {
  constexpr size_t kMostLetters = 2;
  std::vector<std::string> lines, known;
  for (const Setting& setting : all_settings()) known.emplace_back(setting.environment);
  for (const std::string& name : inputs_.environment_names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearest_name(name, known, kMostLetters);
    if (nearest.empty()) continue;
    lines.push_back("environment variable " + in_quotes(name) + " is not a setting; did you mean " + nearest + "?");
  }
  return lines;
}

// A key that is not known may be declared by a plugin, where the files that are read say that it lies.
void Config::read_files() {
  std::optional<Error> unknown = read_known_files();
  if (!unknown) return;
  if (inputs_.find_declared) inputs_.find_declared(*this);
  if (values_.size() != all_settings().size()) {
    take_rows();
    unknown = read_known_files();
  }
  if (unknown) throw *unknown;
}

// Returns the first key that is not known.
std::optional<Error> Config::read_known_files() {
  std::optional<Error> unknown;
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
  std::vector<std::optional<SettingValue>> found(values_.size());
  ignored_.resize(ignored_variables_);
  for (const std::filesystem::path& path : paths) {
    const std::optional<std::string> content = content_of(path, named);
    if (!content) continue;
    FileSettings settings = parse_config_file(path.string(), *content);
    if (settings.unknown && !unknown) unknown = std::move(settings.unknown);
    for (auto& [id, value] : settings.values) {
      if (static_cast<size_t>(id) >= found.size()) continue;  // declared since; reading the files again adds it
      std::optional<SettingValue>& slot = found[static_cast<size_t>(id)];
      if (!slot) slot = std::move(value);
    }
  }
  for (size_t i = 0; i < found.size(); ++i) layer(static_cast<SettingId>(i), Origin::kFile) = found[i];
  return unknown;
}

void take_flags(Config& config, int32_t* argc, char** argv) {
  Config changed = config;
  std::vector<char*> kept;
  bool ended = false;
  for (int32_t i = 0; i < *argc; ++i) {
    if (argv[i] == nullptr) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  "argv[" + std::to_string(i) + "] is NULL, but argc is " + std::to_string(*argc));
    }
    const std::string_view argument = argv[i];
    ended = ended || argument == "--";
    if (i == 0 || ended || !argument.starts_with("--compute-")) {
      kept.push_back(argv[i]);
      continue;
    }
    const size_t equals = std::min(argument.find('='), argument.size());
    const Setting& setting = changed.find(argument.substr(0, equals));
    if (equals == argument.size() && setting.kind != SettingKind::kFlag && setting.kind != SettingKind::kWords) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, setting.flag() + " requires a value: " + setting.flag() + "=VALUE");
    }
    if (setting.names_files && config.inputs().privileged) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, setting.flag() + " is not allowed: the process is privileged");
    }
    changed.set(setting.id, Origin::kFlag, equals == argument.size() ? "1" : argument.substr(equals + 1));
  }
  config = std::move(changed);
  std::copy(kept.begin(), kept.end(), argv);
  *argc = static_cast<int32_t>(kept.size());
  argv[*argc] = nullptr;
}

}  // namespace compute
