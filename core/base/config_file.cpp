// SPDX-License-Identifier: Apache-2.0
#include "core/base/config_file.hpp"

#include <compute/compute.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/printable.hpp"

// The only translation unit that sees the header of toml++, which is large.
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16                     // its parser calls itself; what is read has 2
#define TOML_ASSERT(expression) static_cast<void>(0)  // some fail on files that are merely wrong: "[= 1]"
#include <toml++/toml.h>

namespace compute {
namespace {

// The line of the first character beyond ASCII that is in neither a string nor a comment, where TOML has none; 0 if
// there is none. toml++ has undefined behaviour on some of them.
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

class FileReader {
 public:
  explicit FileReader(std::string path) : path_(std::move(path)) {}

  FileSettings read(std::string_view content) {
    if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);
    if (const int64_t line = line_of_foreign_character(content); line != 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, printable(path_, kLongestPath) + ":" + std::to_string(line) +
                                                      ": non-ASCII character outside of strings and comments");
    }
    try {
      take_table(toml::parse(content, path_), "");
    } catch (const toml::parse_error& error) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, at(error.source()) + ":" +
                                                      std::to_string(error.source().begin.column) + ": " +
                                                      std::string(error.description()));
    }
    return std::move(found_);
  }

 private:
  std::string at(const toml::source_region& region) const {
    return printable(path_, kLongestPath) + ":" + std::to_string(region.begin.line);
  }

  void take_table(const toml::table& table, const std::string& section) {
    for (const auto& [key, node] : table) {
      const std::string name = section + std::string(key.str());
      const std::string source = at(key.source());
      if (const toml::table* inner = node.as_table(); inner != nullptr && section.empty()) {
        if (is_section(name)) {
          take_table(*inner, name + ".");
        } else {
          note_unknown(source, "section", name, sections());
        }
        continue;
      }
      const auto rows = all_settings();
      const auto row = std::find_if(rows.begin(), rows.end(), [&](const Setting& setting) {
        return *setting.key != '\0' && name == setting.key;
      });
      if (row == rows.end()) {
        note_unknown(source, "setting", name, keys());
      } else {
        found_.values.emplace_back(row->id, value_of(*row, source, node));
      }
    }
  }

  static SettingValue value_of(const Setting& setting, const std::string& source, const toml::node& node) {
    const auto refuse_type = [&](const char* wanted) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, source + ": \"" + setting.key + "\" must be " + wanted);
    };
    const auto parse = [&](std::string_view text) { return parse_setting(setting, Origin::kFile, source, text); };
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
    check_setting_paths(source, paths);
    value.paths = std::move(paths);  // a path in a list may hold a colon
    return value;
  }

  static std::vector<std::string> keys() {
    std::vector<std::string> result;
    for (const Setting& setting : all_settings()) {
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

  void note_unknown(const std::string& source, const char* what, const std::string& name,
                    const std::vector<std::string>& known) {
    if (found_.unknown) return;
    found_.unknown = Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                           source + ": unknown " + what + " " + in_quotes(name) + did_you_mean(name, known));
  }

  std::string path_;
  FileSettings found_;
};

}  // namespace

FileSettings parse_config_file(const std::string& path, std::string_view content) {
  return FileReader(path).read(content);
}

}  // namespace compute
