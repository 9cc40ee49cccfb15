// SPDX-License-Identifier: Apache-2.0
#include "core/text/printable.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/text/ascii.hpp"

namespace compute {
namespace {

using Json = nlohmann::ordered_json;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

bool is_plain(char c) { return !is_control(c) && static_cast<unsigned char>(c) < 0x80; }

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The JSON library validates UTF-8, but only when it writes a text.
std::string valid_utf8(std::string_view text) { return Json::parse(dump(Json(text))).get<std::string>(); }

// The code of a character of valid UTF-8.
uint32_t code_of(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(character[i])); };
  static constexpr std::array<uint32_t, 5> kFirstBits = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t code = byte(0) & kFirstBits[character.size()];
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3F);
  return code;
}

// Controls beyond ASCII, line and paragraph separators, and direction marks.
bool is_hidden(uint32_t code) {
  return (code >= 0x80 && code < 0xA0) || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

void add_escaped(std::string& out, std::string_view character) {
  const uint32_t code = code_of(character);
  if (code >= 0x80 ? !is_hidden(code) : !is_control(character[0])) {
    out += character;
    return;
  }
  switch (code) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), code < 0x80 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(code));
  out += text.data();
}

size_t count_of_characters(std::string_view valid) {
  return valid.size() - static_cast<size_t>(std::count_if(valid.begin(), valid.end(), is_continuation));
}

// Where the line of `text` that holds `offset` begins.
size_t line_begin(std::string_view text, size_t offset) {
  return offset == 0 ? 0 : text.substr(0, offset).rfind('\n') + 1;  // npos + 1 is 0
}

}  // namespace

std::string_view first_character(std::string_view text) {
  size_t size = std::min<size_t>(text.size(), 1);
  if (size == 0 || static_cast<unsigned char>(text[0]) < 0xC0) return text.substr(0, size);
  while (size < std::min<size_t>(text.size(), 4) && is_continuation(text[size])) ++size;
  return text.substr(0, size);
}

bool is_utf8(std::string_view text) { return valid_utf8(text) == text; }

std::string printable(std::string_view text, size_t longest) {
  if (text.size() <= longest && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  // Four bytes make a character at most: the rest of a text of megabytes is counted in bytes and not looked at.
  const std::string valid = valid_utf8(text.substr(0, longest < text.size() / 4 ? 4 * longest + 4 : text.size()));
  std::string result;
  size_t characters = 0;
  std::string_view rest = valid;
  for (; !rest.empty() && characters < longest; ++characters) {
    const std::string_view character = first_character(rest);
    add_escaped(result, character);
    rest.remove_prefix(character.size());
  }
  if (!rest.empty()) result += "… (" + std::to_string(text.size()) + " bytes)";
  return result;
}

std::string in_quotes(std::string_view text) { return "\"" + printable(text) + "\""; }

std::string printable_lines(std::string text) {
  const auto stays = [](char c) { return is_plain(c) || c == '\n' || c == '\t'; };
  if (std::all_of(text.begin(), text.end(), stays)) return text;
  const std::string valid = valid_utf8(text);
  std::string result;
  for (std::string_view rest = valid; !rest.empty();) {
    const std::string_view character = first_character(rest);
    if (stays(character[0])) {
      result += character;
    } else {
      add_escaped(result, character);
    }
    rest.remove_prefix(character.size());
  }
  return result;
}

std::string with_caret(std::string_view text, size_t offset) {
  constexpr size_t kBefore = 60, kShown = 100;  // characters of a long line
  const size_t begin = line_begin(text, offset);
  std::string before = valid_utf8(text.substr(begin, offset - begin));
  std::string after = valid_utf8(text.substr(offset, text.substr(offset).find('\n')));
  for (std::string* part : {&before, &after}) std::replace(part->begin(), part->end(), '\t', ' ');
  std::string_view left = before;
  size_t width = count_of_characters(before);
  const bool is_long = width + count_of_characters(after) > kShown;
  std::string line;
  if (is_long && width > kBefore) {
    line = "…";
    for (; width > kBefore; --width) left.remove_prefix(first_character(left).size());
  }
  line += printable(left, std::string::npos);
  const size_t caret = count_of_characters(line);
  for (std::string_view right = after; !right.empty() && width < kShown; ++width) {
    const std::string_view character = first_character(right);
    add_escaped(line, character);
    right.remove_prefix(character.size());
    if (width + 1 == kShown && !right.empty()) line += "…";
  }
  return "\n  " + line + "\n  " + std::string(caret, ' ') + "^";
}

size_t column_of(std::string_view text, size_t offset) {
  const size_t begin = line_begin(text, offset);
  return count_of_characters(valid_utf8(text.substr(begin, offset - begin))) + 1;
}

std::string json_string(std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; };
  return std::ranges::all_of(text, is_plain) ? '"' + std::string(text) + '"' : dump(Json(text));
}

}  // namespace compute
