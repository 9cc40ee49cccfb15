// SPDX-License-Identifier: Apache-2.0
#include "core/settings/setting.hpp"

#include <compute/compute.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <iterator>
#include <mutex>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/lock.hpp"
#include "core/text/ascii.hpp"
#include "core/text/nearest_name.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

constexpr const char* kLogCategories = "load select place copy compile memory error";
constexpr size_t kMaxValueBytes = 1 << 16;
constexpr size_t kMaxPaths = 1024;
constexpr size_t kMaxPathBytes = 4096;  // PATH_MAX; a longer name names no file

constexpr Setting kSettings[] = {
#define COMPUTE_SETTING(id, environment, key, kind, default_text, values, names_files, summary) \
  {SettingId::id, environment, key, SettingKind::kind, default_text, values, names_files != 0, summary},
#include "core/settings/settings.def"
#undef COMPUTE_SETTING
};
constexpr size_t kOwn = std::size(kSettings);
constexpr size_t kMostDeclared = 256;

// Those that are declared follow core's own. Whoever reads takes no lock.
struct Table {
  Table() { std::copy(std::begin(kSettings), std::end(kSettings), rows.begin()); }

  SpinLock lock;  // of declarations
  std::array<Setting, kOwn + kMostDeclared> rows{};
  std::atomic<size_t> count{kOwn};
};

Table& table() {
  static auto* const immortal = new Table;
  return *immortal;
}

const char* immortal_text(const std::string& text) {
  char* const copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

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
  refuse(source, text, "is not 0 or 1");
}

int64_t parse_integer(const std::string& source, std::string_view text, const char* range) {
  const std::vector<std::string> ends = words(range, ' ');
  const int64_t least = std::stoll(ends[0]), most = std::stoll(ends[1]);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    refuse(source, text, "is not a number from " + ends[0] + " to " + ends[1]);
  }
  return value;
}

std::string parse_choice(const std::string& source, std::string_view text, const char* choices) {
  const std::string word = to_lower(text);
  const std::vector<std::string> known = words(choices, ' ');
  if (std::find(known.begin(), known.end(), word) != known.end()) return word;
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  refuse(source, text, "is not one of " + list + did_you_mean(word, known));
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

// `info,copy=debug`: levels out of `choices`, for all or for a category, and `json`.
std::vector<std::string> parse_levels(const std::string& source, std::string_view text, const char* choices) {
  std::vector<std::string> result;
  for (const std::string& word : words(to_lower(text), ',')) {
    const size_t equals = word.find('=');
    if (word == "json") {
      result.push_back(word);
    } else if (equals == std::string::npos) {
      result.push_back(parse_choice(source, word, choices));
    } else {
      const std::string category = parse_choice(source, std::string(trimmed(word.substr(0, equals))), kLogCategories);
      result.push_back(category + "=" + parse_choice(source, std::string(trimmed(word.substr(equals + 1))), choices));
    }
  }
  return result;
}

}  // namespace

std::string Setting::flag() const {
  std::string name = "--" + to_lower(environment);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::span<const Setting> all_settings() {
  const Table& known = table();
  return {known.rows.data(), known.count.load(std::memory_order_acquire)};
}

void declare_setting(const DeclaredSetting& declared) {
  Table& known = table();
  const std::lock_guard guard(known.lock);
  const size_t count = known.count.load(std::memory_order_relaxed);
  if (count == known.rows.size()) return;
  for (const Setting& row : all_settings()) {
    if (declared.environment == row.environment || declared.key == row.key) return;
  }
  known.rows[count] = {static_cast<SettingId>(count),
                       immortal_text(declared.environment),
                       immortal_text(declared.key),
                       declared.kind,
                       immortal_text(declared.default_text),
                       immortal_text(declared.values),
                       declared.names_files,
                       immortal_text(declared.summary),
                       declared.of_device};
  known.count.store(count + 1, std::memory_order_release);
}

std::string why_no_setting(const DeclaredSetting& declared) {
  if (declared.kind == SettingKind::kChoice || declared.kind == SettingKind::kWords) {
    if (words(declared.values, ' ').empty()) return "has no choices";
  }
  const Setting row = {SettingId{},          declared.environment.c_str(),  declared.key.c_str(),
                       declared.kind,        declared.default_text.c_str(), declared.values.c_str(),
                       declared.names_files, declared.summary.c_str(),      declared.of_device};
  try {
    parse_setting(row, Origin::kDefault, "its default", "");
  } catch (const Error& error) {
    if (error.code == COMPUTE_ERROR_OUT_OF_MEMORY) throw;
    return "is invalid: " + error.message;
  }
  return "";
}

std::vector<const Setting*> device_settings_of(std::string_view plugin) {
  std::vector<const Setting*> found;
  for (const Setting& setting : all_settings()) {
    const std::string_view key = setting.key;
    if (setting.of_device && key.substr(0, key.find('.')) == plugin) found.push_back(&setting);
  }
  return found;
}

std::string_view option_name(const Setting& setting) {
  const std::string_view key = setting.key;
  return key.substr(key.find('.') + 1);
}

const Setting& find_setting(std::string_view name) {
  std::vector<std::string> known;
  for (const Setting& setting : all_settings()) {
    if (name == setting.environment || name == setting.flag() || (!name.empty() && name == setting.key)) return setting;
    const bool as_flag = name.starts_with("-"), as_environment = name.starts_with("C");
    known.emplace_back(as_flag ? setting.flag() : as_environment ? setting.environment : setting.key);
  }
  throw Error(COMPUTE_ERROR_NOT_FOUND, "unknown setting " + in_quotes(name) + did_you_mean(name, known));
}

void check_setting_paths(const std::string& source, const std::vector<std::string>& paths) {
  if (paths.size() > kMaxPaths) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, source + ": " + std::to_string(paths.size()) +
                                                    " paths given; the limit is " + std::to_string(kMaxPaths));
  }
  for (const std::string& path : paths) {
    if (path.size() > kMaxPathBytes) refuse(source, path, "is longer than " + std::to_string(kMaxPathBytes) + " bytes");
  }
}

SettingValue parse_setting(const Setting& setting, Origin origin, const std::string& source, std::string_view given) {
  SettingValue value;
  value.origin = origin;
  value.source = source;
  const std::string_view text = trimmed(given);
  value.text = text.empty() ? setting.default_text : std::string(text);
  if (value.text.empty()) return value;
  if (std::any_of(value.text.begin(), value.text.end(), is_control)) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, source + ": the value contains a control character");
  }
  if (value.text.size() > kMaxValueBytes) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, source + ": the value is " + std::to_string(value.text.size()) +
                                                    " bytes long; the limit is " + std::to_string(kMaxValueBytes));
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
      value.flag =
          std::find(value.words.begin(), value.words.end(), words(setting.values, ' ').front()) != value.words.end();
      break;
    case SettingKind::kLevels:
      value.words = parse_levels(source, value.text, setting.values);
      break;
    case SettingKind::kPaths:
      value.paths = split_paths(value.text);
      check_setting_paths(source, value.paths);
      break;
  }
  return value;
}

}  // namespace compute
