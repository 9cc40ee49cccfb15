// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/offsets.hpp"

#include <algorithm>
#include <cctype>

namespace compute::opencl {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The text with comments and quoted text replaced by blanks. Every character keeps its position.
std::string without_comments(std::string_view source) {
  std::string text(source);
  const auto blank = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < std::min(end, text.size()); ++i) {
      if (text[i] != '\n') text[i] = ' ';
    }
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    size_t end = i;
    if (rest.starts_with("//")) {
      end = std::min(text.find('\n', i), text.size());
    } else if (rest.starts_with("/*")) {
      end = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
    } else if (text[i] == '"' || text[i] == '\'') {
      const char quote = text[i];
      for (end = i + 1; end < text.size() && text[end] != quote && text[end] != '\n'; ++end) {
        if (text[end] == '\\') ++end;
      }
      blank(i + 1, end);
      i = std::min(end, text.size());
      continue;
    } else {
      continue;
    }
    blank(i, end);
    i = end - 1;
  }
  return text;
}

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const bool ends = at + word.size() == text.size() || !is_word(text[at + word.size()]);
    if (begins && ends) return true;
  }
  return false;
}

// Where the word `name` is followed by a parameter list and a body: the positions of "(", ")" and "{".
struct Definition {
  size_t open, close, body;
};

std::optional<Definition> find_definition(const std::string& text, std::string_view name) {
  const auto skip_blanks = [&](size_t at) { return std::min(text.find_first_not_of(" \t\r\n", at), text.size()); };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    if ((at > 0 && is_word(text[at - 1])) || (at + name.size() < text.size() && is_word(text[at + name.size()])))
      continue;
    const size_t open = skip_blanks(at + name.size());
    if (open >= text.size() || text[open] != '(') continue;
    int depth = 0;
    size_t close = open;
    for (; close < text.size(); ++close) {
      if (text[close] == '(') ++depth;
      if (text[close] == ')' && --depth == 0) break;
    }
    if (close >= text.size()) continue;
    const size_t body = skip_blanks(close + 1);
    if (body < text.size() && text[body] == '{') return Definition{open, close, body};
  }
  return std::nullopt;
}

}  // namespace

std::optional<OffsetSource> with_offsets(std::string_view source, std::string_view name) {
  const std::string text = without_comments(source);
  const std::optional<Definition> found = find_definition(text, name);
  if (!found) return std::nullopt;
  OffsetSource result;
  std::string parameters, body;
  for (size_t begin = found->open + 1; begin < found->close;) {
    const size_t end = std::min(text.find(',', begin), found->close);
    const std::string one = text.substr(begin, end - begin);
    begin = end + 1;
    if (!parameters.empty()) parameters += ',';
    const bool is_constant = has_word(one, "__constant") || has_word(one, "constant");
    const bool is_global = has_word(one, "COMPUTE_GLOBAL") || has_word(one, "__global") || has_word(one, "global");
    result.has_offset.push_back(is_constant || is_global);
    if (!result.has_offset.back()) {
      parameters += one;
      continue;
    }
    // "global const float* x": the name is the last word.
    size_t name_end = one.size();
    while (name_end > 0 && std::isspace(static_cast<unsigned char>(one[name_end - 1])) != 0) --name_end;
    size_t name_begin = name_end;
    while (name_begin > 0 && is_word(one[name_begin - 1])) --name_begin;
    const std::string type = one.substr(0, name_begin), own = one.substr(name_begin, name_end - name_begin);
    if (own.empty() || type.find('*') == std::string::npos || type.find_first_of("()[]") != std::string::npos)
      return std::nullopt;
    std::string flat = type;  // in one line
    std::replace(flat.begin(), flat.end(), '\n', ' ');
    const std::string base = std::string(kBasePrefix) + own, offset = "compute_offset_" + own;
    parameters += type + base + ", const long " + offset;
    body += flat + own + " = (" + flat + ")((" + (is_constant ? "__constant" : "__global") + " char*)" + base + " + " +
            offset + "); ";
  }
  result.text = std::string(source.substr(0, found->open + 1)) + parameters;
  result.text += source.substr(found->close, found->body + 1 - found->close);
  result.text += ' ' + body;
  result.text += source.substr(found->body + 1);
  return result;
}

}  // namespace compute::opencl
