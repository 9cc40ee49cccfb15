// SPDX-License-Identifier: Apache-2.0
#include "core/config.hpp"

#include <compute/compute.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "core/ascii.hpp"
#include "core/error.hpp"
#include "core/in_use.hpp"
#include "core/log.hpp"
#include "core/nearest_name.hpp"
#include "core/plugin_search.hpp"
#include "core/printable.hpp"

// The only translation unit that sees the header of toml++, which is large.
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16  // its parser calls itself; what is read has 2
#define TOML_ASSERT(expression) static_cast<void>(0)  // some fail on files that are merely wrong: "[= 1]"
#include <toml++/toml.h>

namespace compute {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxValueBytes = 1 << 16;
constexpr size_t kMaxPaths = 1024;
constexpr size_t kMaxPathBytes = 4096;  // PATH_MAX; a longer name names no file

const Setting kSettings[] = {
#define COMPUTE_SETTING(id, environment, key, kind, default_text, values, names_files, summary) \
  {SettingId::id, environment, key, SettingKind::kind, default_text, values, names_files != 0, summary},
#include "core/settings.def"
#undef COMPUTE_SETTING
};
constexpr size_t kSettingCount = std::size(kSettings);

// Known, so that programs may set them, but read by nobody: their code is still to come.
constexpr SettingId kNotYet[] = {SettingId::kProfile, SettingId::kPlacement, SettingId::kLeaks};

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

// Paths between colons. A colon of a path's own is written `\:`; any other backslash is one.
std::vector<std::string> split_paths(std::string_view text) {
  std::vector<std::string> result(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ':') {
      result.emplace_back();
    } else {
      if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ':') ++i;
      result.back() += text[i];
    }
  }
  for (std::string& path : result) path = std::string(trimmed(path));
  std::erase(result, "");
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

void check_paths(const std::string& source, const std::vector<std::string>& paths) {
  if (paths.size() > kMaxPaths) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                source + ": " + std::to_string(paths.size()) + " paths; at most " + std::to_string(kMaxPaths));
  }
  for (const std::string& path : paths) {
    if (path.size() > kMaxPathBytes) refuse(source, path, "is longer than any path");
  }
}

// Some of `choices`, separated by commas. 1 stands for the first, `all` for all, 0 for none.
std::vector<std::string> parse_words(const std::string& source, std::string_view text, const char* choices) {
  const std::vector<std::string> known = words(choices, ' ');
  const std::string lower = to_lower(text);
  if (lower == "all") return known;
  if (lower == "0" || lower == "false" || lower == "no" || lower == "off") return {};
  if (lower == "1" || lower == "true" || lower == "yes" || lower == "on") return {known.front()};
  std::vector<std::string> result;
  for (const std::string& word : words(text, ',')) {
    result.push_back(word == "1" ? known.front() : parse_choice(source, word, choices));
  }
  return result;
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
  if (value.text.size() > kMaxValueBytes) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, source + ": the value has " + std::to_string(value.text.size()) +
                                                    " bytes; at most " + std::to_string(kMaxValueBytes));
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
    case SettingKind::kWords:
      value.words = parse_words(source, value.text, setting.values);
      value.flag = std::find(value.words.begin(), value.words.end(), words(setting.values, ' ').front()) != value.words.end();
      break;
    case SettingKind::kPaths:
      value.paths = split_paths(value.text);
      check_paths(source, value.paths);
      break;
  }
  return value;
}

// The line of the first character beyond ASCII that is in neither a string nor a comment, where TOML has none; 0 if there is none. toml++ has
// undefined behaviour on some of them.
int64_t line_of_foreign_character(std::string_view content) {
  int64_t line = 1;
  std::string_view quote;  // of the string that `i` is in
  bool in_comment = false;
  for (size_t i = 0; i < content.size(); ++i) {
    const char c = content[i];
    if (c == '\n') {
      ++line;
      in_comment = false;
      if (quote.size() == 1) quote = {};  // an error, which the parser names
    } else if (in_comment) {
      continue;
    } else if (!quote.empty()) {
      if (c == '\\' && quote[0] == '"') {
        ++i;
        if (i < content.size() && content[i] == '\n') ++line;
      } else if (content.substr(i, quote.size()) == quote) {
        i += quote.size() - 1;
        quote = {};
      }
    } else if (c == '#') {
      in_comment = true;
    } else if (c == '"' || c == '\'') {
      const bool is_long = content.substr(i, 3) == std::string(3, c);
      quote = content.substr(i, is_long ? 3 : 1);
      i += quote.size() - 1;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      return line;
    }
  }
  return 0;
}

// The values of one file, by id.
using FileValues = std::vector<std::pair<SettingId, SettingValue>>;

class FileReader {
 public:
  explicit FileReader(std::string path) : path_(std::move(path)) {}

  FileValues read(std::string_view content) {
    if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);
    if (const int64_t line = line_of_foreign_character(content); line != 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, printable(path_, kLongestPath) + ":" + std::to_string(line) +
                                                      ": a character beyond ASCII outside of a string and a comment");
    }
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
    if (setting.kind == SettingKind::kFlag || setting.kind == SettingKind::kWords) {
      if (const auto* flag = node.as_boolean()) return parse(flag->get() ? "1" : "0");
      refuse_type(setting.kind == SettingKind::kFlag ? "true or false" : "a string");
    }
    if (setting.kind == SettingKind::kInteger || setting.kind == SettingKind::kBytes) {
      if (const auto* number = node.as_integer()) return parse(std::to_string(number->get()));
      refuse_type(setting.kind == SettingKind::kBytes ? "a size" : "a number");
    }
    if (setting.kind == SettingKind::kChoice && std::string_view(setting.values).starts_with("0 1")) {
      if (const auto* flag = node.as_boolean()) return parse(flag->get() ? "1" : "0");
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
    check_paths(source, paths);
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
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    inputs.environment_names.emplace_back(text.substr(0, text.find('=')));
  }
  inputs.privileged = process_is_privileged();
  inputs.trust = files::Trust::of_process(inputs.privileged);
  inputs.trust.believe_neighbours(library_file());
  return inputs;
}

Config::Config(ConfigInputs inputs) : inputs_(std::move(inputs)), values_(kSettingCount) {
  for (const Setting& setting : kSettings) {
    layer(setting.id, Origin::kDefault) = parse_value(setting, Origin::kDefault, "default", "");
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
    value = parse_value(setting, origin, origin == Origin::kFlag ? setting.flag() : setting.environment, *text);
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
  for (const Setting& setting : kSettings) {
    const char* text = inputs_.environment(setting.environment);
    if (text == nullptr || trimmed(text).empty()) continue;
    if (inputs_.privileged && setting.names_files) {
      ignored_.push_back(std::string(setting.environment) + " is ignored: the process is privileged");
      continue;
    }
    layer(setting.id, Origin::kEnvironment) = parse_value(setting, Origin::kEnvironment, setting.environment, text);
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
  for (const Setting& setting : kSettings) known.emplace_back(setting.environment);
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
  std::vector<std::optional<SettingValue>> found(kSettingCount);
  ignored_.resize(ignored_variables_);
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

namespace {

struct ProcessConfig {
  std::mutex mutex;
  std::optional<Config> config;
  std::set<std::string> told;  // lines of warn_of_settings

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

void renew_config_lock() noexcept { new (&process().mutex) std::mutex; }

SettingValue setting(SettingId id) {
  const Undivided undivided;
  const std::lock_guard lock(process().mutex);
  return process().loaded().get(id);
}

bool debug_checks(std::string_view word) noexcept {
  static const auto* const listed = [] {
    auto* found = new std::vector<std::string>;  // never destroyed, as the settings
    try {
      *found = setting(SettingId::kDebug).words;
    } catch (const Error&) {
      // A faulty setting is reported by whoever reads it for work.
    }
    return found;
  }();
  return std::find(listed->begin(), listed->end(), word) != listed->end();
}

void set_setting(std::string_view name, Origin origin, std::optional<std::string_view> text) {
  const Setting& row = find_setting(name);
  {
    const Undivided undivided;
    const std::lock_guard lock(process().mutex);
    process().loaded().set(row.id, origin, text);
  }
  warn_of_settings();
}

void warn_of_settings() {
  std::vector<std::string> lines;
  {
    const Undivided undivided;
    const std::lock_guard lock(process().mutex);
    const Config& config = process().loaded();
    for (const std::vector<std::string>& some : {config.misspelt(), config.without_effect()}) {
      for (const std::string& line : some) {
        if (process().told.insert(line).second) lines.push_back(line);
      }
    }
  }
  for (const std::string& line : lines) log(COMPUTE_LOG_WARNING, "select", line);
}

Config process_config() {
  const Undivided undivided;
  const std::lock_guard lock(process().mutex);
  return process().loaded();
}

void take_process_flags(int32_t* argc, char** argv) {
  const Undivided undivided;
  const std::lock_guard lock(process().mutex);
  take_flags(process().loaded(), argc, argv);
}

}  // namespace compute
