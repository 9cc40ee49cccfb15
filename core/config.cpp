// SPDX-License-Identifier: Apache-2.0
#include "core/config.hpp"

#include <compute/compute.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/ascii.hpp"
#include "core/error.hpp"
#include "core/nearest_name.hpp"
#include "core/printable.hpp"

// The only translation unit that sees the header of toml++, which is large.
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace compute {
namespace {

constexpr uintmax_t kMaxFileBytes = 1 << 20;

const Setting kSettings[] = {
#define COMPUTE_SETTING(id, environment, key, kind, default_text, values, names_files, summary) \
  {SettingId::id, environment, key, SettingKind::kind, default_text, values, names_files != 0, summary},
#include "core/settings.def"
#undef COMPUTE_SETTING
};
constexpr size_t kSettingCount = std::size(kSettings);

const Setting& setting_of(SettingId id) { return kSettings[static_cast<size_t>(id)]; }

std::vector<std::string> words(std::string_view text, char separator) {
  std::vector<std::string> result;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    const std::string_view word = trimmed(text.substr(begin, end - begin));
    if (!word.empty()) result.emplace_back(word);
    begin = end + 1;
  }
  return result;
}

[[noreturn]] void refuse(const std::string& source, std::string_view text, const std::string& why) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, source + ": " + in_quotes(text) + " " + why);
}

bool parse_flag(const std::string& source, std::string_view text) {
  const std::string word = to_lower(text);
  if (word == "1" || word == "true" || word == "yes" || word == "on") return true;
  if (word == "0" || word == "false" || word == "no" || word == "off") return false;
  refuse(source, text, "is neither 1 nor 0");
}

int64_t parse_integer(const std::string& source, std::string_view text, const char* range) {
  const std::vector<std::string> ends = words(range, ' ');
  const int64_t least = std::stoll(ends[0]), most = std::stoll(ends[1]);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    refuse(source, text, "is no number from " + ends[0] + " to " + ends[1]);
  }
  return value;
}

std::string parse_choice(const std::string& source, std::string_view text, const char* choices) {
  const std::string word = to_lower(text);
  const std::vector<std::string> known = words(choices, ' ');
  if (std::find(known.begin(), known.end(), word) != known.end()) return word;
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  refuse(source, text, "is none of " + list + did_you_mean(word, known));
}

// An empty text stands for the default, whoever gave it.
SettingValue parse_value(const Setting& setting, Origin origin, const std::string& source, std::string_view given) {
  SettingValue value;
  value.origin = origin;
  value.source = source;
  const std::string_view text = trimmed(given);
  value.text = text.empty() ? setting.default_text : std::string(text);
  if (value.text.empty()) return value;
  if (std::any_of(value.text.begin(), value.text.end(), is_control)) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, source + ": the value holds a control character");
  }
  switch (setting.kind) {
    case SettingKind::kText:
    case SettingKind::kPath:
      break;
    case SettingKind::kFlag:
      value.flag = parse_flag(source, value.text);
      value.text = value.flag ? "1" : "0";
      break;
    case SettingKind::kInteger:
      value.integer = parse_integer(source, value.text, setting.values);
      break;
    case SettingKind::kBytes: {
      std::string reason;
      value.bytes = parse_byte_amount(value.text, &reason);
      if (!value.bytes) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, source + ": " + reason);
      break;
    }
    case SettingKind::kChoice:
      value.text = parse_choice(source, value.text, setting.values);
      break;
    case SettingKind::kPaths:
      value.paths = words(value.text, ':');
      break;
  }
  return value;
}

// The values of one file, by id.
using FileValues = std::vector<std::pair<SettingId, SettingValue>>;

class FileReader {
 public:
  explicit FileReader(std::string path) : path_(std::move(path)) {}

  FileValues read(std::string_view content) {
    try {
      take_table(toml::parse(content, path_), "");
    } catch (const toml::parse_error& error) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, at(error.source()) + ":" +
                                                      std::to_string(error.source().begin.column) + ": " +
                                                      std::string(error.description()));
    }
    return std::move(values_);
  }

 private:
  std::string at(const toml::source_region& region) const { return printable(path_, kLongestPath) + ":" + std::to_string(region.begin.line); }

  void take_table(const toml::table& table, const std::string& section) {
    for (const auto& [key, node] : table) {
      const std::string name = section + std::string(key.str());
      const std::string source = at(key.source());
      if (const toml::table* inner = node.as_table(); inner != nullptr && section.empty()) {
        if (!is_section(name)) unknown(source, "section", name, sections());
        take_table(*inner, name + ".");
        continue;
      }
      const auto row = std::find_if(std::begin(kSettings), std::end(kSettings), [&](const Setting& setting) {
        return *setting.key != '\0' && name == setting.key;
      });
      if (row == std::end(kSettings)) unknown(source, "setting", name, keys());
      values_.emplace_back(row->id, value_of(*row, source, node));
    }
  }

  static SettingValue value_of(const Setting& setting, const std::string& source, const toml::node& node) {
    const auto refuse_type = [&](const char* wanted) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, source + ": \"" + setting.key + "\" must be " + wanted);
    };
    const auto parse = [&](std::string_view text) { return parse_value(setting, Origin::kFile, source, text); };
    if (const auto* text = node.as_string()) return parse(text->get());
    if (setting.kind == SettingKind::kFlag) {
      if (const auto* flag = node.as_boolean()) return parse(flag->get() ? "1" : "0");
      refuse_type("true or false");
    }
    if (setting.kind == SettingKind::kInteger || setting.kind == SettingKind::kBytes) {
      if (const auto* number = node.as_integer()) return parse(std::to_string(number->get()));
      refuse_type(setting.kind == SettingKind::kBytes ? "a size" : "a number");
    }
    if (setting.kind != SettingKind::kPaths) refuse_type("a string");
    const toml::array* list = node.as_array();
    if (list == nullptr) refuse_type("a string or a list of strings");
    std::string joined;
    std::vector<std::string> paths;
    for (const toml::node& entry : *list) {
      const auto* path = entry.as_string();
      if (path == nullptr) refuse_type("a string or a list of strings");
      joined += (joined.empty() ? "" : ":") + path->get();
      paths.push_back(path->get());
    }
    SettingValue value = parse(joined);
    value.paths = std::move(paths);  // a path in a list may hold a colon
    return value;
  }

  static std::vector<std::string> keys() {
    std::vector<std::string> result;
    for (const Setting& setting : kSettings) {
      if (*setting.key != '\0') result.emplace_back(setting.key);
    }
    return result;
  }

  static std::vector<std::string> sections() {
    std::vector<std::string> result;
    for (const std::string& key : keys()) {
      const size_t dot = key.find('.');
      if (dot == std::string::npos) continue;
      const std::string section = key.substr(0, dot);
      if (std::find(result.begin(), result.end(), section) == result.end()) result.push_back(section);
    }
    return result;
  }

  static bool is_section(const std::string& name) {
    const std::vector<std::string> known = sections();
    return std::find(known.begin(), known.end(), name) != known.end();
  }

  [[noreturn]] static void unknown(const std::string& source, const char* what, const std::string& name,
                                   const std::vector<std::string>& known) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                source + ": there is no " + what + " " + in_quotes(name) + did_you_mean(name, known));
  }

  std::string path_;
  FileValues values_;
};

// Empty where there is no such file. A file of the user's own that cannot be opened is as good as none: HOME may be
// that of somebody else.
std::optional<std::string> content_of(const std::filesystem::path& path, bool required) {
  std::error_code error;
  const bool regular_enough = std::filesystem::exists(path, error) && !std::filesystem::is_directory(path, error);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!regular_enough || !file) {
    if (!required) return std::nullopt;
    const char* why = error ? nullptr : regular_enough ? std::strerror(errno) : "no such file";
    throw Error(COMPUTE_ERROR_NOT_FOUND,
                "COMPUTE_CONFIG: cannot read " + printable(path.string(), kLongestPath) + ": " + (why != nullptr ? why : error.message()));
  }
  std::string content(kMaxFileBytes + 1, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<size_t>(file.gcount()));
  if (content.size() > kMaxFileBytes) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, printable(path.string(), kLongestPath) + ": a configuration file of more than 1 MiB");
  }
  return content;
}

}  // namespace

std::string Setting::flag() const {
  std::string name = "--" + to_lower(environment);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::span<const Setting> all_settings() { return kSettings; }

const Setting& find_setting(std::string_view name) {
  std::vector<std::string> known;
  for (const Setting& setting : kSettings) {
    if (name == setting.environment || name == setting.flag() || (!name.empty() && name == setting.key)) return setting;
    const bool as_flag = name.starts_with("-"), as_environment = name.starts_with("C");
    known.emplace_back(as_flag ? setting.flag() : as_environment ? setting.environment : setting.key);
  }
  throw Error(COMPUTE_ERROR_NOT_FOUND, "there is no setting " + in_quotes(name) + did_you_mean(name, known));
}

bool process_is_privileged() { return getauxval(AT_SECURE) != 0; }

ConfigInputs ConfigInputs::of_process() {
  ConfigInputs inputs;
  inputs.environment = [](const char* name) -> const char* { return std::getenv(name); };
  inputs.privileged = process_is_privileged();
  return inputs;
}

Config::Config(ConfigInputs inputs) : inputs_(std::move(inputs)), values_(kSettingCount) {
  for (const Setting& setting : kSettings) {
    layer(setting.id, Origin::kDefault) = parse_value(setting, Origin::kDefault, "default", "");
  }
  read_environment();
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
    value = parse_value(setting, origin, origin == Origin::kFlag ? setting.flag() : setting.environment, *text);
    if (origin == Origin::kApi) value->source = "the API";
  }
  std::swap(layer(id, origin), value);
  if (id != SettingId::kConfig) return;
  try {
    read_files();
  } catch (...) {
    std::swap(layer(id, origin), value);
    throw;
  }
}

void Config::read_environment() {
  for (const Setting& setting : kSettings) {
    const char* text = inputs_.environment(setting.environment);
    if (text == nullptr || trimmed(text).empty()) continue;
    if (inputs_.privileged && setting.names_files) {
      ignored_.push_back(std::string(setting.environment) + " is ignored: the process is privileged");
      continue;
    }
    layer(setting.id, Origin::kEnvironment) = parse_value(setting, Origin::kEnvironment, setting.environment, text);
  }
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
  std::vector<std::optional<SettingValue>> found(kSettingCount);
  for (const std::filesystem::path& path : paths) {
    const std::optional<std::string> content = content_of(path, named);
    if (!content) continue;
    for (auto& [id, value] : FileReader(path.string()).read(*content)) {
      std::optional<SettingValue>& slot = found[static_cast<size_t>(id)];
      if (!slot) slot = std::move(value);
    }
  }
  for (const Setting& setting : kSettings) layer(setting.id, Origin::kFile) = found[static_cast<size_t>(setting.id)];
}

void take_flags(Config& config, int32_t* argc, char** argv) {
  Config changed = config;
  std::vector<char*> kept;
  bool ended = false;
  for (int32_t i = 0; i < *argc; ++i) {
    const std::string_view argument = argv[i];
    ended = ended || argument == "--";
    if (i == 0 || ended || !argument.starts_with("--compute-")) {
      kept.push_back(argv[i]);
      continue;
    }
    const size_t equals = std::min(argument.find('='), argument.size());
    const Setting& setting = find_setting(argument.substr(0, equals));
    if (equals == argument.size() && setting.kind != SettingKind::kFlag) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, setting.flag() + " needs a value: " + setting.flag() + "=…");
    }
    changed.set(setting.id, Origin::kFlag, equals == argument.size() ? "1" : argument.substr(equals + 1));
  }
  config = std::move(changed);
  std::copy(kept.begin(), kept.end(), argv);
  *argc = static_cast<int32_t>(kept.size());
  argv[*argc] = nullptr;
}

namespace {

struct ProcessConfig {
  std::mutex mutex;
  std::optional<Config> config;

  // A configuration that cannot be read is read again at the next call: its error is the answer each time.
  Config& loaded() {
    if (!config) config.emplace(ConfigInputs::of_process());
    return *config;
  }
};

ProcessConfig& process() {
  static ProcessConfig& instance = *new ProcessConfig;  // never destroyed: plugins ask for settings while exiting
  return instance;
}

}  // namespace

SettingValue setting(SettingId id) {
  const std::lock_guard lock(process().mutex);
  return process().loaded().get(id);
}

void set_setting(std::string_view name, Origin origin, std::optional<std::string_view> text) {
  const Setting& row = find_setting(name);
  const std::lock_guard lock(process().mutex);
  process().loaded().set(row.id, origin, text);
}

Config process_config() {
  const std::lock_guard lock(process().mutex);
  return process().loaded();
}

void take_process_flags(int32_t* argc, char** argv) {
  const std::lock_guard lock(process().mutex);
  take_flags(process().loaded(), argc, argv);
}

}  // namespace compute
