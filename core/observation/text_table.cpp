// SPDX-License-Identifier: Apache-2.0
#include "core/observation/text_table.hpp"

#include <algorithm>

namespace compute {
namespace {

bool is_start(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// In characters; an arrow is one character.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), is_start));
}

}  // namespace

std::string TextTable::text() const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title);
  std::vector<const std::vector<std::string>*> lines{&titles};
  for (const auto& row : rows_) lines.push_back(&row);
  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto* line : lines) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], width_of((*line)[i]));
  }
  std::string text;
  for (const auto* line : lines) {
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string& cell = (*line)[i];
      const std::string blanks(widths[i] - width_of(cell), ' ');
      text += (i > 0 ? "  " : "") + (columns_[i].is_number ? blanks + cell : cell + blanks);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string shortened(const std::string& text, size_t most) {
  if (width_of(text) <= most) return text;
  size_t end = 0;
  for (size_t characters = 0; end < text.size(); ++end) {
    if (is_start(text[end]) && characters++ == most - 3) break;
  }
  return text.substr(0, end) + "...";
}

}  // namespace compute
