// SPDX-License-Identifier: Apache-2.0
#include "core/settings/config_file.hpp"

#include <compute/compute.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/text/nearest_name.hpp"
#include "core/text/printable.hpp"

// The only translation unit that sees the header of toml++, which is large.
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16                     // its parser is recursive; valid files need 2
#define TOML_ASSERT(expression) static_cast<void>(0)  // some fail on files that are merely wrong: "[= 1]"
#include <toml++/toml.h>

namespace compute {
namespace {

// toml++ has undefined behaviour on characters up to U+FEFF that are beyond ASCII, in some places of strings too. So
// each of their bytes is replaced by a character of the private plane 15, and the parser's results are converted back.
constexpr std::string_view kStandIn = "\xF3\xB0";  // U+F0080 to U+F00FF, less the last two of their four bytes

std::string with_stand_ins(std::string_view content) {
  std::string result;
  result.reserve(content.size());
  for (const char c : content) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      result += c;
    } else {
      result += kStandIn;
      result += static_cast<char>(0x80 | byte >> 6);
      result += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return result;
}

std::string without_stand_ins(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == kStandIn && i + 3 < text.size() && (text[i + 2] & 0x3E) == 2) {
      result += static_cast<char>((text[i + 2] & 3) << 6 | (text[i + 3] & 0x3F));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// The line of the first character beyond ASCII that is in neither a string nor a comment, where TOML has none; 0 if
// there is none.
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
    require_utf8(content);
    try {
      take_table(toml::parse(with_stand_ins(content), path_), "");
    } catch (const toml::parse_error& error) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  at(error.source()) + ":" + std::to_string(column_at(content, error.source().begin)) + ": " +
                      printable(without_stand_ins(error.description())));  // it may have the first byte alone
    }
    return std::move(found_);
  }

 private:
  std::string at(const toml::source_region& region) const {
    return printable(path_, kLongestPath) + ":" + std::to_string(region.begin.line);
  }

  void require_utf8(std::string_view content) const {
    int64_t line = 0;
    while (!content.empty()) {
      ++line;
      const size_t size = std::min(content.find('\n'), content.size() - 1) + 1;
      if (!is_utf8(content.substr(0, size))) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                    printable(path_, kLongestPath) + ":" + std::to_string(line) + ": not UTF-8");
      }
      content.remove_prefix(size);
    }
  }

  // toml++ counts a byte beyond ASCII as a character.
  static size_t column_at(std::string_view content, const toml::source_position& position) {
    size_t begin = 0;
    for (toml::source_index line = 1; line < position.line && begin < content.size(); ++line) {
      begin = std::min(content.find('\n', begin), content.size() - 1) + 1;
    }
    return column_of(content, std::min(begin + position.column - 1, content.size()));
  }

  void take_table(const toml::table& table, const std::string& section) {
    for (const auto& [key, node] : table) {
      const std::string name = section + without_stand_ins(key.str());
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
    if (const auto* text = node.as_string()) return parse(without_stand_ins(text->get()));
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
      paths.push_back(without_stand_ins(path->get()));
      joined += (joined.empty() ? "" : ":") + paths.back();
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
