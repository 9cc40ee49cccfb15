// SPDX-License-Identifier: Apache-2.0
#include "core/loading/declared_setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/sized.hpp"
#include "core/loading/plugin_core.hpp"
#include "core/process/log.hpp"
#include "core/text/ascii.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

constexpr int32_t kMostSettings = 256;

[[noreturn]] void reject_setting(const std::string& name, const std::string& why) {
  throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, fmt::format("its setting {} {}", in_quotes(name), why));
}

SettingKind kind_of(int32_t kind, const std::string& name) {
  switch (kind) {
    case COMPUTE_PLUGIN_SETTING_TEXT:
      return SettingKind::kText;
    case COMPUTE_PLUGIN_SETTING_FLAG:
      return SettingKind::kFlag;
    case COMPUTE_PLUGIN_SETTING_INTEGER:
      return SettingKind::kInteger;
    case COMPUTE_PLUGIN_SETTING_BYTES:
      return SettingKind::kBytes;
    case COMPUTE_PLUGIN_SETTING_CHOICE:
      return SettingKind::kChoice;
    case COMPUTE_PLUGIN_SETTING_WORDS:
      return SettingKind::kWords;
    case COMPUTE_PLUGIN_SETTING_PATH:
      return SettingKind::kPath;
    case COMPUTE_PLUGIN_SETTING_PATHS:
      return SettingKind::kPaths;
  }
  log(COMPUTE_LOG_INFO, "load",
      fmt::format("the setting {} has the unknown kind {} and is taken for text", name, kind));
  return SettingKind::kText;
}

// Words between blanks.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool is_range(const std::vector<std::string>& ends) {
  const auto is_number = [](const std::string& text) {
    const size_t sign = text.starts_with("-") ? 1 : 0;
    const size_t digits = text.size() - sign;
    return digits > 0 && digits < 19 &&
           std::all_of(text.begin() + static_cast<std::ptrdiff_t>(sign), text.end(), is_digit);
  };
  return ends.size() == 2 && is_number(ends[0]) && is_number(ends[1]) && std::stoll(ends[0]) <= std::stoll(ends[1]);
}

DeclaredSetting declared(const compute_plugin_setting& given, const std::string& plugin) {
  DeclaredSetting setting;
  setting.environment = plugin_text(given.name, "the name of a setting");
  setting.kind = kind_of(given.kind, setting.environment);
  setting.default_text = plugin_text(given.default_value, "the default of a setting");
  setting.summary = plugin_text(given.help, "the help of a setting");
  setting.of_device = (given.flags & COMPUTE_PLUGIN_SETTING_OF_DEVICE) != 0;
  if (setting.summary.empty()) reject_setting(setting.environment, "has no help");
  for (const std::string* text : {&setting.environment, &setting.default_text, &setting.summary}) {
    if (std::any_of(text->begin(), text->end(), is_control))
      reject_setting(setting.environment, "contains a control character");
  }
  std::vector<std::string> choices = words_of(plugin_text(given.choices, "the choices of a setting"));
  if (setting.kind == SettingKind::kInteger) {
    if (!is_range(choices))
      reject_setting(setting.environment, "has no valid range; expected two numbers, minimum and maximum");
    setting.values = choices[0] + " " + choices[1];
    choices.clear();
  }
  if (const auto fault = complete_setting(setting, plugin, choices))
    reject_setting(setting.environment, fmt::format("is rejected: its {} {}", fault->part, fault->why));
  return setting;
}

}  // namespace

std::optional<SettingFault> complete_setting(DeclaredSetting& setting, const std::string& plugin,
                                             std::span<const std::string> choices) {
  std::string prefix = "COMPUTE_" + plugin + "_";
  std::transform(prefix.begin(), prefix.end(), prefix.begin(), to_upper);
  const std::string_view rest =
      std::string_view(setting.environment).substr(std::min(prefix.size(), setting.environment.size()));
  const auto is_fit = [](char c) { return (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_'; };
  if (!setting.environment.starts_with(prefix) || rest.empty() || !std::all_of(rest.begin(), rest.end(), is_fit))
    return SettingFault{"name", "must be " + prefix + " followed by capital letters, digits and \"_\""};
  setting.key = plugin + "." + to_lower(rest);
  setting.names_files = setting.kind == SettingKind::kPath || setting.kind == SettingKind::kPaths;
  if (setting.of_device && setting.names_files)
    return SettingFault{"device", "is not allowed: selectors must not name files to load"};
  if (setting.of_device && rest == "MEM") return SettingFault{"name", "is reserved: selectors have an option mem"};
  for (const std::string& choice : choices) {
    if (choice.empty() || choice.find_first_of(" ,") != std::string::npos || choice != to_lower(choice))
      return SettingFault{"choices", "contains " + in_quotes(choice) + ", which is not a single lowercase word"};
    setting.values += (setting.values.empty() ? "" : " ") + choice;
  }
  if (std::string why = why_no_setting(setting); !why.empty()) return SettingFault{"default", std::move(why)};
  return std::nullopt;
}

std::vector<DeclaredSetting> settings_of(const compute_plugin_manifest& manifest, const std::string& plugin) {
  const int32_t count = manifest.setting_count;
  if (count < 0 || count > kMostSettings || (count > 0 && manifest.settings == nullptr)) {
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, fmt::format("its list of {} settings is invalid", count));
  }
  std::vector<DeclaredSetting> settings;
  for (int32_t i = 0; i < count; ++i)
    settings.push_back(declared(read_plugin_struct_at(manifest.settings, i, "a setting"), plugin));
  return settings;
}

}  // namespace compute
